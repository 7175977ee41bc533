/** Shapes that many routes share. Objects take no field they do not name; a `description` completes "it must be …". */
import type { TProperties, TSchema } from "@sinclair/typebox";
import { t } from "elysia";
import { Refusal } from "../ground/refusal.ts";

/** An object that takes these fields and no other. */
export function fields<Properties extends TProperties>(properties: Properties) {
  return t.Object(properties, { additionalProperties: false });
}

/** A list answer: `{ items, next }`. */
export function pageOf<Item extends TSchema>(item: Item) {
  return t.Object({ items: t.Array(item), next: orNull(t.String()) });
}

export function orNull<Schema extends TSchema>(schema: Schema) {
  return t.Union([schema, t.Null()]);
}

/** One of these words. */
export function oneOf<const Words extends readonly string[]>(words: Words) {
  const schema = t.Union(words.map((word) => t.Literal(word)));
  return t.Unsafe<Words[number]>(schema);
}

/** ISO 8601 UTC with milliseconds. */
export const time = t.String({ format: "date-time" });
export const timeOrNull = orNull(time);

/** Any JSON value. */
export const json = t.Unknown();

export const pageQuery = {
  limit: t.Optional(t.String({ description: "an integer from 1 to 200" })),
  cursor: t.Optional(t.String({ description: "the next value of the page before" })),
};

/** Milliseconds since the epoch of an ISO 8601 text in a query. Refuses with `invalid_input`; undefined stays undefined. */
export function readTime(field: string, text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  const ms = /^\d{4}-\d\d-\d\d/.test(text) ? Date.parse(text) : Number.NaN;
  if (Number.isFinite(ms)) return ms;
  throw new Refusal("invalid_input", `${field} is not valid: write a time such as 2026-01-31T12:00:00Z.`);
}
