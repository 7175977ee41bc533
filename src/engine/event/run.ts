/**
 * The run row: one attempt of an event, with the list of actions that it ran, the key of each action's work, and its results. The end of an
 * attempt writes the run, the event's next state and one audit row.
 */

import { writeJson } from "../../base/json.ts";
import { DAY_MS, EVENT_RETENTION_MS } from "../../base/limit.ts";
import { type AuditEntry, type Change, writeAudits } from "../../platform/audit/audit.ts";
import type { ActionResult, StoredResult } from "../../rules/action/contract.ts";
import type { LiveAction, LiveRelay } from "../../rules/relay/live-relay.ts";
import type { Reader, SqlNames, Writer } from "../../store/port.ts";
import { defineTable, integer, json, orNull, text } from "../../store/table.ts";
import { EVENT, type EventState, type EventToRun } from "./event.ts";

/** The key of an action's work. A pair means that a replay chose new work. The older work counts until the new work is done. */
export type BoundKey = string | readonly [chosen: string, over: string];

export const RUN = defineTable({
  name: "run",
  key: ["eventSeq", "number"],
  columns: {
    eventSeq: integer(),
    /** The number among all runs of the event, from 1. */
    number: integer(),
    startedAt: integer(),
    finishedAt: orNull(integer()),
    outcome: orNull(text<"ok" | "failed" | "interrupted">()),
    results: json<readonly StoredResult[]>(),
    /** The fingerprint of the list of actions; null if the run ended before them, or an earlier version ran it. */
    actions: orNull(text()),
    /** The key of each action's work; null if each has its own first work. */
    work: orNull(json<readonly BoundKey[]>()),
    /** The person of the run; null for the event's person. */
    personId: orNull(text()),
  },
});

/** Only the results. */
export const RUN_RESULTS = RUN.pick("results");

type Keyed = Pick<LiveAction, "type" | "target" | "fingerprint">;

export function makeWorkKey({ type, target, fingerprint }: Keyed, ordinal: number): string {
  return `${type}\n${target}\n${fingerprint}\n${ordinal}`;
}

/** Makes one key for each action: that of its first work whose key is not taken. */
export function makeFreshKeys(actions: readonly Keyed[], taken: Iterable<string> = []): string[] {
  const used = new Set(taken);
  return actions.map((action) => {
    let ordinal = 1;
    while (used.has(makeWorkKey(action, ordinal))) ordinal += 1;
    const key = makeWorkKey(action, ordinal);
    used.add(key);
    return key;
  });
}

/** The time when this process last stored each relay's list. A reload of the relays clears it. */
const storedAt = new WeakMap<LiveRelay, number>();

/** Stores the relay's list of actions under its fingerprint, unless this process did so within a day. */
export async function storeActionList(tx: Writer, relay: LiveRelay, nowMs: number): Promise<void> {
  if (Math.abs(nowMs - (storedAt.get(relay) ?? Number.NEGATIVE_INFINITY)) < DAY_MS) return;
  const { fingerprint, text } = relay.actionList;
  await tx.run(
    `INSERT INTO action_list (fingerprint, actions, used_at) VALUES (?1, ?2, ?3)
     ON CONFLICT (fingerprint) DO UPDATE SET used_at = max(action_list.used_at, excluded.used_at)`,
    fingerprint,
    text,
    nowMs,
  );
  tx.afterCommit(() => storedAt.set(relay, nowMs));
}

/** Deletes lists that no stored event can have run, because their last use is long before the oldest event. */
export function deleteUnusedActionLists(tx: Writer, nowMs: number): Promise<number> {
  return tx.run(
    `DELETE FROM action_list WHERE used_at + $kept < $nowMs
       AND used_at + $kept < coalesce((SELECT created_at FROM event WHERE seq = (SELECT min(seq) FROM event)), $nowMs)`,
    { nowMs, kept: 2 * EVENT_RETENTION_MS },
  );
}

/** The list of actions that an attempt ran, and the key of each action's work. */
export interface RanActions {
  /** The fingerprint under which `storeActionList` stores the list. */
  fingerprint: string;
  /** One key for each action; null if each has the key of its first work. */
  keys: readonly BoundKey[] | null;
}

/**
 * The source of an attempt's event. `database`: this transaction read the row, or an earlier one claimed it and the run's number protects it.
 * `buffer`: the transaction did not read the row, so the result is undone unless the stored row is unchanged. `unsaved`: the event has no row yet,
 * and the insert writes it in its final state.
 */
export type EventSource = "database" | "buffer" | "unsaved";

/** A finished attempt: what it did, and the state that its event takes. */
export interface AttemptResult {
  /** The event with its attempt counted: `runs` is the run's number. */
  event: EventToRun;
  source: EventSource;
  /** The relay; null if it was deleted. */
  relay: LiveRelay | null;
  startedAtMs: number;
  finishedAtMs: number;
  results: readonly ActionResult[];
  /** The list of actions that ran. It is null if the attempt ended before them, and then the slots of the previous attempt remain. */
  ran: RanActions | null;
  /** `not_run`: it ended without running an action, or before its remaining actions. */
  outcome: "ok" | "failed" | "not_run";
  state: EventState;
  /** An EventReason, or the code of the action's failure. */
  reason: string | null;
  /** The time when the retry is due, or null. */
  nextAttemptAtMs: number | null;
  /** The person; null if an earlier attempt's person stays. */
  personId: string | null;
  /** The warnings, including those of earlier attempts. An empty list leaves the stored ones. */
  warnings: readonly string[];
  /** The relay's version whose map `mapped` now follows; null if unchanged. */
  mapVersion: number | null;
}

type Run = Pick<AttemptResult, "event" | "startedAtMs" | "results" | "ran" | "personId">;

function rowOf({ event, startedAtMs, results, ran }: Run) {
  const [actions, work] = [ran?.fingerprint ?? null, ran?.keys ?? null];
  return { eventSeq: event.seq, number: event.runs, startedAt: startedAtMs, results, actions, work };
}

/** Stores the results so far before a send, and the person, whom the event's row gets only at the end. */
export async function recordRunProgress(tx: Writer, run: Run): Promise<void> {
  const { personId } = run;
  const written = await RUN.insert(
    tx,
    { ...rowOf(run), finishedAt: null, outcome: null, personId },
    `ON CONFLICT (event_seq, number) DO UPDATE SET results = excluded.results, actions = excluded.actions, work = excluded.work
     WHERE run.finished_at IS NULL`,
  );
  requireOpen(written);
}

/** Sets another person from this run on. Earlier runs keep the former person. */
export async function changePerson(tx: Writer, event: EventToRun, personId: string): Promise<void> {
  const { seq, runs, personId: former } = event;
  await tx.run(
    "UPDATE run SET person_id = $former WHERE event_seq = $seq AND number < $runs AND person_id IS NULL",
    { seq, runs, former },
  );
  await EVENT.change(tx, { seq }, { personId });
}

/** A run that ended is never overwritten, because it records what was done. A second run of its number is undone. */
function requireOpen(written: number, runs = 1): void {
  if (written !== runs) throw new Error("A run was to be written down that had ended before.");
}

/** Numbers the attempt after all stored runs. They are ahead of the event's row only if another runner took the event in the meantime. */
export async function renumberAttempt(tx: Reader, event: EventToRun): Promise<EventToRun> {
  const sql = "SELECT max(number) AS number FROM run WHERE event_seq = ?1";
  const last = await tx.get<{ number: number | null }>(sql, event.seq);
  return { ...event, runs: Math.max(event.runs, (last?.number ?? 0) + 1) };
}

/**
 * Writes the results of attempts, each of another event: their runs, the new states of their events, and their audit rows. Each statement runs once
 * for all of them, which is cheaper than one attempt after the other. Throws if a run of the same number had ended.
 */
export async function recordResults(tx: Writer, results: readonly AttemptResult[]): Promise<void> {
  const from = (source: EventSource) => results.filter((one) => one.source === source);
  const [unsaved, saved] = [from("unsaved"), results.filter((one) => one.source !== "unsaved")];
  // The number of an unsaved event is new, so no run of it can have ended.
  await tx.postEach(INSERT_ENDED, unsaved.map(runOf));
  const audits = results.map((one) => auditOf(one.event, one.results, one.finishedAtMs));
  const [runs, buffered, read] = await Promise.all([
    tx.runEach(END, saved.map(runOf)),
    tx.runEach(MOVE_AS_STORED, from("buffer").map(eventChangeOf)),
    tx.runEach(MOVE, from("database").map(eventChangeOf)),
    writeAudits(tx, audits),
  ]);
  requireOpen(runs, saved.length);
  if (buffered + read !== saved.length) throw new Error("An event ran with a changed state.");
  for (const { event } of results) tx.notify("event_moved", event.environmentId);
}

function runOf({ event, startedAtMs, finishedAtMs, outcome, results, ran }: AttemptResult): SqlNames {
  return {
    seq: event.seq,
    number: event.runs,
    startedAtMs,
    finishedAtMs,
    outcome: outcome === "ok" ? "ok" : "failed",
    results: writeJson(results),
    actions: ran?.fingerprint ?? null,
    work: ran?.keys == null ? null : writeJson(ran.keys),
  };
}

/** Returns what an attempt changes in its event's row. */
export function eventChangeOf({ event, state, warnings, finishedAtMs, ...result }: AttemptResult) {
  return {
    seq: event.seq,
    state,
    reason: result.reason,
    attempts: event.attempts,
    runs: event.runs,
    nextAttemptAtMs: result.nextAttemptAtMs,
    personId: result.personId,
    warnings: warnings.length === 0 ? null : writeJson(warnings),
    startedAtMs: result.startedAtMs,
    finishedAtMs: state === "queued" ? null : finishedAtMs,
    mapVersion: result.mapVersion,
    payload: event.payload,
  };
}

const INSERT_ENDED = `INSERT INTO run (event_seq, number, started_at, finished_at, outcome, results, actions, work)
  VALUES ($seq, $number, $startedAtMs, $finishedAtMs, $outcome, $results, $actions, $work)`;
const END = `${INSERT_ENDED}
  ON CONFLICT (event_seq, number) DO UPDATE SET results = excluded.results, finished_at = excluded.finished_at, outcome = excluded.outcome,
    actions = coalesce(excluded.actions, run.actions), work = CASE WHEN excluded.actions IS NULL THEN run.work ELSE excluded.work END
  WHERE run.finished_at IS NULL`;
const MOVE = `UPDATE event SET state = $state, reason = $reason, attempts = $attempts, runs = $runs, next_attempt_at = $nextAttemptAtMs,
  person_id = coalesce($personId, person_id), warnings = coalesce($warnings, warnings), started_at = $startedAtMs,
  finished_at = $finishedAtMs, map_version = coalesce($mapVersion, map_version) WHERE seq = $seq`;
const MOVE_AS_STORED = `${MOVE} AND state = 'queued' AND runs = 0 AND next_attempt_at IS NULL AND payload = $payload`;

/** Makes the audit row of a run: the relay, the event, and each action's before and after. Source: the specification's "Event row". */
export function auditOf(
  { id: eventId, environmentId, relayName }: Pick<EventToRun, "id" | "environmentId" | "relayName">,
  results: readonly StoredResult[],
  atMs: number,
): Change & AuditEntry {
  const relay = `relay:${relayName}`;
  return {
    environmentId,
    nowMs: atMs,
    by: relay,
    action: "run",
    target: relay,
    eventId,
    before: results.map((result) => ("before" in result ? (result.before ?? null) : null)),
    after: results.map((result) => ({
      type: result.type,
      outcome: result.outcome,
      after: "after" in result ? (result.after ?? null) : null,
    })),
  };
}
