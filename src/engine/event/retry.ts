/** Promotes due retries, and keeps every wait within its delay after the wall clock was set back. */
import { RETRY_DELAYS_MS } from "../../base/limit.ts";
import type { Reader, Writer } from "../../store/port.ts";
import { EVENT, RELAY_ID } from "./event.ts";

interface DueRetry {
  seq: number;
  environmentId: number;
}

/** Lists up to `limit` retries whose time has come, the earliest first. */
export function listDueRetries(tx: Reader, limit: number, nowMs: number): Promise<DueRetry[]> {
  return tx.all<DueRetry>(
    `SELECT seq, environment_id AS environmentId FROM event INDEXED BY event_retry
     WHERE state = 'queued' AND next_attempt_at IS NOT NULL AND next_attempt_at <= ?1 ORDER BY next_attempt_at LIMIT ?2`,
    nowMs,
    limit,
  );
}

/** Makes these retries due that still wait and whose time has come. */
export async function promoteRetries(tx: Writer, retries: readonly DueRetry[], nowMs: number): Promise<void> {
  const promoted = await tx.all<{ relayId: string | null }>(
    `UPDATE event SET next_attempt_at = NULL WHERE seq IN (SELECT CAST(value AS INTEGER) FROM json_each(?1))
       AND state = 'queued' AND next_attempt_at IS NOT NULL AND next_attempt_at <= ?2
     RETURNING ${RELAY_ID}`,
    JSON.stringify(retries.map(({ seq }) => seq)),
    nowMs,
  );
  for (const { relayId } of promoted) if (relayId !== null) tx.notify("event", relayId);
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
