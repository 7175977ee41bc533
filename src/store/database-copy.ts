/**
 * A whole, consistent, checked copy of a database, made while others write to it. It appears under its name only when it is on the disk
 * and was read through; until then it is a hidden `.part` beside it. It never waits for a writer and never makes one wait.
 */
import { Database } from "bun:sqlite";
import { chmodSync, closeSync, existsSync, mkdirSync, openSync, rmSync } from "node:fs";
import { dirname } from "node:path";
import { fileErrorCode, partOf, placeFile, syncFile } from "../ground/durable-file.ts";
import { type CheckedDatabase, checkDatabase } from "./database-check.ts";
import { DatabaseRefused, openDatabaseFile, refuseUnreadable } from "./database-file.ts";

const BUSY_TIMEOUT_MS = 5_000;
/** It holds people's addresses and sealed secrets. */
const OWNER_ONLY = 0o600;
const SCHEMA = "SELECT type, name, sql FROM sqlite_master ORDER BY type, name";

/** Copies the database `from` to the new file `to`. Throws DatabaseRefused in one sentence; then nothing is at `to` that was not before. */
export async function copyDatabase(
  from: string,
  to: string,
  options: { replace: boolean },
): Promise<CheckedDatabase> {
  if (!existsSync(from))
    throw new DatabaseRefused("missing", `There is no database ${from}: check its path.`);
  return await makeCopy(from, to, options, () => {
    // Reading and writing, though it writes nothing: the last one to close then clears SQLite's side files away.
    const connection = new Database(from, { readwrite: true, create: false });
    connection.run(`PRAGMA busy_timeout = ${BUSY_TIMEOUT_MS}`);
    return connection;
  });
}

/** As `copyDatabase`, through a connection to `from` that is closed at the end unless it was handed in open. */
export async function makeCopy(
  from: string,
  to: string,
  options: { replace: boolean },
  source: Database | (() => Database),
): Promise<CheckedDatabase> {
  if (!options.replace && existsSync(to)) throw refuseExisting(to);
  const part = partOf(to);
  try {
    mkdirSync(dirname(to), { recursive: true, mode: 0o700 });
    closeSync(openSync(part, "wx", OWNER_ONLY));
    const schema = copyInto(part, source);
    chmodSync(part, OWNER_ONLY);
    syncFile(part);
    const checked = await checkDatabase(part);
    await compareSchemas(from, schema, part);
    if (!placeFile(part, to, options)) throw refuseExisting(to);
    return checked;
  } catch (error) {
    throw explain(from, to, error);
  } finally {
    rmSync(part, { force: true });
    rmSync(`${part}-journal`, { force: true });
  }
}

/** Fills the empty file; answers the source's schema in SQLite's words. */
function copyInto(part: string, source: Database | (() => Database)): string {
  const connection = source instanceof Database ? source : source();
  try {
    connection.query("VACUUM INTO ?1").run(part);
    return JSON.stringify(connection.query(SCHEMA).all());
  } finally {
    if (connection !== source) connection.close();
  }
}

/** A copy holds every table, index and trigger of what it was made of, in the same words. */
async function compareSchemas(from: string, schema: string, copy: string): Promise<void> {
  using made = openDatabaseFile(copy);
  if (JSON.stringify(await made.all(SCHEMA)) === schema) return;
  throw new DatabaseRefused(
    "changed",
    `${from} changed its schema while it was copied, so the copy was thrown away: make it again.`,
  );
}

function refuseExisting(to: string): DatabaseRefused {
  return new DatabaseRefused(
    "target",
    `${to} exists already: name another file, or replace it with --force.`,
  );
}

function explain(from: string, to: string, error: unknown): DatabaseRefused {
  if (error instanceof DatabaseRefused) return error;
  const code = fileErrorCode(error);
  const { message } = error as Error;
  if (/NOTADB|CORRUPT|BUSY|LOCKED/.test(code)) return refuseUnreadable(from, error);
  return new DatabaseRefused(
    "target",
    `The copy ${to} cannot be written (${message}): check the folder's rights and the room on its disk.`,
  );
}
