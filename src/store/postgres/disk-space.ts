/** Checks whether the disk of a PostgreSQL server has space, by a temporary file that the server creates and removes. */
import { systemClock } from "../../base/clock.ts";
import { DiskSpace } from "../disk-space.ts";
import type { Store } from "../port.ts";
import { causesOf } from "./error.ts";

const ASK_EVERY_MS = 5_000;
const TROUBLE = "The database's disk is full: free space there, and writes continue automatically.";
/** Lowers the session's memory, so that FILE with ROWS rows makes the server write a temporary file of about a megabyte on the database's disk. */
const LITTLE_MEMORY =
  "SELECT set_config('work_mem', '64kB', true) AS memory, set_config('temp_tablespaces', '', true) AS place";
const FILE = "SELECT count(*) AS rows FROM generate_series(1, ?1)";
const ROWS = 60_000;
/** The SQLSTATE of a temporary file beyond temp_file_limit. */
const FILE_REFUSED = "53400";

/**
 * Tracks the space of the server behind `read`. `onChange` receives the trouble when a group fails on a full disk, and null when writes succeed
 * again.
 */
export function makeDiskSpace(read: Store["read"], onChange: (trouble: string | null) => void): DiskSpace {
  return new DiskSpace({
    clock: systemClock,
    ask: () => takesFile(read),
    everyMs: ASK_EVERY_MS,
    trouble: TROUBLE,
    onChange,
  });
}

async function takesFile(read: Store["read"]): Promise<boolean> {
  try {
    await read(async (tx) => {
      await tx.get(LITTLE_MEMORY);
      await tx.get(FILE, ROWS);
    });
    return true;
  } catch (error) {
    // A limit on temporary files says nothing about the disk, so the disk counts as having space.
    return [...causesOf(error)].some(({ errno }) => errno === FILE_REFUSED);
  }
}
