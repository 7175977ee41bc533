/**
 * JSON that keeps every number as written: a number that a double cannot hold becomes an ExactNumber with its digits.
 * JSON.parse reads each text first and rejects invalid JSON. Only a text with long numbers is parsed a second time,
 * without recursion.
 */

export type Json = null | boolean | number | ExactNumber | string | Json[] | { [name: string]: Json };

export class ExactNumber {
  /** Digits as in the text. */
  readonly text: string;
  constructor(text: string) {
    this.text = text;
  }
}

const MAY_HOLD_LONG_NUMBER = /\d{16}/;
const TOKEN = /\s*(?:([{}[\],:])|("(?:[^"\\]|\\.)*")|(-?\d[\d.eE+-]*)|(true|false|null))/y;

/** Parses JSON and throws a SyntaxError on anything else. */
export function parseExact(text: string): Json {
  const value = JSON.parse(text) as Json;
  return MAY_HOLD_LONG_NUMBER.test(text) ? readExact(text) : value;
}

/** Parses a text that is known to be JSON. */
function readExact(text: string): Json {
  const open: { holder: Json[] | Map<string, Json>; name: string | null }[] = [];
  let result: Json = null;
  const put = (value: Json): void => {
    const top = open.at(-1);
    if (top === undefined) result = value;
    else if (Array.isArray(top.holder)) top.holder.push(value);
    else if (top.name !== null) {
      top.holder.set(top.name, value);
      top.name = null;
    }
  };
  TOKEN.lastIndex = 0;
  for (let token = TOKEN.exec(text); token !== null; token = TOKEN.exec(text)) {
    const [, mark, quoted, digits, word] = token;
    const top = open.at(-1);
    if (mark === "{") open.push({ holder: new Map(), name: null });
    else if (mark === "[") open.push({ holder: [], name: null });
    else if (mark === "}" || mark === "]") {
      open.pop();
      const holder = top?.holder ?? [];
      put(Array.isArray(holder) ? holder : Object.fromEntries(holder));
    } else if (quoted !== undefined) {
      const value = JSON.parse(quoted) as string;
      if (top !== undefined && !Array.isArray(top.holder) && top.name === null) top.name = value;
      else put(value);
    } else if (digits !== undefined) put(readNumber(digits));
    else if (word !== undefined) put(JSON.parse(word) as Json);
  }
  return result;
}

function readNumber(digits: string): Json {
  const value = Number(digits);
  return String(value) === digits || !MAY_HOLD_LONG_NUMBER.test(digits) ? value : new ExactNumber(digits);
}

/** Formats a value as JSON, on several lines if `indent` (spaces) is above 0. An ExactNumber is written as its digits. */
export function writeExact(value: unknown, indent = 0, depth = 0): string {
  if (value instanceof ExactNumber) return value.text;
  if (typeof value !== "object" || value === null) return JSON.stringify(value) ?? "null";
  const isList = Array.isArray(value);
  const parts = isList
    ? value.map((item) => writeExact(item, indent, depth + 1))
    : Object.entries(value)
        .filter(([, item]) => item !== undefined)
        .map(
          ([name, item]) =>
            `${JSON.stringify(name)}:${indent > 0 ? " " : ""}${writeExact(item, indent, depth + 1)}`,
        );
  const [first, last] = isList ? ["[", "]"] : ["{", "}"];
  if (parts.length === 0) return first + last;
  const inside = indent > 0 ? `\n${" ".repeat(indent * (depth + 1))}` : "";
  const end = indent > 0 ? `\n${" ".repeat(indent * depth)}` : "";
  return first + inside + parts.join(`,${inside}`) + end + last;
}

export function isObject(value: unknown): value is { [name: string]: Json } {
  return (
    typeof value === "object" && value !== null && !Array.isArray(value) && !(value instanceof ExactNumber)
  );
}

/** Returns a value without parts as text, with exact numbers. */
export function formatValue(value: Json): string {
  if (value instanceof ExactNumber) return value.text;
  return typeof value === "string" ? value : String(value);
}
