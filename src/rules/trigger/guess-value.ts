/**
 * Guesses which values of a body are the type and the ID of the event, the person's address and the provider's customer ID. It reads names and forms
 * of values only, so a guess can be wrong.
 */

import { isId } from "../../base/id.ts";
import { type Json, scalarText } from "../../base/json.ts";
import { MAX_EMAIL_CHARS } from "../../base/limit.ts";
import { MAX_PATH_SEGMENTS, parsePath } from "../../platform/template/template.ts";

/** A value of the body that has a meaning. */
export interface ValueGuess {
  path: string;
  value: string;
  /** One or two sentences for a person. */
  why: string;
}

export interface BodyGuesses {
  eventType: ValueGuess | null;
  eventId: ValueGuess | null;
  email: ValueGuess | null;
  /** An ID of a person of Relay, which the app gave to the provider. */
  personId: ValueGuess | null;
  customer: ValueGuess | null;
}

interface Leaf {
  segments: readonly string[];
  /** The last segment in lower case without separators: `eventtype` for `event_type`. */
  key: string;
  text: string;
  /** True in a form, where a name with a dot is one field. */
  isField: boolean;
}

/** The work on one body: values that are looked at, items of a list, and the depth. */
const MAX_LEAVES = 2_000;
const MAX_ITEMS = 5;
const MAX_DEPTH = 12;
const MAX_VALUE_CHARS = 200;

/** Guesses the values of a parsed body. */
export function guessValues(value: Json, isForm: boolean): BodyGuesses {
  const leaves = listLeaves(value, isForm);
  const base = findBase(value);
  const eventType = guessType(leaves, base);
  return {
    eventType,
    eventId: guessEventId(leaves, base, eventType, value),
    email: guessEmail(leaves),
    personId: guessPersonId(leaves),
    customer: guessCustomer(leaves),
  };
}

/** Says that a path with a list's index always reads this item; "" for a path without one. */
export function warnFixedIndex(path: string): string {
  const index = path.split(".").find((segment) => /^\d+$/.test(segment));
  return index === undefined ? "" : ` The path always reads item ${index} of the list.`;
}

/** Lists the scalar values that a path can read, those near the top first. */
function listLeaves(root: Json, isField: boolean): Leaf[] {
  const leaves: Leaf[] = [];
  if (root === null || typeof root !== "object") return leaves;
  let level: { value: Json; segments: readonly string[] }[] = [{ value: root, segments: [] }];
  for (let depth = 0; depth < Math.min(MAX_DEPTH, MAX_PATH_SEGMENTS) && level.length > 0; depth++) {
    const next: typeof level = [];
    for (const { value, segments } of level) {
      const entries = Array.isArray(value)
        ? value.slice(0, MAX_ITEMS).map((item, index) => [String(index), item] as const)
        : Object.entries(value as { [name: string]: Json });
      for (const [name, inner] of entries) {
        if (leaves.length + next.length >= MAX_LEAVES) return leaves;
        const path = [...segments, name];
        const text = scalarText(inner);
        if (text !== null) leaves.push({ segments: path, key: keyOf(name), text, isField });
        else if (inner !== null) next.push({ value: inner, segments: path });
      }
    }
    level = next;
  }
  return leaves;
}

function keyOf(name: string): string {
  return name.toLowerCase().replaceAll(/[-_ ]/g, "");
}

/** Lists of events that an envelope holds. */
const LISTS = new Set(["events", "notifications", "entries"]);

/** Finds where the event begins: at the top, or in the first item of a list. */
function findBase(value: Json): readonly string[] {
  if (Array.isArray(value)) return ["0"];
  if (value === null || typeof value !== "object") return [];
  const lists = Object.entries(value).filter(([, inner]) => Array.isArray(inner) && inner.length > 0);
  const hasType = Object.keys(value).some((name) => TYPE_KEYS.indexOf(keyOf(name)) >= 0);
  const [list] = lists.filter(([name]) => LISTS.has(keyOf(name)));
  return list === undefined || hasType ? [] : [list[0], "0"];
}

/** Names of an event's type, the most certain first. */
const TYPE_KEYS: readonly string[] = [
  "eventtype",
  "eventname",
  "webhookevent",
  "notificationtype",
  "triggerevent",
  "triggertype",
  "recordtype",
  "eventcode",
  "topic",
  "event",
  "type",
  "trigger",
  "objectkind",
  "kind",
  "action",
];
/** Members of an envelope that describe the event, with the names that mean its type there. */
const TYPE_PLACES: ReadonlyMap<string, readonly string[]> = new Map([
  ["event", ["type", "name", "eventtype", "action", "event"]],
  ["meta", ["eventname", "eventtype", "event", "type"]],
  ["metadata", ["eventname", "eventtype"]],
  ["notification", ["type", "eventtype", "event"]],
  ["header", ["eventtype", "eventname", "type"]],
  ["data", ["eventtype", "eventname"]],
  ["payload", ["eventtype", "eventname"]],
]);
const TYPE_VALUE = /^[A-Za-z][A-Za-z0-9_.:/ -]{0,99}$/;
const TYPE_SEPARATOR = /[.:/_]/;
/** Values that say only that there is an event. */
const GENERIC_TYPES = new Set(["event", "notification", "notificationevent", "webhook", "object", "list"]);

function guessType(leaves: readonly Leaf[], base: readonly string[]): ValueGuess | null {
  const ranked = leaves.flatMap((leaf) => {
    const place = placeIn(leaf, base);
    if (place === null || !TYPE_VALUE.test(leaf.text)) return [];
    const names = place === "" ? TYPE_KEYS : (TYPE_PLACES.get(place) ?? []);
    const at = names.indexOf(leaf.key);
    if (at < 0) return [];
    const isGeneric = GENERIC_TYPES.has(keyOf(leaf.text));
    const worse = (isGeneric ? 100 : 0) + (TYPE_SEPARATOR.test(leaf.text) ? 0 : 20) + (place === "" ? 0 : 5);
    return [{ leaf, rank: at + worse }];
  });
  const [best] = ranked.sort((one, other) => one.rank - other.rank);
  if (best === undefined || best.rank >= 100) return null;
  return guessOf(best.leaf, `A field named ${lastOf(best.leaf)} usually says what happened.`);
}

const ID_KEYS: readonly string[] = [
  "eventid",
  "webhookeventid",
  "notificationid",
  "deliveryid",
  "messageid",
  "eventuuid",
];
/** Members next to which `id` is the event's and not its object's. */
const ENVELOPE_KEYS = new Set([
  "data",
  "object",
  "payload",
  "resource",
  "event",
  "body",
  "content",
  "result",
]);
/** Prefixes that providers write before the ID of an event. */
const EVENT_PREFIX = /^(evt|event|ev|msg|notif|whevt)[-_]/i;

function guessEventId(
  leaves: readonly Leaf[],
  base: readonly string[],
  eventType: ValueGuess | null,
  root: Json,
): ValueGuess | null {
  const isInTop = new Map(leaves.map((leaf) => [leaf, placeIn(leaf, base)]));
  const placed = leaves.filter((leaf) => {
    const place = isInTop.get(leaf);
    return (place === "" || place === "event" || place === "meta") && isIdText(leaf.text);
  });
  const named = placed
    .filter(({ key }) => ID_KEYS.includes(key))
    .sort((one, other) => ID_KEYS.indexOf(one.key) - ID_KEYS.indexOf(other.key))[0];
  if (named !== undefined)
    return guessOf(named, `A field named ${lastOf(named)} usually identifies the event.`);
  const own = placed.filter(({ key }) => key === "id" || key === "uuid");
  const prefixed = own.find(({ text }) => EVENT_PREFIX.test(text));
  if (prefixed !== undefined)
    return guessOf(prefixed, "Its value begins as IDs of events do, so it identifies the event.");
  const inEvent = own.find((leaf) => isInTop.get(leaf) === "event");
  if (inEvent !== undefined) return guessOf(inEvent, "It is the ID in the member event.");
  const top = own.find((leaf) => isInTop.get(leaf) === "");
  const typePath = [...base, ""].join(".");
  const isTypeHere =
    eventType?.path.startsWith(typePath) === true && !eventType.path.slice(typePath.length).includes(".");
  if (top === undefined || !isTypeHere || !hasEnvelope(root, base)) return null;
  return guessOf(top, "It is next to the event's type and outside of its data, so it identifies the event.");
}

/** Reports whether the event has its data in a member, so that the fields next to that member are the event's. */
function hasEnvelope(root: Json, base: readonly string[]): boolean {
  let event: Json | undefined = root;
  for (const segment of base) event = (event as Record<string, Json> | undefined)?.[segment];
  if (event === null || typeof event !== "object" || Array.isArray(event)) return false;
  return Object.entries(event).some(
    ([name, inner]) => ENVELOPE_KEYS.has(keyOf(name)) && inner !== null && typeof inner === "object",
  );
}

function isIdText(text: string): boolean {
  return text.length > 0 && text.length <= MAX_VALUE_CHARS && !/\s/.test(text);
}

const ADDRESS = /^[^\s@<>"]{1,64}@[^\s@<>"]+\.[^\s@<>".]{2,}$/;
/** Words of a path whose address is the customer's, and words of one whose address is another person's. */
const CUSTOMER_WORD =
  /customer|buyer|payer|purchaser|subscriber|attendee|invitee|billing|contact|member|student|recipient|client|guest|user|lead/i;
const OTHER_WORD =
  /merchant|seller|vendor|owner|organi[sz]er|host|support|admin|sender|from|reply|shop|store|creator|author|agent|staff|company|operator|cc\b|bcc/i;

function guessEmail(leaves: readonly Leaf[]): ValueGuess | null {
  const ranked = leaves.flatMap((leaf) => {
    if (leaf.text.length > MAX_EMAIL_CHARS || !ADDRESS.test(leaf.text)) return [];
    const path = leaf.segments.join(".");
    const isCustomer = CUSTOMER_WORD.test(path);
    const rank =
      leaf.segments.length +
      (isCustomer ? -10 : 0) +
      (OTHER_WORD.test(path) ? 20 : 0) +
      (leaf.key.includes("mail") ? -3 : 0);
    return [{ leaf, rank, isCustomer, isOther: OTHER_WORD.test(path) }];
  });
  const sorted = ranked.sort((one, other) => one.rank - other.rank);
  const [best] = sorted;
  if (best === undefined) return null;
  const isOnly = new Set(ranked.map(({ leaf }) => leaf.text)).size === 1;
  if (best.isOther && !best.isCustomer)
    return guessOf(
      best.leaf,
      isOnly
        ? "It is the only email address in the body, but its name suggests another person than your customer."
        : "No address in the body has the name of a customer, so check this one.",
    );
  if (isOnly) return guessOf(best.leaf, "It is the only email address in the body.");
  const why = best.isCustomer
    ? "Its name suggests the customer, unlike other addresses in the body."
    : "It is the address nearest to the top of the body.";
  return guessOf(best.leaf, why);
}

function guessPersonId(leaves: readonly Leaf[]): ValueGuess | null {
  const leaf = leaves.find(({ text }) => isId("per", text));
  return leaf === undefined ? null : guessOf(leaf, "Its value is an ID of a person in Relay.");
}

/** Names of the provider's ID of the customer, the most certain first. */
const CUSTOMER_KEYS: readonly string[] = [
  "customerid",
  "customer",
  "customeruuid",
  "buyerid",
  "payerid",
  "subscriberid",
  "memberid",
  "contactid",
  "appuserid",
  "userid",
  "clientid",
];
const CUSTOMER_PLACES: ReadonlySet<string> = new Set([
  "customer",
  "buyer",
  "payer",
  "subscriber",
  "member",
  "user",
]);
const CUSTOMER_VALUE = /^[A-Za-z0-9][\w.:|/=-]{0,199}$/;

function guessCustomer(leaves: readonly Leaf[]): ValueGuess | null {
  const ranked = leaves.flatMap((leaf) => {
    if (!CUSTOMER_VALUE.test(leaf.text) || leaf.text === "true" || leaf.text === "false" || leaf.text === "0")
      return [];
    const place = keyOf(leaf.segments.at(-2) ?? "");
    const at = CUSTOMER_KEYS.indexOf(leaf.key);
    if (at >= 0) return [{ leaf, rank: at * 3 + leaf.segments.length }];
    if (leaf.key !== "id" || !CUSTOMER_PLACES.has(place)) return [];
    const rank = (place === "customer" ? 1 : 20) + leaf.segments.length;
    return [{ leaf, rank }];
  });
  const [best] = ranked.sort((one, other) => one.rank - other.rank);
  if (best === undefined) return null;
  const { segments } = best.leaf;
  const name = lastOf(best.leaf) === "id" ? segments.slice(-2).join(".") : lastOf(best.leaf);
  return guessOf(best.leaf, `A field named ${name} usually has the provider's ID of the customer.`);
}

/** The member that holds the leaf: "" at the beginning of the event, `event` one level below it. null: deeper. */
function placeIn({ segments }: Leaf, base: readonly string[]): string | null {
  if (!base.every((segment, index) => segments[index] === segment)) return null;
  const rest = segments.slice(base.length);
  if (rest.length === 1) return "";
  return rest.length === 2 ? keyOf(rest[0] ?? "") : null;
}

function lastOf({ segments }: Leaf): string {
  return segments.at(-1) ?? "";
}

/** null: no path can read the leaf. */
function guessOf(leaf: Leaf, why: string): ValueGuess | null {
  const path = leaf.segments.join(".");
  const parsed = parsePath(path);
  // In JSON, no path can read a name that contains a dot.
  if (parsed === null || (!leaf.isField && parsed.segments.length !== leaf.segments.length)) return null;
  return { path, value: leaf.text.slice(0, MAX_VALUE_CHARS), why: `${why}${warnFixedIndex(path)}` };
}
