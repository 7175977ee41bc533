/** Alerts, and problems that were cleared, are kept for 400 days. A problem that stands is never forgotten. */
import { AUDIT_RETENTION_MS } from "../ground/limit.ts";
import type { Writer } from "../store/port.ts";

const BATCH_SIZE = 250;

/** Deletes some that are over; answers whether there may be more. */
export async function forgetNotices(tx: Writer, nowMs: number): Promise<boolean> {
  const beforeMs = nowMs - AUDIT_RETENTION_MS;
  const alerts = await tx.run(
    "DELETE FROM alert WHERE id IN (SELECT id FROM alert WHERE last_at < ?1 LIMIT ?2)",
    beforeMs,
    BATCH_SIZE,
  );
  const problems = await tx.run(
    "DELETE FROM problem WHERE id IN (SELECT id FROM problem WHERE cleared_at < ?1 LIMIT ?2)",
    beforeMs,
    BATCH_SIZE,
  );
  return alerts === BATCH_SIZE || problems === BATCH_SIZE;
}
