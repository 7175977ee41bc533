/** The one audit row of a run: who ran, on which event, and each action's before and after. It never says how the event goes on. */
import type { ActionResult } from "../action/contract.ts";
import type { Writer } from "../store/port.ts";
import { writeAudit } from "../watch/audit.ts";

interface RunToAudit {
  environmentId: number;
  eventId: string;
  relayName: string;
  results: readonly ActionResult[];
  nowMs: number;
}

/** Writes the row; call it once a run, in the transaction that ends it. Source: the specification's "Event row". */
export function auditRun(tx: Writer, run: RunToAudit): Promise<void> {
  return writeAudit(tx, {
    environmentId: run.environmentId,
    atMs: run.nowMs,
    actor: `relay:${run.relayName}`,
    action: "run",
    target: `relay:${run.relayName}`,
    eventId: run.eventId,
    before: run.results.map((result) => ("before" in result ? (result.before ?? null) : null)),
    after: run.results.map((result) => ({
      type: result.type,
      outcome: result.outcome,
      after: "after" in result ? (result.after ?? null) : null,
    })),
  });
}
