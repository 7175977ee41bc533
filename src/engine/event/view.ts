/** An event as the API shows it: alone, with its payload and what each attempt did, or as an item of the list. */
import { type Static, Type } from "typebox";
import { toIso, toIsoOrNull } from "../../base/clock.ts";
import { type Json, parseJson } from "../../base/json.ts";
import type { ResultCode } from "../../base/result-code.ts";
import { json, oneOf, orNull, time, timeOrNull } from "../../base/schema.ts";
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
  refuseUnknownEvent,
} from "./event.ts";
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
  /** What a queued one waits for. */
  waits: orNull(waitingView),
  person: orNull(Type.Object({ id: Type.String(), email: orNull(Type.String()) })),
  truncated: Type.Boolean(),
  /** null: by its trigger. */
  cameBy: orNull(oneOf(EVENT_WAYS)),
  createdAt: time,
  finishedAt: timeOrNull,
};

/** An event as lists show it: everything but its payload and runs. */
export const eventItem = Type.Object({
  ...summary,
  warnings: Type.Integer(),
  /** The mapped event_type, its first 100 characters; null where none was mapped. */
  eventType: orNull(Type.String()),
  /** The first mapped names and values in a line of at most 200 characters; null where there are none, and once the payload is expunged. */
  preview: orNull(Type.String()),
});
export type EventItem = Static<typeof eventItem>;
/** As a step of a list finds it, before its payload is looked at. */
export type ListedEvent = Omit<EventItem, "eventType" | "preview">;

const headersView = Type.Record(Type.String(), Type.String());

/** What an action did in a run; `type` is `person` where the person could not be found. `docs`: the page that explains the code. */
const resultView = Type.Object({
  type: Type.String(),
  outcome: oneOf(["done", "skipped", "failed"]),
  code: Type.Optional(Type.Unsafe<ResultCode>(Type.String())),
  message: Type.Optional(Type.String()),
  before: Type.Optional(Type.Unsafe<Json>(json)),
  after: Type.Optional(Type.Unsafe<Json>(json)),
  /** As it left for a called URL; its body was the notice. The signature's digest is not kept. */
  request: Type.Optional(
    Type.Object({ method: Type.Literal("POST"), url: Type.String(), headers: headersView }),
  ),
  /** What the URL said. Headers that may let somebody in are not kept; an earlier version kept none. */
  answer: Type.Optional(
    Type.Object({ status: Type.Integer(), headers: Type.Optional(headersView), body: Type.String() }),
  ),
  /** When it called out; null: it did not, or nobody measured it. */
  beganAt: timeOrNull,
  /** null: not measured, as where a relay's actions stay in the database. */
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
  /** The relay's version whose map made `mapped`; null: not known, or not a receiver's event. */
  mapVersion: orNull(Type.Integer()),
  /** Whether a later version than the one at its arrival made `mapped` anew, and otherwise. */
  mappedAgain: Type.Boolean(),
  /** null once it is expunged. */
  payload: Type.Unsafe<Json>(json),
  /** Why the payload is not there any more, or null. */
  expunged: orNull(oneOf(EXPUNGED)),
  preview: orNull(Type.String()),
  /** Whether the sender did not sign the event itself. */
  unsigned: Type.Boolean(),
  warnings: Type.Unsafe<string[]>(json),
  /** The latest; long lists of attempts are cut at their beginning. */
  runs: Type.Array(runView),
  /** Earlier attempts that are not shown. */
  runsLeftOut: Type.Integer(),
});
export type EventView = Static<typeof eventView>;

/** What an item of the list and the whole event have in common. */
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
  "cameBy",
  "createdAt",
  "finishedAt",
);

/** What is selected beside them, from `event` and what SUMMARY_JOIN adds. `personEmail`: of a person that still exists. */
export const SUMMARY_BESIDE = `${RELAY_ID}, ${RELAY_NAME}, person.email AS personEmail`;
export const SUMMARY_JOIN = "LEFT JOIN person ON person.id = event.person_id";
export interface SummaryBeside {
  relayId: string;
  relayName: string;
  personEmail: string | null;
}

export function showSummary(row: RowOf<typeof SUMMARY> & SummaryBeside, waits: Waiting | null) {
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
    cameBy: row.cameBy,
    createdAt: toIso(row.createdAt),
    finishedAt: toIsoOrNull(row.finishedAt),
  };
}

/** As `findEventView`; refuses with `not_found`. */
export async function requireEventView(tx: Reader, environmentId: number, id: string): Promise<EventView> {
  const event = await findEventView(tx, environmentId, id);
  if (event === null) throw refuseUnknownEvent(id);
  return event;
}

/** The event with this id in this environment, or null. */
export async function findEventView(
  tx: Reader,
  environmentId: number,
  id: string,
): Promise<EventView | null> {
  const seq = await findEventSeq(tx, environmentId, id);
  if (seq === null) return null;
  const stored = await tx.get<SummaryBeside>(
    `SELECT ${EVENT.columnsOf("event")}, ${SUMMARY_BESIDE} FROM event ${SUMMARY_JOIN} WHERE event.seq = ?1`,
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

/** The latest attempts, oldest first: as many as one step reads. */
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
