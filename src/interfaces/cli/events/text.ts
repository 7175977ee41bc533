/** An event as the terminal shows it: in a line of the list, and in full, what arrived and what each attempt did. */

import { writeJson } from "../../../base/json.ts";
import { cutToLine, plain } from "../../../base/text.ts";
import type { EventItem, EventView, RunView, ShownResult } from "../../../engine/event/view.ts";
import type { Column } from "../terminal/table.ts";

export const EVENT_COLUMNS: readonly Column<EventItem>[] = [
  { heading: "ARRIVED", value: (event) => event.createdAt, keep: 3 },
  { heading: "STATE", value: (event) => event.state, tone: true, keep: 1 },
  { heading: "RELAY", value: (event) => event.relay.name, cut: 10, keep: 4 },
  { heading: "ATTEMPTS", value: (event) => String(event.attempts), right: true, keep: 7 },
  { heading: "ID", value: (event) => event.id, keep: 2 },
  { heading: "ABOUT", value: sayAbout, cut: 14, keep: 6, raw: true },
  { heading: "REASON", value: sayReason, cut: 12, keep: 5 },
];

function sayAbout({ eventType, preview }: EventItem): string {
  // On a terminal the table makes it fit; a pipe gets it whole.
  return cutToLine([eventType, preview].filter((one) => one !== null).join(" · "), Number.POSITIVE_INFINITY);
}

function sayReason({ cameBy, reason, waits }: EventItem): string {
  return [cameBy === null ? null : WAY_WORDS[cameBy], reason, waits === null ? null : sayWaits(waits)]
    .filter((one) => one !== null)
    .join(", ");
}

/** In a word or two. */
function sayWaits({ for: what, until, ahead }: NonNullable<EventItem["waits"]>): string {
  if (what === "retry") return `next try ${until}`;
  if (what === "hold") return "waits: on hold";
  if (what === "pause") return "waits: paused";
  return ahead === 0 ? "next" : `waits: behind ${ahead}`;
}

const MAX_SHOWN_CHARS = 400;

/** Several lines; `aside`: the payload is shown by itself. Whole it is either way: who reads a pipe looks for words in it. */
export function writeEvent(event: EventView, aside: boolean): string[] {
  return [
    `${event.id}  ${event.state}${event.reason === null ? "" : `: ${plain(event.reason)}`}`,
    `  relay     ${plain(event.relay.name)} (${event.trigger})`,
    `  arrived   ${event.createdAt}${event.cameBy === null ? "" : `, ${WAY_WORDS[event.cameBy]}`}`,
    ...(event.person === null ? [] : [`  person    ${event.person.id} ${plain(event.person.email ?? "")}`]),
    ...(event.nextAttemptAt === null ? [] : [`  next try  ${event.nextAttemptAt}`]),
    ...(event.waits === null || event.waits.for === "retry"
      ? []
      : [`  waits     ${plain(event.waits.message)}`]),
    ...(aside && event.expunged === null
      ? []
      : [
          `  payload   ${event.expunged !== null ? `(${sayExpunged(event.expunged)})` : plain(event.truncated ? `(cut) ${event.preview ?? ""}` : writeJson(event.payload))}`,
        ]),
    ...(event.mappedAgain ? [`  mapped    again with version ${event.mapVersion ?? "?"} of the relay`] : []),
    ...event.warnings.map((warning) => `  warning   ${cut(warning)}`),
    ...event.runs.flatMap(writeRun),
  ];
}

/** How an event came that its trigger did not bring. */
const WAY_WORDS = { import: "imported", test: "a test" } as const;

function sayExpunged(why: NonNullable<EventView["expunged"]>): string {
  return why === "person_erased" ? "expunged: its person was erased" : "expunged by hand";
}

/** One line without its full stop: how it ended, and what each action of the last attempt said. */
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

/** What left for a called URL and what came back, but for the bodies; all of it is in --json. */
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

/** The whole payload, its numbers exact. */
export function writePayload({ payload, truncated, preview }: EventView): string {
  return truncated ? `(cut) ${preview ?? ""}` : writeJson(payload, 2);
}
