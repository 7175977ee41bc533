/**
 * Defines shapes of what people write (definitions, the catalog): TypeBox schemas that also carry words for messages. `expects` completes the
 * sentence "`field` …: it must be <expects>.", and `templated` marks strings that may contain {{paths}}. The definition check, the JSON Schema for
 * editors and the dashboard read the same shapes. A message shows a wrong value only if it is short.
 */
import type { Problem } from "./refusal.ts";
import { countChars } from "./text.ts";

interface ShapeWords {
  /** One sentence for editors and the dashboard. */
  description: string;
  /** The requirement on the value, completing "it must be …": "an integer from 1 to 10,000". */
  expects: string;
  /** True if {{paths}} are filled in at run time. */
  templated?: boolean;
  /** The kind of thing that the value names, or that the names of an object's fields name, if that is known. */
  names?: NameSource;
}

/** The kinds of names that a definition can use: from the catalog, from the receiver's own map, or from the fields of a collection. */
type NameSource = "collection" | "product" | "plan" | "entitlement" | "mapped" | "field";

/** Words of a union whose members differ in one literal property: `kind`, `type` or `scheme`. */
interface UnionWords extends ShapeWords {
  discriminator: string;
  /** Old names with their new names. An old name is refused, and the rest is checked as the new name's variant. */
  renamed?: Readonly<Record<string, string>>;
}

/** Words of an object with fixed names. */
interface ObjectWords extends ShapeWords {
  /** Names that people write here by mistake, with the part of a sentence that says what to do: "remove it: …". */
  strangers?: Readonly<Record<string, string>>;
}

/** Words of an object with free names (a record). */
interface RecordWords extends ShapeWords {
  /** The requirement on a name, completing "the name must be …". */
  expectsName: string;
  /** Names with a known meaning here, each with its meaning. */
  knownNames?: Readonly<Record<string, string>>;
}

/** A shape as its readers see it: the structure of a TypeBox schema, and the words. */
export interface ShapeNode extends Partial<ShapeWords & UnionWords & ObjectWords & RecordWords> {
  type?: string;
  const?: unknown;
  enum?: readonly unknown[];
  anyOf?: readonly ShapeNode[];
  properties?: Readonly<Record<string, ShapeNode>>;
  required?: readonly string[];
  additionalProperties?: boolean | ShapeNode;
  patternProperties?: Readonly<Record<string, ShapeNode>>;
  items?: ShapeNode;
  minItems?: number;
  maxItems?: number;
  uniqueItems?: boolean;
  minProperties?: number;
  maxProperties?: number;
  minLength?: number;
  maxLength?: number;
  pattern?: string;
}

/** Names of relays: 2 to 63 characters, lowercase letters, digits, hyphens, starting with a letter. */
export const RELAY_NAME = /^[a-z][a-z0-9-]{1,62}$/;

/** Names of collections, products, plans and access slugs: 1 to 63 characters as in names of relays, and underscores. */
export const CATALOG_NAME = /^[a-z][a-z0-9_-]{0,62}$/;

/** Names of entitlements: a product or plan name, or `access:<slug>`. */
export const ENTITLEMENT_NAME = /^(access:)?[a-z][a-z0-9_-]{0,62}$/;

/** The map names that identify the person of an event. A map has at most one of them. */
export const PERSON_KEYS = ["person_email", "person_id", "person_token"] as const;
export type PersonKey = (typeof PERSON_KEYS)[number];

/** Names in a receiver's map, and of a collection's fields. */
export const FIELD_NAME = /^[A-Za-z_][A-Za-z0-9_-]{0,62}$/;

const MAX_SHOWN_CHARS = 40;

/** Prefixes the problems of a part with its place: `ref` under `actions.0` becomes `actions.0.ref`, also at the beginning of the sentence. */
export function placeProblems(place: string, problems: readonly Problem[]): Problem[] {
  return problems.map(({ field, message }) => {
    const placed = field === "" ? place : `${place}.${field}`;
    const start = [`\`${field}\``, `${field} `].find((text) => field !== "" && message.startsWith(text));
    if (start === undefined) return { field: placed, message };
    const rest = message.slice(start.length);
    return { field: placed, message: `\`${placed}\`${start.endsWith(" ") ? " " : ""}${rest}` };
  });
}

/** Joins `trigger` and `map` to `trigger.map`. Cuts a long name and replaces its control characters, because a person can write any name. */
export function joinField(field: string, name: string): string {
  const plain = name.slice(0, MAX_SHOWN_CHARS + 1).replaceAll(/\p{C}/gu, "?");
  const shown = plain.length > MAX_SHOWN_CHARS ? `${plain.slice(0, MAX_SHOWN_CHARS)}…` : plain;
  return field === "" ? shown : `${field}.${shown}`;
}

/** Returns the field as the beginning of a sentence. */
export function showName(field: string): string {
  return field === "" ? "The whole value" : `\`${field}\``;
}

/** Joins names, as in "kind, map and when". */
export function showNames(names: readonly string[]): string {
  if (names.length < 2) return names.join("");
  return `${names.slice(0, -1).join(", ")} and ${names.at(-1)}`;
}

/** Joins choices, as in "INITIAL_PURCHASE, RENEWAL or 3 more". Shows at most `max` of them. */
export function showChoices(choices: readonly string[], max: number): string {
  const more = choices.length - max;
  const shown = more > 0 ? [...choices.slice(0, max), `${more} more`] : choices;
  if (shown.length < 2) return shown.join("");
  return `${shown.slice(0, -1).join(", ")} or ${shown.at(-1)}`;
}

const MAX_SHOWN_WANTED = 4;

/** Shows the wanted value of a field: "RENEWAL", or for a list "INITIAL_PURCHASE or RENEWAL". */
export function showWanted(value: unknown): string {
  return Array.isArray(value) ? showChoices(value.map(String), MAX_SHOWN_WANTED) : String(value);
}

/**
 * Shows what fields must match: " where status = paid and size = 4". It begins with a space, to follow any sentence, and is empty if everything
 * matches.
 */
export function showMatch(match: Readonly<Record<string, unknown>> = {}, word: "with" | "where"): string {
  const parts = Object.entries(match).map(([name, value]) => `${name} = ${showWanted(value)}`);
  return parts.length === 0 ? "" : ` ${word} ${showNames(parts)}`;
}

/** Returns a text in quotes, cut if it is long. */
export function showText(text: string): string {
  const shown = text.length > MAX_SHOWN_CHARS ? `${text.slice(0, MAX_SHOWN_CHARS)}…` : text;
  return JSON.stringify(shown);
}

/** Says why the value does not fit, as the middle of a sentence: "is empty", "is 20000", "is a number". */
export function saysWhy(node: ShapeNode, value: unknown): string {
  if (typeof value === "string") return saysWhyText(node, value);
  if (value === null) return "is null";
  if (Array.isArray(value)) return "is a list";
  if (JSON.isRawJSON(value)) return "is a number too large or too small to keep";
  if (typeof value === "object") return "is an object";
  if (typeof value === "number" || typeof value === "bigint") {
    return wants(node, "number", "integer") ? `is ${showNumber(value)}` : "is a number";
  }
  return typeof value === "boolean" ? `is ${value}` : "is not JSON";
}

function saysWhyText(node: ShapeNode, text: string): string {
  if (text.includes("{{") && node.templated !== true)
    return "holds a template, which is refused where none is filled in";
  if (isChoice(node)) return `is ${showText(text)}`;
  if (!wants(node, "string")) return "is a text";
  if (text === "") return "is empty";
  const chars = countChars(text);
  if (node.maxLength !== undefined && chars > node.maxLength) return `is ${chars} characters long`;
  if (node.minLength !== undefined && chars < node.minLength) return `is ${chars} characters long`;
  return "is not in the right form";
}

export function showNumber(value: number | bigint): string {
  const digits = String(value);
  return digits.length > MAX_SHOWN_CHARS ? "a number of many digits" : digits;
}

function isChoice(node: ShapeNode): boolean {
  return (
    node.const !== undefined ||
    node.enum !== undefined ||
    node.anyOf?.every((one) => one.const !== undefined) === true
  );
}

function wants(node: ShapeNode, ...types: readonly string[]): boolean {
  if (node.type !== undefined) return types.includes(node.type);
  return node.anyOf?.some((one) => wants(one, ...types)) === true;
}

/** Says what the value must be, as the end of a sentence: in the shape's own words, or else by its type. */
export function mustBe(node: ShapeNode): string {
  return `it must be ${expectation(node)}`;
}

function expectation(node: ShapeNode): string {
  const words = node.expects ?? node.description;
  if (words !== undefined) return words;
  const options = (node.anyOf ?? []).filter((option) => option.type !== "null");
  if (options.length > 0) {
    return options.length > 1 && options.every((option) => option.const !== undefined)
      ? `one of ${options.map((option) => option.const).join(", ")}`
      : options.map(expectation).join(" or ");
  }
  if (node.const !== undefined) return JSON.stringify(node.const);
  return TYPE_WORDS[node.type ?? ""] ?? "another value";
}

const TYPE_WORDS: Readonly<Record<string, string>> = {
  string: "text",
  integer: "an integer",
  number: "a number",
  boolean: "true or false",
  object: "an object",
  array: "a list",
};
