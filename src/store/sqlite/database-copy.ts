/**
 * Makes a complete, consistent and verified copy of a database while other processes write to it. The copy is a hidden `.part` file until it is
 * synced and verified. Only then does it get its name. It never waits for a writer and never makes a writer wait.
 */
import { Database } from "bun:sqlite";
import { chmodSync, closeSync, existsSync, mkdirSync, openSync, rmSync, statSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileErrorCode, partOf, placeFile, syncFile } from "../../base/durable-file.ts";
import { MigrationRefused, SCHEMA_VERSION } from "../migrate/migrations.ts";
import {
  type CheckedDatabase,
  checkDatabase,
  DatabaseRefused,
  openDatabaseFile,
  readSchemaVersion,
  unreadableError,
} from "./database-file.ts";

const BUSY_TIMEOUT_MS = 5_000;
const HOLD_TIMEOUT_MS = 2_000;
/** Allows only the owner to read a copy, because it holds people's addresses and sealed secrets. */
const OWNER_ONLY = 0o600;
const SCHEMA = "SELECT type, name, sql FROM sqlite_master ORDER BY type, name";

/** The progress of a copy. `file` grows to about `ofBytes` bytes. */
export interface CopyStep {
  doing: "copying" | "checking";
  file: string;
  ofBytes: number;
}

interface CopyOptions {
  replace: boolean;
  onStep?: ((step: CopyStep) => void) | undefined;
}

/** Copies the database `from` to the file `to`. Throws DatabaseRefused, and then leaves `to` unchanged. */
export async function copyDatabase(from: string, to: string, options: CopyOptions): Promise<CheckedDatabase> {
  if (!existsSync(from))
    throw new DatabaseRefused(
      "missing",
      `There is no database ${from}: name the server's folder with --data-dir or RELAY_DATA_DIR.`,
    );
  return await makeCopy(from, to, options, () => {
    // Opens for writing, although it writes nothing, so that SQLite removes its side files when the last connection closes.
    const connection = new Database(from, { readwrite: true, create: false });
    connection.run(`PRAGMA busy_timeout = ${BUSY_TIMEOUT_MS}`);
    return connection;
  });
}

/** Copies through a connection to `from`. It closes a connection that it opened, but not one that was passed open. */
async function makeCopy(
  from: string,
  to: string,
  options: CopyOptions,
  source: Database | (() => Database),
): Promise<CheckedDatabase> {
  if (!options.replace && existsSync(to)) throw rejectExisting(to);
  const part = partOf(to);
  try {
    mkdirSync(dirname(to), { recursive: true, mode: 0o700 });
    closeSync(openSync(part, "wx", OWNER_ONLY));
    const step = { file: part, ofBytes: statSync(from).size };
    options.onStep?.({ doing: "copying", ...step });
    const schema = copyInto(part, source);
    chmodSync(part, OWNER_ONLY);
    syncFile(part);
    options.onStep?.({ doing: "checking", ...step });
    const checked = await checkDatabase(part);
    await compareSchemas(from, schema, part);
    if (!placeFile(part, to, options)) throw rejectExisting(to);
    return checked;
  } catch (error) {
    throw explain(from, to, error);
  } finally {
    rmSync(part, { force: true });
    rmSync(`${part}-journal`, { force: true });
  }
}

/** Fills the empty file. Returns the source's schema as SQLite's own statements. */
function copyInto(part: string, source: Database | (() => Database)): string {
  const connection = source instanceof Database ? source : source();
  try {
    connection.query("VACUUM INTO ?1").run(part);
    return JSON.stringify(connection.query(SCHEMA).all());
  } finally {
    if (connection !== source) connection.close();
  }
}

/** Throws DatabaseRefused unless the copy has the same tables, indexes and triggers as its source. */
async function compareSchemas(from: string, schema: string, copy: string): Promise<void> {
  using made = openDatabaseFile(copy);
  if (JSON.stringify(await made.all(SCHEMA)) === schema) return;
  throw new DatabaseRefused(
    "changed",
    `${from} changed its schema while it was copied, so the copy was thrown away: make it again.`,
  );
}

function rejectExisting(to: string): DatabaseRefused {
  return new DatabaseRefused(
    "target",
    `${to} exists already: name another file, or replace it with --force.`,
  );
}

function explain(from: string, to: string, error: unknown): DatabaseRefused {
  if (error instanceof DatabaseRefused) return error;
  const code = fileErrorCode(error);
  const { message } = error as Error;
  if (/NOTADB|CORRUPT|BUSY|LOCKED/.test(code)) return unreadableError(from, error);
  return new DatabaseRefused(
    "target",
    `The copy ${to} cannot be written (${message}): check the folder's rights and the room on its disk.`,
  );
}

interface HeldDatabase extends Disposable {
  /** Makes a verified copy, as `copyDatabase` does. Throws DatabaseRefused. */
  copyTo(file: string): Promise<CheckedDatabase>;
}

/**
 * Locks the database for this process and removes its log and other side files. Returns null if SQLite cannot read the file. Throws DatabaseRefused
 * if another process has it open.
 */
export function holdDatabase(file: string): HeldDatabase | null {
  try {
    fold(file);
    return hold(file);
  } catch (error) {
    const { code = "" } = error as { code?: string };
    if (/BUSY|LOCKED/.test(code) || error instanceof DatabaseRefused) throw unreadableError(file, error);
    if (/NOTADB|CORRUPT|IOERR/.test(code)) return null;
    throw error;
  }
}

/** Moves the log into the database and leaves WAL mode. That fails if another process has the file open. */
function fold(file: string): void {
  const connection = new Database(file, { readwrite: true, create: false });
  try {
    connection.run(`PRAGMA busy_timeout = ${HOLD_TIMEOUT_MS}`);
    connection.run("PRAGMA synchronous = FULL");
    requireFolded(file, connection.query<{ journal_mode: string }, []>("PRAGMA journal_mode = DELETE").get());
  } finally {
    connection.close();
  }
}

/** Locks with a second connection, because the one that leaves WAL mode keeps its journal file while it holds a lock. */
function hold(file: string): HeldDatabase {
  const connection = new Database(file, { readwrite: true, create: false });
  try {
    connection.run(`PRAGMA busy_timeout = ${HOLD_TIMEOUT_MS}`);
    connection.run("PRAGMA locking_mode = EXCLUSIVE");
    requireFolded(file, connection.query<{ journal_mode: string }, []>("PRAGMA journal_mode").get());
    connection.run("BEGIN EXCLUSIVE");
    connection.run("COMMIT");
  } catch (error) {
    connection.close();
    throw error;
  }
  return {
    copyTo: (to) => makeCopy(file, to, { replace: false }, connection),
    [Symbol.dispose]: () => connection.close(),
  };
}

function requireFolded(file: string, mode: { journal_mode: string } | null): void {
  if (mode?.journal_mode === "delete") return;
  throw new DatabaseRefused(
    "busy",
    `${file} is in use by another command: retry when that command has ended.`,
  );
}

/** A migration that was refused because the backup before it failed. */
export class UpgradeBackupFailed extends MigrationRefused {}

/**
 * Returns the path of the backup before the upgrade to this executable's schema. Each schema version has one path, so that a repeated upgrade makes
 * no second backup.
 */
function copyBeforeUpgrade(file: string): string {
  return join(dirname(file), "backups", `before-migration-to-${SCHEMA_VERSION}.db`);
}

/** Returns whether an upgrade to this executable's schema was interrupted. Its backup then exists, with an older schema than the database has now. */
export async function wasUpgradeBegun(file: string, schema: number): Promise<boolean> {
  try {
    using copy = openDatabaseFile(copyBeforeUpgrade(file));
    return ((await readSchemaVersion(copy)) ?? schema) < schema;
  } catch {
    return false;
  }
}

/**
 * Copies the database into `backups/` next to it. It replaces the copy of an upgrade that was interrupted before its first step. Throws
 * UpgradeBackupFailed.
 */
export async function backupBeforeMigration(file: string): Promise<void> {
  try {
    await copyDatabase(file, copyBeforeUpgrade(file), { replace: true });
  } catch (error) {
    throw new UpgradeBackupFailed(
      `The database must be migrated to this version's schema, but it was not changed, because no copy could be stored first: ${(error as Error).message}`,
    );
  }
}
