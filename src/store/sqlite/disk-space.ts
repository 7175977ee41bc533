/** Checks whether the disk of a SQLite database has space, and recognizes SQLite's errors of a full disk. */
import type { Clock } from "../../base/clock.ts";
import { partOf } from "../../base/durable-file.ts";
import { DiskSpace } from "../disk-space.ts";
import { StoreUnavailable } from "../port.ts";

const TROUBLE =
  "The disk of the data directory is full: free space there, and writes continue automatically.";
const ASK_EVERY_MS = 1_000;
const ASKED_BYTES = 1024 * 1024;
/** Error codes of a full disk, and of a write beyond a quota or a limit of file sizes. */
const NO_ROOM = /^SQLITE_(?:FULL|IOERR_(?:WRITE|FSYNC|TRUNCATE|SHMSIZE))$/;

/** Returns whether a group failed because its disk is full. */
export function foundNoRoom(error: unknown): boolean {
  const cause =
    error instanceof StoreUnavailable ? (error.cause as { code?: unknown } | undefined) : undefined;
  return typeof cause?.code === "string" && NO_ROOM.test(cause.code);
}

/**
 * Tracks the space next to a database file. `onChange` receives the trouble when a group fails on a full disk, and null when writes succeed again.
 */
export function makeDiskSpace(
  file: string,
  { clock, onChange }: { clock: Clock; onChange: (trouble: string | null) => void },
): DiskSpace {
  return new DiskSpace({
    clock,
    ask: () => takesFile(partOf(file)),
    everyMs: ASK_EVERY_MS,
    trouble: TROUBLE,
    onChange,
  });
}

/** Writes, syncs and removes a file that no file system can compress. Returns whether that succeeded. */
async function takesFile(part: string): Promise<boolean> {
  // These modules load 3 ms of code, and few stores ever have a full disk.
  const [{ randomBytes }, { rm, writeFile }] = await Promise.all([
    import("node:crypto"),
    import("node:fs/promises"),
  ]);
  try {
    await writeFile(part, randomBytes(ASKED_BYTES), { flush: true });
    return true;
  } catch {
    return false;
  } finally {
    await rm(part, { force: true }).catch(() => undefined);
  }
}
