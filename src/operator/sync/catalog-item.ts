/**
 * The items of a catalog file: how to read each in an environment, what the file makes of it, and how to save it. Items that the file does
 * not name stay unchanged, because a collection has records and a plan has subscribers. Only the dashboard deletes them.
 */
import type { Json, JsonObject } from "../../base/json.ts";
import { writeJson } from "../../base/json.ts";
import type { Warning } from "../../base/refusal.ts";
import { type Change, writeAudit } from "../../platform/audit/audit.ts";
import { findRelay } from "../../rules/relay/relay.ts";
import { findAccessSlug, putAccessSlug } from "../../shop/people/entitlement.ts";
import { findCollection, putCollection, viewCollection } from "../../shop/records/collection.ts";
import { type CollectionDefinition, showFields } from "../../shop/records/collection-definition.ts";
import { isSoldAs, parseSoldThrough, type SoldThrough } from "../../shop/selling/catalog-item.ts";
import { type PlanInput, plans, savePlan } from "../../shop/selling/plan.ts";
import { type ProductInput, products, saveProduct } from "../../shop/selling/product.ts";
import type { Reader, Writer } from "../../store/port.ts";
import type { Catalog } from "./catalog-file.ts";

export const ITEM_KINDS = ["collection", "access", "product", "plan"] as const;
export type ItemKind = (typeof ITEM_KINDS)[number];

export interface Item {
  kind: ItemKind;
  name: string;
  /** Its place in the file: `products.book`. */
  place: string;
  /** Finds the item in the environment, complete, as a file would write it. Returns null if there is none. */
  find(tx: Reader, environmentId: number): Promise<JsonObject | null>;
  /** Returns what the file makes of the current item. Throws for an invalid way of selling. */
  resolve(current: JsonObject | null): JsonObject;
  /** Creates or replaces the item with its audit row. Throws what the API's save throws. */
  save(tx: Writer, change: Change): Promise<Warning[]>;
}

/** Formats the item for people: `collection notes`, `access:beta`. */
export function formatItem({ kind, name }: Pick<Item, "kind" | "name">): string {
  return kind === "access" ? `access:${name}` : `${kind} ${name}`;
}

/** Reports whether both have the same content. */
export function isEqual(current: Json, wanted: Json): boolean {
  return writeJson(current) === writeJson(wanted);
}

/** Finds the item of this name, complete. Returns null if there is none. */
export async function findItem(
  tx: Reader,
  environmentId: number,
  kind: ItemKind,
  name: string,
): Promise<JsonObject | null> {
  if (kind === "collection") {
    const row = await findCollection(tx, environmentId, name);
    return row === null ? null : { kind: row.kind, fields: row.fields as JsonObject };
  }
  if (kind === "access") {
    const row = await findAccessSlug(tx, environmentId, name);
    return row === null ? null : { title: row.title };
  }
  if (kind === "product") {
    const row = await products.find(tx, environmentId, name);
    if (row === null) return null;
    return { title: row.title, key: row.key, credits: row.credits, soldThrough: row.soldThrough };
  }
  const row = await plans.find(tx, environmentId, name);
  return row === null ? null : { title: row.title, default: row.isDefault, soldThrough: row.soldThrough };
}

const CATALOG_MARKS = `SELECT 'collection' AS kind, name, CAST(version AS TEXT) AS mark FROM collection WHERE environment_id = $environmentId
  UNION ALL SELECT 'access', slug, title FROM access_slug WHERE environment_id = $environmentId
  UNION ALL SELECT 'product', name, CAST(version AS TEXT) FROM product WHERE environment_id = $environmentId
  UNION ALL SELECT 'plan', name, CAST(version AS TEXT) FROM plan WHERE environment_id = $environmentId ORDER BY kind, name`;

/** Hashes the versions of the complete catalog. Every save of an item changes the hash, even one that restores earlier content. */
export async function hashCatalog(tx: Reader, environmentId: number): Promise<string> {
  const rows = await tx.all<{ kind: string; name: string; mark: string }>(CATALOG_MARKS, { environmentId });
  const all = writeJson(rows.map(({ kind, name, mark }) => [kind, name, mark]));
  return new Bun.CryptoHasher("sha256").update(all).digest("hex");
}

/** Lists collections and access, which relays write to and grant. They are saved before the relays. */
export function listResources(catalog: Catalog): Item[] {
  return [...catalog.collections.map(collectionItem), ...catalog.access.map(accessItem)];
}

/** Lists products and plans, which may name a relay that sells them. They are saved after the relays. */
export function listOffers(catalog: Catalog): Item[] {
  // The new default plan replaces the old one before the old one is saved.
  const inOrder = [...catalog.plans].sort(
    (one, other) => Number(other.default === true) - Number(one.default === true),
  );
  return [...catalog.products.map(productItem), ...inOrder.map(planItem)];
}

function collectionItem(collection: CollectionDefinition): Item {
  const { name, kind } = collection;
  return {
    kind: "collection",
    name,
    place: `collections.${name}`,
    find: (tx, environmentId) => findItem(tx, environmentId, "collection", name),
    resolve: () => ({ kind, fields: showFields(collection.fields) as JsonObject }),
    async save(tx, change) {
      const { before, after } = await putCollection(tx, change.environmentId, collection, change.nowMs);
      await writeAudit(tx, {
        ...change,
        action: `collection.${before === null ? "created" : "changed"}`,
        target: `collection:${name}`,
        before: before === null ? null : viewCollection(before),
        after: viewCollection(after),
      });
      return [];
    },
  };
}

function accessItem(entry: Catalog["access"][number]): Item {
  const { slug, title = slug } = entry;
  return {
    kind: "access",
    name: slug,
    place: `access.${slug}`,
    find: (tx, environmentId) => findItem(tx, environmentId, "access", slug),
    resolve: () => ({ title }),
    async save(tx, change) {
      const current = await findAccessSlug(tx, change.environmentId, slug);
      await putAccessSlug(tx, change.environmentId, entry, change.nowMs);
      await writeAudit(tx, {
        ...change,
        action: "access.changed",
        target: `access:${slug}`,
        before: current === null ? null : { slug, title: current.title },
        after: { slug, title },
      });
      return [];
    },
  };
}

function productItem(product: ProductInput & { name: string }): Item {
  const { name, title = name, key = name, credits = 0, soldThrough } = product;
  return {
    kind: "product",
    name,
    place: `products.${name}`,
    find: (tx, environmentId) => findItem(tx, environmentId, "product", name),
    resolve: () => ({ title, key, credits, soldThrough: parseSoldThrough(soldThrough) }),
    async save(tx, change) {
      return (await saveProduct(tx, change, name, { title, key, credits, soldThrough })).warnings;
    },
  };
}

function planItem(plan: PlanInput & { name: string }): Item {
  const { name, title = name, soldThrough } = plan;
  return {
    kind: "plan",
    name,
    place: `plans.${name}`,
    find: (tx, environmentId) => findItem(tx, environmentId, "plan", name),
    resolve: (current) => ({
      title,
      default: plan.default ?? current?.default ?? false,
      soldThrough: parseSoldThrough(soldThrough),
    }),
    async save(tx, change) {
      // A file without `default` leaves it unchanged.
      const current = await plans.find(tx, change.environmentId, name);
      const isDefault = plan.default ?? current?.isDefault;
      await savePlan(tx, change, name, { title, default: isDefault, soldThrough });
      return [];
    },
  };
}

/** A change that must be made before relays are saved. Throws what the API's save would throw. */
interface Detachment {
  place: string;
  /** Returns no sentences, because the save that follows does. */
  run(tx: Writer, change: Change): Promise<string[]>;
}

/**
 * Lists items of a deleted relay that the catalog now sells another way. They must leave that relay first, because a relay cannot be
 * saved while its item is bound to a missing one.
 */
export function listDetachments(catalog: Catalog): Detachment[] {
  return [
    ...catalog.products.map(({ name, soldThrough }) =>
      makeDetachment("products", products, name, soldThrough, (tx, change, { title, key, credits }) =>
        saveProduct(tx, change, name, { title, key, credits }),
      ),
    ),
    ...catalog.plans.map(({ name, soldThrough }) =>
      makeDetachment("plans", plans, name, soldThrough, (tx, change, { title, isDefault }) =>
        savePlan(tx, change, name, { title, default: isDefault }),
      ),
    ),
  ];
}

/** Saves an item without its deleted relay, where the catalog sells it another way. */
function makeDetachment<Row extends { soldThrough: SoldThrough | null }>(
  section: string,
  items: { find(tx: Writer, environmentId: number, name: string): Promise<Row | null> },
  name: string,
  wanted: unknown,
  save: (tx: Writer, change: Change, current: Row) => Promise<unknown>,
): Detachment {
  return {
    place: `${section}.${name}`,
    async run(tx, change) {
      const current = await items.find(tx, change.environmentId, name);
      if (current?.soldThrough?.kind !== "relay" || isSoldAs(current.soldThrough, wanted)) return [];
      if ((await findRelay(tx, change.environmentId, current.soldThrough.relay)) === null)
        await save(tx, change, current);
      return [];
    },
  };
}
