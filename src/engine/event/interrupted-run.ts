/**
 * Rescues attempts that never ended, because their process died or could not write. Their events are still `running`: each is queued again, or dies
 * if the attempt was its last.
 */
import { MAX_ATTEMPTS, RETRY_DELAYS_MS } from "../../base/limit.ts";
import { writeAudit } from "../../platform/audit/audit.ts";
import type { Reader, Writer } from "../../store/port.ts";
import { EVENT, type EventToRun, eventIdOf, RELAY_NAME } from "./event.ts";
import { auditOf, RUN, RUN_RESULTS } from "./run.ts";

/** A claimed attempt: the event, and its run's number. */
export type ClaimedRun = Pick<EventToRun, "seq" | "runs">;

export interface Rescued {
  queued: number;
  /** Events that died, because their last attempt was interrupted. */
  dead: { environmentId: number; relayName: string; eventId: string }[];
}

const INTERRUPTED = EVENT.pick(
  "seq",
  "formerId",
  "environmentId",
  "attempts",
  "runs",
  "startedAt",
  "createdAt",
);

/**
 * Rescues up to `limit` events of the environment; null for all environments. The caller has just begun to run the environment, so every `running`
 * row belongs to another process or an earlier one.
 */
export async function rescueInterrupted(
  tx: Writer,
  environmentId: number | null,
  limit: number,
  nowMs: number,
): Promise<Rescued> {
  return environmentId === null
    ? rescue(tx, "ORDER BY seq LIMIT $limit", { limit }, nowMs)
    : rescue(
        tx,
        "AND environment_id = $environmentId ORDER BY seq LIMIT $limit",
        { environmentId, limit },
        nowMs,
      );
}

/** Rescues one attempt of this process whose end could not be written, if its row is still `running`. */
export async function rescueRun(tx: Writer, { seq, runs }: ClaimedRun, nowMs: number): Promise<Rescued> {
  return rescue(tx, "AND seq = $seq AND runs = $runs", { seq, runs }, nowMs);
}

/**
 * Ends each attempt as interrupted and requeues its event, unless it was the last attempt. After the first interruption the event is due at once.
 * After each further one it waits for the retry delay, so that a crash loop does not use up all attempts within seconds.
 */
async function rescue(
  tx: Writer,
  rest: string,
  values: Record<string, number>,
  nowMs: number,
): Promise<Rescued> {
  const rescued: Rescued = { queued: 0, dead: [] };
  const interrupted = await tx.all<{ relayName: string }>(
    `SELECT ${INTERRUPTED.columns}, ${RELAY_NAME} FROM event WHERE state = 'running' ${rest}`,
    values,
  );
  for (const event of interrupted.map((stored) => INTERRUPTED.read(stored))) {
    const { seq, runs: number, environmentId, relayName } = event;
    const before = await RUN_RESULTS.get(tx, "WHERE event_seq = $seq AND number = $number", { seq, number });
    const startedAt = event.startedAt ?? event.createdAt;
    const row = { eventSeq: seq, number, startedAt, results: [], actions: null, work: null, personId: null };
    await RUN.insert(
      tx,
      { ...row, finishedAt: nowMs, outcome: "interrupted" },
      "ON CONFLICT (event_seq, number) DO UPDATE SET finished_at = excluded.finished_at, outcome = excluded.outcome",
    );
    const dead = event.attempts >= MAX_ATTEMPTS;
    const state = dead ? "dead" : "queued";
    const delayMs = RETRY_DELAYS_MS[event.attempts - 1] ?? 0;
    const nextAttemptAt = !dead && (await wasInterruptedBefore(tx, event)) ? nowMs + delayMs : null;
    const end = { reason: "interrupted", nextAttemptAt, finishedAt: dead ? nowMs : null };
    await EVENT.change(tx, { seq }, { state, ...end });
    const id = eventIdOf(event);
    tx.notify("event_moved", environmentId);
    await writeAudit(tx, auditOf({ ...event, id }, before?.results ?? [], nowMs));
    if (dead) rescued.dead.push({ environmentId, relayName, eventId: id });
    else rescued.queued += 1;
  }
  return rescued;
}

/** Reports whether an earlier attempt was interrupted since the arrival or the last replay. */
async function wasInterruptedBefore(
  tx: Reader,
  { seq, attempts, runs }: Pick<EventToRun, "seq" | "attempts" | "runs">,
): Promise<boolean> {
  const sql = `SELECT 1 AS found FROM run
    WHERE event_seq = $seq AND number < $runs AND number > $earlier AND outcome = 'interrupted' LIMIT 1`;
  return (await tx.get(sql, { seq, runs, earlier: runs - attempts })) !== null;
}
