/**
 * Writes every record: for a relay's write_record, the API, the dashboard and a receipt. So the rules of fields, plain text, files and addresses
 * always apply. The transaction's origin decides whether a change is captured.
 */
import { type Static, Type } from "typebox";
import { toIso } from "../../base/clock.ts";
import { newId } from "../../base/id.ts";
import { isJsonObject, type Json, type JsonObject, measureJson, parseJson } from "../../base/json.ts";
import { type Problem, Refusal } from "../../base/refusal.ts";
import { orNull as nullOr, payloadJson, show, time } from "../../base/schema.ts";
import type { Reader, Writer } from "../../store/port.ts";
import {
  defineTable,
  given,
  integer,
  json,
  type NewRowOf,
  orNull,
  type RowOf,
  text,
} from "../../store/table.ts";
import { type CollectionRow, listFields, requireCollection } from "./collection.ts";
import type { CollectionKind } from "./collection-definition.ts";
import { checkFiles, readRecordData } from "./record-data.ts";

/** The data objects that replace unreadable data. */
const UNREADABLE = new WeakSet<JsonObject>();
/** The API accepts 32 levels; thousands of levels could not be serialized. */
const MAX_READ_DEPTH = 500;
const LONG_CHARS = 2 * MAX_READ_DEPTH;

/** Parses a record's data. Throws for text that is not JSON, or that is nested too deeply to be serialized. */
export function parseStored(text: string): Json {
  const isDeep =
    text.length > LONG_CHARS &&
    measureJson(Buffer.from(text), { depth: MAX_READ_DEPTH, values: text.length }).depth > MAX_READ_DEPTH;
  if (isDeep) throw new SyntaxError(`The record's data is nested deeper than ${MAX_READ_DEPTH} levels.`);
  return parseJson(text);
}

/** Reads a record's data. Invalid data of another program reads as empty, so that it does not break other records. */
export function readStored(text: string): JsonObject {
  try {
    const data = parseStored(text);
    if (isJsonObject(data)) return data;
  } catch {}
  const data = {};
  UNREADABLE.add(data);
  return data;
}

export const RECORD = defineTable({
  name: "record",
  key: ["seq"],
  topic: "record",
  columns: {
    seq: given(),
    id: text(),
    environmentId: integer(),
    collection: text(),
    data: json(readStored),
    /** The owner, a person's id; null: the app. */
    ownerId: orNull(text()),
    /** The recipient, a person's id, or null. */
    recipientId: orNull(text()),
    /** The formatted actor: `relay:<name>`, `key:<id>`, `owner:<email>`, `person:<id>`, `receipt`. */
    writtenBy: text(),
    /** The event that wrote it last; null: none did, or an earlier version. */
    eventId: orNull(text()),
    createdAt: integer(),
    updatedAt: integer(),
  },
});

export type RecordRow = RowOf<typeof RECORD>;
/** A record without its number, which its writer does not need. */
export type NewRecord = NewRowOf<typeof RECORD>;

/** A record as the API shows it; `by`: the formatted last writer. */
const recordView = Type.Object({
  id: Type.String(),
  collection: Type.String(),
  data: Type.Unsafe<JsonObject>(payloadJson),
  owner: nullOr(Type.String()),
  recipient: nullOr(Type.String()),
  createdAt: time,
  updatedAt: time,
  by: Type.String(),
  /** The reason why the data is shown as empty; absent: the stored data is shown. */
  odd: Type.Optional(Type.String()),
});

export type RecordView = Static<typeof recordView>;

export function viewRecord(row: Omit<NewRecord, "environmentId" | "eventId">): RecordView {
  const renamed = { owner: row.ownerId, recipient: row.recipientId, by: row.writtenBy };
  const odd = UNREADABLE.has(row.data)
    ? {
        odd: `The data of ${row.id} is not a valid JSON object, so a program other than this service wrote it: write its data again, or delete the record.`,
      }
    : {};
  return show(recordView, { ...row, ...renamed, ...odd });
}

/** A record as its app sees it, with the last event that wrote it; null: no event did. */
export const recordItem = Type.Object({ ...recordView.properties, eventId: nullOr(Type.String()) });

export type RecordItem = Static<typeof recordItem>;

export function viewRecordItem(row: NewRecord): RecordItem {
  return { ...viewRecord(row), eventId: row.eventId };
}

export interface RecordWrite {
  environmentId: number;
  data: Json;
  /** The owner, a person's id; null: the app. */
  ownerId: string | null;
  /** The recipient, a person's id, or null. */
  recipientId: string | null;
  /** The formatted actor: `relay:<name>`, `key:<id>`, `owner:<email>`, `person:<id>`, `receipt`. */
  by: string;
  /** The event that writes the record. */
  eventId?: string | null;
  nowMs: number;
  /** True if the strings of `data` come from templates; see record-data.ts. */
  rendered?: boolean;
  /** True if a suspended person may be named, because the record reports what happened. */
  allowSuspended?: boolean;
}

/**
 * Writes a new record. Throws `not_found` (collection), `data_invalid` with every problem, `invalid_input` (no such person) and
 * `person_suspended`, before it writes anything.
 */
export async function writeRecord(
  tx: Writer,
  write: RecordWrite & { collection: string },
): Promise<NewRecord> {
  return writeRecordIn(tx, await requireCollection(tx, write.environmentId, write.collection), write);
}

/** Writes a new record into a collection that the caller has found. */
export async function writeRecordIn(
  tx: Writer,
  collection: CollectionRow,
  write: RecordWrite,
): Promise<NewRecord> {
  const data = await requireData(tx, collection, write);
  const people = { owner: write.ownerId, to: write.recipientId };
  await requirePeople(tx, write.environmentId, people, write.allowSuspended);
  const row = {
    id: newId("rec", write.nowMs),
    environmentId: write.environmentId,
    collection: collection.name,
    data,
    ownerId: write.ownerId,
    recipientId: write.recipientId,
    writtenBy: write.by,
    eventId: write.eventId ?? null,
    createdAt: write.nowMs,
    updatedAt: write.nowMs,
  };
  await RECORD.post(tx, row);
  return row;
}

interface RecordChange {
  environmentId: number;
  collection: string;
  recordId: string;
  /** Replaces the complete data. */
  data: Json;
  /** The `updatedAt` that the writer read, in milliseconds: a record changed since then is not overwritten. undefined: always overwrite. */
  readAt?: number | undefined;
  /** undefined: unchanged. */
  ownerId?: string | null | undefined;
  recipientId?: string | null | undefined;
  by: string;
  nowMs: number;
}

/** Replaces a record under the current fields. Throws as `writeRecord`, and `version_conflict`. */
export async function updateRecord(
  tx: Writer,
  change: RecordChange,
): Promise<{ before: RecordRow; after: RecordRow }> {
  const { environmentId, nowMs, by } = change;
  const collection = await requireCollection(tx, environmentId, change.collection);
  const before = await requireRecord(tx, environmentId, collection.name, change.recordId);
  if (change.readAt !== undefined && change.readAt !== before.updatedAt) {
    throw new Refusal(
      "version_conflict",
      `The record was changed on ${toIso(before.updatedAt)} by ${before.writtenBy}: load it again, then apply your change.`,
    );
  }
  const ownerId = change.ownerId === undefined ? before.ownerId : change.ownerId;
  const recipientId = change.recipientId === undefined ? before.recipientId : change.recipientId;
  const data = await requireData(tx, collection, { environmentId, data: change.data, ownerId, recipientId });
  await requirePeople(tx, environmentId, {
    owner: ownerId === before.ownerId ? null : ownerId,
    to: recipientId === before.recipientId ? null : recipientId,
  });
  const changes = { data, ownerId, recipientId, writtenBy: by, eventId: null, updatedAt: nowMs };
  await RECORD.change(tx, before, changes);
  return { before, after: { ...before, ...changes } };
}

/** Deletes a record and returns it. Its files stay until they are deleted. Throws `not_found`. */
export async function deleteRecord(
  tx: Writer,
  at: { environmentId: number; collection: string; recordId: string },
): Promise<RecordRow> {
  const before = await requireRecord(tx, at.environmentId, at.collection, at.recordId);
  await RECORD.delete(tx, before);
  return before;
}

export function findRecord(
  tx: Reader,
  environmentId: number,
  collection: string,
  recordId: string,
): Promise<RecordRow | null> {
  return RECORD.find(tx, { id: recordId, environmentId, collection });
}

/** Finds the collection of a record by the record's id. */
export async function findRecordCollection(
  tx: Reader,
  environmentId: number,
  recordId: string,
): Promise<string | null> {
  return (await RECORD.find(tx, { id: recordId, environmentId }))?.collection ?? null;
}

/** Finds a record. Throws `not_found`. */
export function requireRecord(
  tx: Reader,
  environmentId: number,
  collection: string,
  recordId: string,
): Promise<RecordRow> {
  const sentence =
    "No record with this id exists in this collection: relay records list shows the existing ones.";
  return RECORD.require(tx, { id: recordId, environmentId, collection }, sentence);
}

/** Returns the data to store, or throws `data_invalid` with every problem of data, files and address. */
async function requireData(
  tx: Reader,
  collection: CollectionRow,
  write: Address & { environmentId: number; data: Json; rendered?: boolean },
): Promise<JsonObject> {
  const fields = listFields(collection);
  const { data, problems } = readRecordData(fields, write.data, write.rendered === true);
  const all: Problem[] = [
    ...problems,
    ...(await checkFiles(tx, write.environmentId, fields, data)),
    ...checkAddress(collection.kind, write),
  ];
  if (all.length === 0) return data;
  throw new Refusal("data_invalid", all.map((problem) => problem.message).join(" "), { problems: all });
}

/** Throws unless the people that a record newly names exist and are not suspended. `allowSuspended` allows suspended people. */
async function requirePeople(
  tx: Reader,
  environmentId: number,
  people: { owner: string | null; to: string | null },
  allowSuspended = false,
): Promise<void> {
  if (people.owner === null && people.to === null) return;
  for (const [field, personId] of Object.entries(people)) {
    if (personId === null) continue;
    const person = await tx.get<{ status: string }>(
      "SELECT status FROM person WHERE id = ?1 AND environment_id = ?2",
      personId,
      environmentId,
    );
    if (person === null || person.status === "erased") {
      throw new Refusal(
        "invalid_input",
        `\`${field}\` names no person of this environment: use a person's id.`,
      );
    }
    if (person.status === "suspended" && !allowSuspended) {
      throw new Refusal(
        "person_suspended",
        `\`${field}\` names a suspended person: make them active again first, with relay people activate ${personId}.`,
      );
    }
  }
}

export interface Address {
  ownerId: string | null;
  recipientId: string | null;
}

/** Lists the problems of an address for a kind of collection. */
function checkAddress(kind: CollectionKind, address: Address): Problem[] {
  const problems: Problem[] = [];
  if (kind === "addressed" && address.ownerId !== null) {
    const message =
      "`owner` is not for an addressed collection, because its records belong to the app: leave it out.";
    problems.push({ field: "owner", message });
  }
  if ((kind === "addressed" || kind === "direct") && address.recipientId === null) {
    const message = `\`to\` is missing: a record of ${kind === "direct" ? "a direct" : "an addressed"} collection needs the person who receives it.`;
    problems.push({ field: "to", message });
  }
  return problems;
}
