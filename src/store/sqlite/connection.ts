/**
 * Implements a SQLite connection with prepared statements, and a group's transaction on it: how it waits for other processes and what its commit
 * includes. It also maps SQLite's errors to the port's.
 */
import { constants, Database, type Statement } from "bun:sqlite";
import { sleep, systemClock } from "../../base/clock.ts";
import type { CommitResult, GroupDatabase, WorkWatch } from "../group-commit/group-database.ts";
import type { GroupConnection, UndoableKeys } from "../group-commit/transaction.ts";
import { type SqlArguments, type SqlNames, StoreUnavailable, UniqueViolation } from "../port.ts";
import { followBlocks } from "./index-hint.ts";

const POSTED = Promise.resolve();

export class SqliteConnection implements GroupConnection {
  #open: () => Database;
  #database: Database | null = null;
  readonly #statements = new Map<string, Statement>();

  /** Opens the file at its first statement. `settings` are pragmas. */
  constructor(file: string, settings: readonly string[]) {
    this.#open = () => openDatabase(file, settings);
  }

  get database(): Database {
    this.#database ??= this.#open();
    return this.#database;
  }

  /** Runs one statement at once, without a queue. */
  exec(sql: string): void {
    try {
      this.#statement(sql).run();
    } catch (error) {
      throw classifyError(error);
    }
  }

  async get<Row>(sql: string, ...values: SqlArguments): Promise<Row | null> {
    try {
      return this.#statement(sql).get(...values) as Row | null;
    } catch (error) {
      throw classifyError(error);
    }
  }

  async all<Row>(sql: string, ...values: SqlArguments): Promise<Row[]> {
    try {
      return this.#statement(sql).all(...values) as Row[];
    } catch (error) {
      throw classifyError(error);
    }
  }

  async run(sql: string, ...values: SqlArguments): Promise<number> {
    try {
      return this.#statement(sql).run(...values).changes;
    } catch (error) {
      throw classifyError(error);
    }
  }

  /** Runs the statement before it returns, so that all calls share one resolved promise. */
  post(sql: string, ...values: SqlArguments): Promise<void> {
    try {
      this.#statement(sql).run(...values);
      return POSTED;
    } catch (error) {
      return Promise.reject(classifyError(error));
    }
  }

  async postEach(sql: string, rows: readonly SqlNames[]): Promise<void> {
    await this.runEach(sql, rows);
  }

  async settle(): Promise<void> {}

  firstOf(error: unknown): unknown {
    return error;
  }

  async runEach(sql: string, rows: readonly SqlNames[]): Promise<number> {
    try {
      const statement = this.#statement(sql);
      let changed = 0;
      for (const row of rows) changed += statement.run(row).changes;
      return changed;
    } catch (error) {
      throw classifyError(error);
    }
  }

  get inTransaction(): boolean {
    return this.#database?.inTransaction ?? false;
  }

  /** Closes the connection without touching the log's files, because the files at those paths are no longer this connection's. */
  abandon(): void {
    this.#database?.fileControl(constants.SQLITE_FCNTL_PERSIST_WAL, new Int32Array([1, 0]));
    this.close();
  }

  close(): void {
    for (const statement of this.#statements.values()) statement.finalize();
    this.#statements.clear();
    this.#database?.close();
    this.#open = () => {
      throw new StoreUnavailable("The store is closed.");
    };
  }

  /** Returns a number that changes when another connection commits. */
  async foreignVersion(): Promise<number> {
    const row = await this.get<{ data_version: number }>("PRAGMA data_version");
    return row?.data_version ?? 0;
  }

  #statement(sql: string): Statement {
    let statement = this.#statements.get(sql);
    if (statement === undefined) {
      statement = this.database.prepare(plannedOnce(followBlocks(withoutRowLock(sql))));
      this.#statements.set(sql, statement);
    }
    return statement;
  }
}

function openDatabase(file: string, settings: readonly string[]): Database {
  // Strict mode makes a missing parameter an error instead of NULL.
  const database = new Database(file, { strict: true, readwrite: true, create: true });
  try {
    for (const setting of settings) database.run(`PRAGMA ${setting}`);
    return database;
  } catch (error) {
    database.close();
    throw error;
  }
}

/** Removes the lock of the selected rows, because one writer changes the whole file at a time. */
function withoutRowLock(sql: string): string {
  return sql.replace(/\s+FOR NO KEY UPDATE$/, "");
}

/**
 * Puts a plus before each parameter, which hides its value from the planner and changes nothing else. Otherwise SQLite plans a statement with a LIMIT
 * or several possible indexes again at each execution. That costs more than its rows (measured: 19.4 µs instead of 0.3 µs).
 */
function plannedOnce(sql: string): string {
  if (!/^\s*(SELECT|UPDATE|DELETE|WITH)\b/i.test(sql)) return sql;
  return sql.replaceAll(/'[^']*'|[?$]\w+/g, (part) => (part.startsWith("'") ? part : `+${part}`));
}

/** Result codes of a database that cannot be used now (sqlite.org/rescode.html). */
const UNAVAILABLE =
  /^SQLITE_(FULL|BUSY|LOCKED|READONLY|IOERR|CANTOPEN|CORRUPT|NOTADB|NOMEM|PROTOCOL|PERM|AUTH|INTERRUPT)/;

const DAMAGED =
  " The database file is damaged: relay doctor looks it over, and relay restore puts a backup in its place.";

/** Returns whether another process holds the lock. */
function isBusy(error: unknown): boolean {
  const cause =
    error instanceof StoreUnavailable ? (error.cause as { code?: string } | undefined) : undefined;
  return /^SQLITE_(BUSY|LOCKED)/.test(cause?.code ?? "");
}

function classifyError(error: unknown): unknown {
  if (!(error instanceof Error)) return error;
  const code = (error as { code?: unknown }).code;
  if (typeof code === "string") {
    if (UNAVAILABLE.test(code)) {
      const todo = /^SQLITE_(CORRUPT|NOTADB)/.test(code) ? DAMAGED : "";
      return new StoreUnavailable(`${error.message} (${code}).${todo}`, { cause: error });
    }
    if (/^SQLITE_CONSTRAINT_(UNIQUE|PRIMARYKEY|ROWID)$/.test(code))
      return new UniqueViolation(error.message, { cause: error });
  }
  if (error.message.includes("closed database"))
    return new StoreUnavailable("The store is closed.", { cause: error });
  return error;
}

/** Deduplication keys that are written with a commit. */
interface LoggedKeys extends UndoableKeys {
  /** The version of the database that the open transaction sees. */
  locked: number;
  /** True if the open transaction asked for a key. */
  readonly used: boolean;
  write(): Promise<void>;
  commit(): void;
}

/** The path at which the database was opened. */
interface Place {
  /** Says why the database is not at its path, as of the last check. Null if it is. */
  readonly trouble: string | null;
  check(): string | null;
}

/**
 * The time that a group waits for another process that holds the write lock. A command holds it for milliseconds. The wait is real time under any
 * clock, because the other process is real. SQLite's own wait would block the event loop.
 */
const LOCK_WAIT_MS = 1_000;
const LOCK_RETRY_MS: readonly number[] = [1, 2, 5, 10, 15, 20, 25];

export class SqliteGroup implements GroupDatabase {
  readonly connection: SqliteConnection;
  readonly keys: LoggedKeys;
  /** The limits are small, because a group blocks the event loop. Further works form the next group. */
  readonly limit = { groupMs: 12, waitMs: Number.POSITIVE_INFINITY, firstDrafts: 8, mostDrafts: 64 };
  readonly beginsAhead = false;
  readonly expectedVersion = null;
  /** Always false, because no transaction begins ahead of its group. */
  readonly isBegun = false;
  readonly #place: Place;
  #captured = true;

  constructor(connection: SqliteConnection, keys: LoggedKeys, place: Place) {
    this.connection = connection;
    this.keys = keys;
    this.#place = place;
  }

  /** Takes the write lock. Waits for another process that has it, without blocking the event loop. */
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

  capture(captured: boolean): void {
    this.#captured = captured;
    this.connection.exec(
      captured ? "UPDATE capture_switch SET captured = 1" : "UPDATE capture_switch SET captured = 0",
    );
  }

  async commit(): Promise<CommitResult> {
    try {
      // Sets the flag again with the commit, so that changes by direct SQL are captured.
      if (!this.#captured) this.capture(true);
      if (this.keys.used) await this.keys.write();
      this.connection.exec("COMMIT");
      if (this.keys.used) this.keys.commit();
      // Checks the path after the commit and before any caller gets a result, so that a write to a moved file is never acknowledged.
      this.#requirePlace();
      return { durable: null };
    } catch (error) {
      this.rollBack();
      throw error;
    }
  }

  rollBack(): void {
    this.#captured = true;
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
    const trouble = this.#place.check();
    if (trouble !== null) throw new StoreUnavailable(trouble);
  }
}

/**
 * Fails a work that awaits something other than its transaction, because it would block every writer. Works that await only their transaction settle
 * before the event loop turns.
 */
class TurnWatch implements WorkWatch {
  #turn = setImmediate(() => this.#violated());
  #fail: (error: Error) => void = () => undefined;

  /** Settles as the work does, or rejects if the event loop turns first. */
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
