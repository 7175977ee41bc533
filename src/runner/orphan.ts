/** Events whose relay was deleted while they waited end without running. */
import { listDueEvents } from "../event/claim.ts";
import { auditRun } from "../event/run-audit.ts";
import { finishRun } from "../event/run-row.ts";
import type { Reader, Writer } from "../store/port.ts";
import { type Finished, runLine } from "./finish-attempt.ts";

/** Whether the store holds the relay, whatever memory says. */
export async function relayExists(tx: Reader, relayId: string): Promise<boolean> {
  return (await tx.get("SELECT 1 FROM relay WHERE id = ?1", relayId)) !== null;
}

/** Ends up to `limit` of the relay's due events as `failed`, reason relay_deleted. */
export async function failOrphanedEvents(
  tx: Writer,
  relayId: string,
  limit: number,
  nowMs: number,
): Promise<Finished[]> {
  const due = await listDueEvents(tx, relayId, limit);
  for (const event of due) {
    await finishRun(
      tx,
      { eventSeq: event.seq, number: event.runs + 1, startedAtMs: nowMs, results: [], ran: null },
      {
        outcome: "failed",
        state: "failed",
        reason: "relay_deleted",
        attempts: event.attempts + 1,
        nextAttemptAtMs: null,
        personId: null,
        warnings: [],
        finishedAtMs: nowMs,
        mapVersion: null,
      },
    );
    const { environmentId, id: eventId, relayName } = event;
    await auditRun(tx, { environmentId, eventId, relayName, results: [], nowMs });
  }
  return due.map((event) => ({
    line: runLine({ name: event.relayName, definition: { actions: [] } }, event, false),
    run: { trigger: event.trigger, outcome: "not_run", waitedMs: null, tookMs: 0 },
  }));
}
