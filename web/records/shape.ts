/** A collection and its records as the dashboard reads them: with every number as it was written. */
import type { CollectionView, Listener } from "../../src/shop/records/collection.ts";
import type { RecordItem } from "../../src/shop/records/record.ts";
import { isObject, type Json } from "../base/exact-json.ts";

export type Collection = Omit<CollectionView, "fields"> & { fields: Json };
export interface ShownCollection {
  collection: Collection;
  listeners: Listener[];
}
export type Record = Omit<RecordItem, "data"> & { data: Json };

/** Who reads the records of each kind. */
export const KIND_WORDS = {
  shared: "anyone signed in reads",
  private: "only its owner reads",
  addressed: "written by the app for one person",
  direct: "from person to person",
} as const;

/** The names of a collection's fields, whichever way they are listed. */
export function fieldNames(fields: Json): string[] {
  if (Array.isArray(fields))
    return fields.flatMap((field) => (isObject(field) && typeof field.name === "string" ? [field.name] : []));
  return isObject(fields) ? Object.keys(fields) : [];
}

/** What a record begins with: each field with nothing in it. */
export function emptyData(fields: Json): Json {
  return Object.fromEntries(fieldNames(fields).map((name) => [name, null]));
}

/** A field of a record that holds a file, by its id. */
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
