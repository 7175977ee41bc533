/**
 * Computes the maximum size of a route's JSON body from its schema, so that a caller cannot make the service read more than the route's fields
 * can contain. A field without a bound (any JSON, a list without `maxItems`) makes the general limit apply.
 */
import type { TSchema } from "typebox";
import { MAX_BODY_TEXT_CHARS, MAX_MANAGEMENT_BODY_BYTES, MIN_BODY_LIMIT_BYTES } from "../../base/limit.ts";
import type { ShapeNode } from "../../base/shape.ts";

/** The most bytes of one character: an emoji as two escapes, `\ud83d\ude00`. */
const BYTES_PER_CHAR = 12;
/** Bytes for quotation marks, colon, comma, line break and indentation around one value. */
const BYTES_AROUND = 32;
const NUMBER_BYTES = 32;

/** Returns the maximum bytes of a body of this schema, up to `MAX_MANAGEMENT_BODY_BYTES`. Null is a route without a body. */
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
