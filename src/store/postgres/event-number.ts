/**
 * Draws the numbers of new events from a sequence of the database. The writers of two environments can draw at the same time. An environment's writer
 * draws only under the environment's lock, so that numbers rise in the order of its commits.
 */
import type { EventNumbers, Reader } from "../port.ts";

const DRAW = "SELECT draw_event_numbers(?1) AS numbers";
/** The most numbers that are drawn for events that no one announced. */
const MOST_UNASKED = 64;

/** The numbers that one transaction drew. They are not valid in another transaction, whose numbers must be larger. */
export class DrawnNumbers implements EventNumbers {
  readonly #connection: Pick<Reader, "get">;
  readonly #drawn: number[] = [];
  #drawing: Promise<unknown> = Promise.resolve();
  /** The count of events that got a number. */
  #given = 0;

  constructor(connection: Pick<Reader, "get">) {
    this.#connection = connection;
  }

  async prefetch(count: number): Promise<void> {
    if (count === 0) return;
    const drawing = this.#draw(count);
    this.#drawing = Promise.all([this.#drawing, drawing]);
    await this.#drawing;
  }

  next(): number | Promise<number> {
    this.#given += 1;
    return this.#drawn.shift() ?? this.#wait();
  }

  async #wait(): Promise<number> {
    await this.#drawing;
    // A work that stores many events draws more and more at once, because each draw is a round trip.
    if (this.#drawn.length === 0) await this.prefetch(Math.min(this.#given, MOST_UNASKED));
    return this.#drawn.shift() as number;
  }

  async #draw(count: number): Promise<void> {
    const row = await this.#connection.get<{ numbers: string }>(DRAW, count);
    if (row === null) throw new Error("The sequence of event numbers returned no number.");
    for (const number of row.numbers.split(",")) this.#drawn.push(Number(number));
  }
}
