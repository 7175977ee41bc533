/**
 * The embedded store: SQLite in WAL mode, every commit synced to the disk before anyone is answered.
 * One connection writes, in groups; another reads, so that a read never sees an open transaction.
 */
import { type Clock, Loop } from "../ground/clock.ts";
import { backupBeforeMigration } from "./database-copy.ts";
import { GroupCommit } from "./group-commit.ts";
import { KeyLog } from "./key-log.ts";
import { type MigrationProgress, migrate, SCHEMA_VERSION } from "./migrate.ts";
import {
  type Fence,
  type FencedStore,
  type GatheredWork,
  type Origin,
  type Reader,
  type Store,
  StoreUnavailable,
  type Topic,
  type Touched,
  type Writer,
} from "./port.ts";
import { FilePlace, SqliteConnection } from "./sqlite-connection.ts";

/** While opening, and for reads, which hardly ever wait; a write waits in group-commit.ts. */
const BUSY_TIMEOUT_MS = 1_000;
/** While it is opened beside a server that writes one transaction after the other, the lock is free for moments alone. */
const OPEN_TIMEOUT_MS = 5_000;
const LOOK_EVERY_MS = 1_000;
/** The dedupe index is written at random places: with SQLite's default of 2 MiB its pages fall out between two uses (measured: +40 % CPU). */
const WRITER_CACHE_KIB = 16 * 1024;
const WAL_KEPT_BYTES = 64 * 1024 * 1024;

/** One step is a transaction of half a megabyte moved at most, so that nobody waits long for the writer. */
const PAGES_A_STEP = 128;
/** Free pages that are kept: a megabyte, or this part of the file. */
const PAGES_KEPT = 256;
const PART_KEPT = 1 / 16;

export interface SqliteOptions {
  clock: Clock;
  /** Keys that are held in memory before they become a run on the disk; for tests. */
  keysARun?: number;
  /** Told the size of every committed group, for metrics. */
  onGroup?: (size: number) => void;
  /** Told when the database's files are found deleted, moved or replaced (why, in a sentence), and null when they are back. */
  onTrouble?: (trouble: string | null) => void;
  /**
   * Told, before anything of it is done, that a used database is brought to this executable's schema; what it throws leaves it as it is.
   * `begun`: this goes on where a start before it ended, and no further copy is made.
   */
  onMigrate?: (schema: { from: number; to: number }, begun: boolean) => void;
  /** Told once a second while that takes long. */
  onMigrationProgress?: MigrationProgress;
}

/** Opens the database file, creating and migrating it as needed; a used one is copied into backups/ before. Throws StoreUnavailable or a MigrationRefused. */
export async function openSqlite(file: string, options: SqliteOptions): Promise<Store> {
  const writer = new SqliteConnection(file, { readonly: false });
  try {
    for (const pragma of [
      `busy_timeout = ${OPEN_TIMEOUT_MS}`,
      "auto_vacuum = INCREMENTAL",
      "journal_mode = WAL",
      "synchronous = FULL",
      "foreign_keys = ON",
      "recursive_triggers = ON",
      // What a row held is overwritten when it goes, so that nothing of an erased person stays in the file. FAST leaves the pages that come
      // free as they were, and a page that is used again is not always cleared.
      "secure_delete = ON",
      `journal_size_limit = ${WAL_KEPT_BYTES}`,
      `cache_size = -${WRITER_CACHE_KIB}`,
    ]) {
      await writer.get(`PRAGMA ${pragma}`);
    }
    const before = async (from: number, begun: boolean): Promise<void> => {
      options.onMigrate?.({ from, to: SCHEMA_VERSION }, begun);
      if (!begun) await backupBeforeMigration(file, options.clock);
    };
    await migrate(writer, options.clock, before, options.onMigrationProgress);
    const reader = new SqliteConnection(file, { readonly: false });
    await reader.get(`PRAGMA busy_timeout = ${BUSY_TIMEOUT_MS}`);
    await reader.get("PRAGMA query_only = ON");
    await writer.get("PRAGMA busy_timeout = 0");
    return new SqliteStore(
      writer,
      reader,
      new FilePlace(file, options.onTrouble ?? (() => undefined)),
      options,
    );
  } catch (error) {
    writer.close();
    throw error;
  }
}

interface Listener {
  work: (touched: Touched) => void;
  topics: readonly Topic[] | undefined;
}

class SqliteStore implements Store {
  readonly #writer: SqliteConnection;
  readonly #reader: SqliteConnection;
  readonly #place: FilePlace;
  readonly #group: GroupCommit;
  readonly #log: KeyLog;
  readonly #listeners = new Set<Listener>();
  readonly #watchers = new Set<(seen: { foreignChange: boolean }) => void>();
  readonly #looks: Loop;
  #version: number | null = null;
  #reads: Promise<unknown> = Promise.resolve();
  #closed = false;
  /** Until `warm` has ended. */
  #warming: Promise<void> | null = null;

  constructor(
    writer: SqliteConnection,
    reader: SqliteConnection,
    place: FilePlace,
    { clock, onGroup = () => undefined, keysARun }: SqliteOptions,
  ) {
    this.#writer = writer;
    this.#reader = reader;
    this.#place = place;
    this.#looks = new Loop({
      clock,
      everyMs: LOOK_EVERY_MS,
      turn: () => this.#look(),
      onError(error) {
        throw error;
      },
    });
    const onTouch = (touched: Touched): void => {
      for (const { work, topics } of [...this.#listeners])
        if (topics === undefined || topics.some((topic) => touched.has(topic))) work(touched);
    };
    this.#log = new KeyLog(writer, keysARun === undefined ? {} : { runKeys: keysARun });
    this.#group = new GroupCommit(writer, this.#log, place, { onGroup, onTouch });
  }

  read<Result>(work: (tx: Reader) => Promise<Result>): Promise<Result> {
    const result = this.#reads.then(() => this.#readAlone(work));
    this.#reads = result.catch(() => undefined);
    return result;
  }

  write<Result>(origin: Origin, work: (tx: Writer) => Promise<Result>): Promise<Result> {
    return this.#add(() => this.#group.add(origin, work));
  }

  gather<Draft, Result>(
    origin: Origin,
    work: GatheredWork<Draft, Result>,
  ): (draft: Draft) => Promise<Result> {
    return (draft) => this.#add(() => this.#group.addDraft(origin, work, draft));
  }

  behind(fence: Fence): FencedStore {
    return {
      read: (work) => this.read(work),
      write: (origin, work) => this.#add(() => this.#group.add(origin, work, fence)),
      tend: (options) => this.tend(options),
      letsPass: (tx) => this.#letsPass(fence, tx),
    };
  }

  async letsPass(): Promise<boolean> {
    return true;
  }

  async #letsPass(fence: Fence, tx: Reader): Promise<boolean> {
    try {
      await fence(tx);
      return true;
    } catch (error) {
      if (!this.#writer.inTransaction) throw error;
      return false;
    }
  }

  /** While keys are read, writes wait: the first key among them would read what is left in one stretch. */
  #add<Result>(add: () => Promise<Result>): Promise<Result> {
    return this.#warming === null ? add() : this.#warming.then(add);
  }

  listen(work: (touched: Touched) => void, topics?: readonly Topic[]): () => void {
    const listener = { work, topics };
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  get trouble(): string | null {
    return this.#place.trouble;
  }

  watch(work: (seen: { foreignChange: boolean }) => void): () => void {
    this.#watchers.add(work);
    if (this.#watchers.size === 1) void this.#looks.start();
    return () => {
      this.#watchers.delete(work);
      if (this.#watchers.size === 0) void this.#looks.stop();
    };
  }

  async #look(): Promise<undefined> {
    this.#place.look();
    const before = this.#version;
    const version = await this.#writer.foreignVersion().catch(() => before);
    if (!this.#looks.running) return;
    this.#version = version;
    const foreignChange = before !== null && this.#version !== before;
    for (const work of [...this.#watchers]) work({ foreignChange });
  }

  async tend(options: { everything?: boolean } = {}): Promise<boolean> {
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
      // The pages that were read are not asked for again.
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
    await this.#looks.stop();
    const lost = this.#place.look() !== null;
    for (const connection of [this.#reader, this.#writer]) {
      if (lost) connection.abandon();
      else connection.close();
    }
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

/** Gives back up to `PAGES_A_STEP` pages; answers whether there are more to give. `everything`: it keeps none. */
async function giveBackPages(
  tx: Writer,
  { everything = false }: { everything?: boolean } = {},
): Promise<boolean> {
  const keptOf = everything ? () => 0 : keptPagesOf;
  const before = await countPages(tx);
  if (before.free <= keptOf(before.all)) return false;
  await tx.all(`PRAGMA incremental_vacuum(${PAGES_A_STEP})`);
  const after = await countPages(tx);
  // A file made without incremental vacuum gives nothing back.
  return after.free < before.free && after.free > keptOf(after.all);
}

/**
 * Moves the whole log into the database and cuts it to nothing, unless a transaction is open or another process reads from the log: then
 * the next time does it. Call while no read of this process is open; it waits for nobody.
 */
function emptyLog(writer: SqliteConnection): void {
  if (!writer.inTransaction) writer.exec("PRAGMA wal_checkpoint(TRUNCATE)");
}

function keptPagesOf(pages: number): number {
  return Math.max(PAGES_KEPT, Math.floor(pages * PART_KEPT));
}

async function countPages(tx: Reader): Promise<{ all: number; free: number }> {
  const row = await tx.get<{ pages: number; free: number }>(
    "SELECT (SELECT page_count FROM pragma_page_count) AS pages, (SELECT freelist_count FROM pragma_freelist_count) AS free",
  );
  return { all: row?.pages ?? 0, free: row?.free ?? 0 };
}
