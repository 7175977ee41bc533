/** A group's transaction on SQLite: when it begins beside other processes, and what belongs into its commit. */
import { sleep, systemClock } from "../ground/clock.ts";
import type { GroupDatabase, WorkWatch } from "./group-commit.ts";
import type { KeyLog } from "./key-log.ts";
import { StoreUnavailable } from "./port.ts";
import { isBusy, type SqliteConnection } from "./sqlite-connection.ts";

/** Where the database stood when it was opened. */
interface Place {
  /** Why it does not any more, as it was found last. */
  readonly trouble: string | null;
  look(): string | null;
}

/**
 * How long a group waits for another process that holds the write lock. A command beside the server holds it for milliseconds. The wait is
 * for a real process, so it is a real one under any clock, and it is never SQLite's own, which would hold the event loop.
 */
const LOCK_WAIT_MS = 1_000;
const LOCK_RETRY_MS: readonly number[] = [1, 2, 5, 10, 15, 20, 25];

export class SqliteGroup implements GroupDatabase {
  readonly connection: SqliteConnection;
  readonly keys: KeyLog;
  /** A group holds the event loop: the works behind it are the next one. */
  readonly limit = { groupMs: 12, firstDrafts: 8, mostDrafts: 64 };
  readonly #place: Place;

  constructor(connection: SqliteConnection, keys: KeyLog, place: Place) {
    this.connection = connection;
    this.keys = keys;
    this.#place = place;
  }

  /** Takes the write lock; another process that has it is waited for without holding the event loop. */
  async begin(): Promise<number> {
    if (this.#place.trouble !== null) this.#requirePlace();
    const startedMs = systemClock.monotonicMs();
    for (let turn = 0; ; turn++) {
      try {
        this.connection.exec("BEGIN IMMEDIATE");
        const version = await this.connection.foreignVersion();
        this.keys.locked = version;
        return version;
      } catch (error) {
        if (!isBusy(error) || systemClock.monotonicMs() - startedMs >= LOCK_WAIT_MS) throw error;
      }
      await sleep(systemClock, LOCK_RETRY_MS[turn] ?? 50);
    }
  }

  /** The flag is up again before the commit, so that direct SQL is captured. */
  capture(captured: boolean): void {
    this.connection.exec(
      captured ? "UPDATE capture_switch SET captured = 1" : "UPDATE capture_switch SET captured = 0",
    );
  }

  async commit(): Promise<void> {
    if (this.keys.used) await this.keys.write();
    this.connection.exec("COMMIT");
    if (this.keys.used) this.keys.commit();
    // Looked at after the commit and before anyone is answered, so that what was written past the directory is never acknowledged.
    this.#requirePlace();
  }

  rollBack(): void {
    if (this.connection.inTransaction) this.connection.exec("ROLLBACK");
    if (this.keys.used) this.keys.undoTo(0);
  }

  mayRunAgain(): boolean {
    return false;
  }

  watch(): WorkWatch {
    return new TurnWatch();
  }

  #requirePlace(): void {
    const trouble = this.#place.look();
    if (trouble !== null) throw new StoreUnavailable(trouble);
  }
}

/**
 * Works that await only their transaction settle before the event loop turns. When it turns inside a group, a work is awaiting
 * something else and would hold every writer: the watch makes that an error of the work instead of a standstill.
 */
class TurnWatch implements WorkWatch {
  #turn = setImmediate(() => this.#violated());
  #fail: (error: Error) => void = () => undefined;

  /** The work, or that it was violated meanwhile. */
  over<Result>(working: Promise<Result>): Promise<Result> {
    return new Promise((resolve, reject) => {
      this.#fail = reject;
      working.then(resolve, reject);
    });
  }

  stop(): void {
    clearImmediate(this.#turn);
  }

  #violated(): void {
    this.#turn = setImmediate(() => this.#violated());
    this.#fail(new Error("A transaction's work awaited something other than its transaction."));
  }
}
