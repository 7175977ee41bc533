/** The options by which events are chosen, and the filter they make. */
import type { EventFilter } from "../event/event-list.ts";
import { type Input, type Option, UsageError } from "./command.ts";

const STATES = ["queued", "running", "done", "failed", "dead"] as const;
const TRIGGERS = ["receiver", "schedule", "data_change"] as const;

export const EVENT_FILTERS: readonly Option[] = [
  { name: "relay", value: "<name>", help: "only this relay's" },
  { name: "state", value: "<state>", help: STATES.join(", ") },
  { name: "trigger", value: "<kind>", help: TRIGGERS.join(", ") },
  { name: "person", value: "<person id>", help: "only this person's" },
];

/** Throws UsageError. */
export function readEventFilter(input: Input): EventFilter {
  return {
    relay: input.text("relay") ?? undefined,
    state: input.choice("state", STATES) ?? undefined,
    trigger: input.choice("trigger", TRIGGERS) ?? undefined,
    person: input.text("person") ?? undefined,
    q: input.text("text") ?? undefined,
    sinceMs: readTime(input, "since"),
    untilMs: readTime(input, "until"),
  };
}

function readTime(input: Input, name: string): number | undefined {
  const text = input.text(name);
  if (text === null) return undefined;
  const time = /^\d{4}-\d{2}-\d{2}/.test(text) ? Date.parse(text) : Number.NaN;
  if (!Number.isNaN(time)) return time;
  throw new UsageError(`--${name} is ${JSON.stringify(text)}: write a time such as 2030-01-31T12:00:00Z.`);
}
