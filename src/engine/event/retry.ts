/** Promotes due retries, and keeps every wait within its delay after the wall clock was set back. */
import { RETRY_DELAYS_MS } from "../../base/limit.ts";
import type { Reader, Writer } from "../../store/port.ts";
import { EVENT, RELAY_ID } from "./event.ts";

/** Makes up to `limit` retries due whose time has come, the earliest first. Returns how many. */
export async function promoteDueRetries(tx: Writer, limit: number, nowMs: number): Promise<number> {
  const due = await tx.all<{ relayId: string | null }>(
    `UPDATE event SET next_attempt_at = NULL WHERE seq IN (
       SELECT seq FROM event INDEXED BY event_retry
       WHERE state = 'queued' AND next_attempt_at IS NOT NULL AND next_attempt_at <= ?1 ORDER BY next_attempt_at LIMIT ?2)
     RETURNING ${RELAY_ID}`,
    nowMs,
    limit,
  );
  for (const { relayId } of due) if (relayId !== null) tx.notify("event", relayId);
  return due.length;
}

/** The position of a walk through the waiting retries. */
export interface RetryCursor {
  atMs: number;
  seq: number;
}

/**
 * Limits each wait to the retry's own delay from now, after the wall clock was set back. Reads the next `limit` retries after `from`. Returns where
 * to continue, or null at the end.
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

/** Finds when the next retry is due, in milliseconds since the epoch, or null. */
export async function findNextRetry(tx: Reader): Promise<number | null> {
  const row = await tx.get<{ at: number | null }>(
    "SELECT min(next_attempt_at) AS at FROM event WHERE state = 'queued' AND next_attempt_at IS NOT NULL",
  );
  return row?.at ?? null;
}
