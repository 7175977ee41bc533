/**
 * Runs the events that waited for a hold, up to the newest event at the release. They start in the order of their arrival across all relays of the
 * environment. Each transaction takes the oldest due events. An event that sends starts in this order and ends later. Events that cannot start do
 * not block the others: events that wait for a retry, events of a paused relay, and a relay without a free slot. The progress is in the database, so
 * that another process can continue it.
 */

import { endHoldRelease, findHoldRelease } from "../../platform/account/environment.ts";
import type { LiveRelay, Snapshot } from "../../rules/relay/live-relay.ts";
import {
  type FencedStore,
  OutcomeUnknown,
  type Reader,
  StoreUnavailable,
  type Writer,
} from "../../store/port.ts";
import { type EventToRun, listDueEvents } from "../event/event.ts";
import { AttemptGroup } from "./attempt-group.ts";
import { MAX_READ, MAX_RUNS, maxBatchMs } from "./batch.ts";
import type { Poller } from "./poller.ts";
import type { RunReport } from "./run-report.ts";
import { type Claimed, claimOne, type SendingDeps, type Slots } from "./sending.ts";

/** The other relays wait this long for a relay that has no free slot. After that its events run out of order. */
const MAX_SLOT_WAIT_MS = 1_000;
/** The smallest page of a relay's events. */
const MIN_PAGE = 4;

type StoreDeps = Omit<SendingDeps, "store">;
interface ReleaseDeps extends StoreDeps {
  slots: Slots;
  poller: Pick<Poller, "unsure" | "recordUnsure">;
}

interface Started {
  relay: LiveRelay;
  claimed: Claimed;
}

/** The result of one transaction of a release. */
interface ReleaseStep {
  reports: RunReport[];
  /** Claimed events, each with a slot, that must continue with their first send. */
  started: Started[];
  /** Relays that may have more due events. */
  more: string[];
  /** The store of the transaction. */
  store: FencedStore;
}

export class HoldReleases {
  readonly #deps: ReleaseDeps;
  readonly #running = new Set<number>();
  /** The relays of each environment that wait for a slot, with the time since which each waits. */
  readonly #waiting = new Map<number, ReadonlyMap<string, number>>();

  constructor(deps: ReleaseDeps) {
    this.#deps = deps;
  }

  isRunning(environmentId: number): boolean {
    return this.#running.has(environmentId);
  }

  /** Relays to continue when a slot becomes free. */
  listWaiting(): string[] {
    return [...this.#waiting.values()].flatMap((relays) => [...relays.keys()]);
  }

  /** Runs the environment's oldest due events in one transaction. If an error breaks it, it runs again with a savepoint for each event. */
  async run(environmentId: number, snapshot: Snapshot): Promise<ReleaseStep> {
    this.#running.add(environmentId);
    try {
      return await this.#commit(environmentId, snapshot, false);
    } catch (error) {
      if (error instanceof StoreUnavailable) throw error;
      this.#deps.log.error("a batch of a release broke; its events run one by one", { error });
      return await this.#commit(environmentId, snapshot, true);
    } finally {
      this.#running.delete(environmentId);
    }
  }

  /** `careful`: each event has its own savepoint, so that an event that breaks fails by itself. */
  async #commit(environmentId: number, snapshot: Snapshot, careful: boolean): Promise<ReleaseStep> {
    const { leases, poller } = this.#deps;
    const waitingSince = this.#waiting.get(environmentId) ?? new Map<string, number>();
    const store = leases.storeOf(environmentId);
    let step: Step | null = null;
    try {
      return await store.write("relay", async (tx) => {
        step?.releaseSlots();
        const waiting = new Map<string, number>();
        step = new Step(tx, snapshot, { ...this.#deps, store }, { careful, waitingSince, waiting });
        this.#waiting.set(environmentId, waiting);
        return await step.run(environmentId);
      });
    } catch (error) {
      const started: Started[] = (step as Step | null)?.releaseSlots() ?? [];
      if (error instanceof OutcomeUnknown)
        for (const [{ id }, taken] of Map.groupBy(started, ({ relay }) => relay)) {
          const events = taken.map(({ claimed }) => claimed.event);
          poller.recordUnsure(id, events);
        }
      throw error;
    }
  }
}

interface StepOptions {
  careful: boolean;
  /** The times since which relays waited for a slot before this step. */
  waitingSince: ReadonlyMap<string, number>;
  /** The times after this step, which fills the map. */
  waiting: Map<string, number>;
}

/** One transaction of a release. */
class Step {
  readonly #tx: Writer;
  readonly #snapshot: Snapshot;
  readonly #deps: ReleaseDeps & SendingDeps;
  readonly #options: StepOptions;
  readonly #nowMs: number;
  readonly #attempts: AttemptGroup;
  readonly #started: Started[] = [];

  constructor(tx: Writer, snapshot: Snapshot, deps: ReleaseDeps & SendingDeps, options: StepOptions) {
    this.#tx = tx;
    this.#snapshot = snapshot;
    this.#deps = deps;
    this.#options = options;
    this.#nowMs = deps.clock.now();
    this.#attempts = new AttemptGroup(tx, deps, { nowMs: this.#nowMs, isCareful: options.careful });
  }

  /** Releases the slots that it took, and returns the events that it had started. */
  releaseSlots(): Started[] {
    const started = this.#started.splice(0);
    for (const { relay } of started) this.#deps.slots.release(relay.id, 1);
    return started;
  }

  async run(environmentId: number): Promise<ReleaseStep> {
    const more = await this.#runInOrder(environmentId);
    const reports = await this.#attempts.write();
    return { reports, started: this.#started, more, store: this.#deps.store };
  }

  /** Returns the relays that may have more due events. */
  async #runInOrder(environmentId: number): Promise<string[]> {
    const { clock, leases, relays, poller } = this.#deps;
    const endMs = clock.monotonicMs() + maxBatchMs(leases);
    const through = await findHoldRelease(this.#tx, environmentId);
    if (through === null) {
      relays.invalidate();
      return [];
    }
    const order = await openOrder(this.#tx, environmentId, this.#snapshot);
    let isPassed = false;
    for (let ran = 0; ; ) {
      const next = await order.peek();
      if (next === null || (next.head > through && !isPassed)) {
        if (!isPassed) await endHoldRelease(this.#tx, environmentId, through);
        return [];
      }
      if (ran > 0 && (ran >= MAX_RUNS || clock.monotonicMs() >= endMs)) return [next.id];
      if (next.relay === null) {
        // Another process has just paused or changed the relay.
        relays.invalidate();
        return [next.id];
      }
      // The poller must first find out whether an earlier claim was stored.
      if (poller.unsure.has(next.id)) return [];
      if (next.relay.sends && !this.#hasSlot(next.relay)) {
        if (this.#waitsForSlot(next.id)) return [];
        isPassed ||= next.head <= through;
        order.drop(next);
        continue;
      }
      await this.#start(next.relay, order.take(next));
      ran += 1;
    }
  }

  #hasSlot({ id }: LiveRelay): boolean {
    return this.#deps.slots.freeFor(id, this.#snapshot.sendingCount) > 0;
  }

  /** Reports whether the other relays still wait for this one. */
  #waitsForSlot(relayId: string): boolean {
    const { waiting, waitingSince } = this.#options;
    const nowMs = this.#deps.clock.monotonicMs();
    const sinceMs = waitingSince.get(relayId) ?? nowMs;
    waiting.set(relayId, sinceMs);
    return nowMs - sinceMs < MAX_SLOT_WAIT_MS;
  }

  async #start(relay: LiveRelay, due: EventToRun): Promise<void> {
    if (!relay.sends) {
      await this.#attempts.run(relay, { event: due, source: "database" });
      return;
    }
    // An event that sends writes its own result, so the earlier ones must come first.
    await this.#attempts.write();
    const claimOnly = this.#options.careful;
    const claimed = await claimOne(this.#tx, relay, due, { claimOnly }, this.#nowMs, this.#deps);
    this.#deps.slots.take(relay.id, 1);
    this.#started.push({ relay, claimed });
  }
}

/** A relay's due events. `head`: no event before this number is due. `relay`: null if this process does not know its current version. */
interface Queue {
  id: string;
  relay: LiveRelay | null;
  head: number;
  page: EventToRun[];
}

/** Merges the due events of several relays in the order of their arrival. */
class ArrivalOrder {
  readonly #tx: Reader;
  readonly #queues: Set<Queue>;
  readonly #size: number;

  constructor(tx: Reader, queues: readonly Queue[]) {
    this.#tx = tx;
    this.#queues = new Set(queues);
    this.#size = Math.max(MIN_PAGE, Math.ceil(MAX_READ / queues.length));
  }

  /** Returns the queue with the oldest event; null if no event is due. */
  async peek(): Promise<Queue | null> {
    for (;;) {
      let first: Queue | null = null;
      for (const queue of this.#queues) if (first === null || queue.head < first.head) first = queue;
      if (first === null || first.relay === null || first.page.length > 0) return first;
      first.page = await listDueEvents(this.#tx, first.id, this.#size, first.head - 1);
      const [oldest] = first.page;
      if (oldest === undefined) this.drop(first);
      else first.head = oldest.seq;
    }
  }

  take(queue: Queue): EventToRun {
    const event = queue.page.shift() as EventToRun;
    queue.head = queue.page[0]?.seq ?? event.seq + 1;
    return event;
  }

  drop(queue: Queue): void {
    this.#queues.delete(queue);
  }
}

const HEADS = `SELECT relay.id, relay.version,
    (SELECT seq FROM event WHERE event.relay_key = relay_key.key AND event.state = 'queued' AND next_attempt_at IS NULL ORDER BY seq LIMIT 1) AS head
  FROM relay JOIN relay_key ON relay_key.relay_id = relay.id WHERE relay.environment_id = ?1 AND relay.state = 'active'`;

/** Merges the environment's active relays. A relay that cannot be opened waits without blocking the others. */
async function openOrder(tx: Reader, environmentId: number, snapshot: Snapshot): Promise<ArrivalOrder> {
  const rows = await tx.all<{ id: string; version: number; head: number | null }>(HEADS, environmentId);
  const queues: Queue[] = [];
  for (const { id, version, head } of rows) {
    const relay = snapshot.findRelay(id);
    const isKnown = relay !== null && relay.version === version;
    const isClosed = isKnown && relay.waiting && relay.waitsFor === null;
    if (head === null || isClosed) continue;
    queues.push({ id, relay: isKnown && !relay.waiting ? relay : null, head, page: [] });
  }
  return new ArrivalOrder(tx, queues);
}
