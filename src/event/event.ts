/** The event row and its states. Who stores, runs, shows or ends one has a file of its own. */
import { Refusal } from "../ground/refusal.ts";
import type { ResultCode } from "../ground/result-code.ts";
import { bytes, defineTable, flag, given, integer, json, orNull, type RowOf, text } from "../store/table.ts";

export const EVENT_STATES = ["queued", "running", "done", "failed", "dead"] as const;
export type EventState = (typeof EVENT_STATES)[number];
export const EVENT_TRIGGERS = ["receiver", "schedule", "data_change"] as const;
export type EventTrigger = (typeof EVENT_TRIGGERS)[number];

/** Final states: nothing moves them but a replay. */
export const FINAL_STATES: ReadonlySet<EventState> = new Set(["done", "failed", "dead"]);

/**
 * Why an event ended without running any action (`failed`), or why it is dead although no action failed. An event that an action
 * failed holds that failure's code as its reason, while it waits for its retry too.
 */
export type EventReason = Extract<
  ResultCode,
  | "person_not_found"
  | "person_erased"
  | "payload_expunged"
  | "unsigned_event"
  | "relay_deleted"
  | "trigger_changed"
  | "missed"
  | "interrupted"
>;

export const EVENT = defineTable({
  name: "event",
  key: ["seq"],
  columns: {
    seq: given(),
    id: text(),
    environmentId: integer(),
    relayId: text(),
    relayName: text(),
    trigger: text<EventTrigger>(),
    state: text<EventState>(),
    /** Of the last attempt, while it waits for its retry; null when it runs for the first time or as a replay. */
    reason: orNull(text()),
    /** Attempts since the arrival or the last replay, the one that runs included. */
    attempts: integer(),
    /** null while it is due now. */
    nextAttemptAt: orNull(integer()),
    /** Runs ever, replays included. */
    runs: integer(),
    replays: integer(),
    /** JSON text as it arrived: `{ event, mapped }`, `{ tick }`, `{ record, previous }`, or `{ expunged }`. */
    payload: text(),
    truncated: flag(),
    preview: orNull(text()),
    /** Whether the sender did not sign the event itself. */
    unsigned: flag(),
    dedupeHash: orNull(bytes()),
    /** Whom an earlier attempt found; null: nobody. */
    personId: orNull(text()),
    /** Of all attempts so far. */
    warnings: orNull(json<string[]>()),
    createdAt: integer(),
    /** When the present or last attempt began. */
    startedAt: orNull(integer()),
    finishedAt: orNull(integer()),
    /** Whether its body was a form; null: not known. */
    form: orNull(flag()),
    /** The relay's version whose map made `mapped`; null: not known. */
    mapVersion: orNull(integer()),
    mappedAgain: flag(),
    /** Work keys the last replay runs although they were edited after their work. */
    chosen: orNull(json<string[]>()),
  },
});

/** What a run needs of an event. */
export const EVENT_TO_RUN = EVENT.pick(
  "seq",
  "id",
  "environmentId",
  "relayId",
  "relayName",
  "trigger",
  "attempts",
  "runs",
  "payload",
  "truncated",
  "form",
  "mapVersion",
  "reason",
  "personId",
  "unsigned",
  "createdAt",
);
/** Its two lists are JSON text still, null for none: one that cannot be read fails its own event and no other of the batch. */
export type EventToRun = RowOf<typeof EVENT_TO_RUN> & { warnings: string | null; chosen: string | null };

/** What every road to an event that is not there is refused with. */
export function refuseUnknownEvent(id: string): Refusal {
  return new Refusal(
    "not_found",
    `There is no event ${id} in this environment; events are kept for 30 days.`,
  );
}
