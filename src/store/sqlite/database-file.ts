/**
 * Reads a database file without changing it, with or without a running server. It never migrates or writes, and leaves no side files of SQLite
 * behind.
 */
import { constants, Database, type SQLQueryBindings } from "bun:sqlite";
import { existsSync, statSync } from "node:fs";
import { dirname, join } from "node:path";
import { SCHEMA_VERSION } from "../migrate/migrations.ts";
import type { Reader, SqlArguments } from "../port.ts";
import { MOVED_NUMBER } from "../transfer/mark.ts";

const BUSY_TIMEOUT_MS = 2_000;

/**
 * The reason why a file is refused. `foreign`: it is not a database of this service. `newer`: a newer version wrote it. `target`: the copy cannot be
 * written there.
 */
export type DatabaseRefusal = "missing" | "foreign" | "newer" | "damaged" | "busy" | "changed" | "target";

/** Says what is wrong with a database file, in one sentence for a person. */
export class DatabaseRefused extends Error {
  readonly reason: DatabaseRefusal;

  constructor(reason: DatabaseRefusal, message: string) {
    super(message);
    this.reason = reason;
  }
}

interface DatabaseFile extends Reader, Disposable {
  readonly file: string;
}

/**
 * Opens the file for reading, including its log if one exists. A file without a log is complete, and is opened as immutable, which stops SQLite from
 * creating one.
 */
export function openDatabaseFile(file: string): DatabaseFile {
  if (!existsSync(file)) throw new DatabaseRefused("missing", `There is no file ${file}: check its path.`);
  let database: Database;
  try {
    database = openAsItLies(file);
  } catch (error) {
    throw unreadableError(file, error);
  }
  const ask = <Rows>(work: () => Rows): Promise<Rows> => {
    try {
      return Promise.resolve(work());
    } catch (error) {
      return Promise.reject(error);
    }
  };
  return {
    file,
    get: <Row>(sql: string, ...values: SqlArguments) =>
      ask(() => database.query<Row, SQLQueryBindings[]>(sql).get(...signed(values))),
    all: <Row>(sql: string, ...values: SqlArguments) =>
      ask(() => database.query<Row, SQLQueryBindings[]>(sql).all(...signed(values))),
    [Symbol.dispose]: () => database.close(),
  };
}

function openAsItLies(file: string): Database {
  const address = Bun.pathToFileURL(file).href + (existsSync(`${file}-wal`) ? "" : "?immutable=1");
  const database = new Database(address, constants.SQLITE_OPEN_READONLY | constants.SQLITE_OPEN_URI);
  database.run(`PRAGMA busy_timeout = ${BUSY_TIMEOUT_MS}`);
  return database;
}

/** Adds `$` to the names of parameters. A file opened by URI cannot be strict, and then a name without its sign silently binds nothing. */
function signed(values: SqlArguments): SQLQueryBindings[] {
  const [first] = values;
  if (typeof first !== "object" || first === null || first instanceof Uint8Array)
    return values as SQLQueryBindings[];
  return [Object.fromEntries(Object.entries(first).map(([name, value]) => [`$${name}`, value]))];
}

/** Returns the schema's number, or null if the file has no schema of this service. */
export async function readSchemaVersion(tx: Reader): Promise<number | null> {
  const table = await tx.get(
    "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'schema_migration'",
  );
  if (table === null) return null;
  return (
    (
      await tx.get<{ number: number | null }>(
        `SELECT max(number) AS number FROM schema_migration WHERE number < ${MOVED_NUMBER}`,
      )
    )?.number ?? null
  );
}

/** Makes a DatabaseRefused from SQLite's error while reading `file`. */
export function unreadableError(file: string, error: unknown): DatabaseRefused {
  if (error instanceof DatabaseRefused) return error;
  const { code = "", message } = error as { code?: string; message: string };
  if (/BUSY|LOCKED/.test(code)) {
    return new DatabaseRefused(
      "busy",
      `${file} is in use by another command: retry when that command has ended.`,
    );
  }
  const what = code === "SQLITE_NOTADB" ? "is not a database" : "cannot be read";
  return new DatabaseRefused(
    "damaged",
    `${file} ${what} (${message}): it is damaged or something else; use another one.`,
  );
}

const SHOWN_FAULTS = 5;

/** The contents of a file that was fully verified. */
export interface CheckedDatabase {
  schema: number;
  /** The number of rows by table. */
  rows: Readonly<Record<string, number>>;
}

/** Verifies the whole file. Throws DatabaseRefused if it is missing, foreign, newer or damaged. */
export async function checkDatabase(file: string): Promise<CheckedDatabase> {
  try {
    using database = openDatabaseFile(file);
    const schema = await readSchemaVersion(database);
    if (schema === null) {
      throw new DatabaseRefused(
        "foreign",
        `${file} is not a database of this service: name a file that relay backup made.`,
      );
    }
    if (schema > SCHEMA_VERSION) {
      throw new DatabaseRefused(
        "newer",
        `${file} was written by a newer version (schema ${schema}, this executable knows ${SCHEMA_VERSION}): use that version.`,
      );
    }
    const faults = await findFaults(database);
    if (faults.length > 0) {
      throw new DatabaseRefused("damaged", `${file} is damaged (${faults.join("; ")}): use another copy.`);
    }
    return { schema, rows: await countRows(database) };
  } catch (error) {
    throw unreadableError(file, error);
  }
}

/**
 * Lists faults inside the file, at most a few of each kind. The list is empty for an intact file. `quick` skips the slowest check, of indexes against
 * their tables.
 */
export async function findFaults(tx: Reader, options: { quick?: boolean } = {}): Promise<string[]> {
  const pragma = options.quick === true ? "quick_check" : "integrity_check";
  const pages = await tx.all<Record<string, string>>(`PRAGMA ${pragma}(${SHOWN_FAULTS})`);
  const found = pages.flatMap((row) => Object.values(row)).filter((text) => text !== "ok");
  if (found.length > 0) return found;
  const dangling = await tx.all<{ table: string; parent: string }>("PRAGMA foreign_key_check");
  if (dangling.length > 0) {
    const pairs = [...new Set(dangling.map(({ table, parent }) => `${table} to ${parent}`))];
    found.push(`${dangling.length} rows refer to rows that are not there: ${pairs.join(", ")}`);
  }
  const history = await tx.all<{ number: number }>(
    `SELECT number FROM schema_migration WHERE number < ${MOVED_NUMBER} ORDER BY number`,
  );
  if (history.some(({ number }, index) => number !== index + 1)) {
    found.push("its list of migrations has a gap");
  }
  const switches = await tx.all<{ captured: number }>("SELECT captured FROM capture_switch");
  if (switches.length !== 1 || switches[0]?.captured !== 1)
    found.push("its capture switch is not as it must be");
  return found;
}

/** Counts the rows of each table. */
async function countRows(tx: Reader): Promise<Record<string, number>> {
  const tables = await tx.all<{ name: string }>(
    "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' ORDER BY name",
  );
  const rows: Record<string, number> = {};
  for (const { name } of tables) {
    const counted = await tx.get<{ count: number }>(`SELECT count(*) AS count FROM "${name}"`);
    rows[name] = counted?.count ?? 0;
  }
  return rows;
}

/** The largest size of a file without a schema: SQLite's first page. */
const BLANK_BYTES = 65_536;

/**
 * Detects a directory that lost its database but not the files that belong to it. Returns a sentence that says what to do, or null. Otherwise a start
 * would silently create an empty database. The master key is created after the schema's commit, so a key without a schema means a loss. A log without
 * a key can come from an interrupted first start, unless SQLite would discard that log unread.
 */
export function findLoss(dataDir: string): string | null {
  const file = join(dataDir, "relay.db");
  const log = `${file}-wal`;
  const key = join(dataDir, "master.key");
  const isThere = existsSync(file);
  const bytes = isThere ? statSync(file).size : 0;
  const logIsLost = bytes === 0 && (isThere ? sizeOf(log) > 0 : existsSync(log));
  const left = logIsLost ? log : existsSync(key) ? key : null;
  if (left === null || (isThere && !isBlank(file, bytes))) return null;
  const what = isThere
    ? `${file} is empty, and ${left} next to it does not belong to it`
    : `${left} is here without its relay.db`;
  return `${what}: put the database back (relay restore does it with a backup), or move ${left} out of ${dirname(left)} to start with an empty one.`;
}

const sizeOf = (file: string): number => statSync(file, { throwIfNoEntry: false })?.size ?? 0;

/** Returns whether the file, with its log, has no table. A file that cannot be read does not count as blank. */
function isBlank(file: string, bytes: number): boolean {
  if (bytes === 0) return true;
  if (bytes > BLANK_BYTES) return false;
  try {
    using database = openAsItLies(file);
    return database.query("SELECT 1 FROM sqlite_master LIMIT 1").get() === null;
  } catch {
    return false;
  }
}

/** Throws DatabaseRefused if the directory lost its database. */
export function requireDatabaseFile(dataDir: string): void {
  const loss = findLoss(dataDir);
  if (loss !== null) throw new DatabaseRefused("missing", loss);
}
