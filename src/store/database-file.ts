/**
 * A database file as it lies there: read beside a running server or without one, never migrated, never written to. It leaves nothing
 * behind, not even SQLite's side files.
 */
import { constants, Database, type SQLQueryBindings } from "bun:sqlite";
import { existsSync } from "node:fs";
import { pathToFileURL } from "node:url";
import type { Reader, SqlValue } from "./port.ts";

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

export interface DatabaseFile extends Reader, Disposable {
  readonly file: string;
}

/**
 * Opens it for reading. Where a log lies beside it, somebody uses it or used it last: then the log is read too. Where none does the file is
 * whole by itself, and reading it that way makes no log.
 */
export function openDatabaseFile(file: string): DatabaseFile {
  if (!existsSync(file)) throw new DatabaseRefused("missing", `There is no file ${file}: check its path.`);
  const address = pathToFileURL(file).href + (existsSync(`${file}-wal`) ? "" : "?immutable=1");
  let database: Database;
  try {
    database = new Database(address, constants.SQLITE_OPEN_READONLY | constants.SQLITE_OPEN_URI);
  } catch (error) {
    throw refuseUnreadable(file, error);
  }
  database.run(`PRAGMA busy_timeout = ${BUSY_TIMEOUT_MS}`);
  const ask = <Rows>(work: () => Rows): Promise<Rows> => {
    try {
      return Promise.resolve(work());
    } catch (error) {
      return Promise.reject(error);
    }
  };
  return {
    file,
    get: <Row>(sql: string, ...values: SqlValue[]) =>
      ask(() => database.query<Row, SQLQueryBindings[]>(sql).get(...values)),
    all: <Row>(sql: string, ...values: SqlValue[]) =>
      ask(() => database.query<Row, SQLQueryBindings[]>(sql).all(...values)),
    [Symbol.dispose]: () => database.close(),
  };
}

/** The schema's number; null where the file holds no schema of this service. */
export async function readSchemaVersion(tx: Reader): Promise<number | null> {
  const table = await tx.get(
    "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'schema_migration'",
  );
  if (table === null) return null;
  return (
    (await tx.get<{ number: number | null }>("SELECT max(number) AS number FROM schema_migration"))?.number ??
    null
  );
}

/** The sentence for SQLite's own error while reading `file`. */
export function refuseUnreadable(file: string, error: unknown): DatabaseRefused {
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
