/** Types of a collection and its records as the dashboard parses them, with every number as written. */
import type { CollectionView, Listener } from "../../src/shop/records/collection.ts";
import type { RecordItem } from "../../src/shop/records/record.ts";
import { isObject, type Json } from "../base/exact-json.ts";

export type Collection = Omit<CollectionView, "fields"> & { fields: Json };
export interface ShownCollection {
  collection: Collection;
  listeners: Listener[];
}
export type Record = Omit<RecordItem, "data"> & { data: Json };

/** Words for who reads the records of each kind. */
export const KIND_WORDS = {
  shared: "all signed-in people can read",
  private: "only the owner can read",
  addressed: "from the app to one person",
  direct: "from person to person",
} as const;

/** Returns the names of a collection's fields. The fields are a list or an object. */
export function fieldNames(fields: Json): string[] {
  if (Array.isArray(fields))
    return fields.flatMap((field) => (isObject(field) && typeof field.name === "string" ? [field.name] : []));
  return isObject(fields) ? Object.keys(fields) : [];
}

/** Returns the initial data of a record: every field is null. */
export function emptyData(fields: Json): Json {
  return Object.fromEntries(fieldNames(fields).map((name) => [name, null]));
}

/** Field of a record that references a file by id. */
export interface HeldFile {
  field: string;
  id: string;
}

export function heldFiles(fields: Json, data: Json): HeldFile[] {
  if (!isObject(fields) || !isObject(data)) return [];
  return Object.entries(fields).flatMap(([field, rule]) => {
    const id = isObject(rule) && rule.type === "file" && Object.hasOwn(data, field) ? data[field] : null;
    return typeof id === "string" ? [{ field, id }] : [];
  });
}
