/**
 * The embedded store: SQLite in WAL mode, every commit synced to the disk before anyone is answered.
 * One connection writes, in groups; another reads, so that a read never sees an open transaction.
 */
import type { Clock } from "../ground/clock.ts";
import { GroupCommit } from "./group-commit.ts";
import { migrate } from "./migrate.ts";
import { backupBeforeMigration } from "./migration-backup.ts";
import { type Origin, type Reader, type Store, StoreUnavailable, type Writer } from "./port.ts";
import { SqliteConnection } from "./sqlite-connection.ts";
import { emptyLog, giveBackPages } from "./tend.ts";

/** Another process (a command beside the server) holds the write lock for milliseconds; a wait blocks this process. */
const BUSY_TIMEOUT_MS = 1_000;
const FOREIGN_CHANGE_POLL_MS = 1_000;
/** The dedupe index is written at random places: with SQLite's default of 2 MiB its pages fall out between two uses (measured: +40 % CPU). */
const WRITER_CACHE_KIB = 16 * 1024;
const WAL_KEPT_BYTES = 64 * 1024 * 1024;

export interface SqliteOptions {
  clock: Clock;
  /** Told the size of every committed group, for metrics. */
  onGroup?: (size: number) => void;
}

/** Opens the database file, creating and migrating it as needed; a used one is copied into backups/ before. Throws StoreUnavailable or a MigrationRefused. */
export async function openSqlite(file: string, options: SqliteOptions): Promise<Store> {
  const writer = new SqliteConnection(file, { readonly: false });
  try {
    for (const pragma of [
      `busy_timeout = ${BUSY_TIMEOUT_MS}`,
      "auto_vacuum = INCREMENTAL",
      "journal_mode = WAL",
      "synchronous = FULL",
      "foreign_keys = ON",
      "recursive_triggers = ON",
      `journal_size_limit = ${WAL_KEPT_BYTES}`,
      `cache_size = -${WRITER_CACHE_KIB}`,
    ]) {
      await writer.get(`PRAGMA ${pragma}`);
    }
    await migrate(writer, options.clock, () => backupBeforeMigration(file, options.clock));
    const reader = new SqliteConnection(file, { readonly: false });
    await reader.get(`PRAGMA busy_timeout = ${BUSY_TIMEOUT_MS}`);
    await reader.get("PRAGMA query_only = ON");
    return new SqliteStore(writer, reader, options);
  } catch (error) {
    writer.close();
    throw error;
  }
}

class SqliteStore implements Store {
  readonly #writer: SqliteConnection;
  readonly #reader: SqliteConnection;
  readonly #clock: Clock;
  readonly #group: GroupCommit;
  #reads: Promise<unknown> = Promise.resolve();
  #closed = false;

  constructor(writer: SqliteConnection, reader: SqliteConnection, options: SqliteOptions) {
    this.#writer = writer;
    this.#reader = reader;
    this.#clock = options.clock;
    this.#group = new GroupCommit(writer, options.onGroup ?? (() => undefined));
  }

  read<Result>(work: (tx: Reader) => Promise<Result>): Promise<Result> {
    const result = this.#reads.then(() => this.#readAlone(work));
    this.#reads = result.catch(() => undefined);
    return result;
  }

  write<Result>(origin: Origin, work: (tx: Writer) => Promise<Result>): Promise<Result> {
    return this.#group.add(origin, work);
  }

  onForeignChange(work: () => void): () => void {
    let last: number | undefined;
    let stopped = false;
    let cancel = (): void => undefined;
    const look = async (): Promise<void> => {
      if (this.#closed) return;
      const row = await this.#writer.get<{ data_version: number }>("PRAGMA data_version").catch(() => null);
      if (this.#closed || stopped) return;
      if (row !== null) {
        if (last !== undefined && row.data_version !== last) work();
        last = row.data_version;
      }
      cancel = this.#clock.after(FOREIGN_CHANGE_POLL_MS, () => void look());
    };
    void look();
    return () => {
      stopped = true;
      cancel();
    };
  }

  async tend(): Promise<boolean> {
    if (await this.write("app", giveBackPages)) return true;
    const emptied = this.#reads.then(() => {
      if (!this.#closed) emptyLog(this.#writer, BUSY_TIMEOUT_MS);
    });
    this.#reads = emptied.catch(() => undefined);
    await emptied;
    return false;
  }

  async close(): Promise<void> {
    if (this.#closed) return;
    await this.#group.close();
    await this.#reads;
    this.#closed = true;
    this.#reader.close();
    this.#writer.close();
  }

  async #readAlone<Result>(work: (tx: Reader) => Promise<Result>): Promise<Result> {
    if (this.#closed) throw new StoreUnavailable("The store is closed.");
    this.#reader.exec("BEGIN");
    try {
      return await work(this.#reader);
    } finally {
      if (this.#reader.inTransaction) this.#reader.exec("COMMIT");
    }
  }
}
