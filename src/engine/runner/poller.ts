/**
 * When the runner looks into the store: every few seconds, when the earliest retry is due, and when it is asked. Looking makes due retries
 * due, rescues attempts this process could not write down, and finds the relays with something to do. It never runs an event.
 */

import { type Clock, ClockWatch, Loop } from "../../base/clock.ts";
import type { Log } from "../../base/log.ts";
import { endInterruptedMails } from "../../platform/mail/interrupted-mail.ts";
import { HOUSE, type Holder } from "../../store/lease/lease-holder.ts";
import type { FencedStore, Writer } from "../../store/port.ts";
import { alertDead } from "../event/alert.ts";
import { listReadyRelays } from "../event/event.ts";
import { findNextRetry, promoteDueRetries, type RetryCursor, shortenRetries } from "../event/retry.ts";
import { type ClaimedRun, type Rescued, rescueOrphans, rescueRun } from "../event/run.ts";

/** No retry is due sooner after its attempt, so that a look always comes before one. */
const POLL_MS = 5_000;
/** Events in one transaction: a few milliseconds. */
const RESCUE_SIZE = 100;
const RETRY_SIZE = 500;

interface PollerDeps {
  holding: Holder;
  clock: Clock;
  log: Log;
}

export class Poller {
  readonly #deps: PollerDeps;
  readonly #onReady: (relayIds: readonly string[]) => void;
  readonly #clockWatch: ClockWatch;
  readonly #loop: Loop;
  /** Relays whose next events wait for what may have been taken: one that was not would be taken with the same number. */
  readonly unsure = new Set<string>();
  /** Attempts that the store could not write down; their rows are still `running`. */
  readonly #cutOff = new Map<number, CutOff>();
  /** Environments taken since the start: those that were rescued, and those that are to be, with the store they are held by. */
  readonly #open = new Set<number>();
  readonly #unrescued = new Map<number, FencedStore>();
  #reachesStore = true;
  /** The wall clock may have been set back since retries were timed: while nothing ran, too. */
  #mayBeBack = true;

  constructor(deps: PollerDeps, onReady: (relayIds: readonly string[]) => void) {
    this.#deps = deps;
    this.#onReady = onReady;
    this.#clockWatch = new ClockWatch(deps.clock);
    this.#loop = new Loop({
      clock: deps.clock,
      everyMs: POLL_MS,
      turn: () => this.#look(),
      onError: (error) => {
        this.#reachesStore = false;
        deps.log.warn("the runner cannot reach its store", { cause: (error as Error).message });
      },
    });
  }

  /** Where everything is held: rescues what a dead process left running: a few events, however many there are. Throws StoreUnavailable. */
  async rescue(): Promise<void> {
    const { holding } = this.#deps;
    if (holding.whole) await this.#rescue(holding.storeOf(HOUSE), null);
  }

  async #rescue(store: FencedStore, environmentId: number | null): Promise<void> {
    const { clock, log } = this.#deps;
    let queued = 0;
    let dead = 0;
    for (let more = true; more; ) {
      const nowMs = clock.now();
      const rescued = await store.write("relay", async (tx) =>
        alertRescued(tx, await rescueOrphans(tx, environmentId, RESCUE_SIZE, nowMs), nowMs),
      );
      queued += rescued.queued;
      dead += rescued.dead.length;
      more = rescued.queued + rescued.dead.length === RESCUE_SIZE;
    }
    if (queued + dead > 0) log.info("rescued events of an earlier process", { queued, dead });
  }

  /** The environment is this process's from now on: its events are looked for once those are rescued that another one left. */
  take(environmentId: number): void {
    this.#unrescued.set(environmentId, this.#deps.holding.storeOf(environmentId));
    this.#loop.wake();
  }

  drop(environmentId: number): void {
    this.#open.delete(environmentId);
    this.#unrescued.delete(environmentId);
  }

  /** Whether what another node left of the environment's events is rescued; where one process holds all, a start rescues it. */
  hasRescued(environmentId: number): boolean {
    return this.#open.has(environmentId);
  }

  /** The house is this process's: retries may be as another one's clock timed them. */
  takeHouse(): void {
    this.#mayBeBack = true;
    this.#loop.wake();
  }

  /** Looks for the first time and from then on; resolves after the first look. */
  start(): Promise<void> {
    return this.#loop.start();
  }

  stop(): Promise<void> {
    return this.#loop.stop();
  }

  /** Looks now. */
  wake(): void {
    this.#loop.wake();
  }

  /** Whether the store answered lately. */
  get reachesStore(): boolean {
    return this.#reachesStore;
  }

  /** The store failed while the runner worked; the next look tells how it is. */
  noteTrouble(): void {
    this.#reachesStore = false;
  }

  /** Keeps an attempt whose end could not be written, to be rescued once the store can write. */
  keepCutOff(run: CutOff): void {
    this.#cutOff.set(run.seq, run);
  }

  /** Keeps events of a relay that may have been taken, of which nobody knows; the next look finds out. */
  keepUnsure(relayId: string, events: readonly CutOff[]): void {
    for (const { seq, runs, environmentId } of events)
      this.#cutOff.set(seq, { seq, runs, environmentId, unsureOf: relayId });
    this.unsure.add(relayId);
    this.#loop.wake();
  }

  /** Answers in how long the next retry is due. */
  async #look(): Promise<number | undefined> {
    const { holding, clock } = this.#deps;
    const store = holding.storeOf(HOUSE);
    await this.#rescueCutOff();
    await this.#rescueTaken();
    if (this.#clockWatch.look() < 0) this.#mayBeBack = true;
    // Retries are made due once for all, and whoever runs them is told.
    const isHouse = holding.holds(HOUSE);
    if (isHouse && this.#mayBeBack) await this.#shortenRetries(store);
    const nowMs = clock.now();
    const nextRetry = isHouse ? await store.read(findNextRetry) : null;
    if (nextRetry !== null && nextRetry <= nowMs) await this.#promoteRetries(store, nowMs);
    const { ready, retryAt } = await store.read(async (tx) => ({
      ready: await listReadyRelays(tx),
      retryAt: isHouse ? await findNextRetry(tx) : null,
    }));
    this.#reachesStore = true;
    this.#onReady(ready);
    return retryAt === null ? undefined : retryAt - clock.now();
  }

  async #rescueTaken(): Promise<void> {
    const { holding, clock, log } = this.#deps;
    for (const [environmentId, store] of [...this.#unrescued]) {
      try {
        const mails = await store.write("relay", (tx) =>
          endInterruptedMails(tx, clock.now(), { environmentId }),
        );
        if (mails.unknown + mails.notLeft > 0) log.warn("mails of another node had no end", mails);
        await this.#rescue(store, environmentId);
      } catch (error) {
        if (holding.holds(environmentId)) throw error;
      }
      // It may have been lost, and taken again, meanwhile.
      if (this.#unrescued.get(environmentId) !== store || !holding.holds(environmentId)) continue;
      this.#unrescued.delete(environmentId);
      this.#open.add(environmentId);
    }
  }

  /** In small transactions, because any number of events may wait. */
  async #shortenRetries(store: FencedStore): Promise<void> {
    const { clock } = this.#deps;
    const nowMs = clock.now();
    // Another reason may come while this goes on.
    this.#mayBeBack = false;
    try {
      let from: RetryCursor | null = { atMs: nowMs, seq: 0 };
      while (from !== null && this.#loop.running) {
        const cursor: RetryCursor = from;
        from = await store.write("relay", (tx) => shortenRetries(tx, cursor, RETRY_SIZE, nowMs));
      }
    } catch (error) {
      this.#mayBeBack = true;
      throw error;
    }
  }

  async #promoteRetries(store: FencedStore, nowMs: number): Promise<void> {
    while (this.#loop.running) {
      const promoted = await store.write("relay", (tx) => promoteDueRetries(tx, RETRY_SIZE, nowMs));
      if (promoted < RETRY_SIZE) return;
    }
  }

  async #rescueCutOff(): Promise<void> {
    const { holding, clock } = this.#deps;
    for (const run of [...this.#cutOff.values()]) {
      const { environmentId } = run;
      const nowMs = clock.now();
      // Otherwise whoever takes the environment rescues it.
      if (holding.whole || this.#open.has(environmentId)) {
        if (!holding.holds(environmentId)) continue;
        await holding
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
  /** The relay that waits for it. */
  unsureOf?: string;
}

async function alertRescued(tx: Writer, rescued: Rescued, nowMs: number): Promise<Rescued> {
  const why = " (interrupted): its seventh attempt was cut off.";
  for (const dead of rescued.dead) await alertDead(tx, { ...dead, why, nowMs });
  return rescued;
}
