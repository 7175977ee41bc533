/** The way to make what an action names and is not there. */
import type { EventCause } from "../../src/overview/dead.ts";
import { writeQuery } from "../ground/api.ts";
import { html, type View } from "../ground/html.ts";
import { type Place, pagePath } from "../ground/place.ts";

export function MakeMissing({
  place,
  relay,
  cause: { missing },
}: {
  place: Place;
  relay: string;
  cause: Pick<EventCause, "missing">;
}): View {
  if (missing === null) return null;
  const { kind, name } = missing;
  const to =
    kind === "collection"
      ? pagePath(place, "collections") + writeQuery({ new: name, relay })
      : pagePath(place, "selling") + writeQuery({ tab: kind === "plan" ? "plans" : "", open: "new product" });
  return html`<a class="button primary" href=${to}>Make the ${kind} ${name}…</a>`;
}
