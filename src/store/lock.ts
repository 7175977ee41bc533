/**
 * The lock of a data directory: at most one runner. It is held by the operating system through SQLite's own file lock, so that
 * it is gone with the process, however that ends. It does not stop commands that only read and write rows.
 */
import { Database } from "bun:sqlite";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { toIso } from "../ground/clock.ts";

export class DataDirectoryTaken extends Error {}

export interface DirectoryLock {
  release(): void;
}

/** Takes the lock, or throws DataDirectoryTaken naming the process that holds it. `what` is the holder's own words for itself. */
export function lockDataDirectory(directory: string, what: string, nowMs: number): DirectoryLock {
  const holderFile = join(directory, "runner.txt");
  const database = new Database(join(directory, "runner.lock"), { create: true, readwrite: true });
  try {
    database.exec("PRAGMA busy_timeout = 0");
    database.exec("BEGIN EXCLUSIVE");
  } catch (error) {
    database.close();
    if (
      !/SQLITE_BUSY|database is locked/.test(
        `${(error as { code?: string }).code ?? ""} ${(error as Error).message}`,
      )
    )
      throw error;
    throw new DataDirectoryTaken(
      `The data directory ${directory} is in use by ${readHolder(holderFile)}; stop it first, or give this one another --data-dir.`,
    );
  }
  writeFileSync(holderFile, `${what}, process ${process.pid}, since ${toIso(nowMs)}`);
  return {
    release() {
      database.exec("ROLLBACK");
      database.close();
    },
  };
}

function readHolder(file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch {
    return "another process";
  }
}
