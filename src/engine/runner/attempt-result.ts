/**
 * Turns a finished attempt into its result: the event's next state by the specification's state table. Writes results, with their alerts, in one
 * go for all attempts of a transaction, and returns their reports.
 */

import { MAX_ATTEMPTS, RETRY_DELAYS_MS } from "../../base/limit.ts";
import type { ActionResult } from "../../rules/action/contract.ts";
import type { LiveRelay } from "../../rules/relay/live-relay.ts";
import { StoreUnavailable, type Writer } from "../../store/port.ts";
import type { EventToRun } from "../event/event.ts";
import { type AttemptResult, type EventSource, recordResults, renumberAttempt } from "../event/run.ts";
import { type Attempt, type AttemptDeps, type AttemptOutcome, UNEXPECTED_ERROR } from "./attempt.ts";
import { raiseAlerts } from "./attempt-alert.ts";
import { makeRunReport, type RunReport } from "./run-report.ts";

/** The specification's state table, from `running`. `attempts` counts the one that ended. */
function nextStateOf(
  end: AttemptOutcome,
  attempts: number,
  nowMs: number,
): Pick<AttemptResult, "state" | "reason" | "nextAttemptAtMs"> {
  if (end.outcome === "ok") return { state: "done", reason: null, nextAttemptAtMs: null };
  if (end.outcome === "not_run") return { state: "failed", reason: end.reason, nextAttemptAtMs: null };
  const delayMs = RETRY_DELAYS_MS[attempts - 1];
  if (end.final || attempts >= MAX_ATTEMPTS || delayMs === undefined) {
    return { state: "dead", reason: end.code, nextAttemptAtMs: null };
  }
  return { state: "queued", reason: end.code, nextAttemptAtMs: nowMs + delayMs };
}

function makeResult(
  attempt: Attempt,
  end: AttemptOutcome,
  source: EventSource,
  nowMs: number,
): AttemptResult {
  const { event, relay, startedAtMs, results, ran, personId, mapVersion } = attempt;
  return {
    event,
    source,
    relay,
    startedAtMs,
    finishedAtMs: nowMs,
    results,
    ran,
    outcome: end.outcome,
    ...nextStateOf(end, event.attempts, nowMs),
    personId,
    warnings: [...attempt.warnings],
    mapVersion,
  };
}

/** Runs an attempt of a relay that sends nothing. The caller writes the result. Throws an error that no action handled. */
export async function runToEnd(
  tx: Writer,
  attempt: Attempt,
  source: EventSource,
  nowMs: number,
): Promise<AttemptResult> {
  const end = (await attempt.begin(tx)) ?? (await attempt.advance(tx));
  if ("send" in end) throw new Error("A relay without sending actions wanted to send.");
  return makeResult(attempt, end, source, nowMs);
}

/** Writes the results of attempts, each of another event, in their order. */
export async function finalizeAttempts(tx: Writer, results: readonly AttemptResult[]): Promise<RunReport[]> {
  await recordResults(tx, results);
  await raiseAlerts(tx, results);
  return results.map((result) => makeRunReport(result));
}

async function finalizeResult(tx: Writer, result: AttemptResult): Promise<RunReport> {
  const [report] = await finalizeAttempts(tx, [result]);
  return report as RunReport;
}

/** Writes the result of one attempt whose event was read or claimed from the database. */
export function finalizeAttempt(
  tx: Writer,
  attempt: Attempt,
  end: AttemptOutcome,
  nowMs: number,
): Promise<RunReport> {
  return finalizeResult(tx, makeResult(attempt, end, "database", nowMs));
}

/** Runs and writes one attempt in its own savepoint, so that an error fails only this event. */
export async function finalizeAlone(
  tx: Writer,
  relay: LiveRelay,
  event: EventToRun,
  run: () => Promise<AttemptResult>,
  nowMs: number,
  { log }: Pick<AttemptDeps, "log">,
): Promise<RunReport> {
  try {
    return await tx.attempt(async () => finalizeResult(tx, await run()));
  } catch (error) {
    if (error instanceof StoreUnavailable) throw error;
    log.error("event broke its run", { relay: relay.name, event: event.id, error });
    return finalizeBroken(tx, relay, await renumberAttempt(tx, event), nowMs);
  }
}

/** Writes a retryable failure for an attempt that an unexpected error broke, so that the event neither blocks its relay nor is lost. */
export function finalizeBroken(
  tx: Writer,
  relay: LiveRelay,
  event: EventToRun,
  nowMs: number,
): Promise<RunReport> {
  const results: ActionResult[] = [
    { type: "event", outcome: "failed", code: "internal", message: UNEXPECTED_ERROR },
  ];
  const end = { outcome: "failed", code: "internal", final: false } as const;
  return finalizeResult(tx, {
    event,
    source: "database",
    relay,
    startedAtMs: nowMs,
    finishedAtMs: nowMs,
    results,
    ran: null,
    outcome: "failed",
    ...nextStateOf(end, event.attempts, nowMs),
    personId: null,
    warnings: [],
    mapVersion: null,
  });
}
