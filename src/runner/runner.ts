/**
 * The runner: takes due events and runs them. It is woken by every new row and polls as the fallback; events of one relay start in arrival
 * order; different relays never wait for each other. It never knows where an event came from.
 *
 * Two roads. A relay whose actions only touch the database runs in batches: taking the event, its effects, its results and its next state
 * are one transaction, so a crash leaves all of it or nothing. A relay that sends takes its events first (`running`, the attempt counts),
 * then runs each by itself, committing before and after every send.
 */
import type { ActionDoors } from "../action/contract.ts";
import {
  claimEvents,
  findNextRetry,
  listDueEvents,
  listReadyRelays,
  promoteDueRetries,
  rescueOrphans,
} from "../event/claim.ts";
import type { EventToRun } from "../event/event-row.ts";
import type { Clock } from "../ground/clock.ts";
import type { Log } from "../ground/log.ts";
import type { LiveRelay, LiveRelays } from "../relay/live-relay.ts";
import { type Store, StoreUnavailable, type Writer } from "../store/port.ts";
import { raiseAlert } from "../watch/alert.ts";
import { runBatch } from "./batch.ts";
import type { Finished } from "./finish-attempt.ts";
import { failOrphanedEvents } from "./orphan.ts";
import { runSending } from "./sending.ts";

/** Events of one relay that run at once. */
export const MAX_RUNNING_PER_RELAY = 8;
/** Events of a database-only relay in one transaction; bounds how long others wait for the writer. */
const BATCH_SIZE = 32;
const POLL_MS = 5_000;
/** How long a graceful stop waits for what is out of the house; a call_url takes 10 seconds at most. */
const STOP_WAIT_MS = 12_000;

export interface RunnerRooms {
  store: Store;
  clock: Clock;
  relays: LiveRelays;
  doors: ActionDoors;
  log: Log;
  concurrency: number;
  invitesPerDay: number;
  /** Takes the line of every run, without its newline. */
  printRun: (line: string) => void;
}

export class Runner {
  readonly #rooms: RunnerRooms;
  /** Relays that may have a due event. */
  readonly #ready = new Set<string>();
  /** Relays with a claim or a batch on its way. */
  readonly #busy = new Set<string>();
  readonly #running = new Map<string, number>();
  #runningTotal = 0;
  #cancelPoll: () => void = () => undefined;
  #cancelRetry: () => void = () => undefined;
  #retryAt: number | null = null;
  #pumping = false;
  /** Somebody asked while a pump was on its way. */
  #pumpAgain = false;
  #stopped = false;
  #lastPollOk = true;
  #whenIdle: (() => void)[] = [];

  constructor(rooms: RunnerRooms) {
    this.#rooms = rooms;
  }

  /** Rescues what a dead process left running, then begins. */
  async start(): Promise<void> {
    const { store, clock, log } = this.#rooms;
    const nowMs = clock.now();
    const rescued = await store.write("relay", async (tx) => {
      const result = await rescueOrphans(tx, nowMs);
      for (const event of result.dead) await alertInterrupted(tx, event, nowMs);
      return result;
    });
    if (rescued.queued > 0)
      log.info("rescued events of an earlier process", { queued: rescued.queued, dead: rescued.dead.length });
    await this.#poll();
  }

  /** A relay has a new due event, or may run again. Without a name: any relay. */
  wake(relayId?: string): void {
    if (this.#stopped) return;
    if (relayId === undefined) void this.#look();
    else this.#ready.add(relayId);
    this.#pump();
  }

  /** Whether it can reach its store. */
  get alive(): boolean {
    return !this.#stopped && this.#lastPollOk;
  }

  /** Events running now. */
  get runningCount(): number {
    return this.#runningTotal;
  }

  /** Takes nothing new; what runs may finish, and what does not is rescued at the next start. */
  async stop(): Promise<void> {
    this.#stopped = true;
    this.#cancelPoll();
    this.#cancelRetry();
    if (this.#idle) return;
    let cancel = (): void => undefined;
    await Promise.race([
      new Promise<void>((resolve) => this.#whenIdle.push(resolve)),
      new Promise<void>((resolve) => {
        cancel = this.#rooms.clock.after(STOP_WAIT_MS, resolve);
      }),
    ]);
    cancel();
  }

  get #idle(): boolean {
    return this.#runningTotal === 0 && this.#busy.size === 0;
  }

  async #poll(): Promise<void> {
    await this.#look();
    if (this.#stopped) return;
    this.#cancelPoll = this.#rooms.clock.after(POLL_MS, () => void this.#poll());
  }

  /** Makes due retries due and finds every relay with something to do. */
  async #look(): Promise<void> {
    const { store, clock, log } = this.#rooms;
    try {
      const nowMs = clock.now();
      const nextRetry = await store.read(findNextRetry);
      if (nextRetry !== null && nextRetry <= nowMs)
        await store.write("relay", (tx) => promoteDueRetries(tx, nowMs));
      const { ready, retryAt } = await store.read(async (tx) => ({
        ready: await listReadyRelays(tx),
        retryAt: await findNextRetry(tx),
      }));
      for (const relayId of ready) this.#ready.add(relayId);
      if (retryAt !== null) this.#armRetry(retryAt);
      this.#lastPollOk = true;
      this.#pump();
    } catch (error) {
      if (this.#stopped) return;
      this.#lastPollOk = false;
      log.warn("the runner cannot reach its store", { cause: (error as Error).message });
    }
  }

  #armRetry(atMs: number): void {
    if (this.#stopped || (this.#retryAt !== null && this.#retryAt <= atMs)) return;
    this.#cancelRetry();
    this.#retryAt = atMs;
    this.#cancelRetry = this.#rooms.clock.after(Math.max(0, atMs - this.#rooms.clock.now()), () => {
      this.#retryAt = null;
      void this.#look();
    });
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
    } catch {
      return;
    }
    for (const relayId of [...this.#ready]) {
      if (this.#stopped) return;
      if (this.#busy.has(relayId)) continue;
      const relay = snapshot.findRelay(relayId);
      if (relay === null) this.#begin(relayId, () => this.#failDeleted(relayId));
      else if (relay.waiting) this.#ready.delete(relayId);
      else if (!relay.sends) this.#begin(relayId, () => this.#runBatch(relay));
      else {
        const places = this.#placesFor(relayId);
        if (places > 0) this.#begin(relayId, () => this.#claim(relay, places));
      }
    }
  }

  #placesFor(relayId: string): number {
    const ofRelay = MAX_RUNNING_PER_RELAY - (this.#running.get(relayId) ?? 0);
    return Math.min(ofRelay, this.#rooms.concurrency - this.#runningTotal);
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
    if (error instanceof StoreUnavailable) {
      // The next poll looks again.
      this.#lastPollOk = false;
      if (!this.#stopped) this.#rooms.log.warn("the runner cannot write", { cause: error.message });
    } else this.#rooms.log.error("the runner failed", { error });
  }

  #onProgress(): void {
    if (this.#idle) for (const resolve of this.#whenIdle.splice(0)) resolve();
    this.#pump();
  }

  async #runBatch(relay: LiveRelay): Promise<boolean> {
    const { store, clock } = this.#rooms;
    const finished = await store.write("relay", async (tx) => {
      const due = await listDueEvents(tx, relay.id, BATCH_SIZE);
      return runBatch(tx, relay, due, { rooms: this.#rooms, nowMs: clock.now() });
    });
    for (const one of finished) this.#onFinished(one);
    return finished.length === BATCH_SIZE;
  }

  async #claim(relay: LiveRelay, places: number): Promise<boolean> {
    const { store, clock } = this.#rooms;
    const claimed = await store.write("relay", (tx) => claimEvents(tx, relay.id, places, clock.now()));
    for (const event of claimed) void this.#runSending(relay, event);
    return claimed.length === places;
  }

  async #runSending(relay: LiveRelay, event: EventToRun): Promise<void> {
    this.#count(relay.id, 1);
    try {
      this.#onFinished(await runSending(relay, event, this.#rooms));
    } catch (error) {
      this.#onTrouble(error);
      this.#requeueLater(event);
    } finally {
      this.#count(relay.id, -1);
      this.#onProgress();
    }
  }

  /** The store failed in the middle of a run: the row is still `running`; it is queued again once the store can write. */
  #requeueLater(event: EventToRun): void {
    if (this.#stopped) return;
    this.#rooms.clock.after(POLL_MS, () => {
      const queued = this.#rooms.store.write("relay", (tx) =>
        tx.run(
          "UPDATE event SET state = 'queued', next_attempt_at = NULL WHERE seq = ?1 AND state = 'running' AND runs = ?2",
          event.seq,
          event.runs,
        ),
      );
      queued.then(() => this.wake(event.relayId)).catch(() => this.#requeueLater(event));
    });
  }

  async #failDeleted(relayId: string): Promise<boolean> {
    const { store, clock } = this.#rooms;
    const failed = await store.write("relay", (tx) =>
      failOrphanedEvents(tx, relayId, BATCH_SIZE, clock.now()),
    );
    return failed === BATCH_SIZE;
  }

  #count(relayId: string, by: 1 | -1): void {
    const now = (this.#running.get(relayId) ?? 0) + by;
    this.#runningTotal += by;
    if (now === 0) this.#running.delete(relayId);
    else this.#running.set(relayId, now);
  }

  #onFinished({ retryAtMs, line }: Finished): void {
    this.#rooms.printRun(line);
    if (retryAtMs !== null) this.#armRetry(retryAtMs);
  }
}

async function alertInterrupted(
  tx: Writer,
  event: { id: string; environmentId: number; relayName: string },
  nowMs: number,
): Promise<void> {
  await raiseAlert(tx, {
    environmentId: event.environmentId,
    code: "relay_failed",
    target: `relay:${event.relayName}`,
    message: `An event of ${event.relayName} is dead: its seventh attempt was cut off.`,
    nowMs,
  });
}
