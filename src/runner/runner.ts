/**
 * The runner: takes due events and runs them. It is woken by every new row and polls as the fallback; events of one relay start in arrival
 * order; different relays never wait for each other. It never knows where an event came from.
 *
 * Two roads. A relay whose actions only touch the database runs in batches: taking the event, its effects, its results and its next state
 * are one transaction, so a crash leaves all of it or nothing. A relay that sends takes its events first (`running`, the attempt counts),
 * then runs each by itself, committing before and after every send.
 */
import type { ActionDoors } from "../action/contract.ts";
import { claimEvents, listDueEvents } from "../event/claim.ts";
import type { EventToRun } from "../event/event-row.ts";
import { type Clock, waitAtMost } from "../ground/clock.ts";
import type { RaisableLimits } from "../ground/limit.ts";
import type { Log } from "../ground/log.ts";
import type { LiveRelay, LiveRelays } from "../relay/live-relay.ts";
import { type Store, StoreUnavailable } from "../store/port.ts";
import { runBatch, runBatchCarefully } from "./batch.ts";
import { type EndedRun, type Finished, finishBroken } from "./finish-attempt.ts";
import { failOrphanedEvents, relayExists } from "./orphan.ts";
import { Places } from "./place.ts";
import { Poller } from "./poller.ts";
import { runSending } from "./sending.ts";

/** Events of a database-only relay in one transaction; bounds how long others wait for the writer. */
const BATCH_SIZE = 64;
/** How long a graceful stop waits for what is out of the house; a call_url takes 10 seconds at most. */
const STOP_WAIT_MS = 12_000;

interface RunnerRooms {
  store: Store;
  clock: Clock;
  relays: LiveRelays;
  doors: ActionDoors;
  log: Log;
  concurrency: number;
  limits: RaisableLimits;
  /** Takes the line of every run, without its newline. */
  printRun: (line: string) => void;
  /** Told of every run that ended, after its commit. */
  onRun: (run: EndedRun) => void;
}

export class Runner {
  readonly #rooms: RunnerRooms;
  /** Relays that may have a due event. */
  readonly #ready = new Set<string>();
  /** Relays with a claim or a batch on its way. */
  readonly #busy = new Set<string>();
  readonly #places: Places;
  readonly #poller: Poller;
  #pumping = false;
  /** Somebody asked while a pump was on its way. */
  #pumpAgain = false;
  #stopped = false;
  #stopping: Promise<void> | null = null;
  #whenIdle: (() => void)[] = [];

  constructor(rooms: RunnerRooms) {
    this.#rooms = rooms;
    this.#places = new Places(rooms.concurrency);
    this.#poller = new Poller(rooms, (relayIds) => {
      for (const relayId of relayIds) this.#ready.add(relayId);
      this.#pump();
    });
  }

  /** Rescues what a dead process left running. Throws StoreUnavailable. */
  rescue(): Promise<void> {
    return this.#poller.rescue();
  }

  /** Begins. */
  start(): Promise<void> {
    return this.#poller.start();
  }

  /** A relay has a new due event, or may run again. Without a name: any relay. */
  wake(relayId?: string): void {
    if (this.#stopped) return;
    if (relayId === undefined) this.#poller.wake();
    else this.#ready.add(relayId);
    this.#pump();
  }

  /** Whether it can reach its store. */
  get alive(): boolean {
    return !this.#stopped && this.#poller.reachesStore;
  }

  /** Events running now. */
  get runningCount(): number {
    return this.#places.taken;
  }

  /**
   * Takes nothing new and begins no further send; what is out may come back, and what does not is rescued at the next start. A second call
   * waits for the first.
   */
  stop(): Promise<void> {
    this.#stopping ??= this.#stop();
    return this.#stopping;
  }

  async #stop(): Promise<void> {
    this.#stopped = true;
    const polled = this.#poller.stop();
    const idle = this.#idle ? null : new Promise<void>((resolve) => this.#whenIdle.push(resolve));
    await waitAtMost(this.#rooms.clock, STOP_WAIT_MS, Promise.all([polled, idle]));
  }

  get #idle(): boolean {
    return this.#places.taken === 0 && this.#busy.size === 0;
  }

  #pump(): void {
    if (this.#stopped || this.#ready.size === 0) return;
    this.#pumpAgain = this.#pumping;
    if (this.#pumping) return;
    this.#pumping = true;
    void this.#launch().finally(() => {
      this.#pumping = false;
      if (this.#pumpAgain) this.#pump();
    });
  }

  async #launch(): Promise<void> {
    let snapshot: Awaited<ReturnType<LiveRelays["current"]>>;
    try {
      snapshot = await this.#rooms.relays.current();
    } catch (error) {
      // Nothing can run before the relays are read; the next poll tries again.
      return this.#onTrouble(error);
    }
    for (const relayId of this.#inTurn()) {
      if (this.#stopped) return;
      if (this.#busy.has(relayId)) continue;
      const relay = snapshot.findRelay(relayId);
      if (relay === null) this.#begin(relayId, () => this.#failDeleted(relayId));
      else if (relay.waiting) this.#ready.delete(relayId);
      else if (!relay.sends) this.#begin(relayId, () => this.#runBatch(relay));
      else {
        const places = this.#places.freeFor(relayId, snapshot.sendingCount);
        if (places > 0) this.#begin(relayId, () => this.#claim(relay, places));
      }
    }
  }

  /** Ready relays, those with the fewest running events first, so that a free place goes to the one that waited for its first. */
  #inTurn(): string[] {
    return [...this.#ready].sort((one, other) => this.#places.takenBy(one) - this.#places.takenBy(other));
  }

  /** Runs one piece of a relay's work; `work` answers whether there may be more. */
  #begin(relayId: string, work: () => Promise<boolean>): void {
    // Forgotten before looking, so that a wake during the look is not lost.
    this.#ready.delete(relayId);
    this.#busy.add(relayId);
    void work()
      .then(
        (more) => {
          if (more) this.#ready.add(relayId);
        },
        (error: unknown) => this.#onTrouble(error),
      )
      .finally(() => {
        this.#busy.delete(relayId);
        this.#onProgress();
      });
  }

  #onTrouble(error: unknown): void {
    this.#poller.noteTrouble();
    if (error instanceof StoreUnavailable) {
      if (!this.#stopped) this.#rooms.log.warn("the runner cannot write", { cause: error.message });
    } else this.#rooms.log.error("the runner failed", { error });
  }

  #onProgress(): void {
    if (this.#idle) for (const resolve of this.#whenIdle.splice(0)) resolve();
    this.#pump();
  }

  async #runBatch(relay: LiveRelay): Promise<boolean> {
    let batch: { finished: Finished[]; more: boolean };
    try {
      batch = await this.#commitBatch(relay, runBatch);
    } catch (error) {
      if (error instanceof StoreUnavailable) throw error;
      this.#rooms.log.error("a batch broke; its events run one by one", { relay: relay.name, error });
      batch = await this.#commitBatch(relay, runBatchCarefully);
    }
    for (const one of batch.finished) this.#onFinished(one);
    return batch.more;
  }

  /** `more`: events of the relay may be due that this batch did not take. */
  #commitBatch(relay: LiveRelay, run: typeof runBatch): Promise<{ finished: Finished[]; more: boolean }> {
    const { store, clock } = this.#rooms;
    return store.write("relay", async (tx) => {
      const due = await listDueEvents(tx, relay.id, BATCH_SIZE);
      const rooms = { rooms: this.#rooms, nowMs: clock.now(), monotonicMs: () => clock.monotonicMs() };
      const finished = await run(tx, relay, due, rooms);
      return { finished, more: due.length === BATCH_SIZE || finished.length < due.length };
    });
  }

  async #claim(relay: LiveRelay, places: number): Promise<boolean> {
    const { store, clock } = this.#rooms;
    this.#places.take(relay.id, places);
    let claimed: EventToRun[] = [];
    try {
      claimed = await store.write("relay", (tx) => claimEvents(tx, relay.id, places, clock.now()));
    } finally {
      this.#places.giveBack(relay.id, places - claimed.length);
    }
    for (const event of claimed) void this.#runSending(relay, event);
    return claimed.length === places;
  }

  /** Runs a claimed event in the place taken for it. */
  async #runSending(relay: LiveRelay, event: EventToRun): Promise<void> {
    try {
      const finished = await this.#sendOrEnd(relay, event);
      if (finished !== null) this.#onFinished(finished);
    } catch (error) {
      this.#poller.keepCutOff(event);
      this.#onTrouble(error);
    } finally {
      this.#places.giveBack(relay.id, 1);
      this.#onProgress();
    }
  }

  async #sendOrEnd(relay: LiveRelay, event: EventToRun): Promise<Finished | null> {
    const { store, clock, log } = this.#rooms;
    try {
      return await runSending(relay, event, this.#rooms, () => !this.#stopped);
    } catch (error) {
      if (error instanceof StoreUnavailable) throw error;
      log.error("event broke its run", { relay: relay.name, event: event.id, error });
      return await store.write("relay", (tx) => finishBroken(tx, relay, event, clock.now()));
    }
  }

  async #failDeleted(relayId: string): Promise<boolean> {
    const { store, clock, relays } = this.#rooms;
    const finished = await store.write("relay", async (tx) =>
      (await relayExists(tx, relayId)) ? null : failOrphanedEvents(tx, relayId, BATCH_SIZE, clock.now()),
    );
    if (finished === null) {
      // Younger than what memory holds; its events run once it is read.
      relays.invalidate();
      return false;
    }
    for (const one of finished) this.#onFinished(one);
    return finished.length === BATCH_SIZE;
  }

  #onFinished({ line, run }: Finished): void {
    this.#rooms.printRun(line);
    this.#rooms.onRun(run);
  }
}
