/**
 * The event row and its states, which are due, and taking them. `queued` with no time is due now; `queued` with a time waits for its retry. Who
 * stores, runs, shows or ends one has a file of its own.
 */
import { numberedId, readNumberedId } from "../../base/id.ts";
import { isJsonObject, type Json, type JsonObject, scalarText } from "../../base/json.ts";
import { Refusal } from "../../base/refusal.ts";
import type { ResultCode } from "../../base/result-code.ts";
import type { Reader, Writer } from "../../store/port.ts";
import { bytes, defineTable, flag, integer, json, orNull, type RowOf, text } from "../../store/table.ts";

export const EVENT_STATES = ["queued", "running", "done", "failed", "dead"] as const;
export type EventState = (typeof EVENT_STATES)[number];
export const EVENT_TRIGGERS = ["receiver", "schedule", "data_change"] as const;
export type EventTrigger = (typeof EVENT_TRIGGERS)[number];

/** How an event came that its trigger did not bring: out of an export of what a provider never delivered, or sent as a test. */
export const EVENT_WAYS = ["import", "test"] as const;
export type EventWay = (typeof EVENT_WAYS)[number];

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
    /** Rises, and is never given twice. */
    seq: integer(),
    /** null: its id is made of its time and its number. */
    formerId: orNull(text()),
    environmentId: integer(),
    /** Stands for the relay's name: `relay_name`. */
    nameKey: integer(),
    /** Stands for the relay: `relay_key`. One that was made again under a name is another. */
    relayKey: integer(),
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
    /** null: by its trigger. */
    cameBy: orNull(text<EventWay>()),
  },
});

/** What a run needs of an event. */
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
);
/** Its two lists are JSON text still, null for none: one that cannot be read fails its own event and no other of the batch. */
export type EventToRun = RowOf<typeof EVENT_TO_RUN> & {
  id: string;
  relayName: string;
  warnings: string | null;
  chosen: string | null;
};

/** A new event in memory, on its way to its run. `payload`: the parsed text; null: not parsed. */
export interface BufferedEvent {
  relayId: string;
  event: EventToRun;
  payload: JsonObject | null;
}

/** Selected beside an event's own columns: the texts that its keys stand for. Both outlive the relay. */
export const RELAY_NAME = "(SELECT name FROM relay_name WHERE key = event.name_key) AS relayName";
export const RELAY_ID = "(SELECT relay_id FROM relay_key WHERE key = event.relay_key) AS relayId";

/** The event's id wherever one is shown, sent or written down. Rows of earlier versions keep the one they had. */
export function eventIdOf(event: Pick<RowOf<typeof EVENT>, "seq" | "createdAt" | "formerId">): string {
  return event.formerId ?? numberedId("evt", event.createdAt, event.seq);
}

/** The number of the event with this id in this environment, or null. */
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

/** The event with this id in this environment as a run would take it, whatever its state; null: there is none. */
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

/** Ids of the relays that have an event due now; a hop through the index, however long the queue. */
export async function listReadyRelays(tx: Reader): Promise<string[]> {
  const rows = await tx.all<{ relayId: string }>(
    `WITH RECURSIVE ready (key) AS (
       SELECT min(relay_key) FROM event INDEXED BY event_ready WHERE state = 'queued' AND next_attempt_at IS NULL
       UNION ALL
       SELECT (SELECT min(relay_key) FROM event INDEXED BY event_ready
               WHERE state = 'queued' AND next_attempt_at IS NULL AND relay_key > ready.key)
       FROM ready WHERE ready.key IS NOT NULL)
     SELECT relay_key.relay_id AS relayId FROM ready CROSS JOIN relay_key ON relay_key.key = ready.key`,
  );
  return rows.map(({ relayId }) => relayId);
}

/** The oldest due events of a relay, or the oldest behind the one numbered `after`, in arrival order, not taken. */
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

/** The event as it is once its next attempt counts. */
export function countAttempt(event: EventToRun): EventToRun {
  return { ...event, attempts: event.attempts + 1, runs: event.runs + 1 };
}

/** Takes a due event: it is `running` and its attempt counts from here on. */
export async function claimEvent(tx: Writer, due: EventToRun, nowMs: number): Promise<EventToRun> {
  const event = countAttempt(due);
  const { seq, attempts, runs } = event;
  await EVENT.change(tx, { seq }, { state: "running", attempts, runs, startedAt: nowMs });
  return event;
}

/** What every road to an event that is not there is refused with. */
export function refuseUnknownEvent(id: string): Refusal {
  return new Refusal(
    "not_found",
    `There is no event ${id} in this environment, where events are kept for 30 days: relay events list shows the ones there are.`,
  );
}

/** `person_erased`: its person was erased; `payload_expunged`: somebody took the payload out by hand. */
export const EXPUNGED = ["person_erased", "payload_expunged"] as const satisfies EventReason[];
export type Expunged = (typeof EXPUNGED)[number];

/** Why a stored payload is not there any more, or null. What arrives stands below names of the service's own, so no sender writes this. */
export function readExpunged(payload: Json): Expunged | null {
  return (isJsonObject(payload) && EXPUNGED.find((why) => why === payload.expunged)) || null;
}

/** The owner of the record in a record change's payload, otherwise its recipient; null: neither, or another payload. */
export function readRecordPerson(payload: JsonObject): string | null {
  const record = isJsonObject(payload.record) ? payload.record : payload.previous;
  return isJsonObject(record) ? (scalarText(record.owner) ?? scalarText(record.recipient)) : null;
}
