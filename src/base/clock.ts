/**
 * The one place that reads the time and sets a timer, and the one loop of all that happens again and again. Everything else is handed a Clock,
 * so that tests can move it. It never formats for people, `toIso` is the only rendering; and it never corrects a time: that somebody set the
 * wall clock is noticed by the clock that never jumps.
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

/** Calls `work` after so much real time, unless the process has ended: it waits for nobody's sake. The answer cancels it. */
export function afterUnlessEnded(delayMs: number, work: () => void): () => void {
  const timer = setTimeout(work, delayMs).unref();
  return () => clearTimeout(timer);
}

/** ISO 8601 UTC with milliseconds, from milliseconds since the epoch. */
export function toIso(ms: number): string {
  return new Date(ms).toISOString();
}

/** `toIso`, or null for null. */
export function toIsoOrNull(ms: number | null): string | null {
  return ms === null ? null : toIso(ms);
}

const ISO_TIME =
  /^(\d{4})-(\d{2})-(\d{2})(?:[Tt ]((?:[01]\d|2[0-3]):[0-5]\d)(?::([0-5]\d)(?:\.(\d{1,9}))?)?(?:[Zz]|([+-])((?:[01]\d|2[0-3]):?[0-5]\d)))?$/;

/**
 * The moment that an ISO 8601 text means, in whole milliseconds, or null: in the API, in definitions and on the command line alike. A date is
 * its first moment in UTC, a time of day says its zone, for nobody knows this machine's, and a day that no calendar has is none.
 */
export function parseIso(text: string): number | null {
  const found = ISO_TIME.exec(text);
  if (found === null) return null;
  const [, year, month, day, minutes = "00:00", seconds = "00", fraction = "", sign, offset] = found;
  if (!isCalendarDay(Number(year), Number(month), Number(day))) return null;
  // Only this form is read the same by every engine, in every zone and year.
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
