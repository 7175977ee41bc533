/**
 * Waits until a commit is on the disk. A group's commit frees the writer lock before that, so that the next writer can continue and one flush serves
 * all commits before it. Each commit stores a number of its writer. The number also shows the result of a commit whose answer was lost. A transaction
 * ID cannot show it, because another transaction can have the same ID after a crash.
 */
import { sleep, systemClock } from "../../base/clock.ts";
import { DAY_MS } from "../../base/limit.ts";
import { EVERYTHING, OutcomeUnknown, StoreUnavailable, type WriteScope } from "../port.ts";
import type { PostgresConnection } from "./connection.ts";
import type { PostgresLiveness } from "./liveness.ts";
import { takeLocks } from "./writer-lock.ts";

/** Stores the number of a writer's commit. The numbers of a `connection` rise, and none is stored without those before it. */
export const NUMBER = `INSERT INTO writer_commit (connection, number, at) VALUES (?1, ?2, now_ms())
  ON CONFLICT (connection) DO UPDATE SET number = excluded.number, at = excluded.at`;
/** Writes a message to the log behind every commit that this statement sees. The commit of this transaction waits until the log is on the disk. */
const FLUSH = `WITH flushed AS MATERIALIZED (SELECT pg_logical_emit_message(true, 'relay', ''))
  SELECT connection, number FROM writer_commit, flushed WHERE connection = ANY(string_to_array(?1, ','))`;
const FORGET = "DELETE FROM writer_commit WHERE at < now_ms() - ?1";
const FORGET_SCOPES =
  "DELETE FROM writer_scope WHERE scope > ?1 AND NOT EXISTS (SELECT 1 FROM environment WHERE id = scope)";
/** Makes the optimistic transactions fail that reach the server later, because they expect the name of a node. */
const WROTE_NONE = "UPDATE writer_scope SET node = '' WHERE scope = ?1";
/** The time after which a writer's row is deleted. A process that was suspended with its machine asks for a lost commit when it continues. */
const KEPT_MS = 7 * DAY_MS;
const ASK_FOR_MS = 10_000;
const ASK_EVERY_MS = 200;
/** The time that the second connection counts as alive after an answer. */
const HEARD_MS = 10_000;

/** The number of the newest commit of each writer that has one. */
type Numbers = ReadonlyMap<string, number>;

/** Flushes over `own`. Returns the numbers of these writers' newest commits, which are then on the disk. */
export async function askOnDisk(own: PostgresConnection, writers: readonly string[]): Promise<Numbers> {
  const rows = await own.all<{ connection: string; number: number }>(FLUSH, writers.join());
  return new Map(rows.map(({ connection, number }) => [connection, number]));
}

/** A commit: its writer, its number there, and the scope whose locks it held. */
export interface WriterCommit {
  writer: string;
  number: number;
  scope: WriteScope;
}

export class PostgresFlush {
  readonly #server: Pick<PostgresLiveness, "connect" | "isCutOff">;
  #own: PostgresConnection | null = null;
  #opening: Promise<PostgresConnection> | null = null;
  /** Connections that ask for a lost commit. */
  readonly #asking = new Set<PostgresConnection>();
  /** The time of the second connection's last answer. */
  #heardMs = Number.NEGATIVE_INFINITY;
  /** The flush under way, and the next one, which all commits of all writers share that come meanwhile. */
  #sent: Promise<unknown> = Promise.resolve();
  #next: { writers: Set<string>; numbers: Promise<Numbers> } | null = null;

  constructor(server: Pick<PostgresLiveness, "connect" | "isCutOff">) {
    this.#server = server;
  }

  /**
   * Resolves with true when the writer's commit is on the disk, and with false if the commit does not exist. Throws StoreUnavailable if that cannot be
   * found out. `asked` is the result of `askOnDisk`, if the writer flushes by itself.
   */
  async reach(commit: WriterCommit, asked = this.#share(commit.writer)): Promise<boolean> {
    try {
      if (((await asked).get(commit.writer) ?? 0) >= commit.number) return true;
    } catch (error) {
      if (!(error instanceof StoreUnavailable)) throw error;
    }
    return await this.settle(commit);
  }

  /** Does the same for a commit whose answer was lost and that can still be under way. If it has not begun at the server, it fails later. */
  async settle({ writer, number, scope }: WriterCommit): Promise<boolean> {
    const untilMs = systemClock.monotonicMs() + ASK_FOR_MS;
    for (;;) {
      try {
        return ((await this.#askUnder(scope, writer)).get(writer) ?? 0) >= number;
      } catch (error) {
        if (!(error instanceof StoreUnavailable)) throw error;
        if (this.#server.isCutOff || systemClock.monotonicMs() >= untilMs)
          throw new OutcomeUnknown(
            "The connection broke during a commit, and the database did not answer whether it was stored.",
            { cause: error },
          );
      }
      await sleep(systemClock, ASK_EVERY_MS);
    }
  }

  /** Deletes the rows of writers that ended long ago, and of deleted environments. */
  async tidy(): Promise<void> {
    const own = await this.#open();
    await own.run(FORGET, KEPT_MS);
    await own.run(FORGET_SCOPES, 0);
  }

  /** Sends a notification that no writer's transaction carries. */
  async tell(sql: string, channel: string, notice: string): Promise<void> {
    await (await this.#open()).run(sql, channel, notice);
  }

  /** The open connections. */
  get connections(): readonly PostgresConnection[] {
    return this.#own === null ? [...this.#asking] : [this.#own, ...this.#asking];
  }

  get isOpen(): boolean {
    return this.#own?.lost === false;
  }

  /** True if the second connection is open and answered recently. A writer that flushes by itself needs it if its answer is lost. */
  get isHeard(): boolean {
    return this.isOpen && systemClock.monotonicMs() - this.#heardMs < HEARD_MS;
  }

  async close(): Promise<void> {
    await this.#own?.idle();
    await this.#own?.close();
  }

  /** Sends one flush at a time. A commit that comes while one is under way needs the next, because the first may not see it. */
  #share(writer: string): Promise<Numbers> {
    this.#next ??= this.#queue();
    this.#next.writers.add(writer);
    return this.#next.numbers;
  }

  #queue(): { writers: Set<string>; numbers: Promise<Numbers> } {
    const writers = new Set<string>();
    const numbers = this.#sent.then(() => {
      this.#next = null;
      return this.#ask([...writers]);
    });
    this.#sent = numbers.catch(() => undefined);
    return { writers, numbers };
  }

  /** Asks for the numbers over the second connection. */
  async #ask(writers: readonly string[]): Promise<Numbers> {
    const numbers = await askOnDisk(await this.#open(), writers);
    this.#heardMs = systemClock.monotonicMs();
    return numbers;
  }

  /**
   * Asks for the number of a writer when no commit of the scope is under way. It has its own connection, because it can wait for a lock, and the
   * commits of other scopes must not wait with it.
   */
  async #askUnder(scope: WriteScope, writer: string): Promise<Numbers> {
    const own = await this.#server.connect("relay flusher", { writes: "yes" });
    this.#asking.add(own);
    try {
      void own.exec("BEGIN");
      void takeLocks(own, scope);
      if (scope !== EVERYTHING) void own.exec(WROTE_NONE, scope);
      const numbers = await askOnDisk(own, [writer]);
      await own.script("COMMIT");
      return numbers;
    } catch (error) {
      throw own.firstOf(error);
    } finally {
      this.#asking.delete(own);
      void own.close();
    }
  }

  async #open(): Promise<PostgresConnection> {
    if (this.#own !== null && !this.#own.lost) return this.#own;
    this.#opening ??= this.#server.connect("relay flusher", { writes: "yes" }).finally(() => {
      this.#opening = null;
    });
    this.#own = await this.#opening;
    return this.#own;
  }
}
