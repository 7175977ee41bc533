/** One event as text: what arrived, and what each attempt did. Values come from outside, so every one is made plain first. */
import type { EventView, RunView, ShownResult } from "../event/view.ts";
import { writeJson } from "../ground/json.ts";
import { plain } from "./table.ts";

const MAX_SHOWN_CHARS = 400;

/** Several lines. */
export function writeEvent(event: EventView): string {
  const lines = [
    `${event.id}  ${event.state}${event.reason === null ? "" : `: ${plain(event.reason)}`}`,
    `  relay     ${plain(event.relay.name)} (${event.trigger})`,
    `  arrived   ${event.createdAt}`,
    ...(event.person === null ? [] : [`  person    ${event.person.id} ${plain(event.person.email ?? "")}`]),
    ...(event.nextAttemptAt === null ? [] : [`  next try  ${event.nextAttemptAt}`]),
    `  payload   ${event.expunged !== null ? `(${sayExpunged(event.expunged)})` : cut(event.truncated ? `(cut) ${event.preview ?? ""}` : writeJson(event.payload))}`,
    ...(event.mappedAgain ? [`  mapped    again with version ${event.mapVersion ?? "?"} of the relay`] : []),
    ...event.warnings.map((warning) => `  warning   ${cut(warning)}`),
    ...event.runs.flatMap(writeRun),
  ];
  return lines.join("\n");
}

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
    ...run.results.map((result) => `    ${writeResult(result)}`),
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
