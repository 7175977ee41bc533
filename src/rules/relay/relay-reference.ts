/**
 * Looks up the items that a definition names, in an environment or in a set of files (sync/file-set.ts). Finds the names that do not fit. With files,
 * `relay validate` finds without a database what a save finds with one. A missing item, or one that is not sold through this relay, is a warning,
 * which never stops a save; when an event runs, the same item makes the event dead. A sale bound to a missing relay stops the save, because no relay
 * can run it.
 */
import { type Static, Type } from "typebox";
import { isJsonObject } from "../../base/json.ts";
import { type Problem, Refusal, type Warning } from "../../base/refusal.ts";
import { oneOf, textOrNull } from "../../base/schema.ts";
import { joinField, showNames } from "../../base/shape.ts";
import { findNearestName, formatCount } from "../../base/text.ts";
import { findEntitlement } from "../../shop/people/entitlement.ts";
import { findCollection, listFields } from "../../shop/records/collection.ts";
import type { CollectionDefinition } from "../../shop/records/collection-definition.ts";
import { plans } from "../../shop/selling/plan.ts";
import { products } from "../../shop/selling/product.ts";
import type { Reader } from "../../store/port.ts";
import type { Reference } from "../action/contract.ts";
import { ACTIONS, findAction } from "../action/registry.ts";
import type { ActionDefinition, Definition } from "./definition-shape.ts";
import { findRelay, RELAY } from "./relay.ts";

const ACCESS = "access:";

/** The kinds of catalog items, each with the table and the column of its names. */
const NAME_COLUMNS = {
  collection: ["collection", "name"],
  product: ["product", "name"],
  plan: ["plan", "name"],
  access: ["access_slug", "slug"],
} as const;

export interface CatalogLookup {
  /** The place where an item is missing, in words. */
  place: string;
  /** Formats the remedy for a missing item of this kind: "create it". */
  formatRemedy(kind: MissingThing["kind"]): string;
  findCollection(name: string): Promise<CollectionDefinition | null>;
  /** Names of this kind; at most `MAX_NAMES`. */
  listNames(kind: MissingThing["kind"]): Promise<string[]>;
  /** `access:<slug>`, a product or a plan. */
  hasEntitlement(name: string): Promise<boolean>;
  /** The relay through which it is sold, if any. null: there is no such item. */
  findItem(kind: "product" | "plan", name: string): Promise<{ relay: string | null } | null>;
  /** Relays that write records into the collection, by name; at most `MAX_NAMED`. */
  listWriters(collection: string): Promise<string[]>;
  /** Relays that a new record of the collection starts, by name; at most `MAX_NAMED`. */
  listWatchers(collection: string): Promise<string[]>;
  /** Receivers that sell something; at most `MAX_NAMES`. */
  listSellers(): Promise<Definition[]>;
}

export const MAX_NAMED = 6;

/** The most names that a search for the nearest one reads. */
const MAX_NAMES = 200;

const WRITES = `EXISTS (SELECT 1 FROM json_each(definition, '$.actions')
    WHERE value ->> '$.type' = 'write_record' AND value ->> '$.collection' = $collection)`;
const WATCHES = `definition ->> '$.trigger.kind' = 'data_change' AND definition ->> '$.trigger.collection' = $collection
    AND EXISTS (SELECT 1 FROM json_each(definition, '$.trigger.on') WHERE value = 'created')`;
const SELLING = ACTIONS.filter(({ sells }) => sells === true).map(({ type }) => type);
const SELLS = `CASE WHEN json_valid(definition) THEN definition ->> '$.trigger.kind' = 'receiver'
    AND EXISTS (SELECT 1 FROM json_each(definition, '$.actions') WHERE value ->> '$.type' IN ('${SELLING.join("', '")}')) END`;
const SELLER = RELAY.pick("definition");

/** Looks up an environment's catalog, and reads each name only once. */
export function makeCatalogLookup(tx: Reader, environmentId: number): CatalogLookup {
  const listRelays = async (how: string, collection: string): Promise<string[]> => {
    // A text search comes first because it is fast. A definition that is not JSON refers to no item.
    const sql = `SELECT name FROM relay WHERE environment_id = $environmentId AND instr(definition, $text) > 0
      AND CASE WHEN json_valid(definition) THEN ${how} END ORDER BY name LIMIT ${MAX_NAMED}`;
    const named = { environmentId, collection, text: JSON.stringify(collection) };
    return (await tx.all<{ name: string }>(sql, named)).map(({ name }) => name);
  };
  const listNames = async (kind: MissingThing["kind"]): Promise<string[]> => {
    const [table, column] = NAME_COLUMNS[kind];
    const sql = `SELECT ${column} AS name FROM ${table} WHERE environment_id = ?1 LIMIT ?2`;
    return (await tx.all<{ name: string }>(sql, environmentId, MAX_NAMES)).map(({ name }) => name);
  };
  const findItem = (kind: "product" | "plan") =>
    once(async (name: string) => {
      const item = await (kind === "product" ? products : plans).find(tx, environmentId, name);
      if (item === null) return null;
      return { relay: item.soldThrough?.kind === "relay" ? item.soldThrough.relay : null };
    });
  const items = { product: findItem("product"), plan: findItem("plan") };
  return {
    place: "in this environment",
    formatRemedy: (kind) => `create it with relay catalog set ${kind}`,
    findCollection: once(async (name: string) => {
      const row = await findCollection(tx, environmentId, name);
      return row === null ? null : { name, kind: row.kind, fields: listFields(row) };
    }),
    listNames: once(listNames),
    hasEntitlement: once(async (name: string) => (await findEntitlement(tx, environmentId, name)) !== null),
    findItem: (kind, name) => items[kind](name),
    listWriters: once((collection: string) => listRelays(WRITES, collection)),
    listWatchers: once((collection: string) => listRelays(WATCHES, collection)),
    async listSellers() {
      const rest = `WHERE environment_id = $environmentId AND ${SELLS} ORDER BY name LIMIT ${MAX_NAMES}`;
      return (await SELLER.all(tx, rest, { environmentId })).map(({ definition }) => definition);
    },
  };
}

/** Calls `find` once for each name. */
function once<Name extends string, Found>(
  find: (name: Name) => Promise<Found>,
): (name: Name) => Promise<Found> {
  const known = new Map<Name, Promise<Found>>();
  return (name) => {
    const found = known.get(name) ?? find(name);
    known.set(name, found);
    return found;
  };
}

/** An item that a relay names and cannot use under the present catalog. */
export const missingThing = Type.Object({
  /** `access`: a slug. An unknown entitlement counts as a product. */
  kind: oneOf(["collection", "product", "plan", "access"]),
  name: Type.String(),
  /** True if the item exists and is only not sold through this relay. */
  there: Type.Boolean(),
  /** The existing name that is probably meant; null if none is near. */
  near: textOrNull,
});
export type MissingThing = Static<typeof missingThing>;

/** Lists each once, in the order of the actions. */
export async function listMissing(lookup: CatalogLookup, definition: Definition): Promise<MissingThing[]> {
  const missing = new Map<string, MissingThing>();
  for (const reference of listReferences(definition)) {
    const isStored = await exists(lookup, reference);
    if (isStored && (!reference.sells || (await findSeller(lookup, reference)) === definition.name)) continue;
    const { kind, name } = itemOf(reference);
    const near = isStored ? null : await findNear(lookup, reference);
    missing.set(`${kind} ${name}`, { kind, name, there: isStored, near });
  }
  return [...missing.values()];
}

/** Returns the item to create for the reference. */
function itemOf({ kind, name }: Pick<Reference, "kind" | "name">): Pick<MissingThing, "kind" | "name"> {
  if (kind !== "entitlement") return { kind, name };
  return name.startsWith(ACCESS)
    ? { kind: "access", name: name.slice(ACCESS.length) }
    : { kind: "product", name };
}

/** Finds the existing name that a missing one probably means, in the form of the reference but without the prefix of an access slug. */
async function findNear(lookup: CatalogLookup, { kind, name }: Reference): Promise<string | null> {
  if (kind !== "entitlement") return findNearestName(name, await lookup.listNames(kind));
  if (name.startsWith(ACCESS))
    return findNearestName(name.slice(ACCESS.length), await lookup.listNames("access"));
  return findNearestName(name, [...(await lookup.listNames("product")), ...(await lookup.listNames("plan"))]);
}

/** Formats that an item is missing, and the name that is probably meant. `still`: an event already failed because of it. */
export function formatMissing(
  { kind, name, near }: Pick<MissingThing, "kind" | "name" | "near">,
  still = false,
): string {
  const what = `There is ${still ? "still " : ""}no ${kind === "access" ? "access slug" : kind} ${name}.`;
  return near === null ? what : `${what} Did you mean ${near}?`;
}

/** Lists the catalog items that a definition names, as targets of the audit log. */
export function listCatalogTargets(definition: Definition): string[] {
  const { trigger } = definition;
  const watched = trigger.kind === "data_change" ? [`collection:${trigger.collection}`] : [];
  const named = listReferences(definition).flatMap(({ kind, name }) => {
    if (kind !== "entitlement") return [`${kind}:${name}`];
    return name.startsWith(ACCESS) ? [name, "access"] : [`product:${name}`, `plan:${name}`];
  });
  return [...new Set([...watched, ...named])];
}

/** Lists a warning for each name that is missing or sold elsewhere. */
export async function listMissingWarnings(lookup: CatalogLookup, definition: Definition): Promise<Warning[]> {
  const warnings: Warning[] = [];
  for (const reference of listReferences(definition)) {
    const { kind, name, field, sells } = reference;
    if (!(await exists(lookup, reference))) {
      const near = await findNear(lookup, reference);
      const meant = near === null ? "" : ` (did you mean ${near}?)`;
      const message = `\`${field}\`: there is no ${formatReference(reference)} ${lookup.place} yet${meant}; ${lookup.formatRemedy(itemOf(reference).kind)} before the first event, or that event becomes dead.`;
      warnings.push({ code: "reference_missing", field, message });
    } else if (sells && (await findSeller(lookup, reference)) !== definition.name) {
      const message = `\`${field}\`: the ${kind} ${name} is not sold through this relay yet; set its soldThrough to { "kind": "relay", "relay": "${definition.name}" } before the first event, or that event becomes dead.`;
      warnings.push({ code: "not_sold_here", field, message });
    }
  }
  return warnings;
}

/** Lists a warning for each item that is sold through a missing relay of this name. No sale of the item runs until such a relay exists. */
export async function listSoldThroughWarnings(
  tx: Reader,
  environmentId: number,
  relay: string,
): Promise<Warning[]> {
  if ((await findRelay(tx, environmentId, relay)) !== null) return [];
  const warnings: Warning[] = [];
  for (const kind of ["product", "plan"] as const) {
    const sql = `SELECT name FROM ${kind} WHERE environment_id = ?1
      AND sold_through ->> '$.kind' = 'relay' AND sold_through ->> '$.relay' = ?2 ORDER BY name LIMIT ${MAX_NAMES}`;
    for (const { name } of await tx.all<{ name: string }>(sql, environmentId, relay)) {
      const message = `The ${kind} ${name} is sold through the relay ${relay}, which no longer exists, so no payment is fulfilled: create a relay of that name again, or change its soldThrough.`;
      warnings.push({ code: "reference_missing", field: `${kind}s.${name}.soldThrough.relay`, message });
    }
  }
  return warnings;
}

/**
 * Finds selling actions on an item that is sold through a relay that does not exist. The relay that is being saved exists. Source: the
 * specification's "Relay-sold products and plans".
 */
export async function checkSellers(
  tx: Reader,
  environmentId: number,
  definition: Definition,
): Promise<Problem[]> {
  const lookup = makeCatalogLookup(tx, environmentId);
  const problems: Problem[] = [];
  for (const reference of listReferences(definition)) {
    const seller = reference.sells ? await findSeller(lookup, reference) : null;
    if (seller === null || seller === definition.name) continue;
    if ((await findRelay(tx, environmentId, seller)) !== null) continue;
    const { kind, name, field } = reference;
    const message = `\`${field}\`: the ${kind} ${name} is sold through the relay ${seller}, which does not exist in this environment: create that relay again, or clear the ${kind}'s soldThrough first.`;
    problems.push({ field, message });
  }
  return problems;
}

/** Throws `relay_missing` with the first problem of `checkSellers`. */
export async function requireSellingRelays(
  tx: Reader,
  environmentId: number,
  definition: Definition,
): Promise<void> {
  const [first] = await checkSellers(tx, environmentId, definition);
  if (first !== undefined) throw new Refusal("relay_missing", first.message);
}

/** Lists what the actions name, with the field, and whether it is named to be sold. */
function listReferences({ actions }: Definition): (Reference & { sells: boolean })[] {
  return actions.flatMap((action, index) => {
    const type = findAction(action.type);
    const sells = type?.sells === true;
    return (type?.references(action) ?? []).map((one) => ({
      ...one,
      field: `actions.${index}.${one.field}`,
      sells,
    }));
  });
}

async function exists(lookup: CatalogLookup, { kind, name }: Reference): Promise<boolean> {
  if (kind === "collection") return (await lookup.findCollection(name)) !== null;
  if (kind === "entitlement") return await lookup.hasEntitlement(name);
  return (await lookup.findItem(kind, name)) !== null;
}

function formatReference({ kind, name }: Reference): string {
  if (kind !== "entitlement") return `${kind} named ${name}`;
  return name.startsWith(ACCESS)
    ? `access slug named ${name.slice(ACCESS.length)}`
    : `plan or product named ${name}`;
}

/** The relay through which a product or plan is sold, by name; null for none. */
async function findSeller(lookup: CatalogLookup, { kind, name }: Reference): Promise<string | null> {
  if (kind !== "product" && kind !== "plan") return null;
  return (await lookup.findItem(kind, name))?.relay ?? null;
}

interface Write {
  action: ActionDefinition;
  /** `actions.0` */
  place: string;
  collection: CollectionDefinition;
}

/** Finds each write_record without `to` where the collection's records need a recipient. */
export async function checkWrites(lookup: CatalogLookup, definition: Definition): Promise<Problem[]> {
  const writes = await listWrites(lookup, definition);
  return writes.flatMap(({ action, place, collection: { kind, name } }) => {
    if (action.to === "person" || (kind !== "addressed" && kind !== "direct")) return [];
    const field = `${place}.to`;
    const what = `the collection ${name} is ${kind} and each of its records needs a person`;
    const todo = `write "to": "person", or name a shared or private collection`;
    return [{ field, message: `\`${field}\` is missing, but ${what}: ${todo}.` }];
  });
}

/** Warns of each field that makes the event dead as the collection is. */
export async function listWriteWarnings(lookup: CatalogLookup, definition: Definition): Promise<Warning[]> {
  const writes = await listWrites(lookup, definition);
  return writes.flatMap(({ action, place, collection }) => {
    const { fields } = collection;
    const given = isJsonObject(action.data) ? Object.keys(action.data) : [];
    const strange = given.filter((name) => !fields.has(name));
    const missing = [...fields].filter(([name, { required }]) => required && !given.includes(name));
    const data = `${place}.data`;
    return [
      ...warnOfFields(data, strange, {
        one: (_, field) =>
          `\`${field}\` is not a field of the collection ${collection.name}: remove it or add the field to the collection, or every event becomes dead.`,
        several: (names) =>
          `${names} in \`${data}\` are not fields of the collection ${collection.name}: remove them or add them to the collection, or every event becomes dead.`,
      }),
      ...warnOfFields(
        data,
        missing.map(([name]) => name),
        {
          one: (name) =>
            `\`${data}\` leaves out ${name}, which the collection ${collection.name} requires: fill it, or every event becomes dead.`,
          several: (names) =>
            `${names} are missing in \`${data}\`, and the collection ${collection.name} requires them: fill them, or every event becomes dead.`,
        },
      ),
    ];
  });
}

interface FieldSentence {
  one: (name: string, field: string) => string;
  several: (names: string) => string;
}

/** Warns of these fields of the data. Several are one warning, because one sentence is easier to read. */
function warnOfFields(data: string, names: readonly string[], { one, several }: FieldSentence): Warning[] {
  const [first, ...others] = names;
  if (first === undefined) return [];
  if (others.length > 0)
    return [{ code: "record_does_not_fit", field: data, message: several(listNames(names)) }];
  const field = joinField(data, first);
  return [{ code: "record_does_not_fit", field, message: one(first, field) }];
}

/** The most fields that one sentence names. */
const MAX_NAMED_FIELDS = 10;

function listNames(names: readonly string[]): string {
  const others = names.length - MAX_NAMED_FIELDS;
  const shown = names.slice(0, MAX_NAMED_FIELDS).map((name) => `\`${joinField("", name)}\``);
  return showNames(others > 0 ? [...shown, `${formatCount(others)} more`] : shown);
}

async function listWrites(lookup: CatalogLookup, definition: Definition): Promise<Write[]> {
  const writes: Write[] = [];
  for (const [index, action] of definition.actions.entries()) {
    if (action.type !== "write_record" || typeof action.collection !== "string") continue;
    const collection = await lookup.findCollection(action.collection);
    if (collection !== null) writes.push({ action, place: `actions.${index}`, collection });
  }
  return writes;
}
