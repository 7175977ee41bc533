/** List of the relays that a change in a collection triggers. */
import type { Listener } from "../../src/shop/records/collection.ts";
import { html, type View } from "../base/html.ts";
import { type Place, pagePath } from "../base/place.ts";

/** `changes` limits the kinds of change. For example, an existing record cannot be created again. */
export function Listeners({
  place,
  listeners,
  changes = ["created", "updated", "deleted"],
}: {
  place: Place;
  listeners: readonly Listener[];
  changes?: Listener["on"];
}): View {
  const heard = listeners
    .map(({ relay, on }) => ({ relay, on: on.filter((change) => changes.includes(change)) }))
    .filter(({ on }) => on.length > 0);
  if (heard.length === 0) return null;
  return html`<p class="listeners"><span class="quiet">A change here starts </span>${heard.map(
    ({ relay, on }, at) =>
      html`${at > 0 && ", "}<a key=${relay} href=${pagePath(place, "relays", relay)}>${relay}</a> <span class="quiet">(${on.join(", ")})</span>`,
  )}</p>`;
}
