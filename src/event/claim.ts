/**
 * Which events are ready, and taking them. `queued` with no time is due now; `queued` with a time waits for its retry.
 * It never decides how many may run; that is the runner's.
 */

import { RETRY_DELAYS_MS } from "../ground/limit.ts";
import type { Reader, Writer } from "../store/port.ts";
import { EVENT_TO_RUN_COLUMNS, type EventToRun } from "./event-row.ts";

/** Makes up to `limit` retries whose time has come due, the earliest first; answers how many. */
export function promoteDueRetries(tx: Writer, limit: number, nowMs: number): Promise<number> {
  return tx.run(
    `UPDATE event SET next_attempt_at = NULL WHERE seq IN (
       SELECT seq FROM event INDEXED BY event_retry
       WHERE state = 'queued' AND next_attempt_at IS NOT NULL AND next_attempt_at <= ?1 ORDER BY next_attempt_at LIMIT ?2)`,
    nowMs,
    limit,
  );
}

/** How far a walk through the waiting retries has come. */
export interface RetryCursor {
  atMs: number;
  seq: number;
}

/**
 * After the wall clock went back: no retry waits longer than its own delay from now. Looks at the next `limit` after `from`; answers where
 * to go on, or null at the end.
 */
export async function shortenRetries(
  tx: Writer,
  from: RetryCursor,
  limit: number,
  nowMs: number,
): Promise<RetryCursor | null> {
  const waiting = await tx.all<RetryCursor & { attempts: number }>(
    `SELECT seq, next_attempt_at AS atMs, attempts FROM event INDEXED BY event_retry
     WHERE state = 'queued' AND next_attempt_at IS NOT NULL AND (next_attempt_at, seq) > (?1, ?2)
     ORDER BY next_attempt_at, seq LIMIT ?3`,
    from.atMs,
    from.seq,
    limit,
  );
  for (const { seq, atMs, attempts } of waiting) {
    const longestMs = nowMs + (RETRY_DELAYS_MS[attempts - 1] ?? 0);
    if (atMs > longestMs)
      await tx.run("UPDATE event SET next_attempt_at = ?2 WHERE seq = ?1", seq, longestMs);
  }
  return waiting.length === limit ? (waiting.at(-1) ?? null) : null;
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
