/** The connections that read a PostgreSQL, each read in a snapshot of its own: opened as they are needed, closed where nobody needs them. */
import { systemClock } from "../../base/clock.ts";
import type { Reader } from "../port.ts";
import type { PostgresConnection } from "./connection.ts";
import { ConnectionLost, isFull } from "./error.ts";
import type { PostgresLiveness } from "./liveness.ts";

/** Reads at once; those behind them wait. */
const MOST_READERS = 4;
/** A reader that nobody needed for so long is closed: what stands between may have forgotten it, and says nothing. */
const READER_IDLE_MS = 60_000;
/** Of a read whose connection was lost: with the first one. */
const MAX_READS = 2;

export class Readers {
  readonly #server: Pick<PostgresLiveness, "connect">;
  readonly #free: { reader: PostgresConnection; sinceMs: number }[] = [];
  readonly #all = new Set<PostgresConnection>();
  readonly #waiting: (() => void)[] = [];
  /** Those that wait because the server gives no more connections; each read that ends lets one try again. */
  readonly #short: (() => void)[] = [];
  #busy = 0;
  #opening = 0;

  constructor(server: Pick<PostgresLiveness, "connect">) {
    this.#server = server;
  }

  /** In a snapshot of its own. */
  async read<Result>(work: (tx: Reader) => Promise<Result>): Promise<Result> {
    if (this.#busy >= MOST_READERS) await new Promise<void>((resolve) => this.#waiting.push(resolve));
    this.#busy += 1;
    try {
      for (let turn = 1; ; turn++) {
        try {
          return await this.#readOnce(work);
        } catch (error) {
          if (turn === MAX_READS || !(error instanceof ConnectionLost)) throw error;
          // A server that was started anew has lost them all.
          for (const { reader } of this.#free.splice(0)) this.#forget(reader);
        }
      }
    } finally {
      this.#busy -= 1;
      this.#waiting.shift()?.();
      this.#short.shift()?.();
    }
  }

  get connections(): Iterable<PostgresConnection> {
    return this.#all;
  }

  /** Reads that wait for a connection. */
  get waiting(): number {
    return this.#waiting.length + this.#short.length;
  }

  closeIdle(): void {
    const idle = this.#free.filter(({ sinceMs }) => systemClock.monotonicMs() - sinceMs > READER_IDLE_MS);
    for (const one of idle) {
      this.#free.splice(this.#free.indexOf(one), 1);
      this.#forget(one.reader);
    }
  }

  async close(): Promise<void> {
    await Promise.all([...this.#all].map((reader) => reader.idle()));
    await Promise.all([...this.#all].map((reader) => reader.close()));
  }

  async #readOnce<Result>(work: (tx: Reader) => Promise<Result>): Promise<Result> {
    const reader = await this.#take();
    try {
      reader.exec("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY");
      return await work(reader);
    } finally {
      // Whoever is next comes behind it.
      reader.exec("COMMIT");
      reader.takeFailure();
      if (reader.lost) this.#all.delete(reader);
      // The next read looks where the name leads by then.
      else if (reader.onStandby) this.#forget(reader);
      else this.#free.push({ reader, sinceMs: systemClock.monotonicMs() });
    }
  }

  async #take(): Promise<PostgresConnection> {
    for (;;) {
      const free = this.#free.pop();
      if (free !== undefined) return free.reader;
      try {
        this.#opening += 1;
        return await this.#open().finally(() => {
          this.#opening -= 1;
        });
      } catch (error) {
        if (!isFull(error) || this.#all.size + this.#opening === 0) throw error;
        if (this.#free.length === 0) await new Promise<void>((resolve) => this.#short.push(resolve));
      }
    }
  }

  #forget(reader: PostgresConnection): void {
    this.#all.delete(reader);
    void reader.close();
  }

  async #open(): Promise<PostgresConnection> {
    const reader = await this.#server.connect("relay reader", { planned: "by values" });
    this.#all.add(reader);
    return reader;
  }
}
