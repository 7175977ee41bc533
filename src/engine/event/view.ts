/** An event as the API shows it: in full with its payload and runs, or as an item of the list. */
import { type Static, Type } from "typebox";
import { toIso, toIsoOrNull } from "../../base/clock.ts";
import type { ResultCode } from "../../base/code/result-code.ts";
import { type Json, parseJson } from "../../base/json.ts";
import { oneOf, orNull, payloadJson, payloadText, time, timeOrNull } from "../../base/schema.ts";
import type { StoredResult } from "../../rules/action/contract.ts";
import { type LookedAt, reach } from "../../store/index-scan.ts";
import type { Reader } from "../../store/port.ts";
import type { RowOf } from "../../store/table.ts";
import {
  EVENT,
  EVENT_STATES,
  EVENT_TRIGGERS,
  EVENT_WAYS,
  EXPUNGED,
  eventIdOf,
  findEventSeq,
  RELAY_ID,
  RELAY_NAME,
  readExpunged,
  rejectUnknownEvent,
} from "./event.ts";
import { findEventType } from "./preview.ts";
import { RUN } from "./run.ts";
import { explainWaiting, type Waiting, waitingView } from "./wait-reason.ts";

const MAX_SHOWN_RUNS = 100;

const summary = {
  id: Type.String(),
  relay: Type.Object({ id: Type.String(), name: Type.String() }),
  trigger: oneOf(EVENT_TRIGGERS),
  state: oneOf(EVENT_STATES),
  reason: orNull(Type.String()),
  attempts: Type.Integer(),
  nextAttemptAt: timeOrNull,
  /** The reason why a queued event waits. */
  waits: orNull(waitingView),
  person: orNull(Type.Object({ id: Type.String(), email: orNull(Type.String()) })),
  truncated: Type.Boolean(),
  /** The way in which it was created; null if its trigger created it. */
  cameBy: orNull(oneOf(EVENT_WAYS)),
  createdAt: time,
  finishedAt: timeOrNull,
};

/** An event in a list: all but its payload and runs. */
export const eventItem = Type.Object({
  ...summary,
  warnings: Type.Integer(),
  /** The first 100 characters of the mapped event_type, or null. */
  eventType: orNull(Type.String()),
  /** The first mapped names and values in a line of at most 200 characters; null if there are none, or the payload is expunged. */
  preview: orNull(payloadText),
});
export type EventItem = Static<typeof eventItem>;
/** An item before its payload is read. */
export type ListedEvent = Omit<EventItem, "eventType" | "preview">;

const headersView = Type.Record(Type.String(), payloadText);

/** The result of an action in a run; `type` is `person` if the person could not be found. `docs`: the page that explains the code. */
const resultView = Type.Object({
  type: Type.String(),
  outcome: oneOf(["done", "skipped", "failed"]),
  code: Type.Optional(Type.Unsafe<ResultCode>(Type.String())),
  message: Type.Optional(payloadText),
  before: Type.Optional(Type.Unsafe<Json>(payloadJson)),
  after: Type.Optional(Type.Unsafe<Json>(payloadJson)),
  /** The request to a called URL; its body was the notice. The digest of the signature is not stored. */
  request: Type.Optional(
    Type.Object({ method: Type.Literal("POST"), url: payloadText, headers: headersView }),
  ),
  /** The response of the URL. Headers with credentials are not stored; earlier versions stored none. */
  answer: Type.Optional(
    Type.Object({ status: Type.Integer(), headers: Type.Optional(headersView), body: payloadText }),
  ),
  /** The time when its send began; null if it sent nothing, or was not measured. */
  beganAt: timeOrNull,
  /** The milliseconds that it took; null if it was not measured, because the relay sends nothing. */
  tookMs: orNull(Type.Integer()),
  docs: Type.Optional(Type.String()),
});
export type ShownResult = Static<typeof resultView>;

function showResult({ beganAt, tookMs, ...result }: StoredResult): ShownResult {
  return { ...result, beganAt: toIsoOrNull(beganAt ?? null), tookMs: tookMs ?? null };
}

const runView = Type.Object({
  attempt: Type.Integer(),
  startedAt: time,
  finishedAt: timeOrNull,
  outcome: orNull(oneOf(["ok", "failed", "interrupted"])),
  results: Type.Array(resultView),
});
export type RunView = Static<typeof runView>;

export const eventView = Type.Object({
  ...summary,
  replays: Type.Integer(),
  /** The relay's version whose map made `mapped`; null if unknown, or not a receiver's event. */
  mapVersion: orNull(Type.Integer()),
  /** True if a later version's map changed `mapped` after the arrival. */
  mappedAgain: Type.Boolean(),
  /** The first 100 characters of the mapped event_type, or null. */
  eventType: orNull(Type.String()),
  /** The payload; null if it was expunged. */
  payload: Type.Unsafe<Json>(payloadJson),
  /** The reason why the payload was expunged, or null. */
  expunged: orNull(oneOf(EXPUNGED)),
  preview: orNull(payloadText),
  /** True if the sender did not sign the event itself. */
  unsigned: Type.Boolean(),
  warnings: Type.Unsafe<string[]>(payloadJson),
  /** The latest runs; a long list is cut at its beginning. */
  runs: Type.Array(runView),
  /** The number of earlier runs that are not shown. */
  runsLeftOut: Type.Integer(),
});
export type EventView = Static<typeof eventView>;

/** The columns that an item and the full event share. */
export const SUMMARY = EVENT.pick(
  "seq",
  "formerId",
  "trigger",
  "state",
  "reason",
  "attempts",
  "nextAttemptAt",
  "personId",
  "truncated",
  "source",
  "createdAt",
  "finishedAt",
);

/** The columns of other tables, with SUMMARY_JOIN. `personEmail`: null if the person was deleted. */
export const SUMMARY_TEXTS = `${RELAY_ID}, ${RELAY_NAME}, person.email AS personEmail`;
export const SUMMARY_JOIN = "LEFT JOIN person ON person.id = event.person_id";
export interface SummaryTexts {
  relayId: string;
  relayName: string;
  personEmail: string | null;
}

export function showSummary(row: RowOf<typeof SUMMARY> & SummaryTexts, waits: Waiting | null) {
  return {
    id: eventIdOf(row),
    relay: { id: row.relayId, name: row.relayName },
    trigger: row.trigger,
    state: row.state,
    reason: row.reason,
    attempts: row.attempts,
    nextAttemptAt: toIsoOrNull(row.nextAttemptAt),
    waits,
    person: row.personId === null ? null : { id: row.personId, email: row.personEmail },
    truncated: row.truncated,
    cameBy: row.source,
    createdAt: toIso(row.createdAt),
    finishedAt: toIsoOrNull(row.finishedAt),
  };
}

/** Finds the event; refuses with `not_found`. */
export async function requireEventView(tx: Reader, environmentId: number, id: string): Promise<EventView> {
  const event = await findEventView(tx, environmentId, id);
  if (event === null) throw rejectUnknownEvent(id);
  return event;
}

/** Finds the event with this id in this environment, or null. */
export async function findEventView(
  tx: Reader,
  environmentId: number,
  id: string,
): Promise<EventView | null> {
  const seq = await findEventSeq(tx, environmentId, id);
  if (seq === null) return null;
  const stored = await tx.get<SummaryTexts>(
    `SELECT ${EVENT.columnsOf("event")}, ${SUMMARY_TEXTS} FROM event ${SUMMARY_JOIN} WHERE event.seq = ?1`,
    seq,
  );
  if (stored === null) return null;
  const row = EVENT.read(stored);
  const waiting = row.state === "queued" ? await explainWaiting(tx, environmentId, [row]) : null;
  const runs = await findLatestRuns(tx, row.seq);
  const payload = parseJson(row.payload);
  const expunged = readExpunged(payload);
  const { replays, mapVersion, mappedAgain, preview, unsigned, warnings } = row;
  return {
    ...showSummary(row, waiting?.get(row.seq) ?? null),
    replays,
    mapVersion,
    mappedAgain,
    eventType: expunged === null ? findEventType(payload) : null,
    payload: expunged === null ? payload : null,
    expunged,
    preview,
    unsigned,
    warnings: warnings ?? [],
    runs: runs.map(({ number, startedAt, finishedAt, outcome, results }) => ({
      attempt: number,
      startedAt: toIso(startedAt),
      finishedAt: toIsoOrNull(finishedAt),
      outcome,
      results: results.map(showResult),
    })),
    runsLeftOut: Math.max(0, (runs[0]?.number ?? 1) - 1),
  };
}

/** Finds the latest runs, the oldest first, as many as one step reads. */
async function findLatestRuns(tx: Reader, seq: number): Promise<RowOf<typeof RUN>[]> {
  const looked = await tx.all<LookedAt>(
    "SELECT number AS key, octet_length(results) AS cost FROM run WHERE event_seq = ?1 ORDER BY number DESC LIMIT ?2",
    seq,
    MAX_SHOWN_RUNS,
  );
  const { floor } = reach(looked, MAX_SHOWN_RUNS);
  if (floor === null) return [];
  return await RUN.all(tx, "WHERE event_seq = $seq AND number >= $floor ORDER BY number", { seq, floor });
}
