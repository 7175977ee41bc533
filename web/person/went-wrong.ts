/** What came for a person and did not come through: events that were given up, and those that name their address and found nobody. */
import type { PersonView } from "../../src/people/person.ts";
import type { EventItem, Page } from "../ground/answer.ts";
import { writeQuery } from "../ground/api.ts";
import { html, type View } from "../ground/html.ts";
import { apiPath, type Place, pagePath } from "../ground/place.ts";
import { useLoad } from "../ground/use-load.ts";
import { Icon } from "../part/icon.ts";
import { EventLine } from "./event-line.ts";

const SHOWN = 3;
const REFRESH_MS = 10_000;

export function WentWrong({ place, person }: { place: Place; person: PersonView }): View {
  const path = (filter: Record<string, string>): string =>
    apiPath(place, "events") + writeQuery({ ...filter, limit: SHOWN });
  const dead = itemsOf(useLoad<Page<EventItem>>(path({ person: person.id, state: "dead" }), REFRESH_MS));
  const failed = itemsOf(useLoad<Page<EventItem>>(path({ person: person.id, state: "failed" }), REFRESH_MS));
  // It reads payloads, so it is not read again by the clock.
  const lost = itemsOf(useLoad<Page<EventItem>>(path({ q: person.email, state: "failed" }))).filter(
    (one) => one.person === null,
  );
  const events = [...dead, ...failed, ...lost].sort((left, right) =>
    left.createdAt < right.createdAt ? 1 : -1,
  );
  if (events.length === 0) return null;
  const all =
    pagePath(place, "events") + writeQuery({ person: person.id, state: dead.length > 0 ? "dead" : "failed" });
  return html`<section class="went-wrong" aria-labelledby="went-wrong">
    <div class="block-head"><h2 id="went-wrong"><${Icon} name="attention" />Did not come through</h2>
      <span class="quiet">Open one to see why, and to replay it.</span>
      ${(dead.length === SHOWN || failed.length === SHOWN) && html`<a href=${all}>All of them</a>`}</div>
    <ul class="event-lines">${events.map((event) => html`<${EventLine} key=${event.id} place=${place} event=${event} />`)}</ul>
  </section>`;
}

function itemsOf({ data }: { data: Page<EventItem> | undefined }): EventItem[] {
  return data?.items ?? [];
}
