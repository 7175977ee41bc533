/**
 * Implements the store on SQLite in WAL mode. Every commit is synced to the disk before its callers get results. One connection writes in groups and
 * another reads, so that a read never sees an open transaction. The store reports when its file was moved or deleted.
 */
import { statSync } from "node:fs";
import { type Clock, Loop } from "../../base/clock.ts";
import { fileErrorCode } from "../../base/durable-file.ts";
import { DedupeLog } from "../dedupe/log.ts";
import type { DiskSpace } from "../disk-space.ts";
import { GroupCommit } from "../group-commit/group-commit.ts";
import { CommitListeners } from "../group-commit/transaction.ts";
import { SCHEMA_VERSION } from "../migrate/migrations.ts";
import {
  type BatchWork,
  type ChangedTopics,
  type Fence,
  type FencedStore,
  type Origin,
  type Reader,
  type Store,
  StoreUnavailable,
  type Topic,
  type Writer,
} from "../port.ts";
import { SqliteConnection, SqliteGroup } from "./connection.ts";
import { backupBeforeMigration, wasUpgradeBegun } from "./database-copy.ts";
import { foundNoRoom, makeDiskSpace } from "./disk-space.ts";
import { type MigrationProgress, migrate } from "./migrate.ts";
import { emptyLog, giveBackPages } from "./vacuum.ts";

/** The lock timeout of reads, which rarely wait. A write waits in connection.ts. */
const BUSY_TIMEOUT_MS = 1_000;
/** The lock timeout while opening. A running server that writes constantly frees the lock only for moments. */
const OPEN_TIMEOUT_MS = 5_000;
const LOOK_EVERY_MS = 1_000;
/** The writer's page cache. With SQLite's default of 2 MiB, pages leave the cache between two uses (measured: +40 % CPU). */
const WRITER_CACHE_KIB = 16 * 1024;
/** SQLite's default. */
const READER_CACHE_KIB = 2_000;
const WAL_KEPT_BYTES = 64 * 1024 * 1024;

/** The settings of a connection that writes or migrates. */
const WRITER_SETTINGS: readonly string[] = [
  `busy_timeout = ${OPEN_TIMEOUT_MS}`,
  "journal_mode = WAL",
  "synchronous = FULL",
  "foreign_keys = ON",
  "recursive_triggers = ON",
  // Overwrites deleted rows, so that no data of an erased person stays in the file. FAST would leave freed pages unchanged, and a reused page is
  // not always cleared.
  "secure_delete = ON",
  `journal_size_limit = ${WAL_KEPT_BYTES}`,
  `cache_size = -${WRITER_CACHE_KIB}`,
  // Keeps temporary data in memory, because it can be personal and the folder for temporary files can be read-only.
  "temp_store = MEMORY",
];
/** The settings of a connection that migrated and will only read. */
const READER_SETTINGS: readonly string[] = [
  `busy_timeout = ${BUSY_TIMEOUT_MS}`,
  `cache_size = -${READER_CACHE_KIB}`,
  "query_only = ON",
];

export interface SqliteOptions {
  clock: Clock;
  /** The number of keys in memory before they are written as a segment. For tests. */
  segmentKeys?: number;
  /** Receives the size of every committed group, for metrics. */
  onGroup?: (size: number) => void;
  /** Receives a sentence when the database's files were deleted, moved or replaced, and null when they are back. */
  onTrouble?: (trouble: string | null) => void;
  /** Receives a sentence when a group fails on a full disk, and null when a group succeeds again. */
  onFull?: (trouble: string | null) => void;
  /**
   * Runs before a used database is migrated. An error that it throws leaves the database unchanged. `begun` means that this start continues an
   * interrupted migration, so no other backup is made.
   */
  onMigrate?: (schema: { from: number; to: number }, begun: boolean) => void;
  /** Receives the progress of a long migration once a second. */
  onMigrationProgress?: MigrationProgress;
}

/**
 * Opens the database file, and creates or migrates it if needed. Copies a used database into backups/ before its migration. Throws StoreUnavailable,
 * MigrationRefused or SchemaDiffers.
 */
export async function openSqlite(file: string, options: SqliteOptions): Promise<Store> {
  // The first connection migrates, and then only reads. The writer opens the file at its first statement, because most commands write nothing.
  const reader = new SqliteConnection(file, [`busy_timeout = ${OPEN_TIMEOUT_MS}`]);
  const writer = new SqliteConnection(file, [...WRITER_SETTINGS, "busy_timeout = 0"]);
  try {
    await setAutoVacuum(reader);
    for (const setting of WRITER_SETTINGS) await reader.get(`PRAGMA ${setting}`);
    const before = async (from: number): Promise<void> => {
      const begun = await wasUpgradeBegun(file, from);
      options.onMigrate?.({ from, to: SCHEMA_VERSION }, begun);
      if (!begun) await backupBeforeMigration(file);
    };
    await migrate(reader, options.clock, before, options.onMigrationProgress);
    for (const setting of READER_SETTINGS) await reader.get(`PRAGMA ${setting}`);
    return new SqliteStore(
      writer,
      reader,
      new FilePlace(file, options.onTrouble ?? (() => undefined)),
      options,
    );
  } catch (error) {
    reader.close();
    throw error;
  }
}

/** `PRAGMA auto_vacuum` of a database that frees pages on request. */
const INCREMENTAL = 2;

/** Sets it only if it differs: to set it writes to the database, syncs the disk and tells a running server that its data changed. */
async function setAutoVacuum(connection: SqliteConnection): Promise<void> {
  const found = await connection.get<{ auto_vacuum: number }>("PRAGMA auto_vacuum");
  if (found?.auto_vacuum !== INCREMENTAL) await connection.get("PRAGMA auto_vacuum = INCREMENTAL");
}

class SqliteStore implements Store {
  readonly #writer: SqliteConnection;
  readonly #reader: SqliteConnection;
  readonly #place: FilePlace;
  readonly #group: GroupCommit;
  readonly #log: DedupeLog;
  readonly #space: DiskSpace;
  readonly #listeners = new CommitListeners();
  readonly #watchers = new Set<(seen: { foreignChange: boolean }) => void>();
  readonly #checks: Loop;
  #version: number | null = null;
  #reads: Promise<unknown> = Promise.resolve();
  #closed = false;
  /** Resolves when `warm` has ended. */
  #warming: Promise<void> | null = null;

  constructor(
    writer: SqliteConnection,
    reader: SqliteConnection,
    place: FilePlace,
    { clock, onGroup = () => undefined, onFull = () => undefined, segmentKeys }: SqliteOptions,
  ) {
    let reported: string | null = null;
    const onChange = (trouble: string | null): void => {
      if (trouble !== reported) onFull(trouble);
      reported = trouble;
    };
    this.#space = makeDiskSpace(place.file, { clock, onChange });
    this.#writer = writer;
    this.#reader = reader;
    this.#place = place;
    this.#checks = new Loop({
      clock,
      everyMs: LOOK_EVERY_MS,
      turn: () => this.#check(),
      onError(error) {
        throw error;
      },
    });
    const onChanges = (changes: ChangedTopics): void => this.#listeners.notify(changes);
    this.#log = new DedupeLog(writer, segmentKeys === undefined ? {} : { segmentKeys });
    const onEnd = (error: unknown): void => {
      if (error === null) this.#space.recordSuccess();
      else if (foundNoRoom(error)) this.#space.recordFull();
    };
    this.#group = new GroupCommit(new SqliteGroup(writer, this.#log, place), { onGroup, onChanges, onEnd });
  }

  read<Result>(work: (tx: Reader) => Promise<Result>): Promise<Result> {
    const result = this.#reads.then(() => this.#readExclusively(work));
    this.#reads = result.catch(() => undefined);
    return result;
  }

  write<Result>(origin: Origin, work: (tx: Writer) => Promise<Result>): Promise<Result> {
    return this.#add(() => this.#group.add(origin, work));
  }

  batchWrites<Draft, Result>(
    origin: Origin,
    work: BatchWork<Draft, Result>,
  ): (draft: Draft) => Promise<Result> {
    return (draft) => this.#add(() => this.#group.addDraft(origin, work, draft));
  }

  withFence(fence: Fence): FencedStore {
    return {
      read: (work) => this.read(work),
      write: (origin, work) => this.#add(() => this.#group.add(origin, work, { fence })),
      vacuumStep: (options) => this.vacuumStep(options),
      fenceHolds: (tx) => this.#fenceHolds(fence, tx),
    };
  }

  async fenceHolds(): Promise<boolean> {
    return true;
  }

  async #fenceHolds(fence: Fence, tx: Reader): Promise<boolean> {
    try {
      await fence(tx);
      return true;
    } catch (error) {
      if (!this.#writer.inTransaction) throw error;
      return false;
    }
  }

  /** Makes writes wait while keys are loaded. Otherwise the first write with a key would load all the rest at once. */
  #add<Result>(add: () => Promise<Result>): Promise<Result> {
    return this.#warming === null ? add() : this.#warming.then(add);
  }

  listen(work: (changes: ChangedTopics) => void, topics?: readonly Topic[]): () => void {
    return this.#listeners.add(work, topics);
  }

  get trouble(): string | null {
    return this.#place.trouble ?? this.#space.trouble;
  }

  watch(work: (seen: { foreignChange: boolean }) => void): () => void {
    this.#watchers.add(work);
    if (this.#watchers.size === 1) void this.#checks.start();
    return () => {
      this.#watchers.delete(work);
      if (this.#watchers.size === 0) void this.#checks.stop();
    };
  }

  async #check(): Promise<undefined> {
    this.#place.check();
    this.#space.check();
    const before = this.#version;
    const version = await this.#writer.foreignVersion().catch(() => before);
    if (!this.#checks.running) return;
    this.#version = version;
    const foreignChange = before !== null && this.#version !== before;
    for (const work of [...this.#watchers]) work({ foreignChange });
  }

  async vacuumStep(options: { everything?: boolean } = {}): Promise<boolean> {
    if (await this.write("app", (tx) => giveBackPages(tx, options))) return true;
    const emptied = this.#reads.then(() => {
      if (!this.#closed) emptyLog(this.#writer);
    });
    this.#reads = emptied.catch(() => undefined);
    await emptied;
    return false;
  }

  async warm(): Promise<void> {
    const read = async (): Promise<void> => {
      while (await this.#group.add("app", () => this.#log.load()));
      // Frees the page cache, because the log's pages are not read again.
      this.#writer.exec("PRAGMA shrink_memory");
    };
    const reading = read();
    this.#warming = reading.catch(() => undefined);
    await this.#warming;
    this.#warming = null;
    await reading;
  }

  async close(): Promise<void> {
    if (this.#closed) return;
    await this.#warming;
    await this.#group.close();
    await this.#reads;
    this.#closed = true;
    await this.#checks.stop();
    const lost = this.#place.check() !== null;
    for (const connection of [this.#reader, this.#writer]) {
      if (lost) connection.abandon();
      else connection.close();
    }
  }

  async #readExclusively<Result>(work: (tx: Reader) => Promise<Result>): Promise<Result> {
    if (this.#closed) throw new StoreUnavailable("The store is closed.");
    this.#reader.exec("BEGIN");
    try {
      return await work(this.#reader);
    } finally {
      if (this.#reader.inTransaction) this.#reader.exec("COMMIT");
    }
  }
}

/** The suffixes of the database, its write-ahead log and the log's index. If one of them is missing, another process could write past this one. */
const ENDINGS = ["", "-wal", "-shm"];

/** Identifies the file at a path. A copy or a new file has another identity. "" if there is no file. */
export function identityOf(file: string): string {
  const stat = statSync(file, { bigint: true, throwIfNoEntry: false });
  return stat === undefined ? "" : `${stat.dev}:${stat.ino}`;
}

/**
 * Checks that an open database is still at its path. If a person deletes, moves or replaces its files under a running server, SQLite continues to
 * write into the lost files. Acknowledged writes would be lost. This class never opens or creates a file.
 */
class FilePlace {
  readonly file: string;
  readonly #opened: readonly { file: string; identity: string }[];
  readonly #onChange: (trouble: string | null) => void;
  #trouble: string | null = null;

  /** `file` must be open for writing already. `onChange` is called when the file was moved and when it is back. */
  constructor(file: string, onChange: (trouble: string | null) => void) {
    this.file = file;
    this.#opened = ENDINGS.map((ending) => ({
      file: file + ending,
      identity: identityOf(file + ending),
    })).filter(({ identity }) => identity !== "");
    this.#onChange = onChange;
  }

  /** The result of the last check. */
  get trouble(): string | null {
    return this.#trouble;
  }

  /** Checks the files, in a few microseconds. Returns null, or a sentence about what is wrong. */
  check(): string | null {
    const trouble = this.#findTrouble();
    if (trouble === this.#trouble) return trouble;
    this.#trouble = trouble;
    this.#onChange(trouble);
    return trouble;
  }

  #findTrouble(): string | null {
    for (const { file, identity } of this.#opened) {
      const now = lookUp(file);
      if (now === identity) continue;
      const what = now === "" ? "is not there any more" : "is another file than the one that was opened";
      return `${file} ${what}, so nothing is recorded: put back what was there, or restore a backup and start the server again.`;
    }
    return null;
  }
}

function lookUp(file: string): string {
  try {
    return identityOf(file);
  } catch (error) {
    return `unknown (${fileErrorCode(error)})`;
  }
}
