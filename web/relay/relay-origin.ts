/** Origin of a definition and its time. */
import type { RelayItem } from "../base/answer.ts";
import { html, type View } from "../base/html.ts";
import { Ago } from "../component/time.ts";

export function RelayOrigin({ origin }: { origin: RelayItem["origin"] }): View {
  if (origin.promotedFrom !== undefined)
    return html`<span class="origin">promoted from ${origin.promotedFrom} · <${Ago} at=${origin.at} /></span>`;
  return origin.kind === "file"
    ? html`<span class="origin">from file · synced <${Ago} at=${origin.at} /></span>`
    : html`<span class="origin">edited in the dashboard · <${Ago} at=${origin.at} /></span>`;
}
