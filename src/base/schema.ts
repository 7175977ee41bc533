/** Defines shapes that many views and routes share. Objects made by `fields` accept no unknown field. A `description` completes "it must be …". */
import { type Static, type TObject, type TProperties, type TSchema, Type } from "typebox";
import { parseIso, toIsoOrNull } from "./clock.ts";
import { WARNINGS } from "./code/warning-code.ts";
import { Refusal, type Warning } from "./refusal.ts";

/** Makes the shape of an object with these fields and no others. */
export function fields<Properties extends TProperties>(properties: Properties) {
  return Type.Object(properties, { additionalProperties: false });
}

/** Makes the shape of a list response: `{ items, next }`. */
export function pageOf<Item extends TSchema>(item: Item) {
  return Type.Object({ items: Type.Array(item), next: orNull(Type.String()) });
}

export function orNull<Schema extends TSchema>(schema: Schema) {
  return Type.Union([schema, Type.Null()]);
}

export const textOrNull = orNull(Type.String());

/** Makes the shape of one of these words. */
export function oneOf<const Words extends readonly string[]>(words: Words) {
  const schema = Type.Union(words.map((word) => Type.Literal(word)));
  return Type.Unsafe<Words[number]>(schema);
}

/** A time as ISO 8601 UTC with milliseconds. */
export const time = Type.String({ format: "date-time" });
export const timeOrNull = orNull(time);

/** The row of a view: its fields, with the times (`at`, `…At`) in milliseconds. */
type Shown<View> = {
  [Name in keyof View]: Name extends "at" | `${string}At`
    ? null extends View[Name]
      ? number | null
      : number
    : View[Name];
};
const TIME = /^at$|At$/;

/** Returns the fields of a row that the view names, in the view's order and with times as text. */
export function show<Fields extends TProperties>(
  view: TObject<Fields>,
  row: Shown<Static<TObject<Fields>>>,
): Static<TObject<Fields>> {
  const values = row as Readonly<Record<string, unknown>>;
  const shown = Object.keys(view.properties).map((name) => [
    name,
    TIME.test(name) ? toIsoOrNull(values[name] as number | null) : values[name],
  ]);
  return Object.fromEntries(shown) as Static<TObject<Fields>>;
}

/** Any JSON value. */
export const json = Type.Unknown();

const PAYLOAD = "x-payload";

/**
 * The values of a schema that come from a payload. `true`: all. `of_event`: those of an object with an `eventId`, because a template made them from
 * the event. `quotes`: what a sentence quotes of a request.
 */
type PayloadMark = true | "of_event" | "quotes";

/** Marks a new schema: its values are of payloads, which a response hides from callers who may not see them. */
export function payload<Schema extends TSchema>(schema: Schema, mark: PayloadMark = true): Schema {
  return Object.assign(schema, { [PAYLOAD]: mark });
}

/** Returns the mark of a schema; null if its values may always be shown. */
export function payloadMark(schema: TSchema): PayloadMark | null {
  return (schema as { [PAYLOAD]?: PayloadMark })[PAYLOAD] ?? null;
}

/** A text and a JSON value of payloads. */
export const payloadText = payload(Type.String());
export const payloadJson = payload(Type.Unknown());

/** A sentence that may quote a value of a request. */
export const quotingText = payload(Type.String(), "quotes");
/** A text and a JSON value that a template may have made from an event. */
export const eventText = payload(Type.String(), "of_event");
export const eventJson = payload(Type.Unknown(), "of_event");

export const pageQuery = {
  limit: Type.Optional(Type.String({ description: "an integer from 1 to 200" })),
  cursor: Type.Optional(Type.String({ description: "the next value of the page before" })),
};

/** Makes the shape of a filter that a text must equal, from 1 to `maxLength` characters. */
export const exactText = (maxLength: number, description: string) =>
  Type.Optional(Type.String({ minLength: 1, maxLength, description }));

/** Parses an ISO 8601 text in a query to milliseconds since the epoch. Refuses with `invalid_input`. Undefined stays undefined. */
export function readTime(field: string, text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  const ms = parseIso(text);
  if (ms !== null) return ms;
  throw new Refusal("invalid_input", `${field} is not valid: write a time such as 2026-01-31T12:00:00Z.`);
}

/** A warning of a save. Its code is one of base/code/warning-code.ts. */
export const warningView = Type.Object({
  code: oneOf(Object.keys(WARNINGS) as Warning["code"][]),
  field: Type.String(),
  message: Type.String(),
});

/** A field of a save's response if the save was written to a file. */
export const savedFile = {
  file: Type.Optional(
    Type.String({
      description: "in local development: the file that says it now, such as service/relays/checkout.json",
    }),
  ),
};
