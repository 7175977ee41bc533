/** The audit row of a management change made through a visit: its environment, actor and time are the visit's own. */
import type { Writer } from "../store/port.ts";
import { type AuditEntry, writeAudit } from "../watch/audit.ts";
import type { Visit } from "./admission.ts";

type VisitChange = Pick<AuditEntry, "action" | "target" | "before" | "after">;

/** Writes the row in the transaction of the change. */
export function auditVisit(tx: Writer, visit: Visit, nowMs: number, change: VisitChange): Promise<void> {
  return writeAudit(tx, { environmentId: visit.environment.id, atMs: nowMs, actor: visit.by, ...change });
}
