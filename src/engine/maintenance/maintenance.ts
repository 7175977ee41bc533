/**
 * The caretakers: once an hour each goes through its own table in small transactions with a pause after each, so that ingestion never
 * waits for them, and at the end the store's file is looked after. How long something is kept is retention.ts's. They do nothing
 * while the wall clock is not to be trusted: a clock set a year ahead for a minute must not cost a month of events, nor one that a start finds
 * so. A process cannot know what the clock was before it, so a start long after the newest event waits as well.
 */
import { type Clock, ClockWatch, Loop } from "../../base/clock.ts";
import { DAY_MS, HOUR_MS, MINUTE_MS } from "../../base/limit.ts";
import type { Log } from "../../base/log.ts";
import type { FencedStore, Reader } from "../../store/port.ts";
import { firstSeqSince } from "../../store/time-index.ts";
import { RETENTION, type Step } from "./retention.ts";

/** After the start, so that it is quick; then once an hour. */
const FIRST_ROUND_AFTER_MS = MINUTE_MS;
const ROUND_EVERY_MS = HOUR_MS;
/** Between two transactions of one caretaker. */
const PAUSE_MS = 10;
/** A wall clock that moved by so much more or less than the time that passed since the last round was set. */
const CLOCK_SET_MS = 10 * MINUTE_MS;
/** So long after the newest event a start may as well have found a clock that is wrong. */
const QUIET_MS = DAY_MS;

interface MaintenanceDeps {
  store: FencedStore;
  clock: Clock;
  log: Log;
  /** When the newest event arrived that an earlier process stored; null where there is none. */
  newestMs: number | null;
}

/**
 * To be asked before anything is stored by a clock that may be wrong. What came within the hour before does not count where there is more: an earlier
 * process may have stored it by the same clock, which keeps for an hour in one process before anything is cleaned up by it.
 */
export async function readNewestMs(tx: Reader, nowMs: number): Promise<number | null> {
  const before = await firstSeqSince(tx, "event", nowMs - HOUR_MS);
  const sql = `SELECT coalesce((SELECT created_at FROM event WHERE seq < $before ORDER BY seq DESC LIMIT 1),
    (SELECT created_at FROM event ORDER BY seq DESC LIMIT 1)) AS at`;
  return (await tx.get<{ at: number | null }>(sql, { before }))?.at ?? null;
}

export class MaintenanceJobs {
  readonly #deps: MaintenanceDeps;
  readonly #loop: Loop;
  readonly #clockWatch: ClockWatch;
  /** Until the first round. */
  #isDoubtful: boolean;

  constructor(deps: MaintenanceDeps) {
    this.#deps = deps;
    this.#clockWatch = new ClockWatch(deps.clock, CLOCK_SET_MS);
    this.#isDoubtful = deps.newestMs !== null && deps.clock.now() - deps.newestMs >= QUIET_MS;
    this.#loop = new Loop({
      clock: deps.clock,
      everyMs: ROUND_EVERY_MS,
      turn: () => this.#goRound(),
      onError: (error) => deps.log.error("a round of the caretakers failed", { error }),
    });
  }

  /** Begins; the first round is a minute away. */
  start(): void {
    this.#clockWatch.look();
    void this.#loop.start(FIRST_ROUND_AFTER_MS);
  }

  /** Ends after the transaction that is on its way. */
  stop(): Promise<void> {
    return this.#loop.stop();
  }

  async #goRound(): Promise<undefined> {
    const { log } = this.#deps;
    const isDoubtful = this.#isDoubtful;
    this.#isDoubtful = false;
    if (this.#clockWatch.look() !== 0) {
      log.warn("the clock was set, so nothing is cleaned up before it has kept for an hour");
      return;
    }
    if (isDoubtful) {
      log.info(
        "by the clock no event came for a day or more before the start, so nothing is cleaned up before it has kept for an hour",
      );
      return;
    }
    for (const [name, step] of Object.entries(RETENTION)) {
      await this.#guard(name, () => this.#walk(step));
    }
    await this.#guard("file", () => this.#vacuumStep());
  }

  /** One that fails leaves the others their work; it comes again in an hour. */
  async #guard(name: string, work: () => Promise<void>): Promise<void> {
    if (!this.#loop.running) return;
    try {
      await work();
    } catch (error) {
      if (this.#loop.running) this.#deps.log.error("a caretaker failed", { caretaker: name, error });
    }
  }

  async #walk(step: Step): Promise<void> {
    const { store, clock, log } = this.#deps;
    let cursor: number | null = 0;
    while (cursor !== null && this.#loop.running) {
      const from: number = cursor;
      cursor = await store.write("app", (tx) => step(tx, from, clock.now(), log));
      if (cursor !== null) await this.#loop.pause(PAUSE_MS);
    }
  }

  async #vacuumStep(): Promise<void> {
    while (this.#loop.running && (await this.#deps.store.vacuumStep())) await this.#loop.pause(PAUSE_MS);
  }
}
