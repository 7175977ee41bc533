/** The event row and its states, as the other files of this room and the runner see them. It runs no SQL. */

import { Refusal } from "../ground/refusal.ts";
import type { ResultCode } from "../ground/result-code.ts";

export type EventState = "queued" | "running" | "done" | "failed" | "dead";
export type EventTrigger = "receiver" | "schedule" | "data_change";

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

/** What a run needs of an event. */
export interface EventToRun {
  seq: number;
  id: string;
  environmentId: number;
  relayId: string;
  relayName: string;
  trigger: EventTrigger;
  /** Attempts since the arrival or the last replay, this one included once it is claimed. */
  attempts: number;
  /** Runs ever, replays included. */
  runs: number;
  payload: string;
  truncated: number;
  /** The relay's version whose map made `mapped`; null: not known. */
  mapVersion: number | null;
  /** Whom an earlier attempt found; null: nobody. */
  personId: string | null;
  /** Of the last attempt, while it waits for its retry; null when it runs for the first time or as a replay. */
  reason: string | null;
  /** Work keys the last replay runs although they were edited after their work, a JSON list; null: none. */
  chosen: string | null;
  unsigned: number;
  /** 1: its body was a form; null: not known. */
  form: number | null;
  /** Milliseconds since the epoch. */
  createdAt: number;
  /** Of earlier attempts, a JSON list; null: none. */
  warnings: string | null;
}

/** Columns of EventToRun. */
export const EVENT_TO_RUN_COLUMNS =
  "seq, id, environment_id AS environmentId, relay_id AS relayId, relay_name AS relayName, trigger, attempts, runs, payload, truncated, form, map_version AS mapVersion, reason, person_id AS personId, chosen, unsigned, warnings, created_at AS createdAt";

/** What every road to an event that is not there is refused with. */
export function refuseUnknownEvent(id: string): Refusal {
  return new Refusal(
    "not_found",
    `There is no event ${id} in this environment; events are kept for 30 days.`,
  );
}
