/**
 * Records: the one door through which each is written, whoever writes (a relay's write_record, the API, the dashboard, a receipt), so
 * that field rules, plain-text law, file law and address rules always apply. Whether a change is captured is the transaction's origin.
 */
import { toIso } from "../ground/clock.ts";
import { newId } from "../ground/id.ts";
import { isJsonObject, type Json, type JsonObject, parseJson } from "../ground/json.ts";
import { Refusal } from "../ground/refusal.ts";
import type { Reader, Writer } from "../store/port.ts";
import { type CollectionRow, requireCollection } from "./collection.ts";
import { requireData, requirePeople } from "./record-check.ts";

export interface RecordRow {
  seq: number;
  id: string;
  collection: string;
  /** JSON object text. */
  data: string;
  ownerId: string | null;
  recipientId: string | null;
  writtenBy: string;
  createdAt: number;
  updatedAt: number;
}

export interface RecordView {
  id: string;
  collection: string;
  data: JsonObject;
  owner: string | null;
  recipient: string | null;
  createdAt: string;
  updatedAt: string;
  /** Who wrote it last, in words. */
  by: string;
}

export const RECORD_COLUMNS = `seq, id, collection, data, owner_id AS ownerId, recipient_id AS recipientId,
  written_by AS writtenBy, created_at AS createdAt, updated_at AS updatedAt`;

/** A record as the API shows one. */
export function viewRecord(row: Omit<RecordRow, "seq">): RecordView {
  const data = parseJson(row.data);
  return {
    id: row.id,
    collection: row.collection,
    data: isJsonObject(data) ? data : {},
    owner: row.ownerId,
    recipient: row.recipientId,
    createdAt: toIso(row.createdAt),
    updatedAt: toIso(row.updatedAt),
    by: row.writtenBy,
  };
}

export interface RecordWrite {
  environmentId: number;
  data: Json;
  /** A person's id; null: the app's own. */
  ownerId: string | null;
  /** A person's id, or null. */
  recipientId: string | null;
  /** In words: `relay:<name>`, `key:<id>`, `owner:<email>`, `person:<id>`, `receipt`. */
  by: string;
  nowMs: number;
  /** The strings of `data` went through templates; see field-value.ts. */
  rendered?: boolean;
}

/**
 * Writes a new record. Refuses with `not_found` (collection), `data_invalid` with every problem, `invalid_input` (no such person) and
 * `person_suspended`, having written nothing.
 */
export async function writeRecord(
  tx: Writer,
  write: RecordWrite & { collection: string },
): Promise<RecordRow> {
  return writeRecordIn(tx, await requireCollection(tx, write.environmentId, write.collection), write);
}

/** `writeRecord` for a collection already found. */
export async function writeRecordIn(
  tx: Writer,
  collection: CollectionRow,
  write: RecordWrite,
): Promise<RecordRow> {
  const data = await requireData(tx, collection, write);
  await requirePeople(tx, write.environmentId, { owner: write.ownerId, to: write.recipientId });
  const row = await tx.get<RecordRow>(
    `INSERT INTO record
       (id, environment_id, collection, data, owner_id, recipient_id, written_by, created_at, updated_at)
     VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?8) RETURNING ${RECORD_COLUMNS}`,
    newId("rec", write.nowMs),
    write.environmentId,
    collection.name,
    data,
    write.ownerId,
    write.recipientId,
    write.by,
    write.nowMs,
  );
  if (row === null) throw new Error("The store answered nothing to an INSERT … RETURNING.");
  tx.touch("record");
  return row;
}

interface RecordChange {
  environmentId: number;
  collection: string;
  recordId: string;
  /** Replaces the data whole. */
  data: Json;
  /** undefined: as it is. */
  ownerId?: string | null | undefined;
  recipientId?: string | null | undefined;
  by: string;
  nowMs: number;
}

/** Writes a record anew, under the fields as they are now. Refuses as `writeRecord`. */
export async function updateRecord(
  tx: Writer,
  change: RecordChange,
): Promise<{ before: RecordRow; after: RecordRow }> {
  const { environmentId, nowMs, by } = change;
  const collection = await requireCollection(tx, environmentId, change.collection);
  const before = await requireRecord(tx, environmentId, collection.name, change.recordId);
  const ownerId = change.ownerId === undefined ? before.ownerId : change.ownerId;
  const recipientId = change.recipientId === undefined ? before.recipientId : change.recipientId;
  const data = await requireData(tx, collection, { environmentId, data: change.data, ownerId, recipientId });
  await requirePeople(tx, environmentId, {
    owner: ownerId === before.ownerId ? null : ownerId,
    to: recipientId === before.recipientId ? null : recipientId,
  });
  const after: RecordRow = { ...before, data, ownerId, recipientId, writtenBy: by, updatedAt: nowMs };
  await tx.run(
    "UPDATE record SET data = ?2, owner_id = ?3, recipient_id = ?4, written_by = ?5, updated_at = ?6 WHERE seq = ?1",
    before.seq,
    data,
    ownerId,
    recipientId,
    by,
    nowMs,
  );
  tx.touch("record");
  return { before, after };
}

/** Answers the record as it was. Its files stay until they are deleted themselves. Refuses with `not_found`. */
export async function deleteRecord(
  tx: Writer,
  at: { environmentId: number; collection: string; recordId: string },
): Promise<RecordRow> {
  const before = await requireRecord(tx, at.environmentId, at.collection, at.recordId);
  await tx.run("DELETE FROM record WHERE seq = ?1", before.seq);
  tx.touch("record");
  return before;
}

export function findRecord(
  tx: Reader,
  environmentId: number,
  collection: string,
  recordId: string,
): Promise<RecordRow | null> {
  return tx.get<RecordRow>(
    `SELECT ${RECORD_COLUMNS} FROM record WHERE id = ?1 AND environment_id = ?2 AND collection = ?3`,
    recordId,
    environmentId,
    collection,
  );
}

/** Refuses with `not_found`. */
export async function requireRecord(
  tx: Reader,
  environmentId: number,
  collection: string,
  recordId: string,
): Promise<RecordRow> {
  const row = await findRecord(tx, environmentId, collection, recordId);
  if (row === null) throw new Refusal("not_found", "No record with this id exists in this collection.");
  return row;
}
