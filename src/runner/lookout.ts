/**
 * When the runner looks into the store: at once on a poll's tick, when the earliest retry is due, and when it is asked. Looking makes due
 * retries due, rescues attempts this process could not write down, and finds the relays with something to do. It never runs an event.
 */
import {
  findNextRetry,
  listReadyRelays,
  promoteDueRetries,
  type RetryCursor,
  shortenRetries,
} from "../event/claim.ts";
import { type ClaimedRun, type Rescued, rescueOrphans, rescueRun } from "../event/rescue.ts";
import type { Clock } from "../ground/clock.ts";
import { ClockWatch } from "../ground/clock-watch.ts";
import type { Log } from "../ground/log.ts";
import type { Store, Writer } from "../store/port.ts";
import { alertDead } from "./dead-alert.ts";

const POLL_MS = 5_000;
/** Events in one transaction: a few milliseconds. */
const RESCUE_SIZE = 100;
const RETRY_SIZE = 500;

interface LookoutRooms {
  store: Store;
  clock: Clock;
  log: Log;
}

export class Lookout {
  readonly #rooms: LookoutRooms;
  readonly #onReady: (relayIds: readonly string[]) => void;
  readonly #clockWatch: ClockWatch;
  /** Attempts that the store could not write down; their rows are still `running`. */
  readonly #cutOff = new Map<number, ClaimedRun>();
  #cancelPoll: () => void = () => undefined;
  #cancelRetry: () => void = () => undefined;
  #retryAt: number | null = null;
  #reachesStore = true;
  /** The wall clock may have been set back since retries were timed. */
  #mayBeBack = false;
  #stopped = false;

  constructor(rooms: LookoutRooms, onReady: (relayIds: readonly string[]) => void) {
    this.#rooms = rooms;
    this.#onReady = onReady;
    this.#clockWatch = new ClockWatch(rooms.clock);
  }

  /** Rescues what a dead process left running: a few events, however many there are. Throws StoreUnavailable. */
  async rescue(): Promise<void> {
    const { store, clock, log } = this.#rooms;
    let queued = 0;
    let dead = 0;
    for (let more = true; more; ) {
      const nowMs = clock.now();
      const rescued = await store.write("relay", async (tx) =>
        alertRescued(tx, await rescueOrphans(tx, RESCUE_SIZE, nowMs), nowMs),
      );
      queued += rescued.queued;
      dead += rescued.dead.length;
      more = rescued.queued + rescued.dead.length === RESCUE_SIZE;
    }
    if (queued + dead > 0) log.info("rescued events of an earlier process", { queued, dead });
  }

  /** Looks for the first time and from then on. The clock may have been set back while nothing ran. */
  async start(): Promise<void> {
    this.#mayBeBack = true;
    await this.#poll();
  }

  stop(): void {
    this.#stopped = true;
    this.#cancelPoll();
    this.#cancelRetry();
  }

  /** Whether the store answered lately. */
  get reachesStore(): boolean {
    return this.#reachesStore;
  }

  /** The store failed while the runner worked; the next poll looks again. */
  noteTrouble(): void {
    this.#reachesStore = false;
  }

  /** Keeps an attempt whose end could not be written, to be rescued once the store can write. */
  keepCutOff(run: ClaimedRun): void {
    this.#cutOff.set(run.seq, run);
  }

  async look(): Promise<void> {
    const { store, clock, log } = this.#rooms;
    try {
      await this.#rescueCutOff();
      if (this.#clockWatch.look() < 0) this.#mayBeBack = true;
      if (this.#mayBeBack) await this.#shortenRetries();
      const nowMs = clock.now();
      const nextRetry = await store.read(findNextRetry);
      if (nextRetry !== null && nextRetry <= nowMs) await this.#promoteRetries(nowMs);
      const { ready, retryAt } = await store.read(async (tx) => ({
        ready: await listReadyRelays(tx),
        retryAt: await findNextRetry(tx),
      }));
      if (retryAt !== null) this.armRetry(retryAt);
      this.#reachesStore = true;
      this.#onReady(ready);
    } catch (error) {
      if (this.#stopped) return;
      this.#reachesStore = false;
      log.warn("the runner cannot reach its store", { cause: (error as Error).message });
    }
  }

  /** Looks when a retry is due, `atMs` since the epoch. */
  armRetry(atMs: number): void {
    if (this.#stopped || (this.#retryAt !== null && this.#retryAt <= atMs)) return;
    this.#cancelRetry();
    this.#retryAt = atMs;
    this.#cancelRetry = this.#rooms.clock.after(Math.max(0, atMs - this.#rooms.clock.now()), () => {
      this.#retryAt = null;
      void this.look();
    });
  }

  async #poll(): Promise<void> {
    await this.look();
    if (this.#stopped) return;
    this.#cancelPoll = this.#rooms.clock.after(POLL_MS, () => void this.#poll());
  }

  /** In small transactions, because any number of events may wait. */
  async #shortenRetries(): Promise<void> {
    const { store, clock } = this.#rooms;
    const nowMs = clock.now();
    let from: RetryCursor | null = { atMs: nowMs, seq: 0 };
    while (from !== null && !this.#stopped) {
      const cursor: RetryCursor = from;
      from = await store.write("relay", (tx) => shortenRetries(tx, cursor, RETRY_SIZE, nowMs));
    }
    this.#mayBeBack = false;
  }

  async #promoteRetries(nowMs: number): Promise<void> {
    const { store } = this.#rooms;
    while (!this.#stopped) {
      const promoted = await store.write("relay", (tx) => promoteDueRetries(tx, RETRY_SIZE, nowMs));
      if (promoted < RETRY_SIZE) return;
    }
  }

  async #rescueCutOff(): Promise<void> {
    const { store, clock } = this.#rooms;
    for (const run of [...this.#cutOff.values()]) {
      const nowMs = clock.now();
      await store.write("relay", async (tx) => alertRescued(tx, await rescueRun(tx, run, nowMs), nowMs));
      this.#cutOff.delete(run.seq);
    }
  }
}

async function alertRescued(tx: Writer, rescued: Rescued, nowMs: number): Promise<Rescued> {
  const why = " (interrupted): its seventh attempt was cut off.";
  for (const { environmentId, relayName } of rescued.dead)
    await alertDead(tx, { environmentId, relayName, why, nowMs });
  return rescued;
}
