/**
 * Pools the connections for writes. A group has a connection from its begin until its commit is sent. So the next group's transaction can begin before
 * the commit is answered, and groups of several scopes can run at the same time.
 */
import { systemClock } from "../../base/clock.ts";
import type { OpenOptions, PostgresConnection } from "./connection.ts";
import type { PostgresLiveness } from "./liveness.ts";

/** The most connections. Groups of further scopes wait. */
export const MOST_WRITERS = 4;
/** The time that a connection may be free before it is closed. The last one stays open. */
const WRITER_IDLE_MS = 60_000;

/** The time for which no further connection is tried after one could not be opened. */
const REFUSED_FOR_MS = 10_000;

/** A connection that writes. */
export interface PooledWriter {
  readonly connection: PostgresConnection;
  /** Names the connection in the table of commit numbers. */
  readonly name: string;
  /** The number of its last commit. */
  number: number;
  /** The time when its last flush was answered. Later statements wait for it. */
  freeMs: number;
}

interface PoolOptions {
  server: Pick<PostgresLiveness, "connect">;
  onRefused: NonNullable<OpenOptions["onRefused"]>;
  /** Runs after a connection was opened. */
  onOpen: () => void;
  /** Runs for each lost connection, before a group gets another one. */
  onLost: () => void;
}

export class WriterPool {
  readonly #options: PoolOptions;
  /** The open connections that no group has, the last used one at the end. */
  readonly #free: { writer: PooledWriter; sinceMs: number }[] = [];
  readonly #all = new Set<PooledWriter>();
  readonly #waiting: { resolve: (writer: PooledWriter) => void; reject: (error: unknown) => void }[] = [];
  #opening = 0;
  /** The time until which no further connection is tried. */
  #refusedUntilMs = 0;

  constructor(options: PoolOptions) {
    this.#options = options;
  }

  /** Returns a free connection at once, or null. */
  tryTake(): PooledWriter | null {
    this.#dropLost();
    // Statements on a connection with a flush under way would wait for it.
    const calm = this.#lastCalm;
    const chosen = calm >= 0 || this.#mayOpen ? calm : this.#free.length - 1;
    return chosen < 0 ? null : (this.#free.splice(chosen, 1)[0]?.writer ?? null);
  }

  /** True if a group can begin on a connection on which no statement is under way. */
  get hasCalm(): boolean {
    return this.#mayOpen || this.#lastCalm >= 0;
  }

  get #lastCalm(): number {
    return this.#free.findLastIndex(({ writer: { connection } }) => connection.unanswered === 0);
  }

  /** Returns a free or new connection, or waits for one. Throws NotReached if none is open and none can be opened. */
  async take(): Promise<PooledWriter> {
    const free = this.tryTake();
    if (free !== null) return free;
    if (!this.#mayOpen) return await this.#wait();
    try {
      return await this.#open();
    } catch (error) {
      this.#dropLost();
      // Groups share the connections that are still open. Without one, a group would wait forever.
      if (this.#all.size > 0) {
        this.#refusedUntilMs = systemClock.monotonicMs() + REFUSED_FOR_MS;
        return this.tryTake() ?? (await this.#wait());
      }
      this.#serveWithNew();
      throw error;
    }
  }

  /** Gives a connection back. Its last transaction has ended or its COMMIT was sent. */
  giveBack(writer: PooledWriter): void {
    if (writer.connection.lost) {
      this.#dropLost();
      this.#serveWithNew();
      return;
    }
    const next = this.#waiting.shift();
    if (next === undefined) this.#free.push({ writer, sinceMs: systemClock.monotonicMs() });
    else next.resolve(writer);
  }

  get connections(): readonly PostgresConnection[] {
    return [...this.#all].map(({ connection }) => connection);
  }

  /** The number of groups that have a connection, and of those that wait for one. */
  get groups(): { running: number; waiting: number } {
    return { running: this.#all.size - this.#free.length, waiting: this.#waiting.length };
  }

  closeIdle(): void {
    const nowMs = systemClock.monotonicMs();
    const idle = this.#free.filter(({ sinceMs }) => nowMs - sinceMs > WRITER_IDLE_MS);
    for (const one of idle) {
      if (this.#all.size <= 1) return;
      this.#free.splice(this.#free.indexOf(one), 1);
      this.#all.delete(one.writer);
      void one.writer.connection.close();
    }
  }

  async close(): Promise<void> {
    await Promise.all(this.connections.map((connection) => connection.idle()));
    await Promise.all(this.connections.map((connection) => connection.close()));
  }

  get #mayOpen(): boolean {
    if (this.#all.size > 0 && systemClock.monotonicMs() < this.#refusedUntilMs) return false;
    return this.#all.size + this.#opening < MOST_WRITERS;
  }

  #wait(): Promise<PooledWriter> {
    return new Promise((resolve, reject) => this.#waiting.push({ resolve, reject }));
  }

  /** Opens a connection for the first waiting group, because the one that it waits for is lost or could not be opened. */
  #serveWithNew(): void {
    const next = this.#waiting.shift();
    if (next !== undefined) this.take().then(next.resolve, next.reject);
  }

  #dropLost(): void {
    for (const one of [...this.#free])
      if (one.writer.connection.lost) this.#free.splice(this.#free.indexOf(one), 1);
    for (const writer of [...this.#all]) {
      if (!writer.connection.lost) continue;
      this.#all.delete(writer);
      this.#options.onLost();
    }
  }

  async #open(): Promise<PooledWriter> {
    this.#opening += 1;
    try {
      const { server, onRefused, onOpen } = this.#options;
      const connection = await server.connect("relay writer", { writes: "rows", onRefused });
      const writer = { connection, name: crypto.randomUUID(), number: 0, freeMs: 0 };
      this.#all.add(writer);
      onOpen();
      return writer;
    } finally {
      this.#opening -= 1;
    }
  }
}
