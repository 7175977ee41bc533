/**
 * Locks a data directory for one server. The lock is SQLite's file lock, which the operating system releases when the process ends. Commands that
 * only read and write rows ignore it. If the lock file is removed, the lease in the database decides (directory-lease.ts).
 */
import { Database } from "bun:sqlite";
import { readFileSync, statSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { toIso } from "../../base/clock.ts";
import { fileErrorCode } from "../../base/durable-file.ts";

export class DataDirectoryTaken extends Error {}

export interface DirectoryLock {
  /** Describes the holder in words. */
  readonly holder: string;
  /** Tells this lock's file from every other that stood or will stand in its place. */
  readonly identity: string;
  /** Whether its file still stands in its place, so that the next one finds it. */
  stands(): boolean;
  /** Takes a lock file anew after the old one was removed; false where another process has it now. The old one is held until then. */
  renew(): boolean;
  release(): void;
}

/** Takes the lock, or throws DataDirectoryTaken naming the process that holds it. `what` is the holder's own words for itself. */
export function lockDataDirectory(directory: string, what: string, nowMs: number): DirectoryLock {
  const file = join(directory, "runner.lock");
  const holderFile = join(directory, "runner.txt");
  const holder = `${what}, process ${process.pid}, since ${toIso(nowMs)}`;
  let held = hold(file);
  if (held === null) throw takenError(directory, readHolder(holderFile));
  noteHolder(holderFile, holder);
  return {
    holder,
    get identity() {
      return held?.identity ?? "";
    },
    stands: () => held !== null && identityOf(file) === held.identity,
    renew() {
      const next = hold(file);
      if (next === null) return false;
      held?.release();
      held = next;
      noteHolder(holderFile, holder);
      return true;
    },
    release() {
      held?.release();
      held = null;
    },
  };
}

/** Makes the error for a directory that `holder`, described in words, has locked. */
export function takenError(directory: string, holder: string): DataDirectoryTaken {
  return new DataDirectoryTaken(
    `The data directory ${directory} is in use by ${holder}; stop it first, or give this one another --data-dir.`,
  );
}

interface HeldFile {
  identity: string;
  release(): void;
}

/** How often a file is tried that is removed or replaced while it is taken; then somebody else starts here too. */
const TRIES = 10;

/** null where another process holds it. What is held is the file that stands there: one removed meanwhile is left and taken anew. */
function hold(file: string): HeldFile | null {
  for (let turn = 0; turn < TRIES; turn++) {
    const held = holdOnce(file);
    if (held === null || (held.identity !== "" && held.identity === identityOf(file))) return held;
    held.release();
  }
  return null;
}

/** The identity is "" where another file may have been opened than the one it would name. */
function holdOnce(file: string): HeldFile | null {
  makeFile(file);
  const identity = identityOf(file);
  const database = new Database(file, { create: true, readwrite: true });
  try {
    database.exec("PRAGMA busy_timeout = 0");
    // Nothing is ever written to it, so no journal need lie beside it.
    database.exec("PRAGMA journal_mode = MEMORY");
    database.exec("BEGIN EXCLUSIVE");
  } catch (error) {
    database.close();
    const { code = "", message } = error as { code?: string; message: string };
    if (/SQLITE_BUSY|database is locked/.test(`${code} ${message}`)) return null;
    if (!/^SQLITE_(NOTADB|CORRUPT)/.test(code)) throw error;
    // Who holds it is known before what it says is read, so nobody does; and it is empty as this service makes it.
    truncateSync(file);
    return { identity: "", release: () => undefined };
  }
  const release = (): void => {
    database.exec("ROLLBACK");
    database.close();
  };
  return { identity, release };
}

/** SQLite would make it, and nobody could tell then which one it opened. */
function makeFile(file: string): void {
  try {
    writeFileSync(file, "", { flag: "wx" });
  } catch (error) {
    if (fileErrorCode(error) !== "EEXIST") throw error;
  }
}

/** A new file may get a removed one's number, never its time of birth too. */
function identityOf(file: string): string {
  const stat = statSync(file, { bigint: true, throwIfNoEntry: false });
  return stat === undefined ? "" : `${stat.dev}:${stat.ino}:${stat.birthtimeNs}`;
}

/** For people alone: where the disk takes nothing more, the lock holds all the same. */
function noteHolder(file: string, holder: string): void {
  try {
    writeFileSync(file, holder);
  } catch {}
}

function readHolder(file: string): string {
  try {
    return readFileSync(file, "utf8") || "another process";
  } catch {
    return "another process";
  }
}
