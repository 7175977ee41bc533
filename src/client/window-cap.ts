/**
 * Counts what a name did within a rolling hour, in memory: code requests by e-mail and by network address, sign-ins by address. It
 * forgets with the process, and never knows what it counts.
 */
import type { Clock } from "../ground/clock.ts";
import { SIGNIN_WINDOW_MS } from "../ground/limit.ts";

/** A bound on the memory; beyond it the oldest windows are forgotten. */
const MAX_WINDOWS = 20_000;

interface Window {
  count: number;
  /** By the clock that never goes back, so that setting the wall clock frees nobody. */
  endsAtMonotonicMs: number;
}

export class WindowCap {
  readonly #clock: Clock;
  readonly #limit: number;
  readonly #windows = new Map<string, Window>();

  constructor(clock: Clock, limit: number) {
    this.#clock = clock;
    this.#limit = limit;
  }

  /** When the name's full window ends, milliseconds since the epoch; null while there is room. */
  fullUntil(name: string): number | null {
    const nowMs = this.#clock.monotonicMs();
    const window = this.#windows.get(name);
    if (window === undefined || window.endsAtMonotonicMs <= nowMs || window.count < this.#limit) return null;
    return this.#clock.now() + window.endsAtMonotonicMs - nowMs;
  }

  /** Counts one; the first opens the name's window. */
  count(name: string): void {
    const nowMs = this.#clock.monotonicMs();
    const window = this.#windows.get(name);
    if (window !== undefined && window.endsAtMonotonicMs > nowMs) {
      window.count += 1;
      return;
    }
    this.#windows.delete(name);
    this.#windows.set(name, { count: 1, endsAtMonotonicMs: nowMs + SIGNIN_WINDOW_MS });
    for (const oldest of this.#windows.keys()) {
      if (this.#windows.size <= MAX_WINDOWS) return;
      this.#windows.delete(oldest);
    }
  }
}
