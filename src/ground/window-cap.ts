/**
 * Counts what a name did within a window of time, in memory: sign-in attempts, code requests. A full window is never forgotten before it
 * ends, however many names come after it: where there is no room for another name, the new name is refused. It forgets with the process,
 * and never knows what it counts.
 */
import type { Clock } from "./clock.ts";

/** A bound on the memory of one cap. */
const MAX_WINDOWS = 20_000;

interface Window {
  count: number;
  /** By the clock that never goes back, so that setting the wall clock frees nobody. */
  endsAtMonotonicMs: number;
}

export class WindowCap {
  readonly #clock: Clock;
  readonly #limit: number;
  readonly #windowMs: number;
  readonly #maxWindows: number;
  /** In the order they were opened, which is the order in which they end. */
  readonly #windows = new Map<string, Window>();

  constructor(clock: Clock, limit: number, windowMs: number, maxWindows = MAX_WINDOWS) {
    this.#clock = clock;
    this.#limit = limit;
    this.#windowMs = windowMs;
    this.#maxWindows = maxWindows;
  }

  /** When there is room for one more of the name, milliseconds since the epoch; null while there is. Opens nothing. */
  fullUntil(name: string): number | null {
    const nowMs = this.#clock.monotonicMs();
    const window = this.#find(name, nowMs);
    const blocking =
      window === undefined ? this.#findCrowd(nowMs) : window.count < this.#limit ? null : window;
    return blocking === null ? null : this.#clock.now() + blocking.endsAtMonotonicMs - nowMs;
  }

  /** Counts one, or `amount` at once; the first opens the name's window. */
  count(name: string, amount = 1): void {
    const nowMs = this.#clock.monotonicMs();
    const window = this.#find(name, nowMs);
    if (window !== undefined) {
      window.count += amount;
      return;
    }
    this.#makeRoom(nowMs);
    this.#windows.delete(name);
    this.#windows.set(name, { count: amount, endsAtMonotonicMs: nowMs + this.#windowMs });
  }

  /** Takes one count back. */
  giveBack(name: string): void {
    const window = this.#find(name, this.#clock.monotonicMs());
    if (window !== undefined && window.count > 0) window.count -= 1;
  }

  #find(name: string, nowMs: number): Window | undefined {
    const window = this.#windows.get(name);
    return window !== undefined && window.endsAtMonotonicMs > nowMs ? window : undefined;
  }

  /** The first window to end where all that there is room for are full; else null. */
  #findCrowd(nowMs: number): Window | null {
    if (this.#windows.size < this.#maxWindows) return null;
    this.#forgetEnded(nowMs);
    const first = this.#windows.values().next().value;
    return first === undefined || this.#windows.size < this.#maxWindows || this.#findLeast() !== null
      ? null
      : first;
  }

  #makeRoom(nowMs: number): void {
    if (this.#windows.size < this.#maxWindows) return;
    this.#forgetEnded(nowMs);
    if (this.#windows.size < this.#maxWindows) return;
    const least = this.#findLeast();
    if (least !== null) this.#windows.delete(least);
  }

  #forgetEnded(nowMs: number): void {
    for (const [name, window] of this.#windows) {
      if (window.endsAtMonotonicMs > nowMs) return;
      this.#windows.delete(name);
    }
  }

  /** Of the windows that are not full the one with the least in it, and of those the oldest. */
  #findLeast(): string | null {
    let least: string | null = null;
    let leastCount = this.#limit;
    for (const [name, { count }] of this.#windows) {
      if (count >= leastCount) continue;
      least = name;
      leastCount = count;
      if (count <= 1) break;
    }
    return least;
  }
}

/**
 * The network that a caller's address belongs to beyond what one customer holds: of an IPv6 caller (counted as its /64) the /48, of which
 * a single line or host often is given all 65,536. Null for any other, as IPv4 addresses are dear enough.
 */
export function wideNetworkOf(source: string): string | null {
  const found = /^([0-9a-f]{1,4}:[0-9a-f]{1,4}:[0-9a-f]{1,4}):/i.exec(source)?.[1];
  return found === undefined ? null : `${found}::/48`;
}
