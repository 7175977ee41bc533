/**
 * What is shown on a terminal: lists in aligned columns with a heading, or as JSON; and one event, what arrived and what each attempt did.
 * Values come from payloads too, so every one is made plain first.
 */
import type { EventView, RunView, ShownResult } from "../event/view.ts";
import { writeJson } from "../ground/json.ts";
import { plain } from "../ground/text.ts";
import type { Input } from "./command.ts";
import type { World } from "./world.ts";

interface Columns<Item> {
  headings: readonly string[];
  row: (item: Item) => readonly string[];
  /** What to tell when there is nothing. */
  none: string;
}

/** Writes the rows under their headings, or says `none` on standard error; with --json, the items as they are. */
export function sayList<Item>(
  input: Input,
  world: World,
  items: readonly Item[],
  { headings, row, none }: Columns<Item>,
): void {
  if (input.on("json")) world.say(writeJson({ items }, 2));
  else if (items.length === 0) world.tell(none);
  else world.say(writeTable(headings, items.map(row)));
}

export function writeTable(headings: readonly string[], rows: readonly (readonly string[])[]): string {
  const lines = [headings, ...rows].map((row) => row.map(plain));
  const widths = headings.map((_, column) =>
    Math.max(...lines.map((line) => [...(line[column] ?? "")].length)),
  );
  return lines
    .map((line) =>
      line
        .map((cell, column) => cell + " ".repeat((widths[column] ?? 0) - [...cell].length))
        .join("  ")
        .trimEnd(),
    )
    .join("\n");
}

const MAX_SHOWN_CHARS = 400;

/** Several lines. */
export function writeEvent(event: EventView): string {
  const lines = [
    `${event.id}  ${event.state}${event.reason === null ? "" : `: ${plain(event.reason)}`}`,
    `  relay     ${plain(event.relay.name)} (${event.trigger})`,
    `  arrived   ${event.createdAt}${event.cameBy === null ? "" : `, ${WAY_WORDS[event.cameBy]}`}`,
    ...(event.person === null ? [] : [`  person    ${event.person.id} ${plain(event.person.email ?? "")}`]),
    ...(event.nextAttemptAt === null ? [] : [`  next try  ${event.nextAttemptAt}`]),
    ...(event.waits === null || event.waits.for === "retry"
      ? []
      : [`  waits     ${plain(event.waits.message)}`]),
    `  payload   ${event.expunged !== null ? `(${sayExpunged(event.expunged)})` : cut(event.truncated ? `(cut) ${event.preview ?? ""}` : writeJson(event.payload))}`,
    ...(event.mappedAgain ? [`  mapped    again with version ${event.mapVersion ?? "?"} of the relay`] : []),
    ...event.warnings.map((warning) => `  warning   ${cut(warning)}`),
    ...event.runs.flatMap(writeRun),
  ];
  return lines.join("\n");
}

/** How an event came that its trigger did not bring. */
export const WAY_WORDS = { import: "imported", test: "a test" } as const;

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
  if (message !== undefined) words.push(message);
  if (answer !== undefined) words.push(`answer ${answer.status}`);
  return cut(words.join(": "));
}

function cut(text: string): string {
  const line = plain(text);
  return line.length > MAX_SHOWN_CHARS ? `${line.slice(0, MAX_SHOWN_CHARS)}…` : line;
}
