/**
 * A database file as it lies there: read beside a running server or without one, never migrated, never written to. It leaves nothing
 * behind, not even SQLite's side files.
 */
import { constants, Database, type SQLQueryBindings } from "bun:sqlite";
import { existsSync, statSync } from "node:fs";
import { dirname, join } from "node:path";
import { pathToFileURL } from "node:url";
import { SCHEMA_VERSION } from "../migrate/migrations.ts";
import type { Reader, SqlArguments } from "../port.ts";
import { MOVED_NUMBER } from "../transfer/mark.ts";

const BUSY_TIMEOUT_MS = 2_000;

/** `foreign`: no database of this service. `newer`: of a version this executable does not know. `target`: the copy cannot be made there. */
export type DatabaseRefusal = "missing" | "foreign" | "newer" | "damaged" | "busy" | "changed" | "target";

/** What is wrong with a database file; the message is one sentence for a person. */
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
 * Opens it for reading. Where a log lies beside it, somebody uses it or used it last: then the log is read too. Where none does the file is
 * whole by itself, and reading it that way makes no log.
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
  const address = pathToFileURL(file).href + (existsSync(`${file}-wal`) ? "" : "?immutable=1");
  const database = new Database(address, constants.SQLITE_OPEN_READONLY | constants.SQLITE_OPEN_URI);
  database.run(`PRAGMA busy_timeout = ${BUSY_TIMEOUT_MS}`);
  return database;
}

/** A file opened by its address cannot be opened strict, and then a name without its sign binds nothing and says nothing. */
function signed(values: SqlArguments): SQLQueryBindings[] {
  const [first] = values;
  if (typeof first !== "object" || first === null || first instanceof Uint8Array)
    return values as SQLQueryBindings[];
  return [Object.fromEntries(Object.entries(first).map(([name, value]) => [`$${name}`, value]))];
}

/** The schema's number; null where the file holds no schema of this service. */
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

/** The sentence for SQLite's own error while reading `file`. */
export function unreadableError(file: string, error: unknown): DatabaseRefused {
  if (error instanceof DatabaseRefused) return error;
  const { code = "", message } = error as { code?: string; message: string };
  if (/BUSY|LOCKED/.test(code)) {
    return new DatabaseRefused(
      "busy",
      `${file} is in use by another command: try again when that has ended.`,
    );
  }
  const what = code === "SQLITE_NOTADB" ? "is not a database" : "cannot be read";
  return new DatabaseRefused(
    "damaged",
    `${file} ${what} (${message}): it is damaged or something else; use another one.`,
  );
}

const SHOWN_FAULTS = 5;

/** A file that was read through and found whole. */
export interface CheckedDatabase {
  schema: number;
  /** Rows by table. */
  rows: Readonly<Record<string, number>>;
}

/** Reads the whole file. Throws DatabaseRefused: missing, no database of this service, newer than this executable, or damaged. */
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

/** What is wrong inside, at most a few of each; none: it is whole. `quick` leaves out what takes longest, indexes against their tables. */
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

/** Rows by table. */
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

/** A file without a schema is this large at most: SQLite's first page. */
const BLANK_BYTES = 65_536;

/**
 * How a directory has lost its database but not what belonged to it, in one sentence with what to do; null: it has not. A new, empty one
 * would take its place unnoticed. A master key is made after the schema's commit, so beside one a database without a schema is a lost one;
 * beside a log without a key a first start may have been cut off, unless SQLite would throw that log away unread.
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
    ? `${file} is empty, and ${left} beside it is not its own`
    : `${left} is here without its relay.db`;
  return `${what}: put the database back (relay restore does it with a backup), or move ${left} out of ${dirname(left)} to begin anew with an empty one.`;
}

const sizeOf = (file: string): number => statSync(file, { throwIfNoEntry: false })?.size ?? 0;

/** Whether it holds no table, its log read too. One that cannot be read is not for this to judge. */
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

/** Throws DatabaseRefused with the sentence where the directory has lost its database. */
export function requireDatabaseFile(dataDir: string): void {
  const loss = findLoss(dataDir);
  if (loss !== null) throw new DatabaseRefused("missing", loss);
}
