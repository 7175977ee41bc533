/** Recent calls are kept for 30 days, as events are, although their ring may have room for longer: they hold callers' addresses. */
import { EVENT_RETENTION_MS } from "../ground/limit.ts";
import type { Writer } from "../store/port.ts";

/** Deletes those of the next environment after `environmentId` that are over; answers that environment, or null. Its ring is small enough for one go. */
export async function forgetRecentCalls(
  tx: Writer,
  environmentId: number,
  nowMs: number,
): Promise<number | null> {
  const next = await tx.get<{ id: number }>(
    "SELECT id FROM environment WHERE id > ?1 ORDER BY id LIMIT 1",
    environmentId,
  );
  if (next === null) return null;
  await tx.run(
    "DELETE FROM recent_call WHERE environment_id = ?1 AND at < ?2",
    next.id,
    nowMs - EVENT_RETENTION_MS,
  );
  return next.id;
}
