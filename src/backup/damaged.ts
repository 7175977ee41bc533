/** Keeping a database that SQLite cannot read: its files as they lie, bit by bit, for whoever can still make something of them. */
import { copyFileSync, existsSync, mkdirSync } from "node:fs";
import { dirname } from "node:path";
import { syncFile, syncFolder } from "../ground/durable-file.ts";

/** What SQLite keeps beside a database, by the endings of their names. */
export const SIDE_FILES: readonly string[] = ["-wal", "-shm", "-journal"];

/** Copies the database to `kept`, and what lies beside it to `kept` with the same endings; durable when it returns. */
export function keepDamaged(database: string, kept: string): void {
  mkdirSync(dirname(kept), { recursive: true, mode: 0o700 });
  for (const ending of ["", ...SIDE_FILES]) {
    if (!existsSync(database + ending)) continue;
    copyFileSync(database + ending, kept + ending);
    syncFile(kept + ending);
  }
  syncFolder(dirname(kept));
}
