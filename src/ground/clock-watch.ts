/** Notices that somebody set the wall clock, by the clock that never jumps. It never corrects a time. */
import type { Clock } from "./clock.ts";

/** Less is the ordinary correction of a running clock. */
const NOTICED_MS = 1_000;

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
