/** The relays that hear of changes in a collection. */
import type { Listener } from "../../src/records/collection.ts";
import { html, type View } from "../ground/html.ts";
import { type Place, pagePath } from "../ground/place.ts";

export function Listeners({ place, listeners }: { place: Place; listeners: readonly Listener[] }): View {
  if (listeners.length === 0) return null;
  return html`<p class="listeners"><span class="quiet">A change here sets off </span>${listeners.map(
    ({ relay, on }, at) =>
      html`${at > 0 && ", "}<a key=${relay} href=${pagePath(place, "relays", relay)}>${relay}</a> <span class="quiet">(${on.join(", ")})</span>`,
  )}</p>`;
}
