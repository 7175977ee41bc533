/**
 * JSON that keeps every integer exactly, also beyond 2^53: such an integer is a bigint in memory and its digits on paper; what even that
 * is too small for is its characters alone.
 * Source: recipes, "Reading the event". It never accepts anything that JSON.parse refuses.
 */

export type Json = null | boolean | number | bigint | string | Json[] | { [name: string]: Json };
export type JsonObject = { [name: string]: Json };

/** A number that a double may not hold: sixteen digits in a row, or an exponent of three. */
const MAY_BE_BEYOND_DOUBLE = /(?:^|[\s:,[])-?(?:\d{16}|[\d.]+[eE][+-]?\d{3})/;
const INTEGER = /^-?\d+$/;
/** Reading and writing a bigint costs the square of its length; a longer integer is kept as its digits alone. */
const MAX_BIGINT_CHARS = 1_000;

interface RawJson {
  readonly rawJSON: string;
}
const { rawJSON, isRawJSON } = JSON as unknown as {
  rawJSON(text: string): RawJson;
  isRawJSON(value: unknown): value is RawJson;
};

/** The value of a JSON text. Throws SyntaxError on what is not JSON. */
export function parseJson(text: string): Json {
  if (!MAY_BE_BEYOND_DOUBLE.test(text)) return JSON.parse(text) as Json;
  return JSON.parse(text, keepNumber as (this: unknown, key: string, value: unknown) => unknown) as Json;
}

/**
 * The number as it was written where a double would lose it: an integer beyond 2^53 as a bigint, and one without end, or an exponent that
 * makes it infinite or nothing, as an opaque value that is shown and written as its characters.
 */
function keepNumber(_key: string, value: unknown, context: { source?: string }): unknown {
  if (typeof value !== "number" || (Number.isSafeInteger(value) && value !== 0)) return value;
  const source = context.source;
  if (source === undefined) return value;
  if (INTEGER.test(source)) {
    if (value === 0) return value;
    return source.length > MAX_BIGINT_CHARS ? rawJSON(source) : BigInt(source);
  }
  const isLost = !Number.isFinite(value) || (value === 0 && /^[^eE]*[1-9]/.test(source));
  return isLost ? rawJSON(source) : value;
}

function writeBigInteger(_key: string, value: unknown): unknown {
  return typeof value === "bigint" ? rawJSON(value.toString()) : value;
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
  return typeof value === "object" && value !== null && !Array.isArray(value) && !isRawJSON(value);
}

/** A scalar as the text it is compared and shown by: `4200`, `true`, `abc`; null where there is none (null, object, array). */
export function scalarText(value: Json | undefined): string | null {
  if (typeof value === "string") return value;
  if (isRawJSON(value)) return value.rawJSON;
  return typeof value === "number" || typeof value === "boolean" || typeof value === "bigint"
    ? String(value)
    : null;
}
