/**
 * Takes due events and runs them. Every stored event wakes it, and a poll every few seconds finds the rest. Events of one relay start in the order of
 * their arrival. Relays do not wait for each other, except after a hold (hold-release.ts). The actions of a relay decide how its events run:
 * - All actions stay in the database: an event, its effects and its next state are one transaction, inline (inline-run.ts) or in a batch (batch.ts).
 * - Some action sends: a transaction claims an event as `running` and goes up to the first send; each send commits before and after (sending.ts).
 */

import { type Clock, waitAtMost } from "../../base/clock.ts";
import type { RaisableLimits } from "../../base/limit.ts";
import type { Log } from "../../base/log.ts";
import type { RunNotice } from "../../platform/audit/notifier.ts";
import type { ActionPorts } from "../../rules/action/contract.ts";
import type { LiveRelay, LiveRelays, Snapshot } from "../../rules/relay/live-relay.ts";
import { ALL_ENVIRONMENTS, type LeaseHolder } from "../../store/lease/lease-holder.ts";
import {
  ANYWHERE,
  type ChangedTopics,
  type FencedStore,
  type PrefetchReader,
  StoreUnavailable,
  type Writer,
} from "../../store/port.ts";
import type { BufferedEvent, EventToRun } from "../event/event.ts";
import { BATCH_SIZE, runBatch } from "./batch.ts";
import { HoldReleases } from "./hold-release.ts";
import { type IncomingEvent, prefetch } from "./idle-relays.ts";
import { type InlineDeps, InlineRunner } from "./inline-run.ts";
import { failOrphanedEvents } from "./orphaned-events.ts";
import { Poller } from "./poller.ts";
import { ReadyBuffer } from "./ready-buffer.ts";
import type { RunReport } from "./run-report.ts";
import { type Claimed, claimSending, runSending, Slots } from "./sending.ts";

/** A graceful stop waits this long for sends; a call_url takes at most 10 seconds. */
const STOP_WAIT_MS = 12_000;

interface RunnerDeps {
  leases: LeaseHolder;
  clock: Clock;
  relays: LiveRelays;
  ports: ActionPorts;
  log: Log;
  concurrency: number;
  limits: RaisableLimits;
  /** Prints the line of a run; the newline is not included. */
  printRun: (line: string) => void;
  /** Receives the notice of a run, after its line. */
  notifier: { notifyRun(notice: RunNotice): void };
  /** Receives every report after the commit. */
  watchers: readonly { recordRun(run: RunReport): void }[];
}

export class Runner {
  readonly #deps: RunnerDeps;
  /** Relays that may have a due event, in the order in which they became ready. */
  #ready = new Set<string>();
  /** Relays with a claim or a batch in progress. */
  readonly #busy = new Set<string>();
  /**
   * Relays whose last claim failed. The next one claims a single event without its first step, so that an event that breaks claims fails by itself.
   */
  readonly #failedClaims = new Set<string>();
  readonly #slots: Slots;
  readonly #poller: Poller;
  readonly #buffer = new ReadyBuffer();
  readonly #inlineDeps: InlineDeps;
  /** The stores with a batch in progress. */
  readonly #batching = new Set<FencedStore>();
  readonly #releases: HoldReleases;
  readonly #inFlight = new InFlight();
  #pumping = false;
  /** True if another pump was requested during the current one. */
  #pumpAgain = false;
  #stopped = false;
  #stopping: Promise<void> | null = null;

  constructor(deps: RunnerDeps) {
    this.#deps = deps;
    this.#slots = new Slots(deps.concurrency);
    this.#poller = new Poller(deps, (relayIds) => {
      const releasing = deps.relays.cached?.releasing ?? [];
      for (const relayId of [...relayIds, ...releasing]) this.#markReady(relayId);
      this.#pump();
    });
    this.#releases = new HoldReleases({ ...deps, slots: this.#slots, poller: this.#poller });
    const isOpen = (environmentId: number): boolean => this.#isOpen(environmentId);
    this.#inlineDeps = { ...deps, isOpen, buffer: this.#buffer, onReport: this.#onReport };
  }

  /** Reports whether this process may run the environment's events now. */
  #isOpen(environmentId: number): boolean {
    const { leases } = this.#deps;
    return leases.holds(environmentId) && (leases.holdsAll || this.#poller.hasRescued(environmentId));
  }

  /** Makes the relay ready, and has its due events read from the database. */
  #markReady(relayId: string): void {
    this.#buffer.invalidate(relayId);
    this.#ready.add(relayId);
  }

  /** Takes an event that was just stored as `queued`, after the commit. */
  enqueue(event: BufferedEvent): void {
    if (this.#stopped) return;
    this.#buffer.add(event);
    this.#ready.add(event.relayId);
    this.#pump();
  }

  /** Begins the inline runs of a transaction that stores these events. */
  startInline(tx: Writer, events: readonly IncomingEvent[]): Pick<InlineRunner, "run" | "finalize"> {
    return new InlineRunner(tx, this.#inlineDeps, events, !this.#stopped);
  }

  /** Prefetches what inline runs of these events would read. */
  prefetch(reader: PrefetchReader, events: readonly IncomingEvent[]): readonly Promise<unknown>[] {
    return this.#stopped ? [] : prefetch(reader, events, this.#inlineDeps);
  }

  /** Runs the environment's events from now on; for ALL_ENVIRONMENTS, the tasks of the leader. */
  take(environmentId: number): void {
    // Another process may have stored events in the meantime.
    this.#buffer.invalidateAll();
    if (environmentId === ALL_ENVIRONMENTS) this.#poller.takeSharedTasks();
    else this.#poller.take(environmentId);
  }

  /** Stops taking the environment's events. `wait`: resolves when its running events have ended, or after STOP_WAIT_MS. */
  async drop(environmentId: number, { wait }: { wait: boolean }): Promise<void> {
    this.#poller.drop(environmentId);
    if (wait) await waitAtMost(this.#deps.clock, STOP_WAIT_MS, this.#inFlight.whenIdle(environmentId));
  }

  /** Requeues events that a dead process left `running`. Throws StoreUnavailable. */
  rescue(): Promise<void> {
    return this.#poller.rescue();
  }

  start(): Promise<void> {
    return this.#poller.start();
  }

  /** Looks for due events of the relay; without an id, of all relays. */
  wake(relayId?: string): void {
    if (this.#stopped) return;
    if (relayId === undefined) this.#poller.wake();
    else this.#markReady(relayId);
    this.#pump();
  }

  /** Listens to the store: wakes the relays whose events a write touched. */
  readonly hear = (changes: ChangedTopics): void => {
    for (const topic of ["event", "event_left"] as const)
      for (const relayId of changes.get(topic) ?? []) this.wake(relayId === ANYWHERE ? undefined : relayId);
  };

  /** Reports whether it runs and reaches its store. */
  get alive(): boolean {
    return !this.#stopped && this.#poller.reachesStore;
  }

  /** Events that hold a slot for sending now. */
  get runningCount(): number {
    return this.#slots.taken;
  }

  /**
   * Takes no new event and begins no further send. Waits for sends in progress; the next start rescues those that take too long. A second call waits
   * for the first.
   */
  stop(): Promise<void> {
    this.#stopping ??= this.#stop();
    return this.#stopping;
  }

  async #stop(): Promise<void> {
    this.#stopped = true;
    const polled = this.#poller.stop();
    await waitAtMost(this.#deps.clock, STOP_WAIT_MS, Promise.all([polled, this.#inFlight.whenIdle()]));
  }

  #pump(): void {
    if (this.#stopped || this.#ready.size === 0) return;
    this.#pumpAgain = this.#pumping;
    if (this.#pumping) return;
    this.#pumping = true;
    void this.#startReady().finally(() => {
      this.#pumping = false;
      if (this.#pumpAgain) this.#pump();
    });
  }

  async #startReady(): Promise<void> {
    const { leases } = this.#deps;
    let snapshot: Snapshot;
    try {
      snapshot = await this.#deps.relays.current();
    } catch (error) {
      // No event can run before the relays are read. The next poll retries.
      return this.#handleError(error);
    }
    const [inBatch, inRelease]: [LiveRelay[], LiveRelay[]] = [[], []];
    for (const relayId of this.#listReady()) {
      if (this.#stopped) return;
      if (this.#busy.has(relayId) || this.#poller.unsure.has(relayId)) continue;
      const relay = snapshot.findRelay(relayId);
      if (relay === null && leases.holds(ALL_ENVIRONMENTS))
        this.#startWork(ALL_ENVIRONMENTS, [relayId], () => this.#failDeleted(relayId));
      else if (relay === null || relay.waiting || !this.#isOpen(relay.environmentId)) {
        this.#ready.delete(relayId);
        this.#buffer.invalidate(relayId);
      } else if (relay.releasing) inRelease.push(relay);
      else if (!relay.sends) inBatch.push(relay);
      else {
        this.#buffer.invalidate(relayId);
        const slots = this.#slots.freeFor(relayId, snapshot.sendingCount);
        if (slots > 0) this.#startWork(relay.environmentId, [relayId], () => this.#claim(relay, slots));
      }
    }
    for (const [environmentId, relays] of Map.groupBy(inRelease, (relay) => relay.environmentId)) {
      if (this.#releases.isRunning(environmentId)) continue;
      for (const { id } of relays) this.#buffer.invalidate(id);
      const ids = relays.map(({ id }) => id);
      this.#startWork(environmentId, ids, () => this.#runRelease(environmentId, snapshot));
    }
    // One lease covers all environments of a store, so they share a batch.
    for (const [store, relays] of Map.groupBy(inBatch, (relay) => leases.storeOf(relay.environmentId)))
      if (!this.#batching.has(store)) this.#beginBatch(store, relays.slice(0, BATCH_SIZE));
  }

  #beginBatch(store: FencedStore, relays: readonly LiveRelay[]): void {
    this.#batching.add(store);
    const ids = relays.map(({ id }) => id);
    this.#startWork(relays[0]?.environmentId ?? ALL_ENVIRONMENTS, ids, () => this.#runBatch(store, relays));
  }

  /** Lists ready relays, those with the fewest slots first, so that a free slot goes to a relay that has none. */
  #listReady(): string[] {
    return [...this.#ready].sort((one, other) => this.#slots.takenBy(one) - this.#slots.takenBy(other));
  }

  /** Starts one piece of work for the relays. `work` returns the relays that may have more due events. */
  #startWork(
    environmentId: number,
    relayIds: readonly string[],
    work: () => Promise<readonly string[]>,
  ): void {
    for (const relayId of relayIds) {
      // Removed before the work reads, so that a wake during the work is not lost.
      this.#ready.delete(relayId);
      this.#busy.add(relayId);
    }
    const ending = work()
      .then(
        (more) => {
          for (const relayId of more) this.#ready.add(relayId);
        },
        (error: unknown) => this.#handleError(error, environmentId),
      )
      .finally(() => {
        for (const relayId of relayIds) this.#busy.delete(relayId);
        this.#pump();
      });
    this.#inFlight.track(environmentId, ending);
  }

  #handleError(error: unknown, environmentId = ALL_ENVIRONMENTS): void {
    const { leases } = this.#deps;
    const isLost = !leases.holdsAll && !leases.holds(environmentId);
    if (isLost && error instanceof StoreUnavailable) return;
    this.#poller.recordTrouble();
    if (error instanceof StoreUnavailable) {
      if (!this.#stopped) this.#deps.log.warn("the runner cannot write", { cause: error.message });
    } else this.#deps.log.error("the runner failed", { error });
  }

  async #runBatch(store: FencedStore, relays: readonly LiveRelay[]): Promise<string[]> {
    const buffer = this.#buffer;
    const ran = runBatch(relays, { ...this.#deps, store, buffer });
    const reports = await ran.finally(() => this.#batching.delete(store));
    reports.forEach(this.#onReport);
    // Starved relays come first, even if more relays are ready than one batch takes.
    const starved = relays.flatMap(({ id }) => (buffer.starved.has(id) ? [id] : []));
    this.#ready = new Set([...starved, ...this.#ready]);
    return relays.flatMap(({ id }) => (buffer.mayHaveDue(id) ? [id] : []));
  }

  async #runRelease(environmentId: number, snapshot: Snapshot): Promise<readonly string[]> {
    const { reports, started, more, store } = await this.#releases.run(environmentId, snapshot);
    reports.forEach(this.#onReport);
    for (const { relay, claimed } of started)
      this.#inFlight.track(environmentId, this.#runSending(store, relay, claimed));
    return more;
  }

  async #claim(relay: LiveRelay, free: number): Promise<readonly string[]> {
    const claimOnly = this.#failedClaims.delete(relay.id);
    const slots = claimOnly ? 1 : free;
    this.#slots.take(relay.id, slots);
    let claimed: Claimed[] = [];
    let more = false;
    const store = this.#deps.leases.storeOf(relay.environmentId);
    const onUnknown = (events: readonly EventToRun[]) => this.#poller.recordUnsure(relay.id, events);
    try {
      ({ claimed, more } = await claimSending(
        relay,
        slots,
        { claimOnly, onUnknown },
        { ...this.#deps, store },
      ));
    } catch (error) {
      if (!claimOnly) this.#failedClaims.add(relay.id);
      throw error;
    } finally {
      this.#slots.release(relay.id, slots - claimed.length);
    }
    for (const one of claimed) this.#inFlight.track(relay.environmentId, this.#runSending(store, relay, one));
    return more && (!claimOnly || claimed.length === 0) ? [relay.id] : [];
  }

  /** Runs a claimed event in its slot. It stops before the next send if this process no longer holds the environment. */
  async #runSending(store: FencedStore, relay: LiveRelay, claimed: Claimed): Promise<void> {
    const { leases } = this.#deps;
    const { environmentId } = relay;
    const maySend = (): boolean =>
      !this.#stopped && leases.holds(environmentId) && leases.storeOf(environmentId) === store;
    try {
      const report = await runSending(relay, claimed, { ...this.#deps, store }, maySend);
      if (report !== null) this.#onReport(report);
      // If the lease only seemed lost, no other process rescues the event, so this one must.
      else this.#poller.recordCutOff(claimed.event);
    } catch (error) {
      this.#poller.recordCutOff(claimed.event);
      this.#handleError(error, environmentId);
    } finally {
      this.#slots.release(relay.id, 1);
      // A claim without its first step took one event only, so others may be due.
      if (claimed.begun === null) this.#ready.add(relay.id);
      for (const relayId of this.#releases.listWaiting()) this.#ready.add(relayId);
      this.#pump();
    }
  }

  async #failDeleted(relayId: string): Promise<readonly string[]> {
    this.#buffer.forget(relayId);
    const { leases, clock, relays } = this.#deps;
    const reports = await leases
      .storeOf(ALL_ENVIRONMENTS)
      .write("relay", (tx) => failOrphanedEvents(tx, relayId, BATCH_SIZE, clock.now()));
    if (reports === null) {
      // The relay is newer than the relays in memory. Its events run after they are read again.
      relays.invalidate();
      return [relayId];
    }
    reports.forEach(this.#onReport);
    return reports.length === BATCH_SIZE ? [relayId] : [];
  }

  readonly #onReport = (report: RunReport): void => {
    this.#deps.printRun(report.line);
    if (report.notice !== null) this.#deps.notifier.notifyRun(report.notice);
    for (const watcher of this.#deps.watchers) watcher.recordRun(report);
  };
}

/** Tracks work that has begun and not ended, by environment. */
class InFlight {
  readonly #pieces = new Map<Promise<void>, number>();

  /** Adds work of the environment until it ends. */
  track(environmentId: number, work: Promise<void>): void {
    const piece = work.finally(() => this.#pieces.delete(piece));
    this.#pieces.set(piece, environmentId);
  }

  /** Resolves when no work is left: of the environment, or of any. */
  async whenIdle(environmentId?: number): Promise<void> {
    for (;;) {
      const pieces = [...this.#pieces].filter(([, owner]) => owner === (environmentId ?? owner));
      if (pieces.length === 0) return;
      await Promise.all(pieces.map(([piece]) => piece));
    }
  }
}
