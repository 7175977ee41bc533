/** Events that wait for their retry: made due when their time has come, and never waiting longer than their delay, whatever the clock did. */
import { RETRY_DELAYS_MS } from "../../base/limit.ts";
import type { Reader, Writer } from "../../store/port.ts";
import { EVENT, RELAY_ID } from "./event.ts";

/** Makes up to `limit` retries whose time has come due, the earliest first; answers how many. */
export async function promoteDueRetries(tx: Writer, limit: number, nowMs: number): Promise<number> {
  const due = await tx.all<{ relayId: string | null }>(
    `UPDATE event SET next_attempt_at = NULL WHERE seq IN (
       SELECT seq FROM event INDEXED BY event_retry
       WHERE state = 'queued' AND next_attempt_at IS NOT NULL AND next_attempt_at <= ?1 ORDER BY next_attempt_at LIMIT ?2)
     RETURNING ${RELAY_ID}`,
    nowMs,
    limit,
  );
  for (const { relayId } of due) if (relayId !== null) tx.touch("event", relayId);
  return due.length;
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
    if (atMs > longestMs) await EVENT.change(tx, { seq }, { nextAttemptAt: longestMs });
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
