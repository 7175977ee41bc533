/** Where something came from: its relay and its event, each a link; or who did it by hand. */
import { html, type View } from "../base/html.ts";
import { type Place, pagePath } from "../base/place.ts";
import { SafeText } from "../component/safe-text.ts";

export function Origin({
  place,
  relay,
  eventId,
  by = null,
}: {
  place: Place;
  relay: string | null;
  eventId: string | null;
  /** In words, where no relay did it. */
  by?: string | null;
}): View {
  if (relay === null && eventId === null)
    return by === null ? null : html`<span class="quiet"><${SafeText} text=${by} limit=${80} /></span>`;
  return html`<span class="origin-links">${relay !== null && html`<a href=${pagePath(place, "relays", relay)}>${relay}</a>`}${
    eventId !== null &&
    html`${relay !== null && html`<span class="quiet"> · </span>`}<a href=${pagePath(place, "events", eventId)} title=${eventId}>its event</a>`
  }</span>`;
}
