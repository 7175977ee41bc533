/** Writes the fields of a JSON Schema as a table, and examples as blocks that the tests run. */
import type { JsonObject } from "../../base/json.ts";
import { writeTable } from "./markdown.ts";

export interface ObjectSchema {
  description?: string;
  title?: string;
  properties?: Readonly<Record<string, FieldSchema>>;
  required?: readonly string[];
  examples?: readonly unknown[];
}

export interface FieldSchema extends ObjectSchema {
  type?: string;
  const?: unknown;
  enum?: readonly unknown[];
  items?: FieldSchema;
  oneOf?: readonly ObjectSchema[];
  anyOf?: readonly FieldSchema[];
  patternProperties?: Readonly<Record<string, FieldSchema>>;
  "x-known-names"?: Readonly<Record<string, string>>;
  "x-template-paths"?: readonly string[];
}

export function asSchema(schema: JsonObject): FieldSchema {
  return schema as FieldSchema;
}

/** Writes a row for each field: its name, if it is required, and what it takes. */
export function writeFields({ properties = {}, required = [] }: ObjectSchema): string {
  const rows = Object.entries(properties).map(([name, field]) => [
    `\`${name}\``,
    required.includes(name) ? "required" : "",
    formatField(field),
  ]);
  return rows.length === 0 ? "No fields." : writeTable(["field", "", "rule"], rows);
}

function formatField(field: FieldSchema): string {
  const text = field.description ?? formatType(field);
  const words = field.enum?.map((word) => `\`${String(word)}\``);
  return words === undefined || words.length > 12 || words.every((word) => text.includes(word.slice(1, -1)))
    ? text
    : `${text} One of ${words.join(", ")}.`;
}

function formatType({ type, const: constant, anyOf, items }: FieldSchema): string {
  if (constant !== undefined) return `\`${JSON.stringify(constant)}\``;
  if (anyOf !== undefined)
    return [...new Set(anyOf.map(formatType))].filter((word) => word !== "").join(" or ");
  if (type === "array") return items === undefined ? "a list" : `a list of: ${formatType(items)}`;
  const words: Readonly<Record<string, string>> = {
    string: "text",
    integer: "an integer",
    number: "a number",
    boolean: "true or false",
    object: "an object",
    null: "null",
  };
  return words[type ?? ""] ?? "any JSON";
}

/** Writes a fenced block. `kind` tells the tests what it is. */
export function writeBlock(kind: string, text: string): string {
  return `\`\`\`${kind}\n${text}\n\`\`\``;
}

export function writeJsonBlock(kind: string, value: unknown): string {
  return writeBlock(`json ${kind}`, writeFolded(value));
}

const LINE_CHARS = 84;

/** Writes JSON in a readable form: a value that fits on a line is on one line. */
export function writeFolded(value: unknown, indent = ""): string {
  const flat = JSON.stringify(value, null, 1)?.replaceAll(/\n\s*/g, " ") ?? "null";
  if (flat.length + indent.length <= LINE_CHARS || typeof value !== "object" || value === null) return flat;
  const inner = `${indent}  `;
  const parts = Array.isArray(value)
    ? value.map((one) => writeFolded(one, inner))
    : Object.entries(value).map(([name, one]) => `${JSON.stringify(name)}: ${writeFolded(one, inner)}`);
  const [open, close] = Array.isArray(value) ? ["[", "]"] : ["{", "}"];
  return `${open}\n${parts.map((part) => inner + part).join(",\n")}\n${indent}${close}`;
}
