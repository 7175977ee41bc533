/**
 * Which events are ready, and taking them. `queued` with no time is due now; `queued` with a time waits for its retry.
 * It never decides how many may run; that is the runner's.
 */

import { MAX_ATTEMPTS } from "../ground/limit.ts";
import type { Reader, Writer } from "../store/port.ts";
import { EVENT_TO_RUN_COLUMNS, type EventToRun } from "./event-row.ts";

/** Makes the retries whose time has come due; answers how many. */
export function promoteDueRetries(tx: Writer, nowMs: number): Promise<number> {
  return tx.run(
    "UPDATE event SET next_attempt_at = NULL WHERE state = 'queued' AND next_attempt_at IS NOT NULL AND next_attempt_at <= ?1",
    nowMs,
  );
}

/** When the next retry is due (milliseconds since the epoch), or null. */
export async function findNextRetry(tx: Reader): Promise<number | null> {
  const row = await tx.get<{ at: number | null }>(
    "SELECT min(next_attempt_at) AS at FROM event WHERE state = 'queued' AND next_attempt_at IS NOT NULL",
  );
  return row?.at ?? null;
}

/** Ids of the relays that have an event due now; a hop through the index, however long the queue. */
export async function listReadyRelays(tx: Reader): Promise<string[]> {
  const rows = await tx.all<{ relayId: string | null }>(
    `WITH RECURSIVE ready (relayId) AS (
       SELECT min(relay_id) FROM event INDEXED BY event_ready WHERE state = 'queued' AND next_attempt_at IS NULL
       UNION ALL
       SELECT (SELECT min(relay_id) FROM event INDEXED BY event_ready
               WHERE state = 'queued' AND next_attempt_at IS NULL AND relay_id > ready.relayId)
       FROM ready WHERE ready.relayId IS NOT NULL)
     SELECT relayId FROM ready WHERE relayId IS NOT NULL`,
  );
  return rows.flatMap((row) => (row.relayId === null ? [] : [row.relayId]));
}

/** The oldest due events of a relay, in arrival order, not taken. */
export function listDueEvents(tx: Reader, relayId: string, limit: number): Promise<EventToRun[]> {
  return tx.all<EventToRun>(
    `SELECT ${EVENT_TO_RUN_COLUMNS} FROM event INDEXED BY event_ready
     WHERE relay_id = ?1 AND state = 'queued' AND next_attempt_at IS NULL ORDER BY seq LIMIT ?2`,
    relayId,
    limit,
  );
}

/** Takes the oldest due events of a relay: they are `running` and their attempt counts from here on. */
export async function claimEvents(
  tx: Writer,
  relayId: string,
  limit: number,
  nowMs: number,
): Promise<EventToRun[]> {
  const due = await listDueEvents(tx, relayId, limit);
  for (const event of due) {
    await tx.run(
      "UPDATE event SET state = 'running', attempts = attempts + 1, runs = runs + 1, started_at = ?2 WHERE seq = ?1",
      event.seq,
      nowMs,
    );
  }
  return due.map((event) => ({ ...event, attempts: event.attempts + 1, runs: event.runs + 1 }));
}

export interface Rescued {
  queued: number;
  /** Events whose last attempt was cut off: dead. */
  dead: { id: string; environmentId: number; relayName: string }[];
}

/**
 * At start-up every `running` row is an orphan of a process that died: the attempt counts, and the event runs again from its first
 * action, unless it was the last attempt.
 */
export async function rescueOrphans(tx: Writer, nowMs: number): Promise<Rescued> {
  await tx.run(
    `INSERT INTO run (event_seq, number, started_at, finished_at, outcome)
     SELECT seq, runs, coalesce(started_at, created_at), ?1, 'interrupted' FROM event WHERE state = 'running'
     ON CONFLICT (event_seq, number) DO UPDATE SET finished_at = excluded.finished_at, outcome = 'interrupted'`,
    nowMs,
  );
  const dead = await tx.all<{ id: string; environmentId: number; relayName: string }>(
    `UPDATE event SET state = 'dead', reason = 'interrupted', finished_at = ?1 WHERE state = 'running' AND attempts >= ${MAX_ATTEMPTS}
     RETURNING id, environment_id AS environmentId, relay_name AS relayName`,
    nowMs,
  );
  const queued = await tx.run(
    "UPDATE event SET state = 'queued', next_attempt_at = NULL WHERE state = 'running'",
  );
  return { queued, dead };
}
