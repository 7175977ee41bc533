/**
 * What a definition may name: an environment's catalog and relays. What a relay fits is judged of any stock alike; a set of files is one too
 * (sync/file-set.ts), so that `relay validate` finds without a database what a save finds with one.
 */
import { findEntitlement } from "../people/entitlement.ts";
import { findCollection, listFields } from "../records/collection.ts";
import type { CollectionDefinition } from "../records/collection-definition.ts";
import { plans } from "../selling/plan.ts";
import { products } from "../selling/product.ts";
import type { Reader } from "../store/port.ts";

export interface Stock {
  /** Where something is missing, in words. */
  place: string;
  /** What to do about what is missing, in words: "create it". */
  make: string;
  findCollection(name: string): Promise<CollectionDefinition | null>;
  listCollections(): Promise<string[]>;
  /** `access:<slug>`, a product or a plan. */
  hasEntitlement(name: string): Promise<boolean>;
  /** The relay that it is sold through, if any; null where there is no such item. */
  findItem(kind: "product" | "plan", name: string): Promise<{ relay: string | null } | null>;
  /** Relays that write records into the collection, by name; at most `MAX_NAMED`. */
  listWriters(collection: string): Promise<string[]>;
  /** Relays that the making of such a record starts, likewise. */
  listWatchers(collection: string): Promise<string[]>;
}

export const MAX_NAMED = 6;

/** Enough to find the nearest name in. */
const MAX_NAMES = 200;

const WRITES = `EXISTS (SELECT 1 FROM json_each(definition, '$.actions')
    WHERE value ->> '$.type' = 'write_record' AND value ->> '$.collection' = $collection)`;
const WATCHES = `definition ->> '$.trigger.kind' = 'data_change' AND definition ->> '$.trigger.collection' = $collection
    AND EXISTS (SELECT 1 FROM json_each(definition, '$.trigger.on') WHERE value = 'created')`;

/** An environment's, as it is now: what was looked up once is not asked again. */
export function stockOf(tx: Reader, environmentId: number): Stock {
  const listRelays = async (how: string, collection: string): Promise<string[]> => {
    // The text is looked for first, which is quick; a definition that is no JSON names nothing.
    const sql = `SELECT name FROM relay WHERE environment_id = $environmentId AND instr(definition, $text) > 0
      AND CASE WHEN json_valid(definition) THEN ${how} END ORDER BY name LIMIT ${MAX_NAMED}`;
    const named = { environmentId, collection, text: JSON.stringify(collection) };
    return (await tx.all<{ name: string }>(sql, named)).map(({ name }) => name);
  };
  const listed = once(async () => {
    const sql = "SELECT name FROM collection WHERE environment_id = ?1 LIMIT ?2";
    return (await tx.all<{ name: string }>(sql, environmentId, MAX_NAMES)).map(({ name }) => name);
  });
  const findItem = (kind: "product" | "plan") =>
    once(async (name) => {
      const item = await (kind === "product" ? products : plans).find(tx, environmentId, name);
      if (item === null) return null;
      return { relay: item.soldThrough?.kind === "relay" ? item.soldThrough.relay : null };
    });
  const items = { product: findItem("product"), plan: findItem("plan") };
  return {
    place: "in this environment",
    make: "create it with relay catalog set",
    findCollection: once(async (name) => {
      const row = await findCollection(tx, environmentId, name);
      return row === null ? null : { name, kind: row.kind, fields: listFields(row) };
    }),
    listCollections: () => listed(""),
    hasEntitlement: once(async (name) => (await findEntitlement(tx, environmentId, name)) !== null),
    findItem: (kind, name) => items[kind](name),
    listWriters: once((collection) => listRelays(WRITES, collection)),
    listWatchers: once((collection) => listRelays(WATCHES, collection)),
  };
}

/** Asks once a name. */
function once<Found>(find: (name: string) => Promise<Found>): (name: string) => Promise<Found> {
  const known = new Map<string, Promise<Found>>();
  return (name) => {
    const found = known.get(name) ?? find(name);
    known.set(name, found);
    return found;
  };
}
