/**
 * Records for signed-in people, by the rules of record-right.ts. Records that a person may not read do not exist for them. The writer of a
 * record is not shown, because it may name an owner or a key.
 */
import type { Json } from "../../base/json.ts";
import type { Page, PageRequest } from "../../base/page.ts";
import { Refusal } from "../../base/refusal.ts";
import type { Reader, Writer } from "../../store/port.ts";
import { findPerson } from "../people/person.ts";
import { type CollectionRow, requireCollection } from "../records/collection.ts";
import {
  deleteRecord,
  findRecord,
  type NewRecord,
  type RecordRow,
  type RecordView,
  updateRecord,
  viewRecord,
  writeRecordIn,
} from "../records/record.ts";
import { addressByPerson, listRecordsFor, mayRead, mayWrite } from "../records/record-right.ts";

type PersonRecordView = Omit<RecordView, "by" | "odd">;

/** A person and a collection. */
export interface PersonAt {
  environmentId: number;
  personId: string;
  collection: string;
}

/** Lists what the person may read of the collection, newest first. Throws `not_found` (no such collection). */
export async function listPersonRecords(
  tx: Reader,
  at: PersonAt,
  request: PageRequest,
): Promise<Page<PersonRecordView>> {
  const collection = await requireCollection(tx, at.environmentId, at.collection);
  const page = await listRecordsFor(tx, at.environmentId, collection, at.personId, request);
  return { items: page.items.map(withoutWriter), next: page.next };
}

/** Reads a record. Throws `not_found`, also for a record that the person may not read. */
export async function readPersonRecord(
  tx: Reader,
  at: PersonAt,
  recordId: string,
): Promise<PersonRecordView> {
  return show((await requireReadable(tx, at, recordId)).row);
}

/**
 * Writes a new record that the person owns. Throws `not_found`, `forbidden` (only the app writes here), `data_invalid` and `invalid_input`
 * (unknown recipient).
 */
export async function createPersonRecord(
  tx: Writer,
  at: PersonAt,
  record: { data: Json; to: string | null },
  nowMs: number,
): Promise<PersonRecordView> {
  const collection = await requireCollection(tx, at.environmentId, at.collection);
  const address = addressByPerson(collection.kind, at.personId, record.to);
  if (record.to !== null) await requireReachable(tx, at.environmentId, record.to);
  const { environmentId } = at;
  const write = { environmentId, data: record.data, by: `person:${at.personId}`, nowMs, ...address };
  return show(await writeRecordIn(tx, collection, write));
}

/** Replaces the data of the person's own record; its address stays. Throws `not_found`, `forbidden` and `data_invalid`. */
export async function updatePersonRecord(
  tx: Writer,
  at: PersonAt,
  recordId: string,
  data: Json,
  nowMs: number,
): Promise<PersonRecordView> {
  await requireWritable(tx, at, recordId);
  const { environmentId, collection } = at;
  const by = `person:${at.personId}`;
  return show((await updateRecord(tx, { environmentId, collection, recordId, data, by, nowMs })).after);
}

/** Deletes the person's own record. Throws `not_found` and `forbidden`. */
export async function deletePersonRecord(tx: Writer, at: PersonAt, recordId: string): Promise<void> {
  await requireWritable(tx, at, recordId);
  await deleteRecord(tx, { environmentId: at.environmentId, collection: at.collection, recordId });
}

async function requireReadable(
  tx: Reader,
  at: PersonAt,
  recordId: string,
): Promise<{ collection: CollectionRow; row: RecordRow }> {
  const collection = await requireCollection(tx, at.environmentId, at.collection);
  const row = await findRecord(tx, at.environmentId, collection.name, recordId);
  if (row !== null && mayRead(collection.kind, row, at.personId)) return { collection, row };
  throw new Refusal("not_found", "No record with this id exists in this collection for you.");
}

async function requireWritable(tx: Reader, at: PersonAt, recordId: string): Promise<void> {
  const { collection, row } = await requireReadable(tx, at, recordId);
  if (mayWrite(collection.kind, row, at.personId)) return;
  throw new Refusal("forbidden", "You can read this record but not change it: only its owner can.");
}

/** Throws the same error for an unknown, erased or suspended person, because their state must not be revealed. */
async function requireReachable(tx: Reader, environmentId: number, personId: string): Promise<void> {
  const person = await findPerson(tx, environmentId, personId);
  if (person !== null && person.status !== "suspended") return;
  throw new Refusal(
    "invalid_input",
    "`to` names no person who can receive a record: use the id of a person of this app.",
  );
}

function show(row: NewRecord): PersonRecordView {
  return withoutWriter(viewRecord(row));
}

function withoutWriter({ by: _, odd: _odd, ...shown }: RecordView): PersonRecordView {
  return shown;
}
