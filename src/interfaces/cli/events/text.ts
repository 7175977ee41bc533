/** Formats an event for the terminal: a line of the list, or in full what arrived and what each attempt did. */

import { writeJson } from "../../../base/json.ts";
import { cutToLine, plain } from "../../../base/text.ts";
import type { EventItem, EventView, RunView, ShownResult } from "../../../engine/event/view.ts";
import type { Column } from "../terminal/table.ts";

export const EVENT_COLUMNS: readonly Column<EventItem>[] = [
  { heading: "ARRIVED", value: (event) => event.createdAt },
  { heading: "STATE", value: (event) => event.state, tone: true },
  { heading: "RELAY", value: (event) => event.relay.name },
  { heading: "ATTEMPTS", value: (event) => String(event.attempts), right: true },
  { heading: "ID", value: (event) => event.id },
  { heading: "ABOUT", value: formatSubject, raw: true },
  { heading: "REASON", value: formatReason },
];

function formatSubject({ eventType, preview }: EventItem): string {
  // The table cuts the text on a terminal. A pipe gets all of it.
  return cutToLine([eventType, preview].filter((one) => one !== null).join(" · "), Number.POSITIVE_INFINITY);
}

function formatReason({ cameBy, reason, waits }: EventItem): string {
  return [cameBy === null ? null : WAY_WORDS[cameBy], reason, waits === null ? null : formatWaits(waits)]
    .filter((one) => one !== null)
    .join(", ");
}

/** Describes in a few words what the event waits for. */
function formatWaits({ for: what, until, ahead }: NonNullable<EventItem["waits"]>): string {
  if (what === "retry") return `next attempt ${until}`;
  if (what === "hold") return "waits: on hold";
  if (what === "pause") return "waits: paused";
  return ahead === 0 ? "next" : `waits: behind ${ahead}`;
}

const MAX_SHOWN_CHARS = 400;

/**
 * Formats an event in several lines. With `aside`, the caller shows the payload separately. A pipe gets the whole payload too, because
 * scripts search it.
 */
export function writeEvent(event: EventView, aside: boolean): string[] {
  return [
    `${event.id}  ${event.state}${event.reason === null ? "" : `: ${plain(event.reason)}`}`,
    `  relay     ${plain(event.relay.name)} (${event.trigger})`,
    `  arrived   ${event.createdAt}${event.cameBy === null ? "" : `, ${WAY_WORDS[event.cameBy]}`}`,
    ...(event.person === null ? [] : [`  person    ${event.person.id} ${plain(event.person.email ?? "")}`]),
    ...(event.nextAttemptAt === null ? [] : [`  retry     ${event.nextAttemptAt}`]),
    ...(event.waits === null || event.waits.for === "retry"
      ? []
      : [`  waits     ${plain(event.waits.message)}`]),
    ...(aside && event.expunged === null
      ? []
      : [
          `  payload   ${event.expunged !== null ? `(${formatExpunged(event.expunged)})` : plain(event.truncated ? `(cut) ${event.preview ?? ""}` : writeJson(event.payload))}`,
        ]),
    ...(event.mappedAgain ? [`  mapped    again, with version ${event.mapVersion ?? "?"} of the relay`] : []),
    ...event.warnings.map((warning) => `  warning   ${cut(warning)}`),
    ...event.runs.flatMap(writeRun),
  ];
}

/** The words for events that did not come from their trigger. */
const WAY_WORDS = { import: "imported", test: "a test" } as const;

function formatExpunged(why: NonNullable<EventView["expunged"]>): string {
  return why === "person_erased" ? "expunged: its person was erased" : "expunged manually";
}

/** Formats, in one line without a period, how the event ended and the result of each action in the last attempt. */
export function writeOutcome(event: EventView): string {
  const results = (event.runs.at(-1)?.results ?? []).map(writeResult);
  return [
    `${event.id} is ${event.state}${event.reason === null ? "" : ` (${plain(event.reason)})`}`,
    ...results,
  ]
    .join("; ")
    .replace(/\.$/, "");
}

function writeRun(run: RunView): string[] {
  return [
    `  attempt ${run.attempt} at ${run.startedAt}: ${run.outcome ?? "running"}`,
    ...run.results.flatMap((result) => [
      `    ${writeResult(result)}${writeTime(result)}`,
      ...writeExchange(result),
    ]),
  ];
}

function writeTime({ tookMs, beganAt }: ShownResult): string {
  if (tookMs === null) return "";
  return ` (${tookMs === 0 ? "under 1" : tookMs} ms${beganAt === null ? "" : `, called at ${beganAt}`})`;
}

/** Formats the request to a called URL and its response, without the bodies. --json contains everything. */
function writeExchange({ request, answer }: ShownResult): string[] {
  const headers = (of: Readonly<Record<string, string>>) =>
    Object.entries(of)
      .map(([name, value]) => `${name}: ${value}`)
      .join("; ");
  return [
    ...(request === undefined
      ? []
      : [`      sent      ${cut(`${request.method} ${request.url}; ${headers(request.headers)}`)}`]),
    ...(answer?.headers === undefined
      ? []
      : [`      answered  ${cut(`${answer.status}; ${headers(answer.headers)}`)}`]),
  ];
}

function writeResult({ type, outcome, code, message, answer }: ShownResult): string {
  const words = [`${type} ${outcome}`];
  if (code !== undefined) words.push(code);
  if (message !== undefined) words.push(answer === undefined ? message : message.replace(/\.$/, ""));
  if (answer !== undefined) words.push(`answer ${answer.status}`);
  return cut(words.join(": "));
}

function cut(text: string): string {
  const line = plain(text);
  return line.length > MAX_SHOWN_CHARS ? `${line.slice(0, MAX_SHOWN_CHARS)}…` : line;
}

/** Formats the whole payload, with exact numbers. */
export function writePayload({ payload, truncated, preview }: EventView): string {
  return truncated ? `(cut) ${preview ?? ""}` : writeJson(payload, 2);
}
