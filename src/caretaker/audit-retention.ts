/** How long the audit is kept: management changes for 400 days, runs for 90, so that a busy relay's runs do not fill the disk for a year. */
import { AUDIT_RETENTION_MS, RUN_AUDIT_RETENTION_MS } from "../ground/limit.ts";
import type { Writer } from "../store/port.ts";
import { trimAfter, type WalkedTable } from "./row-walk.ts";

const AUDIT: WalkedTable = {
  name: "audit",
  at: "at",
  keptMs: `(CASE WHEN event_id IS NULL THEN ${AUDIT_RETENTION_MS} ELSE ${RUN_AUDIT_RETENTION_MS} END)`,
  shortestKeptMs: RUN_AUDIT_RETENTION_MS,
};

/** Trims the next audit rows after `seq`; answers where to go on, or null. */
export function trimAudit(tx: Writer, seq: number, nowMs: number): Promise<number | null> {
  return trimAfter(tx, AUDIT, seq, nowMs);
}
