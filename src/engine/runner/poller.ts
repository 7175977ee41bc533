/**
 * Polls the database: every few seconds, when the next retry is due, and on request. A poll promotes due retries, rescues attempts whose end this
 * process could not write, and finds the relays with due events. It never runs an event.
 */

import { type Clock, ClockWatch, Loop } from "../../base/clock.ts";
import type { Log } from "../../base/log.ts";
import { endInterruptedMails } from "../../platform/mail/interrupted-mail.ts";
import { eachEnvironment } from "../../store/each-environment.ts";
import { ALL_ENVIRONMENTS, type LeaseHolder } from "../../store/lease/lease-holder.ts";
import type { FencedStore, Writer } from "../../store/port.ts";
import { alertDead } from "../event/alert.ts";
import { listReadyRelays } from "../event/event.ts";
import { type ClaimedRun, type Rescued, rescueInterrupted, rescueRun } from "../event/interrupted-run.ts";
import {
  findNextRetry,
  listDueRetries,
  promoteRetries,
  type RetryCursor,
  shortenRetries,
} from "../event/retry.ts";

/** An interval shorter than every retry delay, so that a poll always comes before a retry. */
const POLL_MS = 5_000;
/** Events in one transaction, which takes a few milliseconds. */
const RESCUE_SIZE = 100;
const RETRY_SIZE = 500;

interface PollerDeps {
  leases: LeaseHolder;
  clock: Clock;
  log: Log;
}

export class Poller {
  readonly #deps: PollerDeps;
  readonly #onReady: (relayIds: readonly string[]) => void;
  readonly #clockWatch: ClockWatch;
  readonly #loop: Loop;
  /** Relays that must not claim events, because it is unknown whether an earlier claim was stored. A second claim could use the same run number. */
  readonly unsure = new Set<string>();
  /** Attempts whose end could not be written, by event number. Their rows are still `running`. */
  readonly #cutOff = new Map<number, CutOff>();
  /** Environments that this process holds: rescued ones, and those still to rescue with the store of their lease. */
  readonly #open = new Set<number>();
  readonly #unrescued = new Map<number, FencedStore>();
  #reachesStore = true;
  /** True if the wall clock may have been set back since retries were scheduled. It may have been while no process ran. */
  #clockMayBeBack = true;

  constructor(deps: PollerDeps, onReady: (relayIds: readonly string[]) => void) {
    this.#deps = deps;
    this.#onReady = onReady;
    this.#clockWatch = new ClockWatch(deps.clock);
    this.#loop = new Loop({
      clock: deps.clock,
      everyMs: POLL_MS,
      turn: () => this.#poll(),
      onError: (error) => {
        this.#reachesStore = false;
        deps.log.warn("the runner cannot reach its store", { cause: (error as Error).message });
      },
    });
  }

  /** If this process holds everything, rescues the events that a dead process left `running`. Throws StoreUnavailable. */
  async rescue(): Promise<void> {
    const { leases } = this.#deps;
    if (leases.holdsAll) await this.#rescue(leases.storeOf(ALL_ENVIRONMENTS), null);
  }

  async #rescue(store: FencedStore, environmentId: number | null): Promise<void> {
    const { clock, log } = this.#deps;
    let queued = 0;
    let dead = 0;
    for (let more = true; more; ) {
      const nowMs = clock.now();
      const rescued = await store.write("relay", async (tx) =>
        alertRescued(tx, await rescueInterrupted(tx, environmentId, RESCUE_SIZE, nowMs), nowMs),
      );
      queued += rescued.queued;
      dead += rescued.dead.length;
      more = rescued.queued + rescued.dead.length === RESCUE_SIZE;
    }
    if (queued + dead > 0) log.info("rescued events of an earlier process", { queued, dead });
  }

  /** Takes over the environment: its events run after those that another process left `running` are rescued. */
  take(environmentId: number): void {
    this.#unrescued.set(environmentId, this.#deps.leases.storeOf(environmentId));
    this.#loop.wake();
  }

  drop(environmentId: number): void {
    this.#open.delete(environmentId);
    this.#unrescued.delete(environmentId);
  }

  /** Reports whether the environment's `running` events of another node are rescued. A process that holds everything rescues at its start. */
  hasRescued(environmentId: number): boolean {
    return this.#open.has(environmentId);
  }

  /** Takes over the leader's tasks. Another process's clock may have scheduled the retries. */
  takeSharedTasks(): void {
    this.#clockMayBeBack = true;
    this.#loop.wake();
  }

  /** Starts polling; resolves after the first poll. */
  start(): Promise<void> {
    return this.#loop.start();
  }

  stop(): Promise<void> {
    return this.#loop.stop();
  }

  /** Polls now. */
  wake(): void {
    this.#loop.wake();
  }

  /** Reports whether the last access to the store succeeded. */
  get reachesStore(): boolean {
    return this.#reachesStore;
  }

  /** Records that the store failed; the next poll finds out whether it works again. */
  recordTrouble(): void {
    this.#reachesStore = false;
  }

  /** Records an attempt whose end could not be written, so that it is rescued when the store can write. */
  recordCutOff(run: CutOff): void {
    this.#cutOff.set(run.seq, run);
  }

  /** Records events of a relay whose claim may or may not have been stored. The next poll finds out. */
  recordUnsure(relayId: string, events: readonly CutOff[]): void {
    for (const { seq, runs, environmentId } of events)
      this.#cutOff.set(seq, { seq, runs, environmentId, unsureOf: relayId });
    this.unsure.add(relayId);
    this.#loop.wake();
  }

  /** Returns in how many milliseconds the next retry is due. */
  async #poll(): Promise<number | undefined> {
    const { leases, clock } = this.#deps;
    const store = leases.storeOf(ALL_ENVIRONMENTS);
    await this.#rescueCutOff();
    await this.#rescueTakenOver();
    if (this.#clockWatch.takeJump() < 0) this.#clockMayBeBack = true;
    // Only the leader promotes retries. The commit wakes the process that runs them.
    const isLeader = leases.holds(ALL_ENVIRONMENTS);
    if (isLeader && this.#clockMayBeBack) await this.#shortenRetries(store);
    const nowMs = clock.now();
    const nextRetry = isLeader ? await store.read(findNextRetry) : null;
    if (nextRetry !== null && nextRetry <= nowMs) await this.#promoteRetries(store, nowMs);
    const { ready, retryAt } = await store.read(async (tx) => ({
      ready: await listReadyRelays(tx),
      retryAt: isLeader ? await findNextRetry(tx) : null,
    }));
    this.#reachesStore = true;
    this.#onReady(ready);
    return retryAt === null ? undefined : retryAt - clock.now();
  }

  async #rescueTakenOver(): Promise<void> {
    const { leases, clock, log } = this.#deps;
    for (const [environmentId, store] of [...this.#unrescued]) {
      try {
        const mails = await store.write("relay", (tx) =>
          endInterruptedMails(tx, clock.now(), { environmentId }),
        );
        if (mails.unknown + mails.notLeft > 0) log.warn("mails of another node had no end", mails);
        await this.#rescue(store, environmentId);
      } catch (error) {
        if (leases.holds(environmentId)) throw error;
      }
      // The lease may have been lost and taken again in the meantime.
      if (this.#unrescued.get(environmentId) !== store || !leases.holds(environmentId)) continue;
      this.#unrescued.delete(environmentId);
      this.#open.add(environmentId);
    }
  }

  /** Uses small transactions, because any number of events may wait. */
  async #shortenRetries(store: FencedStore): Promise<void> {
    const { clock } = this.#deps;
    const nowMs = clock.now();
    // Reset first, because the clock may be set back again during the loop.
    this.#clockMayBeBack = false;
    try {
      let from: RetryCursor | null = { atMs: nowMs, seq: 0 };
      while (from !== null && this.#loop.running) {
        const cursor: RetryCursor = from;
        from = await store.write("relay", (tx) => shortenRetries(tx, cursor, RETRY_SIZE, nowMs));
      }
    } catch (error) {
      this.#clockMayBeBack = true;
      throw error;
    }
  }

  async #promoteRetries(store: FencedStore, nowMs: number): Promise<void> {
    while (this.#loop.running) {
      const due = await store.read((tx) => listDueRetries(tx, RETRY_SIZE, nowMs));
      await eachEnvironment(due, (environmentId, retries) =>
        store.write("relay", (tx) => promoteRetries(tx, retries, nowMs), environmentId),
      );
      if (due.length < RETRY_SIZE) return;
    }
  }

  async #rescueCutOff(): Promise<void> {
    const { leases, clock } = this.#deps;
    for (const run of [...this.#cutOff.values()]) {
      const { environmentId } = run;
      const nowMs = clock.now();
      // If the environment is lost, the process that takes it over rescues the attempt.
      if (leases.holdsAll || this.#open.has(environmentId)) {
        if (!leases.holds(environmentId)) continue;
        await leases
          .storeOf(environmentId)
          .write("relay", async (tx) => alertRescued(tx, await rescueRun(tx, run, nowMs), nowMs));
      }
      this.#cutOff.delete(run.seq);
      const left = [...this.#cutOff.values()].map(({ unsureOf }) => unsureOf);
      if (run.unsureOf !== undefined && !left.includes(run.unsureOf)) this.unsure.delete(run.unsureOf);
    }
  }
}

interface CutOff extends ClaimedRun {
  environmentId: number;
  /** The relay that waits for it, if its claim is uncertain. */
  unsureOf?: string;
}

async function alertRescued(tx: Writer, rescued: Rescued, nowMs: number): Promise<Rescued> {
  const why = " (interrupted): its seventh attempt was cut off.";
  for (const dead of rescued.dead) await alertDead(tx, { ...dead, why, nowMs });
  return rescued;
}
