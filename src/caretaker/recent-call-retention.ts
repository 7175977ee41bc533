/** Recent calls are kept for 30 days, as events are, although their ring may have room for longer: they hold callers' addresses. */
import { EVENT_RETENTION_MS } from "../ground/limit.ts";
import type { Writer } from "../store/port.ts";

/** Deletes those that are over; a ring is small enough for one go. */
export async function forgetRecentCalls(tx: Writer, nowMs: number): Promise<void> {
  await tx.run("DELETE FROM recent_call WHERE at < ?1", nowMs - EVENT_RETENTION_MS);
}
