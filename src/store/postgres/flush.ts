/**
 * Whether a commit is on the disk. A group's commit gives the writers' lock back before it is: the next writer goes on meanwhile, and one flush
 * serves every commit before it. What it wrote is found by the number that the group left with it, which also says what came of a commit
 * whose answer was lost: a transaction's own number may be another's after a crash.
 */
import { sleep, systemClock } from "../../base/clock.ts";
import { OutcomeUnknown, StoreUnavailable } from "../port.ts";
import type { PostgresConnection } from "./connection.ts";
import type { PostgresLiveness } from "./liveness.ts";
import { LOCK, WRITER_LOCK } from "./writer-lock.ts";

/** `connection`: of a writer's, as its numbers rise and none of them is there without those before. */
export const NUMBER = `INSERT INTO writer_commit (connection, number, at) VALUES (?1, ?2, now_ms())
  ON CONFLICT (connection) DO UPDATE SET number = excluded.number, at = excluded.at`;
/** The same, and whose turn it was. */
export const NUMBER_AND_TURN = `WITH turn AS (UPDATE writer_turn SET node = ?3) ${NUMBER}`;
/** The log's end moves behind everything that this statement sees, and this transaction's own commit waits until it is on the disk. */
const FLUSH =
  "SELECT number, pg_logical_emit_message(true, 'relay', '') IS NOT NULL AS flushed FROM writer_commit WHERE connection = ?1";
const FORGET = "DELETE FROM writer_commit WHERE at < now_ms() - ?1";
const KEPT_MS = 3_600_000;
const ASK_FOR_MS = 10_000;
const ASK_EVERY_MS = 200;
/** For so long it is believed that the second connection answers. */
const HEARD_MS = 10_000;

/** Over `own`: the number of the connection's newest commit that is there, on the disk by then; 0: none. */
export async function askOnDisk(own: PostgresConnection, connection: string): Promise<number> {
  return (await own.get<{ number: number }>(FLUSH, connection))?.number ?? 0;
}

export class PostgresFlush {
  readonly #server: Pick<PostgresLiveness, "connect" | "isCutOff">;
  #own: PostgresConnection | null = null;
  #opening: Promise<PostgresConnection> | null = null;
  /** When it answered last. */
  #heardMs = Number.NEGATIVE_INFINITY;
  /** The flush that was sent, and the one behind it that whoever comes meanwhile shares. */
  #sent: Promise<unknown> = Promise.resolve();
  #next: { connection: string; number: Promise<number> } | null = null;

  constructor(server: Pick<PostgresLiveness, "connect" | "isCutOff">) {
    this.#server = server;
  }

  /**
   * Resolves once the commit is on the disk, with false where nothing of it is there. Throws StoreUnavailable where nobody can tell. `asked`: what
   * `askOnDisk` answers, where the writer asks by itself.
   */
  async reach(connection: string, number: number, asked = this.#share(connection)): Promise<boolean> {
    try {
      if ((await asked) >= number) return true;
    } catch (error) {
      if (!(error instanceof StoreUnavailable)) throw error;
    }
    return await this.settle(connection, number);
  }

  /** The same for a commit whose answer was lost, and that may be under way. */
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

  /** Rows of writers that are long gone. */
  async tidy(): Promise<void> {
    await (await this.#open()).run(FORGET, KEPT_MS);
  }

  /** Beside the flushes: what no transaction of a writer takes with it. */
  async tell(sql: string, channel: string, notice: string): Promise<void> {
    await (await this.#open()).run(sql, channel, notice);
  }

  get connection(): PostgresConnection | null {
    return this.#own;
  }

  /** Whether it is there and answered lately: what a writer that flushes by itself is not told is asked for over this one. */
  get isHeard(): boolean {
    return this.#own?.lost === false && systemClock.monotonicMs() - this.#heardMs < HEARD_MS;
  }

  async close(): Promise<void> {
    await this.#own?.idle();
    await this.#own?.close();
  }

  /** One at a time: what comes while it is under way is not surely among what it sees. */
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

  /** `alone`: while nobody writes. */
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
