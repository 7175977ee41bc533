/**
 * Runs an event in the transaction that stores it, so that its row is written once, in its final state. This is the fastest way to run an event.
 * It is allowed only if the relay's actions stay in the database and no older event of the relay is due. The transaction must also have changed
 * no relay. Every other event is stored as `queued` and runs in a batch (batch.ts).
 */

import type { Clock } from "../../base/clock.ts";
import type { LiveRelay, LiveRelays, Snapshot } from "../../rules/relay/live-relay.ts";
import type { LeaseHolder } from "../../store/lease/lease-holder.ts";
import type { FencedStore, SharedTransaction, Writer } from "../../store/port.ts";
import { type BufferedEvent, countAttempt } from "../event/event.ts";
import type { AttemptResult } from "../event/run.ts";
import { Attempt, type AttemptDeps } from "./attempt.ts";
import { finalizeAttempts, runToEnd } from "./attempt-result.ts";
import { type IncomingEvent, listIdle, mayRunInline } from "./idle-relays.ts";
import type { ReadyBuffer } from "./ready-buffer.ts";
import type { RunReport } from "./run-report.ts";

/** The milliseconds after which no run begins, because the senders of the transaction's events wait for its commit. */
const MAX_INLINE_MS = { whole: 12, shared: 40 } as const;

export interface InlineDeps extends AttemptDeps {
  leases: LeaseHolder;
  clock: Clock;
  relays: LiveRelays;
  buffer: ReadyBuffer;
  /** Reports whether this process may run the environment's events. */
  isOpen: (environmentId: number) => boolean;
  /** Receives each report after the commit. */
  onReport: (report: RunReport) => void;
}

/** The data that all runs of one transaction share, read before the first of them. */
interface InlineScope {
  transaction: SharedTransaction;
  relays: Snapshot;
  /** The versions of relays without a due event, by relay id; null if this process stores every event, and the buffer knows. */
  idleVersions: ReadonlyMap<string, number> | null;
}

/** Runs the events of one transaction inline. */
export class InlineRunner {
  readonly #tx: Writer;
  readonly #deps: InlineDeps;
  readonly #events: readonly IncomingEvent[];
  readonly #nowMs: number;
  readonly #endMs: number;
  readonly #results: AttemptResult[] = [];
  /** The scope; null if nothing may run in this transaction, undefined if it was not read yet. */
  #scope: InlineScope | null | undefined;
  /** The result of each store's fence check in this transaction: true if it holds. */
  readonly #fences = new Map<FencedStore, boolean>();

  /** `events`: the events that the transaction may store. `isAccepting`: whether the runner starts anything now. */
  constructor(tx: Writer, deps: InlineDeps, events: readonly IncomingEvent[], isAccepting: boolean) {
    if (!isAccepting) this.#scope = null;
    // No event may overtake one that is stored without being dispatched.
    for (const { relayId, dispatch } of events)
      if (dispatch == null) deps.buffer.recordUnrun(tx.shared, relayId);
    this.#tx = tx;
    this.#events = events;
    this.#deps = deps;
    this.#nowMs = deps.clock.now();
    this.#endMs = deps.clock.monotonicMs() + MAX_INLINE_MS[deps.leases.holdsAll ? "whole" : "shared"];
  }

  /** Runs an event that is about to be stored; null if it must be stored as `queued`. `finalize` must follow the last run. */
  async run({ relayId, event, payload }: BufferedEvent): Promise<AttemptResult | null> {
    const tx = this.#tx;
    if (this.#scope === undefined) this.#scope = await this.#readScope();
    const scope = this.#scope;
    const relay = scope === null ? null : this.#findRunnable(scope, relayId, event.mapVersion);
    const isOwn =
      (relay !== null && scope?.idleVersions != null) || (await this.#fenceHolds(event.environmentId));
    if (scope === null || relay === null || !isOwn) {
      // The commit wakes the process that runs the environment.
      if (!isOwn && !this.#deps.leases.holdsAll) tx.notify("event", relayId);
      this.#deps.buffer.recordUnrun(tx.shared, relayId);
      return null;
    }
    scope.transaction.suppressCapture();
    const begin = () => new Attempt(countAttempt(event), relay, this.#nowMs, this.#deps, { payload });
    const result = await tx.attempt(() => runToEnd(tx, begin(), "unsaved", this.#nowMs));
    this.#results.push(result);
    return result;
  }

  /** Writes the results of the runs, after the rows of their events. */
  async finalize(): Promise<void> {
    if (this.#results.length === 0) return;
    const reports = await this.#tx.attempt(() => finalizeAttempts(this.#tx, this.#results));
    this.#tx.afterCommit(() => reports.forEach(this.#deps.onReport));
  }

  async #readScope(): Promise<InlineScope | null> {
    const { shared: transaction, foreignVersion } = this.#tx;
    const { buffer, leases } = this.#deps;
    const relays = this.#deps.relays.cached;
    if (transaction === null || relays === null) return null;
    if (transaction.hasChanged("relay") || transaction.hasChanged("environment")) return null;
    if (!leases.holdsAll)
      return { transaction, relays, idleVersions: await listIdle(this.#tx, this.#events, relays) };
    buffer.invalidateAfterForeignCommit(
      foreignVersion,
      this.#events.map(({ relayId }) => relayId),
    );
    return { transaction, relays, idleVersions: null };
  }

  /** Reports whether this process holds the environment's lease in this transaction. Each store is asked once. */
  async #fenceHolds(environmentId: number): Promise<boolean> {
    const { isOpen, leases } = this.#deps;
    if (!isOpen(environmentId)) return false;
    const store = leases.storeOf(environmentId);
    const holds = this.#fences.get(store) ?? (await store.fenceHolds(this.#tx));
    this.#fences.set(store, holds);
    return holds;
  }

  /** Returns the relay, if its newest event may run before any other event of the relay; else null. */
  #findRunnable(scope: InlineScope, relayId: string, mapVersion: number | null): LiveRelay | null {
    const { transaction, relays, idleVersions } = scope;
    const { buffer, clock } = this.#deps;
    const relay = relays.findRelay(relayId);
    if (relay === null || !mayRunInline(relay)) return null;
    if (relay.version !== mapVersion) return null;
    if (transaction.hasChanged("event", relayId) || transaction.hasChanged("event_left", relayId))
      return null;
    const idleBefore = idleVersions && idleVersions.get(relayId) === relay.version;
    if (!buffer.isIdle(transaction, relayId, idleBefore)) return null;
    return clock.monotonicMs() < this.#endMs ? relay : null;
  }
}
