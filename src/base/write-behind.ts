/**
 * Writes that may follow what they tell of: a moment after the first of them, one write after another, and the last at the stop. What a
 * write cannot store waits for the next one. It never knows what is written.
 */
import type { Clock } from "./clock.ts";
import type { Log } from "./log.ts";

interface WriteBehindOptions {
  clock: Clock;
  log: Log;
  afterMs: number;
  /** What is written, as the log says that it cannot be: `recent calls`. */
  what: string;
  /** Writes all that waits, if anything does. What it throws it has taken back. */
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

  /** Something waits to be written. */
  arm(): void {
    if (this.#stopped) return;
    this.#cancelTimer ??= this.#options.clock.after(this.#options.afterMs, () => void this.flush());
  }

  /** Writes what waits now; resolves when it is durable, or waits again because it could not be written. */
  flush(): Promise<void> {
    this.#writing = this.#writing.then(() => this.#write());
    return this.#writing;
  }

  /** Writes what waits, for the last time. */
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
