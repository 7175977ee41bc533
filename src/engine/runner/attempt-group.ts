/**
 * Runs the attempts of one transaction and writes their results together, because one statement for all of them is cheaper. If an error broke an
 * earlier try of the transaction, each attempt has its own savepoint instead, so that an event that breaks fails by itself.
 */

import type { JsonObject } from "../../base/json.ts";
import type { LiveRelay } from "../../rules/relay/live-relay.ts";
import { StoreUnavailable, type Writer } from "../../store/port.ts";
import { countAttempt, type EventToRun } from "../event/event.ts";
import { type AttemptResult, type EventSource, renumberAttempt } from "../event/run.ts";
import { Attempt, type AttemptDeps } from "./attempt.ts";
import { finalizeAttempts, finalizeBroken, runToEnd } from "./attempt-result.ts";
import type { RunReport } from "./run-report.ts";

interface GroupOptions {
  nowMs: number;
  /** True if each attempt has its own savepoint. */
  isCareful: boolean;
}

/** An event to run, with the place that it was read from. */
interface DueEvent {
  event: EventToRun;
  source: EventSource;
  /** The parsed payload, if the caller has it. */
  payload?: JsonObject | null;
}

export class AttemptGroup {
  readonly #tx: Writer;
  readonly #deps: AttemptDeps;
  readonly #options: GroupOptions;
  /** Results that are not written yet. */
  #results: AttemptResult[] = [];
  readonly #reports: RunReport[] = [];

  constructor(tx: Writer, deps: AttemptDeps, options: GroupOptions) {
    this.#tx = tx;
    this.#deps = deps;
    this.#options = options;
  }

  /** The number of attempts that ran. */
  get size(): number {
    return this.#results.length + this.#reports.length;
  }

  /** Runs an event of a relay that sends nothing. `write` must follow the last one. */
  async run(relay: LiveRelay, { event: due, source, payload = null }: DueEvent): Promise<void> {
    const { nowMs, isCareful } = this.#options;
    const event = countAttempt(due);
    const run = (): Promise<AttemptResult> =>
      runToEnd(this.#tx, new Attempt(event, relay, nowMs, this.#deps, { payload }), source, nowMs);
    if (isCareful) this.#reports.push(await this.#runInSavepoint(relay, event, run));
    else this.#results.push(await run());
  }

  /** Writes the results so far, and returns the reports of all attempts. */
  async write(): Promise<RunReport[]> {
    const results = this.#results;
    this.#results = [];
    this.#reports.push(...(await finalizeAttempts(this.#tx, results)));
    return this.#reports;
  }

  /** Runs and writes one attempt in its own savepoint. An error becomes a retryable failure of this event. */
  async #runInSavepoint(
    relay: LiveRelay,
    event: EventToRun,
    run: () => Promise<AttemptResult>,
  ): Promise<RunReport> {
    const tx = this.#tx;
    try {
      const [report] = await tx.attempt(async () => finalizeAttempts(tx, [await run()]));
      return report as RunReport;
    } catch (error) {
      if (error instanceof StoreUnavailable) throw error;
      this.#deps.log.error("event broke its run", { relay: relay.name, event: event.id, error });
      return finalizeBroken(tx, relay, await renumberAttempt(tx, event), this.#options.nowMs);
    }
  }
}
