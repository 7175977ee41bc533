/** Uses of a value of the request in view: its names in the map, its condition, and its text in a template. Each use is one edit of the definition's text. */
import { ExactNumber, formatValue, type Json } from "../base/exact-json.ts";
import { childOf, type JsonNode, nodeAt, readTree, type Step } from "../editor/json-tree.ts";
import { removeAt, setValue } from "../editor/text-edit.ts";
import { isBranch } from "./payload-row.ts";

interface Use {
  label: string;
  /** True if the definition uses the value in this way. Another choice then ends the use. */
  isOn: boolean;
  edit(text: string): string;
}

export interface PayloadUses {
  /** Path of the value, such as data.object.id. */
  path: string;
  /** Path that a template reads, such as mapped.order; null if no template can read the value. */
  template: string | null;
  /** Name of the value in the map; null if the map does not have it. */
  name: string | null;
  /** Reason why the path may give another value in another request; null if it cannot. */
  caution: string | null;
  /** Reason why no definition can name the value; null if one can. */
  obstacle: string | null;
  uses: readonly Use[];
  /** Maps the value under a name of the user; null if that is not possible. */
  nameAs: ((text: string, name: string) => string) | null;
  /** Name that the dialog suggests. */
  suggestion: string;
}

const MAX_PATH_CHARS = 500;
const MAX_PATH_SEGMENTS = 32;
/** A segment of a path of the map, and one of a template. */
const SEGMENT = /^(?!\s)[^.{}\p{Cc}]+(?<!\s)$/u;
const TEMPLATE_SEGMENT = /^[^.{}\p{Cc}\s|()"'`=<>!?&+*,;%^~\\]+$/u;
const FIELD_NAME = /^[A-Za-z_][A-Za-z0-9_-]{0,62}$/;

const PERSON_KEYS = ["person_email", "person_id", "person_token"] as const;
/** Name under which the map has the provider's customer ID. */
const CUSTOMER = "customer_id";

/** Returns the names of the map by path, for the marks of the tree. */
export function listMapped(root: JsonNode | null): ReadonlyMap<string, readonly string[]> {
  const names = new Map<string, string[]>();
  for (const { name, value } of nodeAt(root, ["trigger", "map"])?.members ?? []) {
    if (value?.kind === "text") names.set(value.value, [...(names.get(value.value) ?? []), name]);
  }
  return names;
}

/** Lists what the user can do with a value of the payload of this trigger. */
export function listUses(text: string, steps: readonly Step[], value: Json): PayloadUses {
  const root = readTree(text);
  const kind = textAt(root, ["trigger", "kind"]);
  const path = steps.join(".");
  const base = { path, name: null, caution: cautionOf(steps), uses: [], nameAs: null, suggestion: "" };
  const obstacle = obstacleOf(steps);
  if (obstacle !== null) return { ...base, template: null, obstacle };
  if (kind === "data_change") return { ...base, ...recordUses(root, steps, value) };
  if (kind === "schedule") return { ...base, template: path, obstacle: null };
  return { ...base, ...requestUses(root, path, steps, value) };
}

function obstacleOf(steps: readonly Step[]): string | null {
  const path = steps.join(".");
  if (steps.length === 0) return "The whole body has no path. Choose a value inside it.";
  if (path.length > MAX_PATH_CHARS || steps.length > MAX_PATH_SEGMENTS)
    return `The path is longer than ${MAX_PATH_CHARS} characters or ${MAX_PATH_SEGMENTS} parts, so no definition can name this value.`;
  if (steps.some((step) => typeof step === "string" && !SEGMENT.test(step)))
    return "A name in this path is empty or contains a dot or a brace, so no definition can name this value.";
  return null;
}

/** Says for a list which item the path reads. */
function cautionOf(steps: readonly Step[]): string | null {
  const at = steps.findIndex((step) => typeof step === "number");
  if (at < 0) return null;
  const index = Number(steps[at]);
  const list = steps.slice(0, at).join(".");
  return `This path always reads ${index === 0 ? "the first item" : `item ${index + 1}`} of ${list === "" ? "the body" : list}. A request with another order gives another value.`;
}

function requestUses(
  root: JsonNode | null,
  path: string,
  steps: readonly Step[],
  value: Json,
): Partial<PayloadUses> & Pick<PayloadUses, "template" | "obstacle"> {
  const map = nodeAt(root, ["trigger", "map"])?.members ?? [];
  const names = map.filter((one) => one.value?.value === path).map(({ name }) => name);
  const own = names.find((name) => !isKnownName(name)) ?? names[0] ?? null;
  const canRead = steps.every((step) => TEMPLATE_SEGMENT.test(String(step)));
  const template = own !== null ? `mapped.${own}` : canRead ? `event.${path}` : null;
  const suggestion = own ?? suggestName(steps, new Set(map.map(({ name }) => name)));
  if (isBranch(value)) return { template, name: own, obstacle: null, uses: [] };
  const mapped = (name: string, label: string): Use => {
    const isOn = names.includes(name);
    return { label, isOn, edit: (text) => (isOn ? unmap(text, name) : mapTo(text, name, path)) };
  };
  const customer = textAt(root, ["trigger", "customer", "id"]);
  const isCustomer = customer !== null && names.includes(customer);
  const uses: Use[] = [
    mapped("event_id", "Use as deduplication ID"),
    mapped("event_type", "Use as event type"),
    mapped("person_email", "Use as the person’s email"),
    {
      label: "Use as the provider’s customer ID",
      isOn: isCustomer,
      edit: (text) => (isCustomer ? removeAt(text, ["trigger", "customer"]) : nameCustomer(text, own, path)),
    },
  ];
  const valueText = value === null ? null : formatValue(value);
  if (valueText !== null) uses.push(conditionOf(root, own, suggestion, path, valueText));
  return {
    template,
    name: own,
    obstacle: null,
    uses,
    suggestion,
    nameAs: (text, name) => mapTo(text, name, path),
  };
}

function isKnownName(name: string): boolean {
  return name === "event_id" || name === "event_type" || PERSON_KEYS.some((one) => one === name);
}

function conditionOf(
  root: JsonNode | null,
  own: string | null,
  suggestion: string,
  path: string,
  valueText: string,
): Use {
  const written = own === null ? null : nodeAt(root, ["trigger", "when", own]);
  const texts =
    written === null
      ? []
      : written.kind === "list"
        ? written.items.map(({ value }) => value)
        : [written.value];
  const isOn = texts.includes(valueText);
  const shown = valueText.length > 40 ? `${valueText.slice(0, 40)}…` : valueText;
  const name = own ?? suggestion;
  const field = ["trigger", "when", name];
  const edit = (text: string): string => {
    if (!isOn) {
      const mapped = own === null ? mapTo(text, name, path) : text;
      return setValue(mapped, field, texts.length === 0 ? valueText : [...texts, valueText]);
    }
    const rest = texts.filter((one) => one !== valueText);
    if (rest.length > 0) return setValue(text, field, rest.length === 1 ? (rest[0] ?? "") : rest);
    return dropCondition(text, name);
  };
  return { label: `${texts.length > 0 && !isOn ? "Also" : "Only"} when this is “${shown}”`, isOn, edit };
}

/** Removes a condition, and the object of conditions with its last one. */
export function dropCondition(text: string, name: string, field: "when" | "where" = "when"): string {
  const members = nodeAt(readTree(text), ["trigger", field])?.members ?? [];
  const isLast = members.every((one) => one.name === name);
  return removeAt(text, isLast ? ["trigger", field] : ["trigger", field, name]);
}

function mapTo(text: string, name: string, path: string): string {
  let next = text;
  if (PERSON_KEYS.some((key) => key === name)) {
    // A map has one key for the person, and the customer's ID is another value.
    for (const key of PERSON_KEYS) if (key !== name) next = unmap(next, key);
    const root = readTree(next);
    const customer = textAt(root, ["trigger", "customer", "id"]);
    if (customer !== null && textAt(root, ["trigger", "map", customer]) === path)
      next = unmap(next, customer);
  }
  return setValue(next, ["trigger", "map", name], path);
}

/** Removes a name from the map, with the condition and the customer that read it. */
export function unmap(text: string, name: string): string {
  const root = readTree(text);
  let next = text;
  if (nodeAt(root, ["trigger", "when", name]) !== null) next = dropCondition(next, name);
  if (textAt(root, ["trigger", "customer", "id"]) === name) next = removeAt(next, ["trigger", "customer"]);
  return nodeAt(root, ["trigger", "map", name]) === null ? next : removeAt(next, ["trigger", "map", name]);
}

function nameCustomer(text: string, own: string | null, path: string): string {
  const name = own === null || isKnownName(own) ? CUSTOMER : own;
  const isPerson = PERSON_KEYS.some((key) => key === own);
  const free = isPerson && own !== null ? unmap(text, own) : text;
  return setValue(mapTo(free, name, path), ["trigger", "customer", "id"], name);
}

/** Uses of a record's value: a template reads its data and its id, and `where` compares a field of its data. */
function recordUses(
  root: JsonNode | null,
  steps: readonly Step[],
  value: Json,
): Partial<PayloadUses> & Pick<PayloadUses, "template" | "obstacle"> {
  const [top, part, field] = steps;
  const isRead = (part === "data" && steps.length > 2) || (part === "id" && steps.length === 2);
  if ((top !== "record" && top !== "previous") || !isRead)
    return {
      template: null,
      obstacle: "A definition can read the record’s data and its id. Choose a value in data.",
    };
  const template = steps.every((step) => TEMPLATE_SEGMENT.test(String(step))) ? steps.join(".") : null;
  const isOwn = top === "record" && part === "data" && steps.length === 3;
  if (!isOwn || typeof field !== "string" || !FIELD_NAME.test(field)) return { template, obstacle: null };
  const isPlain = ["string", "number", "boolean"].includes(typeof value) || value instanceof ExactNumber;
  if (!isPlain) return { template, obstacle: null };
  const written = nodeAt(root, ["trigger", "where", field]);
  const valueText = formatValue(value);
  const isOn =
    written !== null &&
    written.value === valueText &&
    (written.kind === "text") === (typeof value === "string");
  const shown = valueText.length > 40 ? `${valueText.slice(0, 40)}…` : valueText;
  const edit = (text: string): string =>
    isOn ? dropCondition(text, field, "where") : setValue(text, ["trigger", "where", field], value);
  return { template, obstacle: null, uses: [{ label: `Only when this is “${shown}”`, isOn, edit }] };
}

function textAt(root: JsonNode | null, steps: readonly Step[]): string | null {
  const node = nodeAt(root, steps);
  return node?.kind === "text" ? node.value : null;
}

/** Suggests a name for the map from the last name in the path. */
function suggestName(steps: readonly Step[], taken: ReadonlySet<string>): string {
  const last = steps.findLast((step) => typeof step === "string") ?? "value";
  const plain = String(last)
    .replaceAll(/[^A-Za-z0-9_-]+/g, "_")
    .replace(/^[^A-Za-z_]+/, "")
    .slice(0, 50);
  const name = plain === "" ? "value" : plain;
  for (let number = 1; ; number++) {
    const tried = number === 1 ? name : `${name}_${number}`;
    if (!taken.has(tried)) return tried;
  }
}

/** Reports whether a text can be a name of the map. */
export function isMapName(name: string): boolean {
  return FIELD_NAME.test(name);
}

/** Returns the name of the definition's trigger; null if the text has none. */
export function triggerOf(root: JsonNode | null): string | null {
  const trigger = root === null ? null : childOf(root, "trigger");
  const kind = trigger === null ? null : childOf(trigger, "kind");
  return kind?.kind === "text" ? kind.value : null;
}
