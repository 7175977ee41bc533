/** Table of events: the event type and its first mapped values, the person, and the reason of a failure. */
import type { EventItem } from "../base/answer.ts";
import { formatCount } from "../base/count-words.ts";
import { html, type View } from "../base/html.ts";
import { type Place, pagePath } from "../base/place.ts";
import { breakable, escapeTricky, SafeText } from "../component/safe-text.ts";
import type { Selection } from "../component/selection.ts";
import { Sentence } from "../component/sentence.ts";
import { EventMark } from "../component/state-mark.ts";
import { type Column, Table } from "../component/table.ts";
import { Ago } from "../component/time.ts";
import { timeColumn } from "../component/time-column.ts";
import { formatReasonCode } from "./reason-words.ts";

/** Words for what a trigger records. */
export const TRIGGER_WORDS = { receiver: "webhook", schedule: "tick", data_change: "record change" } as const;

/** Words for events that their trigger did not record. */
export const WAY_WORDS = { import: "imported", test: "test" } as const;

interface Props {
  place: Place;
  events: readonly EventItem[];
  withRelay?: boolean;
  selection?: Selection;
  openId?: string;
  onOpen?: ((event: EventItem) => void) | undefined;
  onKey?: (key: string, event: EventItem) => boolean;
}

export function EventTable({ place, events, withRelay = true, ...rest }: Props): View {
  return html`<${Table} label="Events" columns=${columnsOf(place, withRelay)} items=${events} nameOf=${nameOf} ...${rest} />`;
}

function columnsOf(place: Place, withRelay: boolean): Column<EventItem>[] {
  return [
    {
      name: "state",
      title: "State",
      priority: 1,
      size: "short",
      cell: (event) => html`<${EventMark} event=${event} />`,
    },
    {
      name: "what",
      title: "Event",
      priority: 1,
      cell: (event) => html`<${What} place=${place} event=${event} />`,
    },
    ...(withRelay ? [relayColumn(place)] : []),
    {
      name: "person",
      title: "Person",
      priority: 2,
      size: "name",
      cell: ({ person }) =>
        person === null
          ? html`<${PersonName} person=${person} />`
          : html`<a class="clip" tabindex="-1" href=${pagePath(place, "people", person.id)}><${PersonName} person=${person} /></a>`,
    },
    timeColumn("time", "Arrived", 2, ({ createdAt }) => createdAt),
  ];
}

/** Column of the relay. The Tab key skips its link and the person's, because Tab moves from row to row. The event's page has both links. */
function relayColumn(place: Place): Column<EventItem> {
  return {
    name: "relay",
    title: "Relay",
    priority: 2,
    size: "name",
    cell: ({ relay }) =>
      html`<a class="clip" tabindex="-1" href=${pagePath(place, "relays", relay.name)}>${relay.name}</a>`,
  };
}

function nameOf({ id, eventType, trigger }: EventItem): string {
  return `${eventType ?? TRIGGER_WORDS[trigger]} ${id}`;
}

/** Shows what the event is about and why it failed. The whole row is its link. */
function What({ place, event }: { place: Place; event: EventItem }): View {
  const { id, eventType, preview, trigger, relay, state, cameBy, warnings, attempts } = event;
  return html`<div class="event-what">
      <a data-row href=${pagePath(place, "events", id)} title=${id}><bdi class="event-type">${breakable(eventType ?? TRIGGER_WORDS[trigger])}</bdi><span
        class="off-screen"> event ${id} of ${relay.name}, ${state}</span></a>
      ${preview !== null && html`<bdi class="event-preview quiet">${trigger === "schedule" ? html`<${Sentence} text=${preview} />` : escapeTricky(preview)}</bdi>`}
      ${cameBy !== null && html`<span class="chip event-way">${WAY_WORDS[cameBy]}</span>`}
      ${warnings > 0 && html`<span class="chip">${formatCount(warnings, "warning")}</span>`}
      ${attempts > 1 && html`<span class="chip">attempt ${attempts}</span>`}
    </div>
    ${event.reason !== null && html`<div class="event-why"><${EventReason} event=${event} /></div>`}`;
}

/** Shows why the event failed and when it is retried. */
export function EventReason({ event: { reason, waits } }: { event: EventItem }): View {
  const words = formatReasonCode(reason ?? "");
  if (waits?.for !== "retry" || waits.until === null) return words;
  return html`${words} · retried <${Ago} at=${waits.until} />`;
}

export function PersonName({ person }: { person: EventItem["person"] }): View {
  if (person === null) return html`<span class="quiet">–</span>`;
  return html`<${SafeText} text=${person.email ?? person.id} limit=${80} />`;
}
