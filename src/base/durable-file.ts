/**
 * Writes files atomically, even across a power failure. A file is written under another name in the same folder, synced, and then moved to its name
 * in one step. A link at that name is replaced, not followed.
 */
import {
  chmodSync,
  closeSync,
  existsSync,
  fsyncSync,
  linkSync,
  openSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { basename, dirname, join } from "node:path";
import { SYSTEM, type System } from "./system.ts";

/** The ending of an unfinished file. A leftover one is not used. */
const PART = ".part";

/** Returns a unique hidden name next to `file` for its unfinished contents. The name ends in `.part`. */
export function partOf(file: string): string {
  const name = basename(file);
  const hidden = name.startsWith(".") ? name : `.${name}`;
  return join(dirname(file), `${hidden}.${crypto.getRandomValues(Buffer.alloc(6)).toString("hex")}${PART}`);
}

/** Waits until the file's bytes are on the disk. */
export function syncFile(file: string): void {
  sync(file, "r+");
}

/** Waits until the folder's entries are on the disk, on a system that needs it. */
export function syncFolder(
  folder: string,
  { flushesFolders }: Pick<System, "flushesFolders"> = SYSTEM,
): void {
  if (flushesFolders) sync(folder, "r");
}

/** Moves a finished, synced part to its name in one durable step. Returns false, and leaves the part, if the file exists and may not be replaced. */
export function placeFile(part: string, file: string, options: { replace: boolean }): boolean {
  if (options.replace) renameSync(part, file);
  else if (!placeNew(part, file)) return false;
  syncFolder(dirname(file));
  return true;
}

const OWNER_ONLY = 0o600;

/** Writes a text atomically into a file that only its owner can read. Returns as `placeFile` does. */
export function writeOwnFile(file: string, text: string, options: { replace: boolean }): boolean {
  const part = partOf(file);
  try {
    writeFileSync(part, text, { mode: OWNER_ONLY, flag: "wx" });
    chmodSync(part, OWNER_ONLY);
    syncFile(part);
    return placeFile(part, file, options);
  } finally {
    rmSync(part, { force: true });
  }
}

/** Returns the code of a file system error, such as ENOSPC, or an empty text. */
export function fileErrorCode(error: unknown): string {
  const code = (error as { code?: unknown } | null)?.code;
  return typeof code === "string" ? code : "";
}

/** Moves the part with a hard link, because a link fails if the file exists and a rename does not. */
function placeNew(part: string, file: string): boolean {
  try {
    linkSync(part, file);
  } catch (error) {
    if (fileErrorCode(error) === "EEXIST" || existsSync(file)) return false;
    // Some file systems have no hard links.
    renameSync(part, file);
    return true;
  }
  rmSync(part);
  return true;
}

function sync(path: string, flags: "r" | "r+"): void {
  const handle = openSync(path, flags);
  try {
    fsyncSync(handle);
  } finally {
    closeSync(handle);
  }
}
