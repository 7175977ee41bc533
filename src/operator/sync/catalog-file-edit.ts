/**
 * Edits the value of a catalog file so that items in it match an environment. Keeps the file's own form where it may leave a field out.
 */
import { isJsonObject, type Json, type JsonObject, writeJson } from "../../base/json.ts";
import { checkCatalog } from "./catalog-file.ts";
import { type Item, type ItemKind, listOffers, listResources } from "./catalog-item.ts";

/** An item's new content in the file; null removes it. */
export interface CatalogChange {
  kind: ItemKind;
  name: string;
  content: JsonObject | null;
}

const SECTIONS: Readonly<Record<ItemKind, string>> = {
  collection: "collections",
  access: "access",
  product: "products",
  plan: "plans",
};

/** Returns the file's value with these items. Everything else stays. */
export function editCatalog(written: JsonObject, changes: readonly CatalogChange[]): JsonObject {
  const catalog: JsonObject = { ...written };
  for (const { kind, name, content } of changes) {
    const section = SECTIONS[kind];
    const current = catalog[section];
    const items = isJsonObject(current) ? { ...current } : {};
    if (content === null) delete items[name];
    else items[name] = writeItem(kind, name, content, items[name]);
    catalog[section] = items;
  }
  return catalog;
}

/** Lists the items of a catalog, which must have no problems. */
export function listItems(written: Json): Item[] {
  const checked = checkCatalog(written);
  return "problems" in checked ? [] : [...listResources(checked.catalog), ...listOffers(checked.catalog)];
}

function writeItem(kind: ItemKind, name: string, content: JsonObject, written: Json | undefined): JsonObject {
  const was = isJsonObject(written) ? written : {};
  const wanted: JsonObject = {};
  for (const [field, value] of Object.entries(content)) {
    const isUsual = writeJson(value) === writeJson(defaultOf(kind, name, field));
    if (isUsual && (value === null || was[field] === undefined)) continue;
    wanted[field] = field === "fields" ? preserveFields(value, was[field]) : sortLike(value, was[field]);
  }
  return sortLike(wanted, was) as JsonObject;
}

/** Returns the value of a field that the file leaves out. */
function defaultOf(kind: ItemKind, name: string, field: string): Json | undefined {
  if (kind === "collection") return undefined;
  if (field === "title") return name;
  if (field === "key") return kind === "product" ? name : undefined;
  if (field === "credits") return 0;
  return field === "default" ? false : null;
}

/** Returns a collection's fields. A field with the same meaning keeps the form of the file. */
function preserveFields(fields: Json, written: Json | undefined): Json {
  if (!isJsonObject(fields) || !isJsonObject(written)) return fields;
  const entries = Object.entries(fields).map(([name, rules]): [string, Json] => {
    const was = written[name];
    return [name, was !== undefined && writeJson(rulesOf(was)) === writeJson(rules) ? was : rules];
  });
  return Object.fromEntries(entries);
}

/** Returns the rules of a field as an environment has them, or null if it is no field. */
function rulesOf(written: Json): Json {
  const one = { collections: { only: { kind: "shared", fields: { field: written } } } };
  const want = listItems(one)[0]?.resolve(null);
  return (want?.fields as JsonObject | undefined)?.field ?? null;
}

/** Sorts an object's fields in the order of the file. */
function sortLike(value: Json, written: Json | undefined): Json {
  if (!isJsonObject(value) || !isJsonObject(written)) return value;
  const known = Object.keys(written).filter((name) => Object.hasOwn(value, name));
  const names = new Set([...known, ...Object.keys(value)]);
  return Object.fromEntries([...names].map((name) => [name, value[name] as Json]));
}
