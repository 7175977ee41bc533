/**
 * Files that are there whole or not at all, also after a power cut: written beside their place, synced, then put there in one step.
 * It never decides what stands in a file, and never follows what it replaces.
 */
import { randomBytes } from "node:crypto";
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

/** Ends the name of a file that is still being made; one that is left over belongs to nobody. */
const PART = ".part";

/** A name beside `file` for what becomes it: hidden, its own, ending in `.part`. */
export function partOf(file: string): string {
  const name = basename(file);
  const hidden = name.startsWith(".") ? name : `.${name}`;
  return join(dirname(file), `${hidden}.${randomBytes(6).toString("hex")}${PART}`);
}

/** Waits until the file's bytes are on the disk. */
export function syncFile(file: string): void {
  sync(file, "r+");
}

/** Waits until the folder's entries are on the disk; Windows has no such thing and needs none. */
export function syncFolder(folder: string): void {
  if (process.platform !== "win32") sync(folder, "r");
}

/**
 * Puts a finished, synced part into its place in one step, durably. Answers false, with the part left as it is, where something stands
 * there already and may not be replaced.
 */
export function placeFile(part: string, file: string, options: { replace: boolean }): boolean {
  if (options.replace) renameSync(part, file);
  else if (!placeNew(part, file)) return false;
  syncFolder(dirname(file));
  return true;
}

const OWNER_ONLY = 0o600;

/** Writes a text into a file that its owner alone may read, whole or not at all. Answers as `placeFile`. */
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

/** The code of a file system error, such as ENOSPC; else an empty text. */
export function fileErrorCode(error: unknown): string {
  const code = (error as { code?: unknown } | null)?.code;
  return typeof code === "string" ? code : "";
}

/** A link fails where something stands, which a rename does not. */
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
