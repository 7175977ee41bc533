/**
 * Holding a database alone, with all that its log holds folded into the one file, so that it can be replaced by a rename. Nobody else has it
 * open while it is held; whoever tries waits and is refused.
 */
import { Database } from "bun:sqlite";
import type { CheckedDatabase } from "./database-check.ts";
import { makeCopy } from "./database-copy.ts";
import { DatabaseRefused, refuseUnreadable } from "./database-file.ts";

const BUSY_TIMEOUT_MS = 2_000;

interface HeldDatabase extends Disposable {
  /** A checked copy of it, as `copyDatabase` makes one. Throws DatabaseRefused. */
  copyTo(file: string): Promise<CheckedDatabase>;
}

/**
 * Takes the database for itself. Answers null where SQLite cannot make sense of the file; throws DatabaseRefused where another
 * process has it open. The log and the other side files are gone when it is held.
 */
export function holdDatabase(file: string): HeldDatabase | null {
  try {
    fold(file);
    return hold(file);
  } catch (error) {
    const { code = "" } = error as { code?: string };
    if (/BUSY|LOCKED/.test(code) || error instanceof DatabaseRefused) throw refuseUnreadable(file, error);
    if (/NOTADB|CORRUPT|IOERR/.test(code)) return null;
    throw error;
  }
}

/** Leaving the log behind needs the file alone, and moves what the log holds into it first. */
function fold(file: string): void {
  const connection = new Database(file, { readwrite: true, create: false });
  try {
    connection.run(`PRAGMA busy_timeout = ${BUSY_TIMEOUT_MS}`);
    connection.run("PRAGMA synchronous = FULL");
    requireFolded(file, connection.query<{ journal_mode: string }, []>("PRAGMA journal_mode = DELETE").get());
  } finally {
    connection.close();
  }
}

/** A second connection: one that folded keeps its journal's file for as long as it holds the lock. */
function hold(file: string): HeldDatabase {
  const connection = new Database(file, { readwrite: true, create: false });
  try {
    connection.run(`PRAGMA busy_timeout = ${BUSY_TIMEOUT_MS}`);
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
  throw new DatabaseRefused("busy", `${file} is in use by another command: try again when that has ended.`);
}
