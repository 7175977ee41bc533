/**
 * Small files, stored in the database next to the records that name them. The content is never inspected and the media type is only what the
 * uploader said, so a server of files must stop browsers from running them.
 */
import { type Static, Type } from "typebox";
import { newId } from "../../base/id.ts";
import { MAX_FILE_BYTES, MAX_FILE_NAME_CHARS } from "../../base/limit.ts";
import type { Page, PageRequest } from "../../base/page.ts";
import { Refusal } from "../../base/refusal.ts";
import { show, time } from "../../base/schema.ts";
import { breaksOneLine, countChars } from "../../base/text.ts";
import { equals, walkPage } from "../../store/index-scan.ts";
import type { Reader, Writer } from "../../store/port.ts";
import { bytes, defineTable, integer, type RowOf, text } from "../../store/table.ts";

const FILE = defineTable({
  name: "file",
  key: ["id"],
  columns: {
    id: text(),
    environmentId: integer(),
    name: text(),
    mediaType: text(),
    bytes: integer(),
    content: bytes(),
    createdAt: integer(),
  },
});

/** The columns of a file except its bytes. */
const LISTED = FILE.pick("id", "environmentId", "name", "mediaType", "bytes", "createdAt");
type FileRow = RowOf<typeof LISTED>;

/** A file as the API shows it. */
export const fileView = Type.Object({
  id: Type.String(),
  name: Type.String(),
  mediaType: Type.String(),
  bytes: Type.Integer(),
  createdAt: time,
});

export type FileView = Static<typeof fileView>;

const MISSING = "No file with this id exists in this environment.";
const MEDIA_TYPE = /^[a-z0-9][a-z0-9!#$&^_.+-]{0,63}\/[a-z0-9][a-z0-9!#$&^_.+-]{0,63}$/;

export function viewFile(row: FileRow): FileView {
  return show(fileView, row);
}

export interface Upload {
  environmentId: number;
  name: string;
  /** The media type that the uploader names, without parameters; null: application/octet-stream. */
  mediaType: string | null;
  content: Uint8Array;
  nowMs: number;
}

/** Stores a file. Throws `body_too_large` and `invalid_input`. */
export async function uploadFile(tx: Writer, upload: Upload): Promise<FileRow> {
  const { environmentId, name, content, nowMs } = upload;
  requireFileSize(content.byteLength);
  if (!isFileName(name)) {
    throw new Refusal(
      "invalid_input",
      `\`name\` is not a file name: use 1 to ${MAX_FILE_NAME_CHARS} characters on one line, without slashes.`,
    );
  }
  const mediaType =
    (upload.mediaType ?? "application/octet-stream").split(";", 1)[0]?.trim().toLowerCase() ?? "";
  if (!MEDIA_TYPE.test(mediaType)) {
    throw new Refusal("invalid_input", "`mediaType` is not a media type: use one such as image/png.");
  }
  const row: FileRow = {
    id: newId("fil", nowMs),
    environmentId,
    name,
    mediaType,
    bytes: content.byteLength,
    createdAt: nowMs,
  };
  await FILE.insert(tx, { ...row, content });
  return row;
}

/** Throws `body_too_large` for a file over the limit. */
export function requireFileSize(bytes: number): void {
  if (bytes <= MAX_FILE_BYTES) return;
  throw new Refusal(
    "body_too_large",
    `The file has ${bytes} bytes, over the limit of ${MAX_FILE_BYTES}: store larger files elsewhere and save their address.`,
  );
}

/** Finds a file without its bytes. */
export function findFile(tx: Reader, environmentId: number, fileId: string): Promise<FileRow | null> {
  return LISTED.find(tx, { id: fileId, environmentId });
}

/** Reads a file with its content. Throws `not_found`. */
export function readFile(tx: Reader, environmentId: number, fileId: string): Promise<RowOf<typeof FILE>> {
  return FILE.require(tx, { id: fileId, environmentId }, MISSING);
}

/** Lists one page of files, newest first, without content. */
export async function listFiles(
  tx: Reader,
  environmentId: number,
  request: PageRequest,
): Promise<Page<FileView>> {
  const led = [equals("environment_id", environmentId)];
  const walk = { index: "file_by_environment", key: "id", led } as const;
  return await walkPage(tx, LISTED, request, walk, viewFile);
}

/** Deletes a file. Throws `not_found`, and `in_use` while a record holds it. */
export async function deleteFile(tx: Writer, environmentId: number, fileId: string): Promise<FileRow> {
  const file = await LISTED.require(tx, { id: fileId, environmentId }, MISSING);
  const holder = await tx.get<{ id: string; collection: string }>(
    "SELECT record.id, record.collection FROM record_file JOIN record ON record.seq = record_file.record_seq WHERE record_file.file_id = ?1 LIMIT 1",
    fileId,
  );
  if (holder !== null) {
    throw new Refusal(
      "in_use",
      `The record ${holder.id} of ${holder.collection} uses this file: change or delete the record first, with relay records delete ${holder.collection} ${holder.id}.`,
    );
  }
  await FILE.delete(tx, file);
  return file;
}

function isFileName(name: string): boolean {
  if (name === "" || name === "." || name === ".." || /[/\\]/.test(name)) return false;
  return countChars(name) <= MAX_FILE_NAME_CHARS && breaksOneLine(name) === null;
}
