/**
 * Reads the text of a definition as the parts of a form. The JSON Schema of definitions decides every part, and nothing
 * here knows a field. Content that no part can show becomes a part that only the JSON can edit.
 */
import { type JsonNode, readTree, type Step } from "../../editor/json-tree.ts";
import { discriminatorOf, type Schema } from "../../editor/schema.ts";

/** One field of the form, with its place in the text. */
interface Field {
  name: string;
  steps: readonly Step[];
  schema: Schema;
  isRequired: boolean;
  /** null: the field is not written. */
  node: JsonNode | null;
  /** The optional object around it, which goes with its last member; null: the object stays. */
  holder: readonly Step[] | null;
}

/** A field with one value. `only` is a switch between one text and nothing. `value` is any JSON value, or a scalar. */
export interface InputPart extends Field {
  is: "text" | "name" | "template" | "number" | "flag" | "choice" | "only" | "choices" | "texts" | "value";
}

/** Object with known fields. The variant is chosen by the value of one of them. */
export interface GroupPart extends Field {
  is: "group";
  variants: Variants | null;
  fields: Part[];
  /** Members that the form cannot show. */
  others: JsonPart[];
}

interface Variants {
  /** Field that chooses the variant. */
  name: string;
  /** Its written text, or null. */
  chosen: string | null;
  schemas: readonly Schema[];
}

/** Object with free names. */
export interface RowsPart extends Field {
  is: "rows";
  /** Schema of each value. */
  value: Schema;
  rows: Part[];
}

export interface ListPart extends Field {
  is: "list";
  items: Part[];
}

/** Content that only the JSON can edit. */
export interface JsonPart extends Field {
  is: "json";
  node: JsonNode;
}

export type Part = InputPart | GroupPart | RowsPart | ListPart | JsonPart;

/** Returns null if the text is not JSON. */
export function readForm(schema: Schema, text: string): Part | null {
  try {
    JSON.parse(text);
  } catch {
    return null;
  }
  const node = readTree(text);
  return readPart(schema, { name: "", steps: [], schema, isRequired: true, node, holder: null });
}

/** A value with more parts or more levels is left to the JSON, because a form of it would be slow and unreadable. */
const MAX_VALUES = 200;
const MAX_LEVELS = 40;

function readPart(schema: Schema, field: Field): Part {
  const { node } = field;
  if (schema.oneOf !== undefined || schema.properties !== undefined)
    return isKind(node, "object") ? readGroup(schema, field) : asJson(field);
  const [value] = Object.values(schema.patternProperties ?? {});
  if (value !== undefined) return isKind(node, "object") ? readRows(value, field) : asJson(field);
  if (schema.items?.oneOf !== undefined)
    return isKind(node, "list") ? readItems(schema.items, field) : asJson(field);
  const is = inputOf(schema);
  return is !== null && fits(is, schema, node) && !isLarge(node) ? { ...field, is } : asJson(field);
}

function isLarge(node: JsonNode | null): boolean {
  let [level, count] = [node === null ? [] : [node], 0];
  for (let depth = 0; level.length > 0; depth++) {
    count += level.length;
    if (count > MAX_VALUES || depth > MAX_LEVELS) return true;
    level = level.flatMap(({ items, members }) => [...items, ...members.flatMap(({ value }) => value ?? [])]);
  }
  return false;
}

/** A missing value is shown as an empty field. */
function isKind(node: JsonNode | null, kind: JsonNode["kind"]): boolean {
  return node === null || (node.kind === kind && node.members.length + node.items.length <= MAX_VALUES);
}

function asJson(field: Field): Part {
  const { node } = field;
  return node === null ? { ...field, is: "text" } : { ...field, is: "json", node };
}

function readGroup(schema: Schema, field: Field): GroupPart {
  const { node, steps, isRequired, holder } = field;
  const variants = readVariants(schema, node);
  const chosen =
    variants === null
      ? schema
      : variants.schemas.find((one) => constOf(one, variants.name) === variants.chosen);
  const written = new Map(node?.members.map((member) => [member.name, member.value]));
  const known = Object.entries(chosen?.properties ?? {}).filter(([name]) => name !== variants?.name);
  const inside = isRequired ? holder : steps;
  const at = (name: string, own: Schema, value: JsonNode | null): Field => ({
    name,
    steps: [...steps, name],
    schema: own,
    isRequired: chosen?.required?.includes(name) ?? false,
    node: value,
    holder: inside,
  });
  const fields = known.map(([name, own]) => readPart(own, at(name, own, written.get(name) ?? null)));
  const names = new Set(known.map(([name]) => name));
  if (variants !== null && variants.chosen !== null) names.add(variants.name);
  const others = (node?.members ?? []).flatMap(({ name, value }): JsonPart[] =>
    value === null || (names.has(name) && written.get(name) === value)
      ? []
      : [{ ...at(name, {}, value), is: "json", node: value }],
  );
  return { ...field, is: "group", variants, fields, others };
}

function readVariants(schema: Schema, node: JsonNode | null): Variants | null {
  if (schema.oneOf === undefined) return null;
  const name = discriminatorOf(schema);
  const chosen = node?.members.findLast((member) => member.name === name)?.value ?? null;
  return { name, chosen: chosen?.kind === "text" ? chosen.value : null, schemas: schema.oneOf };
}

/** Returns the text by which a variant is chosen. */
export function constOf({ properties }: Schema, name: string): string | null {
  const value = properties?.[name]?.const;
  return typeof value === "string" ? value : null;
}

function readRows(value: Schema, field: Field): RowsPart {
  const { node, steps, isRequired, holder } = field;
  const last = new Map(node?.members.map((member) => [member.name, member.value]));
  const rows = (node?.members ?? []).flatMap(({ name, value: own }): Part[] => {
    if (own === null) return [];
    const row: Field = {
      name,
      steps: [...steps, name],
      schema: value,
      isRequired: true,
      node: own,
      holder: isRequired ? holder : steps,
    };
    // Of two members with one name, the last one counts.
    return [last.get(name) === own ? readPart(value, row) : asJson(row)];
  });
  return { ...field, is: "rows", value, rows };
}

function readItems(schema: Schema, field: Field): ListPart {
  const { node, steps } = field;
  const items = (node?.items ?? []).map((item, at) =>
    readPart(schema, {
      name: String(at),
      steps: [...steps, at],
      schema,
      isRequired: true,
      node: item,
      holder: null,
    }),
  );
  return { ...field, is: "list", items };
}

function inputOf(schema: Schema): InputPart["is"] | null {
  const { anyOf, type } = schema;
  if (anyOf !== undefined) return anyOf.some((one) => one.type === "array") ? "texts" : "value";
  if (schema.enum !== undefined) return "choice";
  if (schema.const !== undefined) return "only";
  if (type === "array") return "choices";
  if (type === "boolean") return "flag";
  if (type === "integer" || type === "number") return "number";
  if (schema["x-templated"] === true) return type === "string" ? "template" : "value";
  if (type !== "string") return null;
  return schema["x-names"] === undefined ? "text" : "name";
}

/** Reports whether the input can show the written value. */
function fits(is: InputPart["is"], schema: Schema, node: JsonNode | null): boolean {
  if (node === null) return true;
  const isText = node.kind === "text";
  switch (is) {
    case "number":
      return node.kind === "word" && isNumber(node.value);
    case "flag":
      return node.kind === "word" && (node.value === "true" || node.value === "false");
    case "only":
      return isText && node.value === schema.const;
    case "texts":
      return isText || (node.kind === "list" && node.items.every((item) => item.kind === "text"));
    case "choices":
      return (
        node.kind === "list" &&
        node.items.every((item) => item.kind === "text" && schema.items?.enum?.includes(item.value) === true)
      );
    case "value":
      return schema.anyOf === undefined || isText || (node.kind === "word" && node.value !== "null");
    default:
      return isText;
  }
}

export function isNumber(word: string): boolean {
  return /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?$/.test(word);
}

/** Lists the part and all parts inside it. */
export function listParts(part: Part): Part[] {
  const inside =
    part.is === "group"
      ? [...part.fields, ...part.others]
      : part.is === "rows"
        ? part.rows
        : part.is === "list"
          ? part.items
          : [];
  return [part, ...inside.flatMap(listParts)];
}
