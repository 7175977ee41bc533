/**
 * How many bytes the JSON body of a route can take, from the route's own schema: a caller cannot make the service read more than the fields of
 * the route can hold. A field whose schema names no bound (any JSON, a list without `maxItems`) makes the limit the general one.
 */
import type { TSchema } from "typebox";
import { MAX_BODY_TEXT_CHARS, MAX_MANAGEMENT_BODY_BYTES, MIN_BODY_LIMIT_BYTES } from "../../base/limit.ts";
import type { ShapeNode } from "../../base/shape.ts";

/** An emoji as two escapes, `\ud83d\ude00`: no character takes more. */
const BYTES_PER_CHAR = 12;
/** Quotation marks, colon, comma, line break and indentation around one value. */
const BYTES_AROUND = 32;
const NUMBER_BYTES = 32;

/** The most bytes that a body of this schema can take, at most `MAX_MANAGEMENT_BODY_BYTES`; null is a route without a body. */
export function maxBodyBytes(schema: TSchema | null): number {
  const bytes = schema === null ? 0 : sizeOf(schema as ShapeNode);
  return Math.min(MAX_MANAGEMENT_BODY_BYTES, Math.max(MIN_BODY_LIMIT_BYTES, Math.ceil(bytes)));
}

function sizeOf(node: ShapeNode): number {
  return BYTES_AROUND + contentOf(node);
}

function contentOf(node: ShapeNode): number {
  if (node.const !== undefined) return sizeOfText(String(node.const).length);
  if (node.anyOf !== undefined) return Math.max(...node.anyOf.map(sizeOf));
  if (node.properties !== undefined)
    return sum(Object.entries(node.properties), ([name, field]) => sizeOfText(name.length) + sizeOf(field));
  if (node.patternProperties !== undefined) {
    const value = Math.max(...Object.values(node.patternProperties).map(sizeOf));
    return times(node.maxProperties, sizeOfText(MAX_BODY_TEXT_CHARS) + value);
  }
  if (node.items !== undefined) return times(node.maxItems, sizeOf(node.items));
  if (node.type === "string") return sizeOfText(node.maxLength ?? MAX_BODY_TEXT_CHARS);
  if (node.type === "integer" || node.type === "number") return NUMBER_BYTES;
  return node.type === "boolean" || node.type === "null" ? BYTES_AROUND : Number.POSITIVE_INFINITY;
}

function sizeOfText(chars: number): number {
  return chars * BYTES_PER_CHAR;
}

function times(count: number | undefined, bytes: number): number {
  return count === undefined ? Number.POSITIVE_INFINITY : count * bytes;
}

function sum<Item>(items: readonly Item[], sizeOfItem: (item: Item) => number): number {
  return items.reduce((total, item) => total + sizeOfItem(item), 0);
}
