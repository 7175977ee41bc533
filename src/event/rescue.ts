/**
 * Events whose attempt was cut off: a process that died, or a store that could not be written in the middle of a run. The attempt counts,
 * and the event runs again from its first action, unless it was the last one. It never decides when to look.
 */
import type { ActionResult } from "../action/contract.ts";
import { parseJson } from "../ground/json.ts";
import { MAX_ATTEMPTS } from "../ground/limit.ts";
import type { Writer } from "../store/port.ts";
import { auditRun } from "./run-audit.ts";

/** One claimed attempt: the event, and its run's number. */
export interface ClaimedRun {
  seq: number;
  runs: number;
}

export interface Rescued {
  queued: number;
  /** Events whose last attempt was cut off: dead. */
  dead: DeadEvent[];
}

interface DeadEvent {
  id: string;
  environmentId: number;
  relayName: string;
}

interface CutOffRow extends DeadEvent, ClaimedRun {
  attempts: number;
  startedAt: number;
  /** What the run had done when it was cut off; null: nothing was kept yet. */
  results: string | null;
}

const SELECT = `SELECT event.seq, event.runs, event.id, event.environment_id AS environmentId, event.relay_name AS relayName,
    event.attempts, coalesce(event.started_at, event.created_at) AS startedAt, run.results
  FROM event LEFT JOIN run ON run.event_seq = event.seq AND run.number = event.runs WHERE event.state = 'running'`;

/** At start-up every `running` row is an orphan of a process that died; rescues up to `limit` of them. */
export async function rescueOrphans(tx: Writer, limit: number, nowMs: number): Promise<Rescued> {
  return endCutOff(tx, await tx.all<CutOffRow>(`${SELECT} ORDER BY event.seq LIMIT ?1`, limit), nowMs);
}

/** Rescues one attempt of this process that could not be written down; nothing, when it is not running any more. */
export async function rescueRun(tx: Writer, { seq, runs }: ClaimedRun, nowMs: number): Promise<Rescued> {
  const rows = await tx.all<CutOffRow>(`${SELECT} AND event.seq = ?1 AND event.runs = ?2`, seq, runs);
  return endCutOff(tx, rows, nowMs);
}

async function endCutOff(tx: Writer, rows: readonly CutOffRow[], nowMs: number): Promise<Rescued> {
  const rescued: Rescued = { queued: 0, dead: [] };
  for (const row of rows) {
    await tx.run(
      `INSERT INTO run (event_seq, number, started_at, finished_at, outcome) VALUES (?1, ?2, ?3, ?4, 'interrupted')
       ON CONFLICT (event_seq, number) DO UPDATE SET finished_at = excluded.finished_at, outcome = 'interrupted'`,
      row.seq,
      row.runs,
      row.startedAt,
      nowMs,
    );
    const dead = row.attempts >= MAX_ATTEMPTS;
    await tx.run(
      "UPDATE event SET state = ?2, reason = ?3, next_attempt_at = NULL, finished_at = ?4 WHERE seq = ?1",
      row.seq,
      dead ? "dead" : "queued",
      "interrupted",
      dead ? nowMs : null,
    );
    await auditRun(tx, {
      environmentId: row.environmentId,
      eventId: row.id,
      relayName: row.relayName,
      results: row.results === null ? [] : (parseJson(row.results) as unknown as ActionResult[]),
      nowMs,
    });
    if (dead) rescued.dead.push({ id: row.id, environmentId: row.environmentId, relayName: row.relayName });
    else rescued.queued += 1;
  }
  return rescued;
}
