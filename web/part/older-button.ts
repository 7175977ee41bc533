/** The foot of a list: the way to what is older, or that there is none. */
import { html, type View } from "../ground/html.ts";
import type { Older } from "../ground/use-older.ts";
import { Notice } from "./notice.ts";

export function OlderButton({ older, none }: { older: Older<unknown>; none: string }): View {
  return html`<div class="more">
    ${older.error !== null && html`<${Notice} kind="bad">${older.error}<//>`}
    ${
      older.next === null
        ? html`<span class="quiet">${none}</span>`
        : html`<button type="button" disabled=${older.isLoading} onClick=${older.load}>
          ${older.isLoading ? "Loading…" : "Older"}</button>`
    }
  </div>`;
}
