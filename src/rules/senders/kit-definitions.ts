/**
 * Makes the relays and the catalog of a kit with the seller's names. The source has the provider's scheme and keeps every event as a record; the
 * other relays follow it. A relay opts in to unsigned events only where the rule demands it.
 */
import { isJsonObject, type Json, type JsonObject } from "../../base/json.ts";
import { Refusal } from "../../base/refusal.ts";
import { FOLLOWED_RECEIVER } from "../verify/followed-receiver.ts";
import type { Kit } from "./kit.ts";
import type { Sender } from "./sender.ts";
import { signsEvent, startCatalog, startDefinition } from "./sender-start.ts";

/** The names that the seller gives: in the catalog, and at the provider where a kit says so. */
export interface KitNames {
  product: string;
  plan: string;
  /** The second plan, above the first one. */
  plan2: string;
}

export const KIT_NAMES: KitNames = { product: "course", plan: "basic", plan2: "pro" };

/** The plan of people without a subscription. */
export const FREE_PLAN = "free";

/** The names of a kit's product and plans are parts of relays' names, which may be 63 characters long. */
const KIT_NAME = /^[a-z][a-z0-9-]{0,39}$/;

/** The definitions of a kit, the source first, so that each relay comes after the one that it follows. */
export interface KitDefinitions {
  relays: JsonObject[];
  /** In the shape of catalog.json. */
  catalog: JsonObject;
}

/** Throws if a name is invalid, or if two are equal. */
export function kitDefinitions(kit: Kit, sender: Sender, names: KitNames): KitDefinitions {
  checkNames(names);
  const source = { ...sender, map: { ...kit.source }, when: {} };
  const relays = kit.relays.map(({ name, map, customer, when, actions }): JsonObject => {
    const isOptIn = !signsEvent(sender) && (Object.hasOwn(map, "person_email") || actions.some(actsOnPerson));
    return {
      name: `${sender.name}-${name}`,
      trigger: {
        kind: "receiver",
        verify: { scheme: FOLLOWED_RECEIVER, receiver: sender.name },
        map,
        ...(customer === undefined ? {} : { customer: { id: customer } }),
        when: when as JsonObject,
        ...(isOptIn ? { trustUnsignedEvents: true } : {}),
      },
      actions,
    };
  });
  checkEntries(kit, names);
  const { collections } = startCatalog(source);
  const catalog = {
    collections: { ...(collections as JsonObject), ...writtenCollections(kit) },
    ...kit.catalog,
  };
  return {
    relays: [startDefinition(source), ...relays].map((relay) => fillNames(relay, names) as JsonObject),
    catalog: fillNames(catalog, names) as JsonObject,
  };
}

/** Replaces `{product}`, `{plan}` and `{plan2}` in every text and every name of a value. */
export function fillNames<Value extends Json>(value: Value, names: KitNames): Json {
  if (typeof value === "string")
    return value.replaceAll(/\{(product|plan2?)\}/g, (_, name: keyof KitNames) => names[name]);
  if (Array.isArray(value)) return value.map((item) => fillNames(item, names));
  if (!isJsonObject(value)) return value;
  const entries = Object.entries(value).map(([name, inner]): [string, Json] => [
    fillNames(name, names) as string,
    fillNames(inner, names),
  ]);
  return Object.fromEntries(entries);
}

const RECORDS: ReadonlySet<Json | undefined> = new Set(["write_record", "call_url"]);

function actsOnPerson({ type }: JsonObject): boolean {
  return !RECORDS.has(type);
}

/** Lists the collections that the kit's relays write to, with a text field for each value. */
function writtenCollections({ relays }: Kit): JsonObject {
  const written = relays
    .flatMap(({ actions }) => actions)
    .filter(({ type }) => type === "write_record")
    .map(({ collection, data }): [string, JsonObject] => {
      const fields = Object.keys(data as JsonObject).map((name): [string, Json] => [name, { type: "text" }]);
      return [String(collection), { kind: "private", fields: Object.fromEntries(fields) }];
    });
  return Object.fromEntries(written);
}

/** Leaves out the default plan of a kit's catalog, for a catalog that has a default plan already. */
export function withoutDefaultPlan(catalog: JsonObject): JsonObject {
  const plans = Object.entries(isJsonObject(catalog.plans) ? catalog.plans : {});
  const others = plans.filter(([, plan]) => !isJsonObject(plan) || plan.default !== true);
  return { ...catalog, plans: Object.fromEntries(others) };
}

/** Reports whether a kit sells plans. */
export function sellsPlans({ catalog }: Kit): boolean {
  return Object.keys(catalog.plans).length > 0;
}

const NAMED: Readonly<Record<keyof KitNames, string>> = {
  product: "the product",
  plan: "the first plan",
  plan2: "the second plan",
};

/** Throws if a name makes two entries of the catalog equal, such as a plan with the name of the product's free variant. */
function checkEntries({ catalog }: Kit, names: KitNames): void {
  const taken = new Set<string>();
  for (const key of [...Object.keys(catalog.products), ...Object.keys(catalog.plans)]) {
    const name = fillNames(key, names) as string;
    if (taken.has(name))
      throw new Refusal(
        "invalid_input",
        `Two entries of the kit's catalog would have the name ${name}, and a catalog has each name once: choose other names for the product and the plans.`,
      );
    taken.add(name);
  }
}

function checkNames(names: KitNames): void {
  const taken = new Map<string, string>([[FREE_PLAN, "the plan of people without a subscription"]]);
  for (const [field, name] of Object.entries(names) as [keyof KitNames, string][]) {
    const what = `The name of ${NAMED[field]} (\`${field}\`) is ${JSON.stringify(name)}`;
    if (!KIT_NAME.test(name))
      throw new Refusal(
        "invalid_input",
        `${what}, which becomes a part of relay names: write 1 to 40 lowercase letters, digits and hyphens, starting with a letter.`,
      );
    const other = taken.get(name);
    if (other !== undefined)
      throw new Refusal(
        "invalid_input",
        `${what}, which is already the name of ${other}, and a catalog has each name once: choose another name.`,
      );
    taken.set(name, NAMED[field]);
  }
}
