/**
 * Waits until a commit is on the disk. A group's commit frees the writer lock before that, so that the next writer can continue and one flush serves
 * all commits before it. Each commit stores a number of its writer. The number also shows the result of a commit whose answer was lost. A transaction
 * ID cannot show it, because another transaction can have the same ID after a crash.
 */
import { sleep, systemClock } from "../../base/clock.ts";
import { OutcomeUnknown, StoreUnavailable } from "../port.ts";
import type { PostgresConnection } from "./connection.ts";
import type { PostgresLiveness } from "./liveness.ts";
import { LOCK, WRITER_LOCK } from "./writer-lock.ts";

/** Stores the number of a writer's commit. The numbers of a `connection` rise, and none is stored without those before it. */
export const NUMBER = `INSERT INTO writer_commit (connection, number, at) VALUES (?1, ?2, now_ms())
  ON CONFLICT (connection) DO UPDATE SET number = excluded.number, at = excluded.at`;
/** Stores the node whose turn it was too. */
export const NUMBER_AND_TURN = `WITH turn AS (UPDATE writer_turn SET node = ?3) ${NUMBER}`;
/** Writes a message to the log behind every commit that this statement sees. The commit of this transaction waits until the log is on the disk. */
const FLUSH =
  "SELECT number, pg_logical_emit_message(true, 'relay', '') IS NOT NULL AS flushed FROM writer_commit WHERE connection = ?1";
const FORGET = "DELETE FROM writer_commit WHERE at < now_ms() - ?1";
const KEPT_MS = 3_600_000;
const ASK_FOR_MS = 10_000;
const ASK_EVERY_MS = 200;
/** The time that the second connection counts as alive after an answer. */
const HEARD_MS = 10_000;

/** Flushes over `own`. Returns the number of the writer's newest commit, which is then on the disk, or 0 if there is none. */
export async function askOnDisk(own: PostgresConnection, connection: string): Promise<number> {
  return (await own.get<{ number: number }>(FLUSH, connection))?.number ?? 0;
}

export class PostgresFlush {
  readonly #server: Pick<PostgresLiveness, "connect" | "isCutOff">;
  #own: PostgresConnection | null = null;
  #opening: Promise<PostgresConnection> | null = null;
  /** The time of the second connection's last answer. */
  #heardMs = Number.NEGATIVE_INFINITY;
  /** The flush under way, and the next one, which all commits share that come meanwhile. */
  #sent: Promise<unknown> = Promise.resolve();
  #next: { connection: string; number: Promise<number> } | null = null;

  constructor(server: Pick<PostgresLiveness, "connect" | "isCutOff">) {
    this.#server = server;
  }

  /**
   * Resolves with true when the commit is on the disk, and with false if the commit does not exist. Throws StoreUnavailable if that cannot be found
   * out. `asked` is the result of `askOnDisk`, if the writer flushes by itself.
   */
  async reach(connection: string, number: number, asked = this.#share(connection)): Promise<boolean> {
    try {
      if ((await asked) >= number) return true;
    } catch (error) {
      if (!(error instanceof StoreUnavailable)) throw error;
    }
    return await this.settle(connection, number);
  }

  /** Does the same for a commit whose answer was lost and that can still be under way. */
  async settle(connection: string, number: number): Promise<boolean> {
    const untilMs = systemClock.monotonicMs() + ASK_FOR_MS;
    for (;;) {
      try {
        return (await this.#ask(connection, { alone: true })) >= number;
      } catch (error) {
        if (!(error instanceof StoreUnavailable)) throw error;
        if (this.#server.isCutOff || systemClock.monotonicMs() >= untilMs)
          throw new OutcomeUnknown(
            "The connection broke during a commit, and the database cannot be asked what came of it.",
            { cause: error },
          );
      }
      await sleep(systemClock, ASK_EVERY_MS);
    }
  }

  /** Deletes the rows of writers that ended long ago. */
  async tidy(): Promise<void> {
    await (await this.#open()).run(FORGET, KEPT_MS);
  }

  /** Sends a notification that no writer's transaction carries. */
  async tell(sql: string, channel: string, notice: string): Promise<void> {
    await (await this.#open()).run(sql, channel, notice);
  }

  get connection(): PostgresConnection | null {
    return this.#own;
  }

  /** True if the second connection is open and answered recently. A writer that flushes by itself needs it if its answer is lost. */
  get isHeard(): boolean {
    return this.#own?.lost === false && systemClock.monotonicMs() - this.#heardMs < HEARD_MS;
  }

  async close(): Promise<void> {
    await this.#own?.idle();
    await this.#own?.close();
  }

  /** Sends one flush at a time. A commit that comes while one is under way needs the next, because the first may not see it. */
  #share(connection: string): Promise<number> {
    if (this.#next?.connection === connection) return this.#next.number;
    const number = this.#sent.then(() => {
      if (this.#next === next) this.#next = null;
      return this.#ask(connection, { alone: false });
    });
    const next = { connection, number };
    this.#next = next;
    this.#sent = number.catch(() => undefined);
    return number;
  }

  /** Asks for the number over the second connection. `alone` takes the writer lock first, so that no commit is under way. */
  async #ask(connection: string, { alone }: { alone: boolean }): Promise<number> {
    const own = await this.#open();
    if (alone) {
      own.exec("BEGIN");
      own.exec(LOCK, WRITER_LOCK);
    }
    const found = askOnDisk(own, connection);
    const ended = alone ? own.script("COMMIT") : found;
    try {
      const number = await found;
      await ended;
      this.#heardMs = systemClock.monotonicMs();
      return number;
    } catch (error) {
      await ended.catch(() => undefined);
      throw own.firstOf(error);
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
