/**
 * Reads the time, sets timers and runs repeated work. Only this module does: other modules receive a Clock, so that tests can control the time.
 * `toIso` is the only text form of a time.
 */

export interface Clock {
  /** Wall time: milliseconds since the Unix epoch, UTC. May jump either way. */
  now(): number;
  /** Milliseconds from an arbitrary start; never goes back. For measuring durations only. */
  monotonicMs(): number;
  /** Runs `work` once, after `delayMs` at the earliest. The returned function cancels it. */
  after(delayMs: number, work: () => void): () => void;
}

/** The longest delay of setTimeout, a signed 32-bit number. A longer wait ends early, and the caller must check again. */
const LONGEST_TIMER_MS = 2 ** 31 - 1;

export const systemClock: Clock = {
  now: () => Date.now(),
  monotonicMs: () => performance.now(),
  after(delayMs, work) {
    const timer = setTimeout(work, Math.min(Math.max(delayMs, 0), LONGEST_TIMER_MS));
    return () => clearTimeout(timer);
  },
};

/** Runs `work` after this real time, but does not keep the process alive for it. The returned function cancels it. */
export function afterUnlessEnded(delayMs: number, work: () => void): () => void {
  const timer = setTimeout(work, delayMs).unref();
  return () => clearTimeout(timer);
}

/** Formats milliseconds since the epoch as ISO 8601 UTC with milliseconds. */
export function toIso(ms: number): string {
  return new Date(ms).toISOString();
}

/** Formats as `toIso` does, or returns null for null. */
export function toIsoOrNull(ms: number | null): string | null {
  return ms === null ? null : toIso(ms);
}

const ISO_TIME =
  /^(\d{4})-(\d{2})-(\d{2})(?:[Tt ]((?:[01]\d|2[0-3]):[0-5]\d)(?::([0-5]\d)(?:\.(\d{1,9}))?)?(?:[Zz]|([+-])((?:[01]\d|2[0-3]):?[0-5]\d)))?$/;

/**
 * Parses an ISO 8601 text to milliseconds since the epoch. Returns null if it is not valid. A date without a time means its first moment in UTC. A
 * time of day must have a zone, because callers do not know this machine's zone.
 */
export function parseIso(text: string): number | null {
  const found = ISO_TIME.exec(text);
  if (found === null) return null;
  const [, year, month, day, minutes = "00:00", seconds = "00", fraction = "", sign, offset] = found;
  if (!isCalendarDay(Number(year), Number(month), Number(day))) return null;
  // Every engine parses this form alike, in every zone and year.
  const thousandths = fraction.slice(0, 3).padEnd(3, "0");
  const ms = Date.parse(`${year}-${month}-${day}T${minutes}:${seconds}.${thousandths}Z`);
  if (offset === undefined) return ms;
  const awayMs = (Number(offset.slice(0, 2)) * 60 + Number(offset.slice(-2))) * 60_000;
  return sign === "-" ? ms + awayMs : ms - awayMs;
}

function isCalendarDay(year: number, month: number, day: number): boolean {
  if (month < 1 || month > 12 || day < 1) return false;
  return day <= new Date(Date.UTC(year, month, 0)).getUTCDate();
}

/** Resolves after `delayMs` of the given clock. */
export function sleep(clock: Clock, delayMs: number): Promise<void> {
  return new Promise((resolve) => void clock.after(delayMs, resolve));
}

/** Waits for `work`, but at most `mostMs`. Rejects if `work` rejects in that time. */
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

/** The smallest change that counts. A smaller one is an ordinary correction of a running clock. */
const NOTICED_MS = 1_000;

/** Detects that the wall clock was set, by comparing it with the monotonic clock. It never corrects a time. */
export class ClockWatch {
  readonly #clock: Clock;
  readonly #noticedMs: number;
  #offsetMs: number;
  #steadySinceMs = Number.NEGATIVE_INFINITY;

  /** `noticedMs` is the smallest change that counts. A watch that looks rarely needs a larger one, because corrections add up. */
  constructor(clock: Clock, noticedMs = NOTICED_MS) {
    this.#clock = clock;
    this.#noticedMs = noticedMs;
    this.#offsetMs = this.#offset();
  }

  /**
   * Returns by how many milliseconds the wall clock was set since the last call. Positive means forward, negative back, and 0 that it was not set.
   */
  takeJump(): number {
    const before = this.#offsetMs;
    this.#offsetMs = this.#offset();
    const setMs = this.#offsetMs - before;
    if (Math.abs(setMs) < this.#noticedMs) return 0;
    this.#steadySinceMs = this.#clock.monotonicMs();
    return setMs;
  }

  /** Milliseconds since `takeJump` last saw that the clock was set. Infinity if it never was. */
  get steadyMs(): number {
    return this.#clock.monotonicMs() - this.#steadySinceMs;
  }

  #offset(): number {
    return this.#clock.now() - this.#clock.monotonicMs();
  }
}

interface LoopOptions {
  clock: Clock;
  /** Milliseconds from the end of a turn to the next one, unless the turn returns fewer. */
  everyMs: number;
  /** Runs one turn. Returns the milliseconds after which the next turn must begin, or undefined. */
  turn(): Promise<number | undefined>;
  /** Receives the error of a turn that failed before the stop. */
  onError(error: unknown): void;
}

export class Loop {
  readonly #options: LoopOptions;
  #cancelTimer: () => void = () => undefined;
  #turning: Promise<void> | null = null;
  #endPause: () => void = () => undefined;
  #mustRepeat = false;
  #running = false;

  constructor(options: LoopOptions) {
    this.#options = options;
  }

  /** Reports whether the loop is between start and stop. A long turn checks it to end early. */
  get running(): boolean {
    return this.#running;
  }

  /** Starts the loop. With `afterMs`, the first turn begins after that time. Otherwise it begins at once, and `start` waits for it. */
  async start(afterMs?: number): Promise<void> {
    this.#running = true;
    if (afterMs === undefined) {
      this.wake();
      await this.#turning;
    } else this.#sleep(afterMs);
  }

  /** Runs a turn now, or one more after the current turn. Does nothing before the start or after the stop. */
  wake(): void {
    if (!this.#running) return;
    this.#mustRepeat = this.#turning !== null;
    if (this.#turning !== null) return;
    this.#cancelTimer();
    this.#turning = this.#turnOnce();
  }

  /** Pauses within a turn. `stop` ends the pause at once. */
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

  /** Repeats `step` from the cursor that it returned last, until it returns null or the loop stops. Rests `pauseMs` between steps. */
  async walk<Cursor>(
    from: Cursor,
    step: (from: Cursor) => Promise<Cursor | null>,
    pauseMs = 0,
  ): Promise<void> {
    let next: Cursor | null = from;
    while (next !== null && this.#running) {
      next = await step(next);
      if (next !== null && pauseMs > 0) await this.pause(pauseMs);
    }
  }

  /** Repeats `step` while it returns true and the loop runs. Rests `pauseMs` between steps. */
  repeat(step: () => Promise<boolean>, pauseMs = 0): Promise<void> {
    return this.walk(true, async () => ((await step()) ? true : null), pauseMs);
  }

  /** Stops the loop. Resolves after the current turn. */
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
    if (this.#mustRepeat) this.wake();
    else this.#sleep(nextMs);
  }

  #sleep(ms: number): void {
    if (!this.#running) return;
    this.#cancelTimer = this.#options.clock.after(Math.max(0, ms), () => this.wake());
  }
}

/** Work that a loop repeats in the background until it is stopped. */
export abstract class BackgroundJob {
  protected readonly loop: Loop;
  readonly #firstAfterMs: number | undefined;

  /** With `firstAfterMs`, the first turn begins that long after the start. Otherwise the start waits for the first turn. */
  constructor({ firstAfterMs, ...options }: Omit<LoopOptions, "turn"> & { firstAfterMs?: number }) {
    this.loop = new Loop({ ...options, turn: () => this.turn() });
    this.#firstAfterMs = firstAfterMs;
  }

  protected abstract turn(): Promise<number | undefined>;

  start(): Promise<void> {
    return this.loop.start(this.#firstAfterMs);
  }

  /** Runs a turn now, or one more after the current turn. */
  wake(): void {
    this.loop.wake();
  }

  /** Stops the job. Resolves after the current step. The next start continues. */
  stop(): Promise<void> {
    return this.loop.stop();
  }
}
