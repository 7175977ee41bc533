/**
 * Collections: a name, a kind that decides who may read a record, and the fields of a record. Changing the fields does not change existing records;
 * the new rules apply when a record is next written. This file changes no record, except that it deletes all of them on request.
 */
import { type Static, Type } from "typebox";
import { type JsonObject, parseJson, writeJson } from "../../base/json.ts";
import type { Page, PageRequest } from "../../base/page.ts";
import { Refusal } from "../../base/refusal.ts";
import { oneOf, show, time } from "../../base/schema.ts";
import { type LookedAt, pageByName, reach } from "../../store/index-scan.ts";
import type { Reader, Writer } from "../../store/port.ts";
import { defineTable, integer, json, type RowOf, text } from "../../store/table.ts";
import {
  COLLECTION_KINDS,
  type CollectionDefinition,
  type CollectionKind,
  type FieldRules,
  type ShownFields,
  showFields,
} from "./collection-definition.ts";

const COLLECTION = defineTable({
  name: "collection",
  key: ["environmentId", "name"],
  columns: {
    environmentId: integer(),
    name: text(),
    kind: text<CollectionKind>(),
    fields: json<ShownFields>(),
    version: integer(),
    createdAt: integer(),
    updatedAt: integer(),
  },
});

export type CollectionRow = RowOf<typeof COLLECTION>;

/** A collection as the API shows it. */
export const collectionView = Type.Object({
  name: Type.String(),
  kind: oneOf(COLLECTION_KINDS),
  fields: Type.Unsafe<JsonObject>(Type.Unknown()),
  version: Type.Integer(),
  createdAt: time,
  updatedAt: time,
});

export type CollectionView = Static<typeof collectionView>;

export function viewCollection(row: CollectionRow): CollectionView {
  return show(collectionView, row);
}

/** Parsed rules by fields object. `findCollection` returns the same object for the same text. */
const rulesOf = new WeakMap<ShownFields, FieldRules>();

export function listFields({ fields }: Pick<CollectionRow, "fields">): FieldRules {
  let rules = rulesOf.get(fields);
  if (rules === undefined) {
    const entries = Object.entries(fields);
    rules = new Map(
      entries.map(([name, { type, required = false, max = null }]) => [name, { type, required, max }]),
    );
    rulesOf.set(fields, rules);
  }
  return rules;
}

/** Parsed fields by their text, because every written record needs its collection's. */
const fieldsOf = new Map<string, ShownFields>();
const MAX_FIELDS = 200;

const FIND = `SELECT ${COLLECTION.columns} FROM collection WHERE environment_id = $environmentId AND name = $name`;

export async function findCollection(
  tx: Reader,
  environmentId: number,
  name: string,
): Promise<CollectionRow | null> {
  const row = await tx.get<Omit<CollectionRow, "fields"> & { fields: string }>(FIND, { environmentId, name });
  if (row === null) return null;
  let fields = fieldsOf.get(row.fields);
  if (fields === undefined) {
    fields = parseJson(row.fields) as ShownFields;
    if (fieldsOf.size >= MAX_FIELDS) fieldsOf.clear();
    fieldsOf.set(row.fields, fields);
  }
  return { ...row, fields };
}

/** Collections that a transaction has read; a change of a collection clears them. */
const transactionCache = new WeakMap<Writer, Map<string, CollectionRow>>();

/** Finds a collection, read once per transaction, because a batch of runs writes many records. */
export async function findCachedCollection(
  tx: Writer,
  environmentId: number,
  name: string,
): Promise<CollectionRow | null> {
  const key = `${environmentId} ${name}`;
  const known = transactionCache.get(tx)?.get(key);
  if (known !== undefined) return known;
  const found = await findCollection(tx, environmentId, name);
  if (found !== null) transactionCache.set(tx, (transactionCache.get(tx) ?? new Map()).set(key, found));
  return found;
}

/** Finds a collection. Throws `not_found`. */
export async function requireCollection(
  tx: Reader,
  environmentId: number,
  name: string,
): Promise<CollectionRow> {
  const collection = await findCollection(tx, environmentId, name);
  if (collection !== null) return collection;
  throw new Refusal(
    "not_found",
    "No collection with this name exists in this environment: relay catalog list collection shows the existing ones.",
  );
}

/** Lists one page of collections, newest first. */
export async function listCollections(
  tx: Reader,
  environmentId: number,
  request: PageRequest,
): Promise<Page<CollectionView>> {
  return await pageByName(tx, COLLECTION, "name", environmentId, request, viewCollection);
}

/** Creates a collection. Throws `name_taken`. */
export async function createCollection(
  tx: Writer,
  environmentId: number,
  definition: CollectionDefinition,
  nowMs: number,
): Promise<CollectionRow> {
  if ((await findCollection(tx, environmentId, definition.name)) !== null) {
    throw new Refusal(
      "name_taken",
      `A collection named ${definition.name} exists: choose another name, or change the existing one.`,
    );
  }
  const row: CollectionRow = {
    environmentId,
    name: definition.name,
    kind: definition.kind,
    fields: showFields(definition.fields),
    version: 1,
    createdAt: nowMs,
    updatedAt: nowMs,
  };
  transactionCache.delete(tx);
  await COLLECTION.insert(tx, row);
  return row;
}

/**
 * Changes a collection that was read at `version` (null: any). Its kind is fixed while it holds records, because the kind decides their
 * addresses. An equal definition changes nothing. Throws `not_found`, `version_conflict` and `in_use`.
 */
export async function updateCollection(
  tx: Writer,
  environmentId: number,
  definition: CollectionDefinition,
  version: number | null,
  nowMs: number,
): Promise<{ before: CollectionRow; after: CollectionRow }> {
  const before = await requireCollection(tx, environmentId, definition.name);
  if (version !== null && version !== before.version) {
    throw new Refusal(
      "version_conflict",
      `The collection is at version ${before.version}, not ${version}: read it again, then apply your change.`,
      { details: { version: before.version } },
    );
  }
  const fields = showFields(definition.fields);
  const isUnchanged = writeJson(fields) === writeJson(before.fields) && definition.kind === before.kind;
  if (isUnchanged) return { before, after: before };
  if (definition.kind !== before.kind && (await holdsRecords(tx, environmentId, before.name))) {
    throw new Refusal(
      "in_use",
      `The collection has records addressed as ${before.kind}: delete them first, or create another collection of kind ${definition.kind}.`,
    );
  }
  const after = { ...before, kind: definition.kind, fields, version: before.version + 1, updatedAt: nowMs };
  transactionCache.delete(tx);
  await COLLECTION.update(tx, after);
  return { before, after };
}

/** Creates or changes a collection, for the catalog file and sync. `before` is null if it was created. */
export async function putCollection(
  tx: Writer,
  environmentId: number,
  definition: CollectionDefinition,
  nowMs: number,
): Promise<{ before: CollectionRow | null; after: CollectionRow }> {
  const existing = await findCollection(tx, environmentId, definition.name);
  if (existing !== null) return updateCollection(tx, environmentId, definition, null, nowMs);
  return { before: null, after: await createCollection(tx, environmentId, definition, nowMs) };
}

/**
 * Deletes a collection with its remaining records. Throws `not_found`, and `in_use` while it holds records unless forced. For many records,
 * call `deleteRecordsOf` first.
 */
export async function deleteCollection(
  tx: Writer,
  environmentId: number,
  name: string,
  options: { force?: boolean } = {},
): Promise<{ before: CollectionRow; recordsDeleted: number }> {
  const before = await requireCollection(tx, environmentId, name);
  if (options.force !== true && (await holdsRecords(tx, environmentId, name))) {
    throw new Refusal(
      "in_use",
      `The collection ${name} has records: delete them first, or delete it with force (--force, force=true).`,
    );
  }
  const recordsDeleted = await tx.run(
    "DELETE FROM record WHERE environment_id = ?1 AND collection = ?2",
    environmentId,
    name,
  );
  tx.notify("record", environmentId);
  transactionCache.delete(tx);
  await COLLECTION.delete(tx, before);
  return { before, recordsDeleted };
}

/** The most records that one step deletes; each may also add a row to the change log. */
const MAX_DELETED = 200;

/** Deletes one step of the collection's oldest records. Returns how many, and whether none is left. */
export async function deleteRecordsOf(
  tx: Writer,
  environmentId: number,
  name: string,
): Promise<{ deleted: number; ended: boolean }> {
  const oldest = await tx.all<LookedAt>(
    "SELECT seq AS key, octet_length(data) AS cost FROM record WHERE environment_id = ?1 AND collection = ?2 ORDER BY seq LIMIT ?3",
    environmentId,
    name,
    MAX_DELETED,
  );
  const { floor, ended } = reach(oldest, MAX_DELETED);
  if (floor === null) return { deleted: 0, ended };
  tx.notify("record", environmentId);
  const sql = "DELETE FROM record WHERE environment_id = ?1 AND collection = ?2 AND seq <= ?3";
  return { deleted: await tx.run(sql, environmentId, name, floor), ended };
}

async function holdsRecords(tx: Reader, environmentId: number, name: string): Promise<boolean> {
  const row = await tx.get(
    "SELECT 1 FROM record WHERE environment_id = ?1 AND collection = ?2 LIMIT 1",
    environmentId,
    name,
  );
  return row !== null;
}

/** A relay that watches the collection. */
export const listenerView = Type.Object({
  relay: Type.String(),
  on: Type.Array(oneOf(["created", "updated", "deleted"])),
});

export type Listener = Static<typeof listenerView>;

/** Lists the relays that watch the collection, by name. */
export async function listListeners(
  tx: Reader,
  environmentId: number,
  collection: string,
): Promise<Listener[]> {
  const rows = await tx.all<{ relay: string; change: "created" | "updated" | "deleted" }>(
    `SELECT relay.name AS relay, change FROM record_watch JOIN relay ON relay.id = relay_id
     WHERE record_watch.environment_id = $environmentId AND collection = $collection ORDER BY relay.name, change`,
    { environmentId, collection },
  );
  const byRelay = Map.groupBy(rows, ({ relay }) => relay);
  return [...byRelay].map(([relay, changes]) => ({ relay, on: changes.map(({ change }) => change) }));
}
