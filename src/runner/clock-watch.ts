/** Notices that the wall clock was set back, by the clock that never goes back. It never corrects a time. */
import type { Clock } from "../ground/clock.ts";

/** Less is the ordinary correction of a running clock. */
const NOTICED_MS = 1_000;

export class ClockWatch {
  readonly #clock: Clock;
  #offsetMs: number;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#offsetMs = this.#offset();
  }

  /** Whether the wall clock went back since it was asked last; a process that slept sees it go forward only. */
  wentBack(): boolean {
    const offsetMs = this.#offset();
    const back = offsetMs < this.#offsetMs - NOTICED_MS;
    if (back || offsetMs > this.#offsetMs) this.#offsetMs = offsetMs;
    return back;
  }

  #offset(): number {
    return this.#clock.now() - this.#clock.monotonicMs();
  }
}
