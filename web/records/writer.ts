/** Last writer of a record, as the audit names it. Relays, people and the event are links. */
import { formatNamed, hrefOf } from "../audit/words.ts";
import { html, type View } from "../base/html.ts";
import { type Place, pagePath } from "../base/place.ts";
import { SafeText } from "../component/safe-text.ts";
import type { Record } from "./shape.ts";

const SHOWN_CHARS = 80;

export function Writer({ place, record }: { place: Place; record: Record }): View {
  const { by, eventId } = record;
  const href = hrefOf(place, by);
  const words = by.startsWith("relay:") ? by.slice("relay:".length) : formatNamed(by);
  const shown = html`<${SafeText} text=${words} limit=${SHOWN_CHARS} />`;
  return html`<span class="writer">${href === null ? html`<span title=${by}>${shown}</span>` : html`<a href=${href} title=${by}>${shown}</a>`}${
    eventId !== null &&
    html`<span><span class="quiet"> · </span><a href=${pagePath(place, "events", eventId)} title=${eventId}>event</a></span>`
  }</span>`;
}
