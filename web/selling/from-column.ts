/** Column with the relay and the event of a sale. */
import { html } from "../base/html.ts";
import { type Place, pagePath } from "../base/place.ts";
import type { Column } from "../component/table.ts";

export function fromColumn<Item extends { relay: string | null; eventId: string | null; origin?: string }>(
  place: Place,
): Column<Item> {
  return {
    name: "from",
    title: "From",
    priority: 3,
    size: "name",
    cell: ({ relay, eventId, origin }) =>
      html`<span class="clip">${relay === null ? (origin === "relay" ? "manual" : "your server") : html`<a href=${pagePath(place, "relays", relay)}>${relay}</a>`}${
        eventId !== null && html` · <a href=${pagePath(place, "events", eventId)}>event</a>`
      }</span>`,
  };
}
