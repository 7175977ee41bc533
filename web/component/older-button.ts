/** Foot of a list: a button that loads older items, or a text if there are none. */
import { html, type View } from "../base/html.ts";
import type { List } from "../base/use-list.ts";
import { Notice } from "./notice.ts";
import { Sentence } from "./sentence.ts";

export function OlderButton({ list, none }: { list: List<unknown>; none: string }): View {
  return html`<div class="more">
    ${list.error !== null && html`<${Notice} kind="bad"><${Sentence} text=${list.error} /><//>`}
    ${
      list.next === null
        ? html`<span class="quiet">${none}</span>`
        : html`<button type="button" disabled=${list.isLoadingOlder} onClick=${list.loadOlder}>
          ${list.isLoadingOlder ? "Loading…" : "Older"}</button>`
    }
  </div>`;
}
