/** Events as rows. */
import type { EventItem } from "../ground/answer.ts";
import { sayCount } from "../ground/count-words.ts";
import { html, type View } from "../ground/html.ts";
import { type Place, pagePath } from "../ground/place.ts";
import { SafeText } from "../part/safe-text.ts";
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
    <thead><tr><th scope="col">State</th>${withRelay && html`<th scope="col">Relay</th>`}<th scope="col">Person</th>
      <th scope="col">Event</th><th scope="col">Arrived</th></tr></thead>
    <tbody>${events.map(
      (event) => html`<tr key=${event.id}>
        <td class="cell-state"><${StateMark} state=${event.state} />
          ${event.reason !== null && html`<span class="quiet clip">${sayReasonCode(event.reason)}</span>`}</td>
        ${
          withRelay &&
          html`<td class="cell-name">
            <span class="clip"><b>${event.relay.name}</b> <span class="quiet">${TRIGGER_WORDS[event.trigger]}</span></span>
          </td>`
        }
        <td class="cell-person"><span class="clip"><${PersonName} person=${event.person} /></span></td>
        <td class="cell-id">
          <a data-row href=${pagePath(place, "events", event.id)} aria-label=${sayRow(event)}>${shorten(event.id)}</a>
          ${event.cameBy !== null && html`<span class="chip">${WAY_WORDS[event.cameBy]}</span>`}
          ${event.warnings > 0 && html`<span class="chip">${sayCount(event.warnings, "warning")}</span>`}
          ${event.attempts > 1 && html`<span class="chip">attempt ${event.attempts}</span>`}
        </td>
        <td class="cell-time"><${Ago} at=${event.createdAt} /></td>
      </tr>`,
    )}</tbody>
  </table>`;
}

export function PersonName({ person }: { person: EventItem["person"] }): View {
  if (person === null) return html`<span class="quiet">–</span>`;
  return html`<${SafeText} text=${person.email ?? person.id} limit=${80} />`;
}

function sayRow({ id, relay, state }: EventItem): string {
  return `Event ${id} of ${relay.name}, ${state}`;
}

/** An id's end tells events apart; its beginning is the time. */
function shorten(id: string): string {
  return id.length > 16 ? `${id.slice(0, 4)}…${id.slice(-8)}` : id;
}
