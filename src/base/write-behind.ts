/**
 * Delays writes that may follow what they describe. A write runs a moment after the first call of `arm`, one write at a time, and a last one at the
 * stop. Data that a write cannot store waits for the next one.
 */
import type { Clock } from "./clock.ts";
import type { Log } from "./log.ts";

interface WriteBehindOptions {
  clock: Clock;
  log: Log;
  afterMs: number;
  /** The thing that is written, in the words of the log: `recent calls`. */
  what: string;
  /** Writes everything that waits, if anything does. If it throws, everything must wait again. */
  write(): Promise<void>;
}

export class WriteBehind {
  readonly #options: WriteBehindOptions;
  #cancelTimer: (() => void) | null = null;
  #writing: Promise<void> = Promise.resolve();
  #failed = false;
  #stopped = false;

  constructor(options: WriteBehindOptions) {
    this.#options = options;
  }

  /** Schedules a write, because something waits. */
  arm(): void {
    if (this.#stopped) return;
    this.#cancelTimer ??= this.#options.clock.after(this.#options.afterMs, () => void this.flush());
  }

  /** Writes what waits now. Resolves when it is durable, or waits again because it could not be written. */
  flush(): Promise<void> {
    this.#writing = this.#writing.then(() => this.#write());
    return this.#writing;
  }

  /** Writes what waits for the last time. `arm` does nothing afterwards. */
  stop(): Promise<void> {
    this.#stopped = true;
    return this.flush();
  }

  async #write(): Promise<void> {
    this.#cancelTimer?.();
    this.#cancelTimer = null;
    try {
      await this.#options.write();
      this.#failed = false;
    } catch (error) {
      if (!this.#failed) {
        this.#options.log.warn(`${this.#options.what} cannot be stored`, { cause: (error as Error).message });
      }
      this.#failed = true;
      this.arm();
    }
  }
}
