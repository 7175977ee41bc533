/**
 * The event row, its states, and the queries for due events. A `queued` event without `nextAttemptAt` is due now; with it, the event waits for its
 * retry. Other files store, run, show and end events.
 */

import type { ResultCode } from "../../base/code/result-code.ts";
import { numberedId, readNumberedId } from "../../base/id.ts";
import { isJsonObject, type Json, type JsonObject, scalarText } from "../../base/json.ts";
import { Refusal } from "../../base/refusal.ts";
import type { Reader, Writer } from "../../store/port.ts";
import { bytes, defineTable, flag, integer, json, orNull, type RowOf, text } from "../../store/table.ts";

export const EVENT_STATES = ["queued", "running", "done", "failed", "dead"] as const;
export type EventState = (typeof EVENT_STATES)[number];
export const EVENT_TRIGGERS = ["receiver", "schedule", "data_change"] as const;
export type EventTrigger = (typeof EVENT_TRIGGERS)[number];

/** The ways in which an event is created other than by its trigger: from an import of missed deliveries, or as a test. */
export const EVENT_WAYS = ["import", "test"] as const;
export type EventWay = (typeof EVENT_WAYS)[number];

/** Final states: only a replay moves an event out of them. */
export const FINAL_STATES: ReadonlySet<EventState> = new Set(["done", "failed", "dead"]);

/**
 * The reason why an event failed without running an action, or died without a failed action. If an action failed, the event's reason is the code of
 * that failure instead, also while it waits for its retry.
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

/** The key of work that a replay chose to do again. A pair also names the other person that the earlier work was done for. */
export type ChosenKey = string | readonly [key: string, doneFor: string];

export const EVENT = defineTable({
  name: "event",
  key: ["seq"],
  columns: {
    /** Increases, and is never reused. */
    seq: integer(),
    /** The id from an earlier version; null if the id is derived from the time and the number. */
    formerId: orNull(text()),
    environmentId: integer(),
    /** The relay's name, by its key in `relay_name`. */
    nameKey: integer(),
    /** The relay, by its key in `relay_key`. A relay that is created again under the same name has another key. */
    relayKey: integer(),
    trigger: text<EventTrigger>(),
    state: text<EventState>(),
    /** The reason of the last attempt; null for a first run and for a replay. */
    reason: orNull(text()),
    /** Attempts since the arrival or the last replay, the current one included. */
    attempts: integer(),
    /** The time of its retry; null if it is due now, or does not wait. */
    nextAttemptAt: orNull(integer()),
    /** All runs, replays included. */
    runs: integer(),
    replays: integer(),
    /** JSON text as it arrived: `{ event, mapped }`, `{ tick }`, `{ record, previous }`, or `{ expunged }`. */
    payload: text(),
    truncated: flag(),
    preview: orNull(text()),
    /** True if the sender did not sign the event itself. */
    unsigned: flag(),
    dedupeHash: orNull(bytes()),
    /** The person that an earlier attempt found, or null. */
    personId: orNull(text()),
    /** The warnings of all attempts so far. */
    warnings: orNull(json<string[]>()),
    createdAt: integer(),
    /** The time when the current or last attempt began. */
    startedAt: orNull(integer()),
    finishedAt: orNull(integer()),
    /** True if its body was a form; null if unknown. */
    form: orNull(flag()),
    /** The relay's version whose map made `mapped`; null if unknown. */
    mapVersion: orNull(integer()),
    mappedAgain: flag(),
    /** The work that the last replay chose to do again. */
    chosen: orNull(json<ChosenKey[]>()),
    /** The way in which it was created; null if its trigger created it. */
    source: orNull(text<EventWay>()),
  },
});

/** The columns that a run needs. */
const EVENT_TO_RUN = EVENT.pick(
  "seq",
  "formerId",
  "environmentId",
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
  "source",
);
/** `warnings` and `chosen` are unparsed JSON, so that invalid JSON fails only its own event and not the batch. */
export type EventToRun = RowOf<typeof EVENT_TO_RUN> & {
  id: string;
  relayName: string;
  warnings: string | null;
  chosen: string | null;
};

/** A new event in memory, on its way to its run. `payload`: the parsed text; null if not parsed. */
export interface BufferedEvent {
  relayId: string;
  event: EventToRun;
  payload: JsonObject | null;
}

/** Selects the texts of an event's keys. Both outlive the relay. */
export const RELAY_NAME = "(SELECT name FROM relay_name WHERE key = event.name_key) AS relayName";
export const RELAY_ID = "(SELECT relay_id FROM relay_key WHERE key = event.relay_key) AS relayId";

/** Returns the public id of an event. Rows of earlier versions keep the id that they had. */
export function eventIdOf(event: Pick<RowOf<typeof EVENT>, "seq" | "createdAt" | "formerId">): string {
  return event.formerId ?? numberedId("evt", event.createdAt, event.seq);
}

/** Finds the number of the event with this id in this environment, or null. */
export async function findEventSeq(tx: Reader, environmentId: number, id: string): Promise<number | null> {
  const made = readNumberedId("evt", id);
  const found =
    made === null
      ? await tx.get<{ seq: number }>(
          "SELECT seq FROM event WHERE former_id = $id AND environment_id = $environmentId",
          { id, environmentId },
        )
      : await tx.get<{ seq: number }>(
          "SELECT seq FROM event WHERE seq = $seq AND created_at = $atMs AND former_id IS NULL AND environment_id = $environmentId",
          { ...made, environmentId },
        );
  return found?.seq ?? null;
}

/** Finds the event with this id as a run would take it, whatever its state; else null. */
export async function findEventToRun(
  tx: Reader,
  environmentId: number,
  id: string,
): Promise<EventToRun | null> {
  const seq = await findEventSeq(tx, environmentId, id);
  const stored = await tx.get<Pick<EventToRun, "relayName" | "warnings" | "chosen">>(
    `SELECT ${EVENT_TO_RUN.columns}, ${RELAY_NAME}, warnings, chosen FROM event WHERE seq = ?1`,
    seq,
  );
  return stored === null ? null : { ...EVENT_TO_RUN.read(stored), id };
}

/** Lists the ids of relays with a due event. It reads one event of each relay, so the length of the queue does not matter. */
export async function listReadyRelays(tx: Reader): Promise<string[]> {
  const rows = await tx.all<{ relayId: string }>(
    `SELECT relay_id AS relayId FROM relay_key
     WHERE (SELECT seq FROM event INDEXED BY event_ready
       WHERE relay_key = relay_key.key AND state = 'queued' AND next_attempt_at IS NULL ORDER BY seq LIMIT 1) IS NOT NULL
     ORDER BY key`,
  );
  return rows.map(({ relayId }) => relayId);
}

/** Lists the oldest due events of a relay after the number `after`, in the order of arrival. It does not claim them. */
export async function listDueEvents(
  tx: Reader,
  relayId: string,
  limit: number,
  after = 0,
): Promise<EventToRun[]> {
  const values = { relayId, limit, after };
  const rows = await tx.all<Pick<EventToRun, "relayName" | "warnings" | "chosen">>(DUE, values);
  return rows.map((stored) => {
    const row = EVENT_TO_RUN.read(stored);
    return { ...row, id: eventIdOf(row) };
  });
}

const DUE = `SELECT ${EVENT_TO_RUN.columns}, ${RELAY_NAME}, warnings, chosen FROM event INDEXED BY event_ready
  WHERE relay_key = (SELECT key FROM relay_key WHERE relay_id = $relayId) AND state = 'queued' AND next_attempt_at IS NULL AND seq > $after
  ORDER BY seq LIMIT $limit`;

/** Returns a copy of the event with its next attempt counted. */
export function countAttempt(event: EventToRun): EventToRun {
  return { ...event, attempts: event.attempts + 1, runs: event.runs + 1 };
}

/** Claims a due event: it becomes `running`, and its attempt counts. */
export async function claimEvent(tx: Writer, due: EventToRun, nowMs: number): Promise<EventToRun> {
  const event = countAttempt(due);
  const { seq, attempts, runs } = event;
  await EVENT.change(tx, { seq }, { state: "running", attempts, runs, startedAt: nowMs });
  return event;
}

/** Returns the refusal for an event that does not exist in the environment. */
export function rejectUnknownEvent(id: string): Refusal {
  return new Refusal(
    "not_found",
    `There is no event ${id} in this environment, where events are kept for 30 days: relay events list shows the existing ones.`,
  );
}

/** `person_erased`: its person was erased. `payload_expunged`: a user expunged the payload. */
export const EXPUNGED = ["person_erased", "payload_expunged"] as const satisfies EventReason[];
export type Expunged = (typeof EXPUNGED)[number];

/** Returns why a stored payload was expunged, or null. A sender cannot fake this, because its data is nested below the service's own names. */
export function readExpunged(payload: Json): Expunged | null {
  return (isJsonObject(payload) && EXPUNGED.find((why) => why === payload.expunged)) || null;
}

/** Returns the owner of the record in the payload of a data change, otherwise its recipient; null if it has neither, or another trigger's payload. */
export function readRecordPerson(payload: JsonObject): string | null {
  const record = isJsonObject(payload.record) ? payload.record : payload.previous;
  return isJsonObject(record) ? (scalarText(record.owner) ?? scalarText(record.recipient)) : null;
}
