/** Ends an attempt: the event's next state by the specification's state table, its run row, its audit row, its alert, its line. */
import type { ActionResult } from "../action/contract.ts";
import { finishRun, type RunEnd } from "../event/run-row.ts";
import { MAX_ATTEMPTS, RETRY_DELAYS_MS } from "../ground/limit.ts";
import type { Writer } from "../store/port.ts";
import { raiseAlert } from "../watch/alert.ts";
import { writeAudit } from "../watch/audit.ts";
import type { Attempt, AttemptEnd } from "./attempt.ts";

/** What the runner does after the commit. */
export interface Finished {
  /** When a retry is due, milliseconds since the epoch; null when the event is final. */
  retryAtMs: number | null;
  /** `RELAY · <name> · <trigger> · <n> actions · ok|failed` */
  line: string;
}

export async function finishAttempt(
  tx: Writer,
  attempt: Attempt,
  end: AttemptEnd,
  nowMs: number,
): Promise<Finished> {
  const { event, relay } = attempt;
  const next = nextStateOf(end, event.attempts, nowMs);
  await finishRun(
    tx,
    { eventSeq: event.seq, number: event.runs, startedAtMs: attempt.startedAtMs, results: attempt.results },
    {
      ...next,
      outcome: end.outcome === "ok" ? "ok" : "failed",
      attempts: event.attempts,
      personId: attempt.personId,
      warnings: [...attempt.warnings],
      finishedAtMs: nowMs,
    },
  );
  await writeAudit(tx, {
    environmentId: event.environmentId,
    atMs: nowMs,
    actor: `relay:${relay.name}`,
    action: "run",
    target: `relay:${relay.name}`,
    eventId: event.id,
    before: attempt.results.map((result) => ("before" in result ? (result.before ?? null) : null)),
    after: attempt.results.map(auditOf),
  });
  if (next.state === "dead") {
    await raiseAlert(tx, {
      environmentId: event.environmentId,
      code: "relay_failed",
      target: `relay:${relay.name}`,
      message: `An event of ${relay.name} is dead (${next.reason ?? "failed"}): ${lastMessage(attempt.results)}`,
      nowMs,
    });
  }
  return { retryAtMs: next.nextAttemptAtMs, line: runLine(attempt, end) };
}

/** The specification's state table, from `running`. `attempts` counts the one that ended. */
export function nextStateOf(
  end: AttemptEnd,
  attempts: number,
  nowMs: number,
): Pick<RunEnd, "state" | "reason" | "nextAttemptAtMs"> {
  if (end.outcome === "ok") return { state: "done", reason: null, nextAttemptAtMs: null };
  if (end.outcome === "not_run") return { state: "failed", reason: end.reason, nextAttemptAtMs: null };
  const delayMs = RETRY_DELAYS_MS[attempts - 1];
  if (end.final || attempts >= MAX_ATTEMPTS || delayMs === undefined) {
    return { state: "dead", reason: end.code, nextAttemptAtMs: null };
  }
  return { state: "queued", reason: end.code, nextAttemptAtMs: nowMs + delayMs };
}

function auditOf(result: ActionResult): { type: string; outcome: string; after: unknown } {
  return {
    type: result.type,
    outcome: result.outcome,
    after: "after" in result ? (result.after ?? null) : null,
  };
}

function lastMessage(results: readonly ActionResult[]): string {
  const last = results.at(-1);
  return last?.outcome === "failed" ? last.message : "no action ran.";
}

function runLine({ relay, event }: Attempt, end: AttemptEnd): string {
  const count = relay.definition.actions.length;
  return `RELAY · ${relay.name} · ${event.trigger} · ${count} ${count === 1 ? "action" : "actions"} · ${end.outcome === "ok" ? "ok" : "failed"}`;
}
