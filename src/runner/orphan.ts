/** Events whose relay was deleted while they waited end without running. */
import { listDueEvents } from "../event/claim.ts";
import { finishRun } from "../event/run-row.ts";
import type { Writer } from "../store/port.ts";

/** Ends up to `limit` of the relay's due events as `failed`, reason relay_deleted; answers how many. */
export async function failOrphanedEvents(
  tx: Writer,
  relayId: string,
  limit: number,
  nowMs: number,
): Promise<number> {
  const due = await listDueEvents(tx, relayId, limit);
  for (const event of due) {
    await finishRun(
      tx,
      { eventSeq: event.seq, number: event.runs + 1, startedAtMs: nowMs, results: [] },
      {
        outcome: "failed",
        state: "failed",
        reason: "relay_deleted",
        attempts: event.attempts + 1,
        nextAttemptAtMs: null,
        personId: null,
        warnings: [],
        finishedAtMs: nowMs,
      },
    );
  }
  return due.length;
}
