/** One event as text: what arrived, and what each attempt did. Values come from outside, so every one is made plain first. */
import type { EventView, RunView } from "../event/event-view.ts";
import { isJsonObject, type Json, scalarText, writeJson } from "../ground/json.ts";
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
    ...asList(event.warnings).map((warning) => `  warning   ${cut(show(warning))}`),
    ...event.runs.flatMap(writeRun),
  ];
  return lines.join("\n");
}

function sayExpunged(why: NonNullable<EventView["expunged"]>): string {
  return why === "person_erased" ? "expunged: its person was erased" : "expunged by hand";
}

/** One line without its full stop: how it ended, and what each action of the last attempt said. */
export function writeOutcome(event: EventView): string {
  const results = asList(event.runs.at(-1)?.results ?? null).map(writeResult);
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
    ...asList(run.results).map((result) => `    ${writeResult(result)}`),
  ];
}

function writeResult(result: Json): string {
  if (!isJsonObject(result)) return show(result);
  const { type = "", outcome = "", code, message, answer } = result;
  const words = [`${show(type)} ${show(outcome)}`];
  if (code !== undefined) words.push(show(code));
  if (message !== undefined) words.push(show(message));
  if (isJsonObject(answer ?? null)) words.push(`answer ${show((answer as { status?: Json }).status ?? "")}`);
  return cut(words.join(": "));
}

function asList(value: Json): readonly Json[] {
  return Array.isArray(value) ? value : [];
}

function show(value: Json): string {
  return plain(scalarText(value) ?? writeJson(value));
}

function cut(text: string): string {
  const line = plain(text);
  return line.length > MAX_SHOWN_CHARS ? `${line.slice(0, MAX_SHOWN_CHARS)}…` : line;
}
