/** Pools the connections for reads. Each read has its own snapshot. Connections are opened on demand and closed when they are idle. */
import { systemClock } from "../../base/clock.ts";
import type { Reader } from "../port.ts";
import type { PostgresConnection } from "./connection.ts";
import { ConnectionLost, isFull } from "./error.ts";
import type { PostgresLiveness } from "./liveness.ts";

/** The most concurrent reads. Further reads wait. */
const MOST_READERS = 4;
/** The time that a connection may be idle before it is closed, because a firewall may have dropped it silently. */
const READER_IDLE_MS = 60_000;
/** Attempts of a read whose connection was lost, including the first. */
const MAX_READS = 2;

export class Readers {
  readonly #server: Pick<PostgresLiveness, "connect">;
  readonly #free: { reader: PostgresConnection; sinceMs: number }[] = [];
  readonly #all = new Set<PostgresConnection>();
  readonly #waiting: (() => void)[] = [];
  /** Reads that wait because the server has no free connection. Each read that ends wakes one of them. */
  readonly #short: (() => void)[] = [];
  #busy = 0;
  #opening = 0;

  constructor(server: Pick<PostgresLiveness, "connect">) {
    this.#server = server;
  }

  /** Runs `work` in its own snapshot. Runs it again if the connection was lost. */
  async read<Result>(work: (tx: Reader) => Promise<Result>): Promise<Result> {
    if (this.#busy >= MOST_READERS) await new Promise<void>((resolve) => this.#waiting.push(resolve));
    this.#busy += 1;
    try {
      for (let turn = 1; ; turn++) {
        try {
          return await this.#readOnce(work);
        } catch (error) {
          if (turn === MAX_READS || !(error instanceof ConnectionLost)) throw error;
          // A restarted server has lost all connections.
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
      // Does not wait for the COMMIT, because the next read is sent after it.
      reader.exec("COMMIT");
      reader.takeFailure();
      if (reader.lost) this.#all.delete(reader);
      // Closes a connection to a standby, so that the next read resolves the name again.
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
