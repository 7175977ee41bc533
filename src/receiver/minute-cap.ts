/** Counts per key in windows of one minute, in memory. A window begins with its first count. It never counts what it refuses. */
import type { Clock } from "../ground/clock.ts";
import { CAP_WINDOW_MS } from "../ground/limit.ts";

/** A bound on memory when calls come from very many addresses; the oldest windows go first. */
const MAX_KEYS = 50_000;

interface Window {
  startedAt: number;
  count: number;
}

export class MinuteCap {
  readonly limit: number;
  readonly #clock: Clock;
  readonly #windows = new Map<string, Window>();

  constructor(limit: number, clock: Clock) {
    this.limit = limit;
    this.#clock = clock;
  }

  /** Counts one; null when it is within the limit, else when the window ends (milliseconds since the epoch). */
  take(key: string): number | null {
    const now = this.#clock.monotonicMs();
    const window = this.#windows.get(key);
    if (window === undefined || now - window.startedAt >= CAP_WINDOW_MS) {
      this.#begin(key, now);
      return null;
    }
    if (window.count < this.limit) {
      window.count += 1;
      return null;
    }
    return Math.ceil(this.#clock.now() + CAP_WINDOW_MS - (now - window.startedAt));
  }

  #begin(key: string, now: number): void {
    this.#windows.delete(key);
    this.#windows.set(key, { startedAt: now, count: 1 });
    for (const [oldest, window] of this.#windows) {
      if (now - window.startedAt < CAP_WINDOW_MS && this.#windows.size <= MAX_KEYS) break;
      this.#windows.delete(oldest);
    }
  }
}
