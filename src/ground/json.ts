/**
 * JSON that keeps every integer exactly, also beyond 2^53: such an integer is a bigint in memory and its digits on paper.
 * Source: recipes, "Reading the event". It never accepts anything that JSON.parse refuses.
 */

export type Json = null | boolean | number | bigint | string | Json[] | { [name: string]: Json };
export type JsonObject = { [name: string]: Json };

/** Sixteen digits in a row is the shortest integer a double may not hold. */
const MAY_HOLD_BIG_INTEGER = /\d{16}/;
const INTEGER = /^-?\d+$/;
/** Reading and writing an integer costs the square of its length; no sender has one this long. */
const MAX_INTEGER_CHARS = 1_000;

/** The value of a JSON text. Throws SyntaxError on what is not JSON, and on an integer of more than a thousand characters. */
export function parseJson(text: string): Json {
  if (!MAY_HOLD_BIG_INTEGER.test(text)) return JSON.parse(text) as Json;
  return JSON.parse(text, keepBigInteger as (this: unknown, key: string, value: unknown) => unknown) as Json;
}

function keepBigInteger(_key: string, value: unknown, context: { source?: string }): unknown {
  if (typeof value !== "number" || Number.isSafeInteger(value)) return value;
  const source = context.source;
  if (source === undefined || !INTEGER.test(source)) return value;
  if (source.length > MAX_INTEGER_CHARS)
    throw new SyntaxError(`an integer of more than ${MAX_INTEGER_CHARS} digits`);
  return BigInt(source);
}

const rawJson = (JSON as unknown as { rawJSON(text: string): unknown }).rawJSON;

function writeBigInteger(_key: string, value: unknown): unknown {
  return typeof value === "bigint" ? rawJson(value.toString()) : value;
}

/** The JSON text of a value, bigints as their digits; over several lines with `indent` spaces. */
export function writeJson(value: unknown, indent?: number): string {
  try {
    // Without a replacer it is several times as fast, and refuses a bigint with a TypeError.
    return JSON.stringify(value, null, indent);
  } catch (error) {
    if (!(error instanceof TypeError)) throw error;
    return JSON.stringify(value, writeBigInteger, indent);
  }
}

/** Whether the value is an object with names (not null, not an array). */
export function isJsonObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** A scalar as the text it is compared and shown by: `4200`, `true`, `abc`; null where there is none (null, object, array). */
export function scalarText(value: Json | undefined): string | null {
  if (typeof value === "string") return value;
  return typeof value === "number" || typeof value === "boolean" || typeof value === "bigint"
    ? String(value)
    : null;
}
