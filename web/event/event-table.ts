/** Events as rows that say what happened: the event's type and its first mapped values, whose it is, and why one failed. */
import type { EventItem } from "../ground/answer.ts";
import { sayCount } from "../ground/count-words.ts";
import { html, type View } from "../ground/html.ts";
import { type Place, pagePath } from "../ground/place.ts";
import { escapeTricky, SafeText } from "../part/safe-text.ts";
import { StateMark } from "../part/state-mark.ts";
import { Ago } from "../part/time.ts";
import { sayReasonCode } from "./reason-words.ts";

/** A trigger in a word, as what came. */
export const TRIGGER_WORDS = { receiver: "webhook", schedule: "tick", data_change: "record change" } as const;

/** How an event came that its trigger did not bring. */
export const WAY_WORDS = { import: "imported", test: "test" } as const;

export function EventTable({
  place,
  events,
  withRelay = true,
}: {
  place: Place;
  events: readonly EventItem[];
  withRelay?: boolean;
}): View {
  return html`<table class=${withRelay ? "list events" : "list events events-own"}>
    <thead><tr><th scope="col">State</th><th scope="col">Event</th><th scope="col">Person</th>
      ${withRelay && html`<th scope="col">Relay</th>`}<th scope="col">Arrived</th></tr></thead>
    <tbody>${events.map(
      (event) => html`<tr key=${event.id}>
        <td class="cell-state"><${StateMark} state=${event.state} /></td>
        <td class="cell-what"><${What} place=${place} event=${event} /></td>
        <td class="cell-person"><span class="clip"><${PersonName} person=${event.person} /></span></td>
        ${withRelay && html`<td class="cell-relay"><span class="clip">${event.relay.name}</span></td>`}
        <td class="cell-time"><${Ago} at=${event.createdAt} /></td>
      </tr>`,
    )}</tbody>
  </table>`;
}

/** What it is about, and below it why it failed. The whole row is its link. */
function What({ place, event }: { place: Place; event: EventItem }): View {
  const { id, eventType, preview, trigger, relay, state, cameBy, warnings, attempts } = event;
  return html`<div class="event-what">
      <a data-row href=${pagePath(place, "events", id)} title=${id}><bdi class="event-type">${escapeTricky(eventType ?? TRIGGER_WORDS[trigger])}</bdi><span
        class="off-screen"> event ${id} of ${relay.name}, ${state}</span></a>
      ${preview !== null && html`<bdi class="event-preview quiet">${escapeTricky(preview)}</bdi>`}
      ${cameBy !== null && html`<span class="chip">${WAY_WORDS[cameBy]}</span>`}
      ${warnings > 0 && html`<span class="chip">${sayCount(warnings, "warning")}</span>`}
      ${attempts > 1 && html`<span class="chip">attempt ${attempts}</span>`}
    </div>
    ${event.reason !== null && html`<div class="event-why">${sayReason(event)}</div>`}`;
}

function sayReason({ reason, waits }: EventItem): View {
  const words = sayReasonCode(reason ?? "");
  if (waits?.for !== "retry" || waits.until === null) return words;
  return html`${words} · tried again <${Ago} at=${waits.until} />`;
}

export function PersonName({ person }: { person: EventItem["person"] }): View {
  if (person === null) return html`<span class="quiet">–</span>`;
  return html`<${SafeText} text=${person.email ?? person.id} limit=${80} />`;
}
