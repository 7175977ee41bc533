/** Answers what the JSON Schema of definitions allows at one place of a text, given the values around it. */
import { childOf, type JsonNode, nodeAt, type Step } from "./json-tree.ts";

/**
 * JSON Schema with the service's extensions: `x-names` is the kind of name, `x-known-names` the names with a meaning,
 * and `x-template-paths` the paths that {{…}} can read.
 */
export interface Schema {
  title?: string;
  description?: string;
  type?: string;
  const?: unknown;
  enum?: readonly unknown[];
  examples?: readonly unknown[];
  required?: readonly string[];
  minimum?: number;
  maxLength?: number;
  maxItems?: number;
  properties?: Readonly<Record<string, Schema>>;
  patternProperties?: Readonly<Record<string, Schema>>;
  items?: Schema;
  oneOf?: readonly Schema[];
  anyOf?: readonly Schema[];
  "x-names"?: string;
  "x-known-names"?: Readonly<Record<string, string>>;
  "x-templated"?: boolean;
  "x-template-paths"?: readonly string[];
}

/** Names of the environment's catalog that a definition can use. */
interface Catalog {
  collections: readonly { name: string; fields: readonly string[] }[];
  products: readonly string[];
  plans: readonly string[];
  access: readonly string[];
  relays: readonly string[];
}

/** Schema and example of a place. */
interface Allowed {
  schema: Schema;
  /** Example from the service, or undefined. */
  example: unknown;
}

/** Definition in the editor and the data that is known about it. */
export interface Known {
  schema: Schema;
  catalog: Catalog;
  root: JsonNode | null;
}

/** Returns null for a place that belongs to no definition. */
export function allowedAt({ schema, root }: Known, steps: readonly Step[]): Allowed | null {
  let found: Schema = schema;
  let examples: readonly unknown[] = [];
  let node = root;
  for (const step of steps) {
    const chosen = choose(found, node);
    examples = (chosen.examples ?? examples).flatMap((one) => own(one, step));
    const next = typeof step === "number" ? chosen.items : fieldOf(chosen, step);
    // A value inside a free value is as free.
    if (next === undefined)
      return chosen["x-templated"] === true ? { schema: chosen, example: undefined } : null;
    found = next;
    node = node === null ? null : nodeAt(node, [step]);
  }
  const schemaThere = choose(found, node);
  const shown = schemaThere.examples ?? examples;
  return { schema: schemaThere, example: shown.find((one) => JSON.stringify(one) !== "{}") ?? shown[0] };
}

function fieldOf({ properties, patternProperties }: Schema, name: string): Schema | undefined {
  return properties?.[name] ?? Object.values(patternProperties ?? {})[0];
}

function own(value: unknown, step: Step): unknown[] {
  if (typeof value !== "object" || value === null || !Object.hasOwn(value, step)) return [];
  return [(value as Record<Step, unknown>)[step]];
}

/** Returns the variant that the written value selects, if any. */
function choose(schema: Schema, node: JsonNode | null): Schema {
  if (schema.oneOf !== undefined) {
    const name = discriminatorOf(schema);
    const written = node === null ? null : childOf(node, name);
    const variant = schema.oneOf.find((one) => one.properties?.[name]?.const === written?.value);
    return variant ?? schema;
  }
  if (schema.anyOf === undefined) return schema;
  const type = node?.kind === "list" ? "array" : "string";
  const { anyOf, ...rest } = schema;
  return { ...anyOf.find((one) => one.type === type), ...rest };
}

/** Returns the field that distinguishes the variants. */
export function discriminatorOf({ required }: Schema): string {
  return required?.[0] ?? "";
}

/** Value that can be written, with its description. */
interface Choice {
  value: unknown;
  title: string | undefined;
  info: string | undefined;
}

/** Lists the values that are allowed at the end of the steps, if they can be listed. */
export function choicesAt(known: Known, steps: readonly Step[]): Choice[] {
  const last = steps.at(-1);
  const around = steps.slice(0, -1);
  const variants = typeof last === "string" ? variantsAt(known, around) : null;
  if (variants !== null && last === discriminatorOf(variants)) {
    return (variants.oneOf ?? []).map(({ title, description, properties }) => ({
      value: properties?.[discriminatorOf(variants)]?.const,
      title,
      info: description,
    }));
  }
  const missing = variantsAt(known, steps);
  const allowed = allowedAt(known, steps);
  if (missing !== null && nodeAt(known.root, steps) === null) {
    return (missing.oneOf ?? []).map(({ title, description, examples }) => ({
      value: examples?.[0],
      title,
      info: description,
    }));
  }
  if (allowed === null) return [];
  const { schema, example } = allowed;
  const names = namesFor(known, schema["x-names"], around);
  if (names.length > 0) return names.map((value) => ({ value, title: undefined, info: undefined }));
  const values = schema.enum ?? (schema.type === "boolean" ? [true, false] : []);
  const listed = schema.const !== undefined ? [schema.const] : values;
  const shown = listed.length === 0 && example !== undefined ? [example] : listed;
  return shown.map((value) => ({
    value,
    title: listed.length === 0 ? "an example" : undefined,
    info: schema.description,
  }));
}

/** Returns the schema at the steps if it has variants, without selecting one. */
function variantsAt({ schema, root }: Known, steps: readonly Step[]): Schema | null {
  let found: Schema | undefined = schema;
  let node = root;
  for (const step of steps) {
    const chosen: Schema = choose(found, node);
    found = typeof step === "number" ? chosen.items : fieldOf(chosen, step);
    if (found === undefined) return null;
    node = node === null ? null : nodeAt(node, [step]);
  }
  return found.oneOf === undefined ? null : found;
}

/** Lists the names of a kind. `around` are the steps to the object that contains the value or the name. */
export function namesFor(
  { catalog, root }: Known,
  source: string | undefined,
  around: readonly Step[],
): string[] {
  const { collections, products, plans, access, relays } = catalog;
  switch (source) {
    case "collection":
      return collections.map(({ name }) => name);
    case "product":
      return [...products];
    case "plan":
      return [...plans];
    case "entitlement":
      return [...plans, ...products, ...access.map((slug) => `access:${slug}`)];
    case "relay":
      return [...relays];
    case "mapped":
      return mappedNames(root).map(({ name }) => name);
    case "field": {
      const owner = nodeAt(root, around.slice(0, -1));
      const collection = owner === null ? undefined : childOf(owner, "collection")?.value;
      return [...(collections.find(({ name }) => name === collection)?.fields ?? [])];
    }
    default:
      return [];
  }
}

function mappedNames(root: JsonNode | null): { name: string; path: string }[] {
  const map = nodeAt(root, ["trigger", "map"]);
  return (map?.members ?? []).map(({ name, value }) => ({ name, path: value?.value ?? "" }));
}

/** Lists the paths that a template can read. */
export function templateChoices(known: Known): Choice[] {
  const paths = allowedAt(known, ["trigger"])?.schema["x-template-paths"] ?? [];
  const collection = nodeAt(known.root, ["trigger", "collection"])?.value;
  const fields = known.catalog.collections.find(({ name }) => name === collection)?.fields ?? [];
  return paths.flatMap((path): Choice[] => {
    if (path === "mapped") {
      return mappedNames(known.root).map((one) => ({
        value: `mapped.${one.name}`,
        title: one.path,
        info: `Value that the map reads from ${one.path}.`,
      }));
    }
    if (path === "event") {
      return mappedNames(known.root).map((one) => ({
        value: `event.${one.path}`,
        title: "in the body",
        info: "Value in the body. If you map it, it stays readable in large events too.",
      }));
    }
    if (path === "record.data" || path === "previous.data") {
      return fields.map((field) => ({
        value: `${path}.${field}`,
        title: path === "record.data" ? "a field" : "a field before the change",
        info: undefined,
      }));
    }
    return [{ value: path, title: undefined, info: undefined }];
  });
}
