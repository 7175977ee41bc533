/**
 * Reads a JSON file that a person wrote: its value, or what is wrong and where. Gives the line and column of every field, of the first
 * mistake, and of duplicate names. JSON.parse decides what is JSON; the meaning is not checked here.
 */
import { constants, open, stat } from "node:fs/promises";
import { type Json, parseJson } from "../../base/json.ts";
import type { Problem, Warning } from "../../base/refusal.ts";
import { type JsonPositions, locateJson, type TextPosition } from "./json-position.ts";

/** The most bytes of a file, far more than any definition or catalog has. */
const MAX_FILE_BYTES = 1024 * 1024;

/** A problem with its place in the file. It is null without a place, as when the file cannot be read. */
export interface FileProblem extends Problem {
  place: TextPosition | null;
}

/** A warning with its place in the file. */
export interface FileWarning extends Warning {
  place: TextPosition | null;
}

export type JsonFile =
  | { ok: true; value: Json; places: JsonPositions }
  | { ok: false; problems: FileProblem[] };

/** A file's text, or the sentence that explains why there is none. */
export type FileText = { text: string } | { refusal: string };

/** Returns the file's value, or one problem. Never throws; a missing file is a problem. */
export async function readJsonFile(file: string): Promise<JsonFile> {
  return parseFileText(
    (await readFileText(file)) ?? { refusal: `There is no file ${file}: check its path and name.` },
  );
}

/** Reads the text of a file without waiting, whatever the path is. Returns null if there is nothing. Never throws. */
export async function readFileText(file: string): Promise<FileText | null> {
  try {
    // Checks the kind first, because opening a pipe waits for a writer.
    const found = await stat(file);
    const { size } = found;
    if (!found.isFile())
      return { refusal: "This is no file but a pipe, a device or a folder: put a file here." };
    if (size > MAX_FILE_BYTES) return { refusal: `The file is ${size} bytes long: keep it under 1 MiB.` };
    const bytes = await readBeginning(file, size);
    if (bytes.length > MAX_FILE_BYTES)
      return { refusal: "The file grew while it was read: keep it under 1 MiB." };
    const text = decodeUtf8(bytes);
    return text === null ? { refusal: "The file is not text in UTF-8: save it in that encoding." } : { text };
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    if (code === "ENOENT") return null;
    return { refusal: `The file cannot be read (${message}): check its path and rights.` };
  }
}

/** Returns when the file was written. A missing file counts as older than any edit. */
export async function readModifiedMs(path: string): Promise<number> {
  return await stat(path).then(
    ({ mtimeMs }) => mtimeMs,
    () => 0,
  );
}

/** Reads at most one byte more than a file may have, whatever size it reported. */
async function readBeginning(file: string, size: number): Promise<Buffer> {
  await using handle = await open(file, constants.O_RDONLY | constants.O_NONBLOCK);
  let bytes = Buffer.alloc(size + 1);
  let length = 0;
  for (;;) {
    const { bytesRead } = await handle.read(bytes, length, bytes.length - length, null);
    length += bytesRead;
    if (bytesRead === 0 || length > MAX_FILE_BYTES) return bytes.subarray(0, length);
    if (length === bytes.length) bytes = Buffer.concat([bytes], Math.min(2 * length, MAX_FILE_BYTES + 1));
  }
}

function decodeUtf8(bytes: Buffer): string | null {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return null;
  }
}

/** Parses a file that was read already. Ignores a byte order mark at its beginning. */
export function parseFileText(read: FileText): JsonFile {
  if ("refusal" in read) return rejectFile(read.refusal);
  const text = read.text.startsWith("\uFEFF") ? read.text.slice(1) : read.text;
  const places = locateJson(text);
  const { mistake } = places;
  try {
    return { ok: true, value: parseJson(text), places };
  } catch {
    if (text.trim() === "") return rejectFile("The file is empty: write a JSON object.");
    const where = mistake === null ? "somewhere" : `at line ${mistake.line}, column ${mistake.column}`;
    const why = mistake?.message ?? "it could not be read";
    return rejectFile(`The file is not JSON ${where}: ${why}.`, mistake);
  }
}

function rejectFile(message: string, place: TextPosition | null = null): JsonFile {
  return { ok: false, problems: [{ field: "", message, place }] };
}

/** Adds the place of its field, or of the nearest field around it, to each problem or warning. */
export function locateInFile<Found extends Problem>(
  problems: readonly Found[],
  { places }: JsonPositions,
): (Found & { place: TextPosition | null })[] {
  return problems.map((problem) => {
    let field = problem.field;
    while (!places.has(field) && field !== "") field = field.slice(0, Math.max(0, field.lastIndexOf(".")));
    return { ...problem, place: places.get(field) ?? null };
  });
}

/** Lists names that an object has twice, of which JSON silently uses the last. */
export function listDuplicateNames({ duplicates }: JsonPositions): Problem[] {
  return [...duplicates].map((field) => ({
    field,
    message: `\`${field}\` is here twice, and only the last one would count: remove one of them.`,
  }));
}
