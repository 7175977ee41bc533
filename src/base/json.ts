/**
 * Reads and writes JSON without losing large integers. An integer beyond 2^53 is a bigint in memory and digits in text. A number that is too long for
 * a bigint, or outside of a double's range, stays the characters that it was written with. This module never accepts what JSON.parse refuses. Source:
 * recipes, "Reading the event".
 */
import { MAX_NUMBER_DIGITS } from "./limit.ts";
import { formatCount } from "./text.ts";

export type Json = null | boolean | number | bigint | string | Json[] | { [name: string]: Json };
export type JsonObject = { [name: string]: Json };

/** Matches a number that a double may not hold exactly: sixteen digits in a row, or an exponent of three digits. */
const MAY_BE_BEYOND_DOUBLE = /(?:^|[\s:,[])-?(?:\d{16}|[\d.]+[eE][+-]?\d{3})/;
/** Integers and numbers as JSON writes them, without leading zeros. */
const INTEGER = /^-?(?:0|[1-9]\d*)$/;
const NUMBER = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?$/;
/**
 * Parsing and writing a bigint takes time proportional to the square of its length. A longer integer, which an older release accepted, stays its
 * digits.
 */
const MAX_BIGINT_CHARS = MAX_NUMBER_DIGITS;
/** Matches a number that may have more digits than a number may have. */
const MAY_BE_LONG = new RegExp(`(?:^|[\\s:,[])-?\\d[\\d.eE+-]{${MAX_NUMBER_DIGITS}}`);

interface RawJson {
  readonly rawJSON: string;
}
declare global {
  /** The runtime has these functions, but TypeScript's library does not declare them yet. */
  interface JSON {
    rawJSON(text: string): RawJson;
    isRawJSON(value: unknown): value is RawJson;
  }
}
const { rawJSON, isRawJSON } = JSON;

/** Begins a string that replaces a number between parsing and `unmark`. It is random, so that no input can contain it. */
const MARK = `number ${crypto.randomUUID()} `;

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const MINUS = 0x2d;

/** Parses a JSON text. Throws SyntaxError if it is not JSON. */
export function parseJson(text: string): Json {
  if (!MAY_BE_BEYOND_DOUBLE.test(text)) return JSON.parse(text) as Json;
  const marked = markNumbers(text);
  const value = JSON.parse(marked) as Json;
  return marked === text ? value : unmark(value);
}

/**
 * Replaces every number that a double cannot hold with a marked string. A reviver gets the digits too but takes ten times as long, and would block
 * every receiver.
 */
function markNumbers(text: string): string {
  let marked = "";
  let copied = 0;
  for (let at = 0; at < text.length; at++) {
    const char = text.charCodeAt(at);
    if (char === QUOTE) {
      at = endOfString(text, at);
    } else if (char === MINUS || isDigit(char)) {
      const end = endOfNumber(text, at);
      const written = text.slice(at, end);
      if (isLost(written) && !isName(text, end)) {
        marked += `${text.slice(copied, at)}"${MARK}${written}"`;
        copied = end;
      }
      at = end - 1;
    }
  }
  return copied === 0 ? text : marked + text.slice(copied);
}

/** Returns the position of the closing quote of the string at `at`, or the end of the text. */
function endOfString(text: string, at: number): number {
  for (let next = at + 1; next < text.length; next++) {
    const char = text.charCodeAt(next);
    if (char === QUOTE) return next;
    if (char === BACKSLASH) next += 1;
  }
  return text.length;
}

/** Describes what `holdsLongNumber` finds, for the sentence of a refusal. */
export function longNumber(): string {
  return `a number of more than ${formatCount(MAX_NUMBER_DIGITS)} digits`;
}

/** Returns whether a JSON text contains a number with more digits than allowed. Digits in strings do not count. */
export function holdsLongNumber(text: string): boolean {
  if (text.length <= MAX_NUMBER_DIGITS || !MAY_BE_LONG.test(text)) return false;
  for (let at = 0; at < text.length; at++) {
    const char = text.charCodeAt(at);
    if (char === QUOTE) {
      at = endOfString(text, at);
    } else if (isDigit(char)) {
      const end = endOfNumber(text, at);
      if (end - at > MAX_NUMBER_DIGITS && countDigits(text, at, end) > MAX_NUMBER_DIGITS) return true;
      at = end - 1;
    }
  }
  return false;
}

function countDigits(text: string, from: number, to: number): number {
  let digits = 0;
  for (let at = from; at < to; at++) if (isDigit(text.charCodeAt(at))) digits += 1;
  return digits;
}

/** Returns the position behind the number at `at`, including its fraction and exponent. */
function endOfNumber(text: string, at: number): number {
  let end = at + 1;
  while (end < text.length && NUMBER_CHAR[text.charCodeAt(end)] === 1) end += 1;
  return end;
}

const NUMBER_CHAR = new Uint8Array(0x1_0000);
for (const char of "0123456789+-.eE") NUMBER_CHAR[char.charCodeAt(0)] = 1;

function isDigit(char: number): boolean {
  return char >= 0x30 && char <= 0x39;
}

/**
 * Returns whether a double loses the number: an integer beyond 2^53, or a number that becomes infinite or zero. An invalid number is left for
 * JSON.parse to refuse.
 */
function isLost(written: string): boolean {
  const isInteger = INTEGER.test(written);
  if (isInteger ? written.length < 16 : !NUMBER.test(written)) return false;
  const value = Number(written);
  if (isInteger) return !Number.isSafeInteger(value);
  return !Number.isFinite(value) || (value === 0 && /^[^eE]*[1-9]/.test(written));
}

/**
 * Returns an integer as a bigint. A very long integer, or a number outside of a double's range, becomes a raw value that is shown and written as its
 * characters.
 */
function keepNumber(written: string): Json {
  const isBigint = INTEGER.test(written) && written.length <= MAX_BIGINT_CHARS;
  return (isBigint ? BigInt(written) : rawJSON(written)) as Json;
}

/** Returns whether the number is used as a name. Such a text is not JSON, but would be if the number were marked. */
function isName(text: string, end: number): boolean {
  let at = end;
  while (/\s/.test(text.charAt(at))) at += 1;
  return text.charAt(at) === ":";
}

/** Replaces the marked strings with the numbers that they stand for, in place and without recursion. */
function unmark(root: Json): Json {
  if (typeof root !== "object" || root === null) return unmarkScalar(root);
  const open: (Json[] | { [name: string]: Json })[] = [root];
  const queue = (value: Json): Json => {
    if (typeof value !== "object" || value === null) return unmarkScalar(value);
    open.push(value);
    return value;
  };
  for (let container = open.pop(); container !== undefined; container = open.pop()) {
    if (Array.isArray(container)) {
      for (let at = 0; at < container.length; at++) container[at] = queue(container[at] as Json);
    } else {
      for (const name of Object.keys(container)) container[name] = queue(container[name] as Json);
    }
  }
  return root;
}

function unmarkScalar(value: Json): Json {
  return typeof value === "string" && value.startsWith(MARK) ? keepNumber(value.slice(MARK.length)) : value;
}

/** Estimates the nesting depth and the number of values of a JSON text before it is parsed. Stops when either exceeds its bound. */
export function measureJson(
  bytes: Uint8Array,
  most: { depth: number; values: number },
): { depth: number; values: number } {
  let level = 0;
  let depth = 0;
  let values = 1;
  for (let at = 0; at < bytes.length && depth <= most.depth && values <= most.values; at++) {
    const byte = bytes[at];
    if (byte === QUOTE) {
      for (at += 1; at < bytes.length && bytes[at] !== QUOTE; at++) if (bytes[at] === BACKSLASH) at += 1;
    } else if (byte === OPEN_OBJECT || byte === OPEN_LIST) {
      level += 1;
      depth = Math.max(depth, level);
      values += 1;
    } else if (byte === CLOSE_OBJECT || byte === CLOSE_LIST) level -= 1;
    else if (byte === COMMA) values += 1;
  }
  return { depth, values };
}

const OPEN_OBJECT = 0x7b;
const CLOSE_OBJECT = 0x7d;
const OPEN_LIST = 0x5b;
const CLOSE_LIST = 0x5d;
const COMMA = 0x2c;

function writeBigInteger(_key: string, value: unknown): unknown {
  return typeof value === "bigint" ? rawJSON(value.toString()) : value;
}

/** Writes a value as JSON, with bigints as their digits. `indent` spreads it over several lines. */
export function writeJson(value: unknown, indent?: number): string {
  try {
    // Tries without a replacer first, which is several times as fast. A bigint then throws a TypeError.
    return JSON.stringify(value, null, indent);
  } catch (error) {
    if (!(error instanceof TypeError)) throw error;
    return JSON.stringify(value, writeBigInteger, indent);
  }
}

/** Writes a value as JSON with sorted names, so that equal values have equal texts. */
export function writeCanonicalJson(value: Json): string {
  return writeJson(sortNames(value));
}

function sortNames(value: Json): Json {
  if (Array.isArray(value)) return value.map(sortNames);
  if (!isJsonObject(value)) return value;
  const names = Object.keys(value).sort();
  return Object.fromEntries(names.map((name) => [name, sortNames(value[name] as Json)]));
}

/** Returns whether the value is an object, and not null or an array. */
export function isJsonObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value) && !isRawJSON(value);
}

/** Returns a scalar as the text for comparison and display: `4200`, `true`, `abc`. Returns null for null, objects and arrays. */
export function scalarText(value: Json | undefined): string | null {
  if (typeof value === "string") return value;
  if (isRawJSON(value)) return value.rawJSON;
  return typeof value === "number" || typeof value === "boolean" || typeof value === "bigint"
    ? String(value)
    : null;
}
