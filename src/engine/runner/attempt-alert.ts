/** Alerts the owner about attempts that ended in a way that needs them: dead events, failures that only they can fix, sales without a person. */

import type { Reader, Writer } from "../../store/port.ts";
import { alertDead, alertUnmatchedSale, alertWaiting, WAITING_CODES } from "../event/alert.ts";
import type { EventToRun } from "../event/event.ts";
import { type AttemptResult, RUN_RESULTS } from "../event/run.ts";
import { lastFailure } from "./run-report.ts";

/** Raises the alerts in the transaction that writes the results. */
export async function raiseAlerts(tx: Writer, results: readonly AttemptResult[]): Promise<void> {
  await alertOfDead(tx, results);
  await alertOfWaiting(tx, results);
  await alertOfSales(tx, results);
}

/** The last result of each relay and the number of its results: a relay raises one alert for all results of a transaction. */
function* groupByRelay(results: readonly AttemptResult[]): Generator<{ last: AttemptResult; count: number }> {
  for (const ofRelay of Map.groupBy(results, ({ relay }) => relay?.id).values())
    yield { last: ofRelay.at(-1) as AttemptResult, count: ofRelay.length };
}

function about({ event: { environmentId, relayName }, finishedAtMs: nowMs }: AttemptResult) {
  return { environmentId, relayName, nowMs };
}

async function alertOfDead(tx: Writer, results: readonly AttemptResult[]): Promise<void> {
  const dead = results.filter(({ state }) => state === "dead");
  for (const { last, count } of groupByRelay(dead)) {
    const why = ` (${last.reason ?? "failed"}): ${lastFailure(last.results)}`;
    await alertDead(tx, { ...about(last), eventId: last.event.id, why, count });
  }
}

/** Actions about money: if such an event finds no person, a customer paid for nothing. */
const SALES: ReadonlySet<string> = new Set(["fulfil_product", "refund_product", "grant_plan", "revoke_plan"]);

async function alertOfSales(tx: Writer, results: readonly AttemptResult[]): Promise<void> {
  const unmatched = results.filter(
    ({ state, reason, relay }) =>
      state === "failed" &&
      reason === "person_not_found" &&
      relay?.actions.some(({ type }) => SALES.has(type)) === true,
  );
  for (const { last, count } of groupByRelay(unmatched))
    await alertUnmatchedSale(tx, {
      ...about(last),
      eventId: last.event.id,
      why: lastFailure(last.results),
      count,
    });
}

/** An event raises the alert of a code only when it first fails with that code. */
async function alertOfWaiting(tx: Writer, results: readonly AttemptResult[]): Promise<void> {
  const waiting = results.filter(({ state }) => state === "queued");
  for (const code of WAITING_CODES) {
    const first: AttemptResult[] = [];
    for (const result of waiting) {
      const { event } = result;
      const failed = result.results.some((one) => one.outcome === "failed" && one.code === code);
      if (failed && (event.attempts === 1 || !(await failedBefore(tx, event, code)))) first.push(result);
    }
    for (const { last, count } of groupByRelay(first)) {
      const failed = last.results.find((one) => one.outcome === "failed" && one.code === code);
      const why = failed?.outcome === "failed" ? failed.message : "";
      await alertWaiting(tx, { ...about(last), code, why, count });
    }
  }
}

/** Reports whether the previous attempt failed with this code, by itself or among others. */
async function failedBefore(tx: Reader, { seq, runs, reason }: EventToRun, code: string): Promise<boolean> {
  if (reason === code) return true;
  const before = await RUN_RESULTS.get(tx, "WHERE event_seq = $seq AND number = $number", {
    seq,
    number: runs - 1,
  });
  return before?.results.some((result) => result.code === code) === true;
}
