/**
 * List of a person's events that did not succeed: dead events, failed events, events that wait for a retry, and events
 * that contain the email address but matched no person.
 */
import { useState } from "preact/hooks";
import type { PersonView } from "../../src/shop/people/person.ts";
import type { EventItem, Page } from "../base/answer.ts";
import { writeQuery } from "../base/api.ts";
import { html, type View } from "../base/html.ts";
import { invalidate } from "../base/loaded.ts";
import { apiPath, type Place, pagePath } from "../base/place.ts";
import { useLoad } from "../base/use-load.ts";
import { Icon } from "../component/icon.ts";
import { notifyDone } from "../component/toast.ts";
import { EventReplay } from "../event/event-replay.ts";
import { EventLine } from "./event-line.ts";

const SHOWN = 3;
const REFRESH_MS = 10_000;

export function FailedEvents({ place, person }: { place: Place; person: PersonView }): View {
  const [chosen, setChosen] = useState<string | null>(null);
  const path = (filter: Record<string, string>): string =>
    apiPath(place, "events") + writeQuery({ ...filter, limit: SHOWN });
  const dead = itemsOf(useLoad<Page<EventItem>>(path({ person: person.id, state: "dead" }), REFRESH_MS));
  const failed = itemsOf(useLoad<Page<EventItem>>(path({ person: person.id, state: "failed" }), REFRESH_MS));
  // This search reads payloads, so it is not polled.
  const lost = itemsOf(useLoad<Page<EventItem>>(path({ q: person.email, state: "failed" }))).filter(
    (one) => one.person === null,
  );
  const queued = itemsOf(useLoad<Page<EventItem>>(path({ person: person.id, state: "queued" }), REFRESH_MS));
  const tried = queued.filter(({ waits }) => waits?.for === "retry");
  const lies = [...dead, ...failed, ...lost];
  const events = [...lies, ...tried].sort((left, right) => (left.createdAt < right.createdAt ? 1 : -1));
  const replay =
    chosen !== null &&
    html`<${EventReplay} place=${place} id=${chosen} onClose=${() => setChosen(null)} onReplayed=${() => {
      setChosen(null);
      notifyDone("The event runs again.");
      for (const changed of ["events", "persons"]) invalidate(apiPath(place, changed));
    }} />`;
  if (events.length === 0) return replay || null;
  const state = dead.length > 0 ? "dead" : failed.length > 0 ? "failed" : "queued";
  const all = pagePath(place, "events") + writeQuery({ person: person.id, state });
  const isOver = lies.length > 0;
  return html`<section class=${isOver ? "went-wrong" : "went-wrong still-tried"} aria-labelledby="went-wrong">
    <div class="block-head"><h2 id="went-wrong"><${Icon} name=${isOver ? "attention" : "clock"} />${isOver ? "Failed events" : "Waiting events"}</h2>
      <span class="quiet">${isOver ? "Open an event to see the cause." : "Open an event to see the cause and to retry it now."}</span>
      ${[dead, failed, tried].some(({ length }) => length === SHOWN) && html`<a href=${all}>Show all</a>`}</div>
    <ul class="event-lines">${events.map((event) => html`<${EventLine} key=${event.id} place=${place} event=${event} onReplay=${lies.includes(event) ? setChosen : undefined} />`)}</ul>
    ${replay}
  </section>`;
}

function itemsOf({ data }: { data: Page<EventItem> | undefined }): EventItem[] {
  return data?.items ?? [];
}
