/**
 * JSON that keeps every integer exactly, also beyond 2^53: such an integer is a bigint in memory and its digits on paper; what even that
 * is too small for is its characters alone.
 * Source: recipes, "Reading the event". It never accepts anything that JSON.parse refuses.
 */
import { randomUUID } from "node:crypto";
import { MAX_NUMBER_DIGITS } from "./limit.ts";

export type Json = null | boolean | number | bigint | string | Json[] | { [name: string]: Json };
export type JsonObject = { [name: string]: Json };

/** A number that a double may not hold: sixteen digits in a row, or an exponent of three. */
const MAY_BE_BEYOND_DOUBLE = /(?:^|[\s:,[])-?(?:\d{16}|[\d.]+[eE][+-]?\d{3})/;
/** As JSON writes them: no zero before another digit. */
const INTEGER = /^-?(?:0|[1-9]\d*)$/;
const NUMBER = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?$/;
/** Reading and writing a bigint costs the square of its length; a longer integer, of a release that took one, is kept as its digits only. */
const MAX_BIGINT_CHARS = MAX_NUMBER_DIGITS;
/** A run of a number's characters that may hold more digits than a number may have. */
const MAY_BE_LONG = new RegExp(`(?:^|[\\s:,[])-?\\d[\\d.eE+-]{${MAX_NUMBER_DIGITS}}`);

interface RawJson {
  readonly rawJSON: string;
}
declare global {
  /** What the runtime has and TypeScript's library does not name yet. */
  interface JSON {
    rawJSON(text: string): RawJson;
    isRawJSON(value: unknown): value is RawJson;
  }
}
const { rawJSON, isRawJSON } = JSON;

/** Stands for a number as it was written, between reading and walking; nobody can write it who did not see it. */
const MARK = `number ${randomUUID()} `;

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const MINUS = 0x2d;

/** The value of a JSON text. Throws SyntaxError on what is not JSON. */
export function parseJson(text: string): Json {
  if (!MAY_BE_BEYOND_DOUBLE.test(text)) return JSON.parse(text) as Json;
  const marked = markNumbers(text);
  const value = JSON.parse(marked) as Json;
  return marked === text ? value : unmark(value);
}

/**
 * The text with every number that a double would lose as a marked string. A reviver would be told the digits too, at ten times the cost,
 * and every receiver waits meanwhile.
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

/** Where the string that begins at `at` has its closing quote, or the end of the text. */
function endOfString(text: string, at: number): number {
  for (let next = at + 1; next < text.length; next++) {
    const char = text.charCodeAt(next);
    if (char === QUOTE) return next;
    if (char === BACKSLASH) next += 1;
  }
  return text.length;
}

/** What `holdsLongNumber` found, for the sentence that refuses it. */
export const LONG_NUMBER = `a number of more than ${MAX_NUMBER_DIGITS.toLocaleString("en")} digits`;

/** Whether a JSON text holds a number of more digits than one may have. Texts of digits do not count. */
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

/** Behind the last character that a number may hold: fractions and exponents are part of it. */
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

/** An integer beyond 2^53, or a number that a double makes infinite or nothing. What is no number of JSON is left for it to refuse. */
function isLost(written: string): boolean {
  const isInteger = INTEGER.test(written);
  if (isInteger ? written.length < 16 : !NUMBER.test(written)) return false;
  const value = Number(written);
  if (isInteger) return !Number.isSafeInteger(value);
  return !Number.isFinite(value) || (value === 0 && /^[^eE]*[1-9]/.test(written));
}

/** The integer as a bigint; one without end, or an exponent beyond a double, as an opaque value that is shown and written as its characters. */
function keepNumber(written: string): Json {
  const isBigint = INTEGER.test(written) && written.length <= MAX_BIGINT_CHARS;
  return (isBigint ? BigInt(written) : rawJSON(written)) as Json;
}

/** A number in the place of a name is no JSON; marked, it would be. */
function isName(text: string, end: number): boolean {
  let at = end;
  while (/\s/.test(text.charAt(at))) at += 1;
  return text.charAt(at) === ":";
}

/** The value with its marked strings as the numbers they stand for, changed in place and without recursion. */
function unmark(root: Json): Json {
  if (typeof root !== "object" || root === null) return unmarkScalar(root);
  const open: (Json[] | { [name: string]: Json })[] = [root];
  const look = (value: Json): Json => {
    if (typeof value !== "object" || value === null) return unmarkScalar(value);
    open.push(value);
    return value;
  };
  for (let inside = open.pop(); inside !== undefined; inside = open.pop()) {
    if (Array.isArray(inside)) {
      for (let at = 0; at < inside.length; at++) inside[at] = look(inside[at] as Json);
    } else {
      for (const name of Object.keys(inside)) inside[name] = look(inside[name] as Json);
    }
  }
  return root;
}

function unmarkScalar(value: Json): Json {
  return typeof value === "string" && value.startsWith(MARK) ? keepNumber(value.slice(MARK.length)) : value;
}

/** How deep a JSON text is nested and how many values it holds, about; counted before anything is made of it. Stops past either bound. */
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

/** The one JSON text of a value, whatever the order its names were written in: what equal things have in common. */
export function writeCanonicalJson(value: Json): string {
  return writeJson(sortNames(value));
}

function sortNames(value: Json): Json {
  if (Array.isArray(value)) return value.map(sortNames);
  if (!isJsonObject(value)) return value;
  const names = Object.keys(value).sort();
  return Object.fromEntries(names.map((name) => [name, sortNames(value[name] as Json)]));
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
