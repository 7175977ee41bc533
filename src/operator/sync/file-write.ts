/**
 * Writes files that people edit too: atomically, with the same rights, and only over the content that was read. It writes through no
 * symbolic link. Its paths come from `definitionPath` and `catalogPath`.
 */
import { chmodSync, lstatSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { fileErrorCode, partOf, placeFile, syncFile, syncFolder } from "../../base/durable-file.ts";

/** The file no longer has the content that was read. Nothing was written. */
export class FileChanged extends Error {}

/** Writes the text over the content that was read; null for no file. Throws FileChanged, or the error of the file system. */
export function writeUnchangedFile(path: string, read: string | null, text: string): void {
  mkdirSync(dirname(path), { recursive: true });
  const mode = requireUnchanged(path, read);
  const part = partOf(path);
  try {
    writeFileSync(part, text, { flag: "wx" });
    if (mode !== null) chmodSync(part, mode);
    syncFile(part);
    // Checks again immediately before the rename, so nothing of this process runs in between.
    requireUnchanged(path, read);
    if (!placeFile(part, path, { replace: read !== null })) throw fileChanged(path);
  } finally {
    rmSync(part, { force: true });
  }
}

/** Removes the file if it has the content that was read. A missing file is no error. */
export function removeUnchangedFile(path: string, read: string): void {
  try {
    requireUnchanged(path, read);
    rmSync(path);
  } catch (error) {
    if (fileErrorCode(error) !== "ENOENT") throw error;
    return;
  }
  syncFolder(dirname(path));
}

/** Returns the file's rights; null if there is no file. Throws FileChanged. */
function requireUnchanged(path: string, read: string | null): number | null {
  let mode: number;
  try {
    const found = lstatSync(path);
    if (found.isSymbolicLink()) throw new Error(`${path} is a link, and nothing is written through one`);
    mode = found.mode & 0o777;
  } catch (error) {
    if (fileErrorCode(error) !== "ENOENT" || read !== null) throw error;
    return null;
  }
  if (read === null || readFileSync(path, "utf8") !== read) throw fileChanged(path);
  return mode;
}

function fileChanged(path: string): FileChanged {
  return new FileChanged(`${path} changed while it was to be written`);
}
