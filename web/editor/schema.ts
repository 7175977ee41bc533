/** The JSON Schema of definitions, asked about one place of a text: what may stand there, by what stands around it. */
import { childOf, type JsonNode, nodeAt, type Step } from "./json-tree.ts";

/** As the service writes it: `x-names` says whose names are meant, `x-known-names` which mean something, `x-template-paths` what {{…}} may read. */
export interface Schema {
  title?: string;
  description?: string;
  type?: string;
  const?: unknown;
  enum?: readonly unknown[];
  examples?: readonly unknown[];
  required?: readonly string[];
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

/** The names that a definition may use: what the environment's catalog holds. */
interface Catalog {
  collections: readonly { name: string; fields: readonly string[] }[];
  products: readonly string[];
  plans: readonly string[];
  access: readonly string[];
}

/** What may stand at a place. */
interface Allowed {
  schema: Schema;
  /** One that the service itself gives; undefined: it gives none. */
  example: unknown;
}

/** The definition that is written, with what is known of it. */
export interface Known {
  schema: Schema;
  catalog: Catalog;
  root: JsonNode | null;
}

/** null: the place is no part of a definition. */
export function allowedAt({ schema, root }: Known, steps: readonly Step[]): Allowed | null {
  let found: Schema = schema;
  let examples: readonly unknown[] = [];
  let node = root;
  for (const step of steps) {
    const chosen = choose(found, node);
    examples = (chosen.examples ?? examples).flatMap((one) => own(one, step));
    const next = typeof step === "number" ? chosen.items : fieldOf(chosen, step);
    // What is nested in a free value is as free as that.
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

/** The variant that the value is, as far as it says so. */
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

/** The field that tells the variants apart. */
function discriminatorOf({ required }: Schema): string {
  return required?.[0] ?? "";
}

/** A value that may be written, with what is said of it. */
interface Choice {
  value: unknown;
  title: string | undefined;
  info: string | undefined;
}

/** The values that may stand at the end of the steps, as far as they can be listed. */
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
  const whole = variantsAt(known, steps);
  const allowed = allowedAt(known, steps);
  if (whole !== null && nodeAt(known.root, steps) === null) {
    return (whole.oneOf ?? []).map(({ title, description, examples }) => ({
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

/** The schema at the steps where it has variants, before one is chosen. */
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

/** `around`: the steps to the object that the value or the name stands in. */
export function namesFor(
  { catalog, root }: Known,
  source: string | undefined,
  around: readonly Step[],
): string[] {
  const { collections, products, plans, access } = catalog;
  switch (source) {
    case "collection":
      return collections.map(({ name }) => name);
    case "product":
      return [...products];
    case "plan":
      return [...plans];
    case "entitlement":
      return [...plans, ...products, ...access.map((slug) => `access:${slug}`)];
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

/** Where a template's path reads from, a choice each. */
export function templateChoices(known: Known): Choice[] {
  const paths = allowedAt(known, ["trigger"])?.schema["x-template-paths"] ?? [];
  const collection = nodeAt(known.root, ["trigger", "collection"])?.value;
  const fields = known.catalog.collections.find(({ name }) => name === collection)?.fields ?? [];
  return paths.flatMap((path): Choice[] => {
    if (path === "mapped") {
      return mappedNames(known.root).map((one) => ({
        value: `mapped.${one.name}`,
        title: one.path,
        info: `What the map reads from ${one.path}.`,
      }));
    }
    if (path === "event") {
      return mappedNames(known.root).map((one) => ({
        value: `event.${one.path}`,
        title: "in the body",
        info: "What the body holds there; a name in the map keeps it readable in large events too.",
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
