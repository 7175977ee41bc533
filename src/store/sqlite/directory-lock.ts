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
  /** Identifies this lock's file among all files that ever have its path. */
  readonly identity: string;
  /** Returns whether the lock's file is still at its path, where the next server looks for it. */
  stands(): boolean;
  /** Takes a new lock file after the old one was removed. Returns false if another process has it. Holds the old one until then. */
  renew(): boolean;
  release(): void;
}

/** Lists the files of a directory's lock: the locked file, and the description of its holder. */
export function listLockFiles(directory: string): [file: string, holderFile: string] {
  return [join(directory, "runner.lock"), join(directory, "runner.txt")];
}

/** Takes the lock. Throws DataDirectoryTaken, which names the process that holds it. `what` describes this process to others. */
export function lockDataDirectory(directory: string, what: string, nowMs: number): DirectoryLock {
  const [file, holderFile] = listLockFiles(directory);
  const holder = `${what}, process ${process.pid}, since ${toIso(nowMs)}`;
  let held = hold(file);
  if (held === null) throw takenError(directory, readHolder(holderFile));
  recordHolder(holderFile, holder);
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
      recordHolder(holderFile, holder);
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

/** Attempts to lock a file that is removed or replaced meanwhile. After that, another server must be starting here too. */
const TRIES = 10;

/** Locks the file at this path, and repeats this if the file was removed meanwhile. Returns null if another process holds it. */
function hold(file: string): HeldFile | null {
  for (let turn = 0; turn < TRIES; turn++) {
    const held = holdOnce(file);
    if (held === null || (held.identity !== "" && held.identity === identityOf(file))) return held;
    held.release();
  }
  return null;
}

/** Locks the file once. The identity is "" if another file than the one at the path may have been opened. */
function holdOnce(file: string): HeldFile | null {
  makeFile(file);
  const identity = identityOf(file);
  const database = new Database(file, { create: true, readwrite: true });
  try {
    database.exec("PRAGMA busy_timeout = 0");
    // Needs no journal file, because nothing is ever written to the lock file.
    database.exec("PRAGMA journal_mode = MEMORY");
    database.exec("BEGIN EXCLUSIVE");
  } catch (error) {
    database.close();
    const { code = "", message } = error as { code?: string; message: string };
    if (/SQLITE_BUSY|database is locked/.test(`${code} ${message}`)) return null;
    if (!/^SQLITE_(NOTADB|CORRUPT)/.test(code)) throw error;
    // SQLite checks the lock before it reads the file, so no process holds this one. The service creates it empty, so it is emptied again.
    truncateSync(file);
    return { identity: "", release: () => undefined };
  }
  const release = (): void => {
    database.exec("ROLLBACK");
    database.close();
  };
  return { identity, release };
}

/** Creates the file if it is missing. If SQLite created it, the opened file could not be identified. */
function makeFile(file: string): void {
  try {
    writeFileSync(file, "", { flag: "wx" });
  } catch (error) {
    if (fileErrorCode(error) !== "EEXIST") throw error;
  }
}

/** Identifies a file by device, number and creation time. A new file can reuse a removed file's number, but not its creation time too. */
function identityOf(file: string): string {
  const stat = statSync(file, { bigint: true, throwIfNoEntry: false });
  return stat === undefined ? "" : `${stat.dev}:${stat.ino}:${stat.birthtimeNs}`;
}

/** Writes the holder's description, for people only. Ignores errors, because the lock also holds on a full disk. */
function recordHolder(file: string, holder: string): void {
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
