/**
 * Turns a finished attempt into its result: the event's next state by the specification's state table. Writes results, with their alerts, in one
 * go for all attempts of a transaction, and returns their reports.
 */

import { MAX_ATTEMPTS, RETRY_DELAYS_MS } from "../../base/limit.ts";
import type { ActionResult } from "../../rules/action/contract.ts";
import type { LiveRelay } from "../../rules/relay/live-relay.ts";
import type { Writer } from "../../store/port.ts";
import type { EventToRun } from "../event/event.ts";
import { type AttemptResult, type EventSource, recordResults } from "../event/run.ts";
import { type Attempt, type AttemptOutcome, UNEXPECTED_ERROR } from "./attempt.ts";
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

/** The data of an attempt. An absent part is empty, because the attempt ended before it. */
type AttemptData = Pick<AttemptResult, "event" | "relay" | "startedAtMs"> &
  Partial<Pick<AttemptResult, "source" | "results" | "ran" | "personId" | "warnings" | "mapVersion">>;

/** Makes the result of a finished attempt, with the state that its event takes. */
export function makeResult(data: AttemptData, end: AttemptOutcome, nowMs: number): AttemptResult {
  return {
    source: "database",
    results: [],
    ran: null,
    personId: null,
    warnings: [],
    mapVersion: null,
    ...data,
    finishedAtMs: nowMs,
    outcome: end.outcome,
    ...nextStateOf(end, data.event.attempts, nowMs),
  };
}

function dataOf(attempt: Attempt, source: EventSource): AttemptData {
  const { event, relay, startedAtMs, results, ran, personId, mapVersion } = attempt;
  const warnings = [...attempt.warnings];
  return { event, source, relay, startedAtMs, results, ran, personId, warnings, mapVersion };
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
  return makeResult(dataOf(attempt, source), end, nowMs);
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
  return finalizeResult(tx, makeResult(dataOf(attempt, "database"), end, nowMs));
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
  return finalizeResult(tx, makeResult({ event, relay, startedAtMs: nowMs, results }, end, nowMs));
}
