/** A clock that stands still until it is told to move; timers fire in order as it passes them. */
import type { Clock } from "../../src/base/clock.ts";
import { ON_POSTGRES, untilAnswered } from "./chosen-store.ts";

/** 2026-01-15T12:00:00Z, where the recorded provider requests stand. */
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

  /** In how many milliseconds each timer fires, the next one first. */
  get pending(): number[] {
    return this.#timers.map(({ at }) => at - this.#monotonic).sort((one, other) => one - other);
  }

  /**
   * Moves on by `ms`, firing every timer on the way and letting what they started settle in between. On PostgreSQL an hour or more passes in leaps,
   * because each timer asks another process there; with `everyTimer` it does not.
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

  /** As `advance`, of days: in steps of five minutes or more, at the end of which each timer that is due fires once, as on a machine with no time. */
  async leap(ms: number, stepMs = LEAP_MS): Promise<void> {
    const end = this.#monotonic + ms;
    while (this.#monotonic < end) {
      this.#moveTo(Math.min(end, this.#monotonic + stepMs));
      const due = this.#timers.filter(({ at }) => at <= this.#monotonic);
      this.#timers = this.#timers.filter((timer) => !due.includes(timer));
      for (const { work } of due.toSorted((left, right) => left.at - right.at)) work();
      await settle(LONG_TURNS);
    }
  }

  /** Work that is still on its way may set the next timer: whether it does. */
  async #waitForTimer(end: number): Promise<boolean> {
    for (let turn = 0; turn < LONG_TURNS; turn++) {
      await settle(1);
      if (this.#nextUntil(end) !== null) return true;
    }
    return false;
  }

  /** The wall clock alone jumps, either way, as when somebody sets it; timers keep their distance. */
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
const LEAP_MS = 300_000;
const LEAPS_FROM_MS = 3_600_000;

/** Lets promises, immediates and the store's groups run out. */
export async function settle(turns = 8): Promise<void> {
  for (let turn = 0; turn < turns; turn++) {
    await new Promise<void>((resolve) => setImmediate(resolve));
    // Another process works on it: its answers begin the turns anew.
    while (await untilAnswered()) turn = 0;
  }
}
