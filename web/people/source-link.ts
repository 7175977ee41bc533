/** Source of an entry: links to its relay and event, or the actor. */
import { html, type View } from "../base/html.ts";
import { type Place, pagePath } from "../base/place.ts";
import { SafeText } from "../component/safe-text.ts";

export function SourceLink({
  place,
  relay,
  eventId,
  by = null,
}: {
  place: Place;
  relay: string | null;
  eventId: string | null;
  /** Actor in words, if no relay caused it. */
  by?: string | null;
}): View {
  if (relay === null && eventId === null)
    return by === null ? null : html`<span class="quiet"><${SafeText} text=${by} limit=${80} /></span>`;
  return html`<span class="origin-links">${relay !== null && html`<a href=${pagePath(place, "relays", relay)}>${relay}</a>`}${
    eventId !== null &&
    html`${relay !== null && html`<span class="quiet"> · </span>`}<a href=${pagePath(place, "events", eventId)} title=${eventId}>event</a>`
  }</span>`;
}
