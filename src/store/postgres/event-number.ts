/**
 * Draws the numbers of new events from a sequence of the database. The writers of two environments can draw at the same time. An environment's writer
 * draws only under the environment's lock, so that numbers rise in the order of its commits.
 */
import { systemClock } from "../../base/clock.ts";
import type { EventNumbers, NewestTime, Reader } from "../port.ts";

const DRAW = "SELECT draw_event_numbers(?1) AS numbers";
const EXPECT_TIME = "SELECT expect_event_time(?1)";
/** The most numbers that are drawn for events that no one announced. */
const MOST_UNASKED = 64;
/** The most numbers that are drawn for the next transactions, and the time for which they may be used, because times must rise with numbers. */
const MOST_AHEAD = 512;
const AHEAD_MS = 5_000;

interface NumberConnection extends Pick<Reader, "get"> {
  exec(sql: string, at: number): Promise<void>;
  execRow<Row>(sql: string, count: number): Promise<Row | null>;
}

/** A row of DRAW: numbers with commas between them. */
interface Draw {
  numbers: string;
}

/**
 * The numbers that an environment's transactions drew for the next ones, which may use them while no other process writes the environment. Draws are
 * answered in any order, so a number below one that was given is dropped.
 */
export class NumbersAhead {
  newest: NewestTime | null = null;
  #numbers: number[] = [];
  #given = 0;
  /** The time of the oldest draw. Infinity if there is no number. */
  #drawnMs = Number.POSITIVE_INFINITY;

  get count(): number {
    return this.#numbers.length;
  }

  get drawnMs(): number {
    return this.#drawnMs;
  }

  /** Removes and returns all numbers, rising. Returns none if they were drawn too long ago. */
  takeAll(): number[] {
    const isOld = systemClock.monotonicMs() - this.#drawnMs > AHEAD_MS;
    this.#drawnMs = Number.POSITIVE_INFINITY;
    const numbers = this.#numbers.splice(0);
    return isOld ? [] : numbers;
  }

  /** Adds numbers that were drawn at `drawnMs`. */
  add(numbers: readonly number[], drawnMs: number): void {
    if (numbers.length > 0) this.#drawnMs = Math.min(this.#drawnMs, drawnMs);
    const all = [...this.#numbers, ...numbers];
    this.#numbers = all.filter((number) => number > this.#given).sort((one, other) => one - other);
  }

  /** Records the last number that a transaction gave. Later ones give larger numbers. */
  recordGiven(number: number): void {
    this.#given = Math.max(this.#given, number);
  }
}

/** The numbers of one transaction. They are not valid in another transaction, whose numbers must be larger. */
export class DrawnNumbers implements EventNumbers {
  newest: NewestTime | null = null;
  readonly #connection: NumberConnection;
  readonly #drawn: number[] = [];
  #drawing: Promise<unknown> = Promise.resolve();
  #isAhead = false;
  /** The time of the oldest draw. */
  #drawnMs = Number.POSITIVE_INFINITY;
  /** The earliest time of an event that the server checks. */
  #expectedMs = Number.POSITIVE_INFINITY;
  /** The counts of announced events, of numbers that were drawn or asked for, and of events that got one. */
  #announced = 0;
  #asked = 0;
  #given = 0;
  /** The last number that an event got. */
  #last = 0;

  constructor(connection: NumberConnection) {
    this.#connection = connection;
  }

  /**
   * Uses what earlier transactions left. The server must check that no other process wrote the environment since, and that events of the time
   * `checkedMs` or later need no row in clock_rollback.
   */
  useAhead(ahead: NumbersAhead, checkedMs: number): void {
    this.#isAhead = true;
    this.#expectedMs = checkedMs;
    const { drawnMs } = ahead;
    this.#drawn.push(...ahead.takeAll());
    this.#asked = this.#drawn.length;
    if (this.#asked > 0) this.#drawnMs = drawnMs;
    this.newest = ahead.newest;
  }

  async prefetch(count: number, oldestMs: number): Promise<void> {
    if (count === 0) return;
    this.#expectTime(oldestMs);
    this.#announced += count;
    if (this.#announced > this.#asked)
      this.#drawing = Promise.all([this.#drawing, this.#draw(this.#announced - this.#asked)]);
    await this.#drawing;
  }

  next(atMs = Number.POSITIVE_INFINITY): number | Promise<number> {
    this.#expectTime(atMs);
    this.#given += 1;
    const number = this.#drawn.shift();
    return number === undefined ? this.#wait() : this.#give(number);
  }

  /** Leaves what the next transaction may use in `ahead`. Sends a draw if that may be too few. The commit of this transaction must follow. */
  leaveAhead(ahead: NumbersAhead): void {
    ahead.recordGiven(this.#last);
    ahead.add(this.#drawn, this.#drawnMs);
    if (this.#given === 0) return;
    ahead.newest = this.newest;
    if (ahead.count >= this.#given * 2) return;
    const wanted = Math.min(MOST_AHEAD, this.#given * 4);
    const askedMs = systemClock.monotonicMs();
    void this.#connection.execRow<Draw>(DRAW, wanted).then((row) => {
      if (row !== null) ahead.add(readNumbers(row), askedMs);
    });
  }

  /** Has the server check that events of this time need no row in clock_rollback, if memory decides that. */
  #expectTime(atMs: number): void {
    if (!this.#isAhead || this.newest === null || atMs >= this.#expectedMs) return;
    this.#expectedMs = atMs;
    void this.#connection.exec(EXPECT_TIME, atMs);
  }

  #give(number: number): number {
    this.#last = number;
    return number;
  }

  async #wait(): Promise<number> {
    await this.#drawing;
    // A work that stores many events draws more and more at once, because each draw is a round trip.
    if (this.#drawn.length === 0) await this.#draw(Math.min(this.#given, MOST_UNASKED));
    return this.#give(this.#drawn.shift() as number);
  }

  async #draw(count: number): Promise<void> {
    this.#asked += count;
    this.#drawnMs = Math.min(this.#drawnMs, systemClock.monotonicMs());
    this.#drawn.push(...(await this.#ask(count)));
  }

  async #ask(count: number): Promise<number[]> {
    const row = await this.#connection.get<Draw>(DRAW, count);
    if (row === null) throw new Error("The sequence of event numbers returned no number.");
    return readNumbers(row);
  }
}

function readNumbers({ numbers }: Draw): number[] {
  return numbers.split(",").map(Number);
}
