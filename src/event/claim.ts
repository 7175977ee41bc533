/**
 * Which events are ready, and taking them. `queued` with no time is due now; `queued` with a time waits for its retry.
 * It never decides how many may run; that is the runner's.
 */

import { RETRY_DELAYS_MS } from "../ground/limit.ts";
import type { Reader, Writer } from "../store/port.ts";
import { EVENT_TO_RUN_COLUMNS, type EventToRun } from "./event-row.ts";

/** Makes the retries whose time has come due; answers how many. */
export function promoteDueRetries(tx: Writer, nowMs: number): Promise<number> {
  return tx.run(
    "UPDATE event SET next_attempt_at = NULL WHERE state = 'queued' AND next_attempt_at IS NOT NULL AND next_attempt_at <= ?1",
    nowMs,
  );
}

/**
 * After the wall clock went back: no retry waits longer than its own delay from now. Answers how many were brought forward.
 */
export function shortenRetries(tx: Writer, nowMs: number): Promise<number> {
  const delays = RETRY_DELAYS_MS.map((delayMs, index) => `WHEN ${index + 1} THEN ${delayMs}`).join(" ");
  const longest = `?1 + CASE attempts ${delays} ELSE 0 END`;
  return tx.run(
    `UPDATE event SET next_attempt_at = ${longest}
     WHERE state = 'queued' AND next_attempt_at IS NOT NULL AND next_attempt_at > ?1 AND next_attempt_at > ${longest}`,
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
