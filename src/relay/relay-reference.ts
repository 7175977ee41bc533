/**
 * What a relay names and is not there. A missing collection, entitlement, product or plan, and one that is not sold through this relay, is a
 * warning, which never refuses a save; the same thing missing when an event runs makes the event dead. A sale bound to a relay that does not
 * exist is refused, because nothing can fulfil it.
 */
import type { Reference } from "../action/contract.ts";
import { findAction } from "../action/registry.ts";
import { isJsonObject } from "../ground/json.ts";
import { type Problem, Refusal, type Warning } from "../ground/refusal.ts";
import { joinField } from "../ground/shape.ts";
import { findEntitlement } from "../people/entitlement.ts";
import { type CollectionRow, findCollection, listFields } from "../records/collection.ts";
import { plans } from "../selling/plan.ts";
import { products } from "../selling/product.ts";
import type { Reader } from "../store/port.ts";
import type { ActionDefinition, Definition } from "./definition-shape.ts";
import { findRelay } from "./relay.ts";

const ACCESS = "access:";

/** One sentence for each name that is missing, or sold elsewhere, now, and for each record that its collection would refuse. */
export async function warnOfReferences(
  tx: Reader,
  environmentId: number,
  definition: Definition,
): Promise<Warning[]> {
  const warnings: Warning[] = [];
  for (const reference of listReferences(definition)) {
    const { kind, name, field, sells } = reference;
    if (!(await isThere(tx, environmentId, reference))) {
      const message = `\`${field}\`: there is no ${inWords(reference)} in this environment yet; create it before the first event, which ends dead without it.`;
      warnings.push({ code: "reference_missing", field, message });
    } else if (sells && (await findSeller(tx, environmentId, reference)) !== definition.name) {
      const message = `\`${field}\`: the ${kind} ${name} is not sold through this relay yet; set its sold-through setting to the relay ${definition.name} before the first event, which ends dead without it.`;
      warnings.push({ code: "not_sold_here", field, message });
    }
  }
  return [...warnings, ...(await warnOfWrites(tx, environmentId, definition))];
}

/**
 * Refuses with `relay_missing` a selling action on a product or plan whose sold-through setting names a relay that does not exist here; the
 * relay that is being saved exists. Source: the specification's "Relay-sold products and plans".
 */
export async function requireSellingRelays(
  tx: Reader,
  environmentId: number,
  definition: Definition,
): Promise<void> {
  for (const reference of listReferences(definition)) {
    const seller = reference.sells ? await findSeller(tx, environmentId, reference) : null;
    if (seller === null || seller === definition.name) continue;
    if ((await findRelay(tx, environmentId, seller)) !== null) continue;
    const { kind, name, field } = reference;
    throw new Refusal(
      "relay_missing",
      `\`${field}\`: the ${kind} ${name} is sold through the relay ${seller}, which does not exist in this environment: create that relay again, or clear the ${kind}'s soldThrough first.`,
    );
  }
}

/** What the actions name, each by its field in the definition and with whether it is named to be sold. */
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

async function isThere(tx: Reader, environmentId: number, { kind, name }: Reference): Promise<boolean> {
  if (kind === "collection") return (await findCollection(tx, environmentId, name)) !== null;
  if (kind === "entitlement") return (await findEntitlement(tx, environmentId, name)) !== null;
  return (await (kind === "product" ? products : plans).find(tx, environmentId, name)) !== null;
}

function inWords({ kind, name }: Reference): string {
  if (kind !== "entitlement") return `${kind} named ${name}`;
  return name.startsWith(ACCESS)
    ? `access slug named ${name.slice(ACCESS.length)}`
    : `plan or product named ${name}`;
}

/** The relay that a product or plan is sold through, by name; null for none. */
async function findSeller(
  tx: Reader,
  environmentId: number,
  { kind, name }: Reference,
): Promise<string | null> {
  const item = await (kind === "product" ? products : plans).find(tx, environmentId, name);
  return item?.soldThrough?.kind === "relay" ? item.soldThrough.relay : null;
}

interface Write {
  action: ActionDefinition;
  /** `actions.0` */
  place: string;
  collection: CollectionRow;
}

/** One problem each write_record that leaves out `to` where the collection's records need a recipient. */
export async function checkWrites(
  tx: Reader,
  environmentId: number,
  definition: Definition,
): Promise<Problem[]> {
  const writes = await listWrites(tx, environmentId, definition);
  return writes.flatMap(({ action, place, collection: { kind, name } }) => {
    if (action.to === "person" || (kind !== "addressed" && kind !== "direct")) return [];
    const field = `${place}.to`;
    const what = `the collection ${name} is ${kind} and each of its records needs the person it is for`;
    const todo = `write "to": "person", or name a shared or private collection`;
    return [{ field, message: `\`${field}\` is missing, but ${what}: ${todo}.` }];
  });
}

/** One sentence each field that ends the event dead as the collection stands. */
async function warnOfWrites(tx: Reader, environmentId: number, definition: Definition): Promise<Warning[]> {
  const writes = await listWrites(tx, environmentId, definition);
  return writes.flatMap(({ action, place, collection }) => {
    const fields = listFields(collection);
    const given = isJsonObject(action.data) ? Object.keys(action.data) : [];
    const strange = given.filter((name) => !fields.has(name));
    const missing = [...fields].filter(([name, { required }]) => required && !given.includes(name));
    const warn = (field: string, message: string): Warning => ({
      code: "record_does_not_fit",
      field,
      message,
    });
    return [
      ...strange.map((name) => {
        const field = joinField(`${place}.data`, name);
        return warn(
          field,
          `\`${field}\` is not a field of the collection ${collection.name}: remove it or add the field to the collection, or every event ends dead.`,
        );
      }),
      ...missing.map(([name]) =>
        warn(
          `${place}.data`,
          `\`${place}.data\` leaves out ${name}, which the collection ${collection.name} requires: fill it, or every event ends dead.`,
        ),
      ),
    ];
  });
}

async function listWrites(tx: Reader, environmentId: number, definition: Definition): Promise<Write[]> {
  const writes: Write[] = [];
  for (const [index, action] of definition.actions.entries()) {
    if (action.type !== "write_record" || typeof action.collection !== "string") continue;
    const collection = await findCollection(tx, environmentId, action.collection);
    if (collection !== null) writes.push({ action, place: `actions.${index}`, collection });
  }
  return writes;
}
