/**
 * Work that comes again by itself: one turn after another, never two at once, and one more when somebody asks during a turn. Every room
 * that does something by the clock is one of these; what a turn does is the room's. A turn that fails is told, and the next one comes.
 */
import type { Clock } from "./clock.ts";

interface LoopOptions {
  clock: Clock;
  /** Milliseconds from the end of a turn to the next one, unless the turn says sooner. */
  everyMs: number;
  /** One turn; answers in how many milliseconds the next is wanted at the latest, or nothing. */
  turn(): Promise<number | undefined>;
  /** Told of a turn that failed before the stop. */
  onError(error: unknown): void;
}

export class Loop {
  readonly #options: LoopOptions;
  #cancelTimer: () => void = () => undefined;
  #turning: Promise<void> | null = null;
  #endPause: () => void = () => undefined;
  #again = false;
  #running = false;

  constructor(options: LoopOptions) {
    this.#options = options;
  }

  /** Between start and stop. A long turn looks here whether it should end early. */
  get running(): boolean {
    return this.#running;
  }

  /** Begins with a turn, `afterMs` from now where that is given; without it, resolves after that first turn. */
  async start(afterMs?: number): Promise<void> {
    this.#running = true;
    if (afterMs === undefined) {
      this.wake();
      await this.#turning;
    } else this.#sleep(afterMs);
  }

  /** A turn now, or one more after the one on its way. Nothing before the start and after the stop. */
  wake(): void {
    if (!this.#running) return;
    this.#again = this.#turning !== null;
    if (this.#turning !== null) return;
    this.#cancelTimer();
    this.#turning = this.#turnOnce();
  }

  /** Rests within a turn; the stop ends it at once. */
  pause(ms: number): Promise<void> {
    if (!this.#running) return Promise.resolve();
    return new Promise((resolve) => {
      const cancel = this.#options.clock.after(ms, resolve);
      this.#endPause = () => {
        cancel();
        resolve();
      };
    });
  }

  /** No further turn begins; resolves after the one on its way. */
  async stop(): Promise<void> {
    this.#running = false;
    this.#cancelTimer();
    this.#endPause();
    await this.#turning;
  }

  async #turnOnce(): Promise<void> {
    const { everyMs, turn, onError } = this.#options;
    let nextMs = everyMs;
    try {
      nextMs = Math.min((await turn()) ?? everyMs, everyMs);
    } catch (error) {
      if (this.#running) onError(error);
    }
    this.#turning = null;
    if (this.#again) this.wake();
    else this.#sleep(nextMs);
  }

  #sleep(ms: number): void {
    if (!this.#running) return;
    this.#cancelTimer = this.#options.clock.after(Math.max(0, ms), () => this.wake());
  }
}
