/** A clock that moves only when a test moves it. Timers fire in order as it passes them. */
import type { Clock } from "../../src/base/clock.ts";
import { ON_POSTGRES, untilAnswered } from "./chosen-store.ts";

/** 2026-01-15T12:00:00Z, the time of the recorded provider requests. */
export const START_MS = 1_768_478_400_000;

interface Timer {
  at: number;
  order: number;
  work: () => void;
}

export class VirtualClock implements Clock {
  #now: number;
  #monotonic = 0;
  #order = 0;
  #timers: Timer[] = [];

  constructor(startMs: number) {
    this.#now = startMs;
  }

  now(): number {
    return this.#now;
  }

  monotonicMs(): number {
    return this.#monotonic;
  }

  after(delayMs: number, work: () => void): () => void {
    const timer = { at: this.#monotonic + Math.max(0, delayMs), order: this.#order++, work };
    this.#timers.push(timer);
    return () => {
      this.#timers = this.#timers.filter((other) => other !== timer);
    };
  }

  /** Milliseconds until each timer fires, the next one first. */
  get pending(): number[] {
    return this.#timers.map(({ at }) => at - this.#monotonic).sort((one, other) => one - other);
  }

  /**
   * Moves forward by `ms`, fires every timer on the way, and lets the work of each settle. On PostgreSQL an hour or more passes in leaps, because
   * each timer costs a query to another process. `everyTimer` prevents that.
   */
  async advance(ms: number, { everyTimer = false } = {}): Promise<void> {
    if (ON_POSTGRES && ms >= LEAPS_FROM_MS && !everyTimer) return await this.leap(ms);
    const end = this.#monotonic + ms;
    for (;;) {
      const next = this.#nextUntil(end);
      if (next === null) {
        if (await this.#waitForTimer(end)) continue;
        break;
      }
      this.#moveTo(next.at);
      this.#timers = this.#timers.filter((timer) => timer !== next);
      next.work();
      await settle();
    }
    this.#moveTo(end);
    await settle();
  }

  /**
   * Moves forward by hours or days, by default in six steps or more, of five minutes to an hour each. At the end of each step every due timer fires
   * once, as on a very busy machine.
   */
  async leap(ms: number, stepMs = Math.min(LONGEST_LEAP_MS, Math.max(SHORTEST_LEAP_MS, Math.ceil(ms / LEAPS_OF_A_MOVE)))): Promise<void> {
    const end = this.#monotonic + ms;
    while (this.#monotonic < end) {
      this.#moveTo(Math.min(end, this.#monotonic + stepMs));
      const due = this.#timers.filter(({ at }) => at <= this.#monotonic);
      this.#timers = this.#timers.filter((timer) => !due.includes(timer));
      for (const { work } of due.toSorted((left, right) => left.at - right.at)) work();
      await settle(LONG_TURNS);
    }
  }

  /** Waits for work in progress that may set the next timer. Returns whether it did. */
  async #waitForTimer(end: number): Promise<boolean> {
    for (let turn = 0; turn < LONG_TURNS; turn++) {
      await settle(1);
      if (this.#nextUntil(end) !== null) return true;
    }
    return false;
  }

  /** Moves only the wall clock, forward or back, as when an operator sets it. Timers keep their distance. */
  jump(ms: number): void {
    this.#now += ms;
  }

  #moveTo(monotonic: number): void {
    this.#now += monotonic - this.#monotonic;
    this.#monotonic = monotonic;
  }

  #nextUntil(end: number): Timer | null {
    let next: Timer | null = null;
    for (const timer of this.#timers) {
      if (timer.at > end) continue;
      if (next === null || timer.at < next.at || (timer.at === next.at && timer.order < next.order)) next = timer;
    }
    return next;
  }
}

const LONG_TURNS = 60;
const SHORTEST_LEAP_MS = 300_000;
const LONGEST_LEAP_MS = 3_600_000;
const LEAPS_OF_A_MOVE = 6;
const LEAPS_FROM_MS = 3_600_000;

/** Lets promises, immediates and the store's groups finish. */
export async function settle(turns = 8): Promise<void> {
  for (let turn = 0; turn < turns; turn++) {
    await new Promise<void>((resolve) => setImmediate(resolve));
    // The answer of another process can start new work, so the count of turns begins again.
    while (await untilAnswered()) turn = 0;
  }
}
