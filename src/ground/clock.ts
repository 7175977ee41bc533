/**
 * The one place that reads the time. Everything else is handed a Clock, so that tests can move it. It never formats for people, `toIso` is
 * the only rendering; and it never corrects a time: that somebody set the wall clock is noticed by the clock that never jumps.
 */

export interface Clock {
  /** Wall time: milliseconds since the Unix epoch, UTC. May jump either way. */
  now(): number;
  /** Milliseconds from an arbitrary start; never goes back. For measuring durations only. */
  monotonicMs(): number;
  /** Runs `work` once, `delayMs` from now at the earliest. The answer cancels it. */
  after(delayMs: number, work: () => void): () => void;
}

/** setTimeout holds at most a signed 32-bit delay; a longer wait wakes early and the caller looks again. */
const LONGEST_TIMER_MS = 2 ** 31 - 1;

export const systemClock: Clock = {
  now: () => Date.now(),
  monotonicMs: () => performance.now(),
  after(delayMs, work) {
    const timer = setTimeout(work, Math.min(Math.max(delayMs, 0), LONGEST_TIMER_MS));
    return () => clearTimeout(timer);
  },
};

/** ISO 8601 UTC with milliseconds, from milliseconds since the epoch. */
export function toIso(ms: number): string {
  return new Date(ms).toISOString();
}

/** `toIso`, or null for null. */
export function toIsoOrNull(ms: number | null): string | null {
  return ms === null ? null : toIso(ms);
}

/** Resolves `delayMs` later by the given clock. */
export function sleep(clock: Clock, delayMs: number): Promise<void> {
  return new Promise((resolve) => void clock.after(delayMs, resolve));
}

/** Resolves with `work`, or without it `mostMs` later. */
export async function waitAtMost(clock: Clock, mostMs: number, work: Promise<unknown>): Promise<void> {
  let cancel = (): void => undefined;
  const waited = new Promise<void>((resolve) => {
    cancel = clock.after(mostMs, resolve);
  });
  try {
    await Promise.race([work, waited]);
  } finally {
    cancel();
  }
}

/** Less is the ordinary correction of a running clock. */
const NOTICED_MS = 1_000;

/** Notices that somebody set the wall clock, by the clock that never jumps. It never corrects a time. */
export class ClockWatch {
  readonly #clock: Clock;
  readonly #noticedMs: number;
  #offsetMs: number;
  #steadySinceMs = Number.NEGATIVE_INFINITY;

  /** `noticedMs`: how much is noticed; one that looks seldom must allow for the corrections in between. */
  constructor(clock: Clock, noticedMs = NOTICED_MS) {
    this.#clock = clock;
    this.#noticedMs = noticedMs;
    this.#offsetMs = this.#offset();
  }

  /** By how many milliseconds the wall clock was set since it was asked last: forth above 0, back below, 0 for a clock that only ran. */
  look(): number {
    const before = this.#offsetMs;
    this.#offsetMs = this.#offset();
    const setMs = this.#offsetMs - before;
    if (Math.abs(setMs) < this.#noticedMs) return 0;
    this.#steadySinceMs = this.#clock.monotonicMs();
    return setMs;
  }

  /** For how many milliseconds nobody has set the clock, as far as `look` saw; Infinity when nobody ever did. */
  get steadyMs(): number {
    return this.#clock.monotonicMs() - this.#steadySinceMs;
  }

  #offset(): number {
    return this.#clock.now() - this.#clock.monotonicMs();
  }
}
