/**
 * One value against one field's rule. A rendered value comes from a template and is always text: number, boolean, date, json and file
 * fields read it when it is exactly one of theirs, and an empty one (a path that named nothing) counts as absent. It never guesses:
 * "4,200" is no number and "yes" is no boolean.
 */
import { isId } from "../ground/id.ts";
import { type Json, parseJson, writeJson } from "../ground/json.ts";
import { MAX_JSON_DEPTH } from "../ground/limit.ts";
import { breaksPlainText, countChars, utf8Bytes } from "../ground/text.ts";
import type { FieldRule, FieldType } from "./collection-field.ts";

/** The value to store (undefined: absent), or why it is refused, completing "`data.total` …". */
type FieldReading = { value: Json | undefined } | { refused: string };

/** A JSON number, nothing around it (RFC 8259, section 6). */
const NUMBER = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?$/;
const DATE =
  /^(\d{4})-(\d{2})-(\d{2})(?:T([01]\d|2[0-3]):[0-5]\d(?::[0-5]\d(?:\.\d{1,9})?)?(?:Z|[+-](?:[01]\d|2[0-3]):[0-5]\d))?$/;

/** Reads a value for a field. `rendered`: it went through a template. */
export function readFieldValue(rule: FieldRule, given: Json, rendered: boolean): FieldReading {
  if (given === null) return { value: undefined };
  if (rendered && typeof given === "string") {
    if (given === "" && rule.type !== "text") return { value: undefined };
    return READERS[rule.type](rule, fromRendered(rule.type, given));
  }
  return READERS[rule.type](rule, given);
}

function fromRendered(type: FieldType, text: string): Json {
  if (type === "text") return text.replaceAll("\r\n", "\n");
  if (type === "number") return NUMBER.test(text) ? parseJson(text) : text;
  if (type === "boolean") return text === "true" ? true : text === "false" ? false : text;
  if (type === "json" && /^\s*[[{]/.test(text)) {
    try {
      return parseJson(text);
    } catch {
      return text;
    }
  }
  return text;
}

const READERS: Readonly<Record<FieldType, (rule: FieldRule, given: Json) => FieldReading>> = {
  text(rule, given) {
    if (typeof given !== "string") return { refused: `is ${describe(given)}: it must be text` };
    const broken = breaksPlainText(given);
    if (broken !== null) return { refused: `${broken}: remove it` };
    if (rule.max !== null && given.length > rule.max && countChars(given) > rule.max) {
      return { refused: `is longer than ${rule.max} characters: shorten it` };
    }
    return { value: given };
  },
  number(rule, given) {
    if (typeof given !== "number" && typeof given !== "bigint") {
      return { refused: `is ${describe(given)}: it must be a number` };
    }
    if (typeof given === "number" && !Number.isFinite(given)) {
      return { refused: "is too large to be kept as a number: use a text field for it" };
    }
    if (rule.max !== null && given > rule.max) return { refused: `is greater than ${rule.max}: lower it` };
    return { value: given };
  },
  boolean(_rule, given) {
    return typeof given === "boolean"
      ? { value: given }
      : { refused: `is ${describe(given)}: it must be true or false` };
  },
  date(_rule, given) {
    return typeof given === "string" && isDate(given)
      ? { value: given }
      : {
          refused: `is ${describe(given)}: it must be an ISO date such as "2030-01-31" or "2030-01-31T12:00:00Z"`,
        };
  },
  json(rule, given) {
    const broken = breaksJson(given, 1);
    if (broken !== null) return { refused: `${broken}: correct it` };
    if (rule.max !== null && utf8Bytes(writeJson(given)) > rule.max) {
      return { refused: `takes more than ${rule.max} bytes as JSON: shorten it` };
    }
    return { value: given };
  },
  file(_rule, given) {
    return typeof given === "string" && isId("fil", given)
      ? { value: given }
      : { refused: `is ${describe(given)}: it must be the id of an uploaded file, such as fil_…` };
  },
};

/** Why a value nested in a json field is refused: the plain-text law holds inside it too. */
function breaksJson(value: Json, depth: number): string | null {
  if (typeof value === "string") return breaksPlainText(value);
  if (typeof value === "number" && !Number.isFinite(value)) return "holds a number too large to be kept";
  if (typeof value !== "object" || value === null) return null;
  if (depth > MAX_JSON_DEPTH) return `is nested more than ${MAX_JSON_DEPTH} levels deep`;
  for (const [name, inner] of Object.entries(value)) {
    const broken = breaksPlainText(name) ?? breaksJson(inner, depth + 1);
    if (broken !== null) return broken;
  }
  return null;
}

function isDate(text: string): boolean {
  const parts = DATE.exec(text);
  if (parts === null) return false;
  const [year, month, day] = [Number(parts[1]), Number(parts[2]), Number(parts[3])];
  if (month < 1 || month > 12 || day < 1) return false;
  const leap = (year % 4 === 0 && year % 100 !== 0) || year % 400 === 0;
  const days = month === 2 ? (leap ? 29 : 28) : [4, 6, 9, 11].includes(month) ? 30 : 31;
  return day <= days;
}

function describe(given: Json): string {
  if (Array.isArray(given)) return "a list";
  if (given === null) return "null";
  if (typeof given === "string") return given === "" ? "empty" : "text";
  return typeof given === "bigint"
    ? "a number"
    : typeof given === "object"
      ? "an object"
      : `a ${typeof given}`;
}
