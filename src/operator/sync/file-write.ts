/**
 * Writing a file that people edit too: whole or not at all, under the rights it has, and only where what stands there is what was read. It
 * writes through no link, and makes no name: what it is given comes from `definitionPath` and `catalogPath`.
 */
import { chmodSync, lstatSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { fileErrorCode, partOf, placeFile, syncFile, syncFolder } from "../../base/durable-file.ts";

/** Something else stands there than what was read. Nothing was written. */
export class FileChanged extends Error {}

/** Puts the text there in the place of what was read; null: of nothing. Throws FileMoved, and what the file system says. */
export function writeUnchangedFile(path: string, read: string | null, text: string): void {
  mkdirSync(dirname(path), { recursive: true });
  const mode = requireUnchanged(path, read);
  const part = partOf(path);
  try {
    writeFileSync(part, text, { flag: "wx" });
    if (mode !== null) chmodSync(part, mode);
    syncFile(part);
    // Looked at again in the same breath: nothing of this process comes between.
    requireUnchanged(path, read);
    if (!placeFile(part, path, { replace: read !== null })) throw fileChanged(path);
  } finally {
    rmSync(part, { force: true });
  }
}

/** Takes the file away where what stands there is what was read; one that is gone is gone. */
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

/** The rights of what stands there; null: nothing does. */
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
