/**
 * Files: small ones, kept in the database beside the records that name them. The bytes are never looked into and the media type is
 * only what the uploader said, so whoever serves a file must not let a browser run it.
 */
import { toIso } from "../ground/clock.ts";
import { newId } from "../ground/id.ts";
import { MAX_FILE_BYTES, MAX_FILE_NAME_CHARS } from "../ground/limit.ts";
import type { Page, PageRequest } from "../ground/page.ts";
import { Refusal } from "../ground/refusal.ts";
import { breaksOneLine, countChars } from "../ground/text.ts";
import type { Reader, Writer } from "../store/port.ts";
import { equals, walkPage } from "../store/walk.ts";

interface FileRow {
  id: string;
  name: string;
  mediaType: string;
  bytes: number;
  createdAt: number;
}

interface FileView {
  id: string;
  name: string;
  mediaType: string;
  bytes: number;
  createdAt: string;
}

const COLUMNS = "id, name, media_type AS mediaType, bytes, created_at AS createdAt";
const MEDIA_TYPE = /^[a-z0-9][a-z0-9!#$&^_.+-]{0,63}\/[a-z0-9][a-z0-9!#$&^_.+-]{0,63}$/;

/** A file as the API shows one, without its bytes. */
export function viewFile(row: FileRow): FileView {
  const { id, name, mediaType, bytes, createdAt } = row;
  return { id, name, mediaType, bytes, createdAt: toIso(createdAt) };
}

export interface Upload {
  environmentId: number;
  name: string;
  /** As the uploader says; parameters are dropped. null: application/octet-stream. */
  mediaType: string | null;
  content: Uint8Array;
  nowMs: number;
}

/** Keeps a file. Refuses with `body_too_large` and `invalid_input`. */
export async function uploadFile(tx: Writer, upload: Upload): Promise<FileRow> {
  const { environmentId, name, content, nowMs } = upload;
  if (content.byteLength > MAX_FILE_BYTES) {
    throw new Refusal(
      "body_too_large",
      `The file has ${content.byteLength} bytes, over the limit of ${MAX_FILE_BYTES}: keep larger ones elsewhere and store their address.`,
    );
  }
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
    name,
    mediaType,
    bytes: content.byteLength,
    createdAt: nowMs,
  };
  await tx.run(
    `INSERT INTO file (id, environment_id, name, media_type, bytes, content, created_at)
     VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)`,
    row.id,
    environmentId,
    row.name,
    row.mediaType,
    row.bytes,
    content,
    row.createdAt,
  );
  return row;
}

/** Without its bytes. */
export function findFile(tx: Reader, environmentId: number, fileId: string): Promise<FileRow | null> {
  return tx.get<FileRow>(
    `SELECT ${COLUMNS} FROM file WHERE id = ?1 AND environment_id = ?2`,
    fileId,
    environmentId,
  );
}

/** With its bytes. Refuses with `not_found`. */
export async function readFile(
  tx: Reader,
  environmentId: number,
  fileId: string,
): Promise<FileRow & { content: Uint8Array }> {
  const row = await tx.get<FileRow & { content: Uint8Array }>(
    `SELECT ${COLUMNS}, content FROM file WHERE id = ?1 AND environment_id = ?2`,
    fileId,
    environmentId,
  );
  if (row === null) throw new Refusal("not_found", "No file with this id exists in this environment.");
  return row;
}

/** Newest first, without bytes. */
export async function listFiles(
  tx: Reader,
  environmentId: number,
  request: PageRequest,
): Promise<Page<FileView>> {
  return await walkPage<FileRow, FileView>(
    tx,
    {
      from: "file INDEXED BY file_by_environment",
      columns: COLUMNS,
      key: "id",
      led: [equals("environment_id", environmentId)],
      after: request.after,
      limit: request.limit,
    },
    viewFile,
  );
}

/** Refuses with `not_found`, and with `in_use` while a record holds it. */
export async function deleteFile(tx: Writer, environmentId: number, fileId: string): Promise<FileRow> {
  const file = await findFile(tx, environmentId, fileId);
  if (file === null) throw new Refusal("not_found", "No file with this id exists in this environment.");
  const holder = await tx.get<{ id: string }>(
    "SELECT record.id FROM record_file JOIN record ON record.seq = record_file.record_seq WHERE record_file.file_id = ?1 LIMIT 1",
    fileId,
  );
  if (holder !== null) {
    throw new Refusal(
      "in_use",
      `The record ${holder.id} holds this file: change or delete the record first.`,
    );
  }
  await tx.run("DELETE FROM file WHERE id = ?1", fileId);
  return file;
}

function isFileName(name: string): boolean {
  if (name === "" || name === "." || name === ".." || /[/\\]/.test(name)) return false;
  return countChars(name) <= MAX_FILE_NAME_CHARS && breaksOneLine(name) === null;
}
