/**
 * Validates a record's data against its collection's fields: known names only, each value by its field's rule, only uploaded files, and a
 * total size. It reports all problems at once, up to a limit. Source: decisions, section 5.
 */

import { isId } from "../../base/id.ts";
import { isJsonObject, type Json, type JsonObject, parseJson, writeJson } from "../../base/json.ts";
import { MAX_JSON_DEPTH, MAX_PROBLEMS, MAX_RECORD_BYTES } from "../../base/limit.ts";
import type { Problem } from "../../base/refusal.ts";
import { breaksPlainText, countChars, cutToLine, findNearestName, utf8Bytes } from "../../base/text.ts";
import type { Reader } from "../../store/port.ts";
import type { FieldRule, FieldRules, FieldType } from "./collection-definition.ts";
import { findFile } from "./file.ts";

interface RecordData {
  /** The data to store, without fields given as null. */
  data: JsonObject;
  problems: Problem[];
}

const LONGEST_NAME_SHOWN = 63;

/** Reads `data` for a collection. `rendered`: its strings come from templates. */
export function readRecordData(fields: FieldRules, data: Json, rendered: boolean): RecordData {
  if (!isJsonObject(data)) {
    const message = "`data` is not an object: give the record's fields by name.";
    return { data: {}, problems: [{ field: "data", message }] };
  }
  const problems: Problem[] = [];
  const kept: [string, Json][] = [];
  for (const [name, given] of Object.entries(data)) {
    if (problems.length >= MAX_PROBLEMS) break;
    const rule = fields.get(name);
    if (rule === undefined) {
      problems.push(rejectUnknownField(name, fields));
      continue;
    }
    const reading = readFieldValue(rule, given, rendered);
    if ("reason" in reading) problems.push(reject(name, reading.reason));
    else if (reading.value !== undefined) kept.push([name, reading.value]);
  }
  // Object.fromEntries creates own properties, also for a name such as __proto__.
  const stored = Object.fromEntries(kept);
  for (const [name, rule] of fields) {
    if (problems.length >= MAX_PROBLEMS) break;
    if (!rule.required || Object.hasOwn(stored, name)) continue;
    if (problems.some(({ field }) => field === `data.${name}`)) continue;
    const why = Object.hasOwn(data, name) ? "is empty" : "is missing";
    problems.push(reject(name, `${why}: the collection requires it, so give it a value`));
  }
  if (problems.length === 0 && mayBeTooLarge(kept) && utf8Bytes(writeJson(stored)) > MAX_RECORD_BYTES) {
    const message = `\`data\` takes more than ${MAX_RECORD_BYTES} bytes as JSON: upload large data as files and store their ids.`;
    problems.push({ field: "data", message });
  }
  return { data: stored, problems };
}

/**
 * Estimates whether the data may exceed the size limit, to avoid serializing it: a character takes at most six bytes, and numbers and names
 * have bounds.
 */
function mayBeTooLarge(kept: readonly (readonly [name: string, value: Json])[]): boolean {
  let most = 2;
  for (const [name, value] of kept) {
    if (typeof value === "object" || typeof value === "bigint") return true;
    most += 6 * (name.length + (typeof value === "string" ? value.length : 0)) + 32;
  }
  return most > MAX_RECORD_BYTES;
}

function reject(name: string, sentence: string): Problem {
  return { field: `data.${name}`, message: `\`data.${name}\` ${sentence}.` };
}

function rejectUnknownField(name: string, fields: FieldRules): Problem {
  const shown = cutToLine(name, LONGEST_NAME_SHOWN);
  const near = findNearestName(shown, [...fields.keys()]);
  const todo = near === null ? "remove it, or add the field to the collection" : `did you mean ${near}?`;
  return {
    field: `data.${shown}`,
    message: `\`data.${shown}\` is not a field of the collection: ${todo}${near === null ? "." : ""}`,
  };
}

/** Checks file fields: each holds the id of a file that was uploaded to the same environment and fits the field's size. */
export async function checkFiles(
  tx: Reader,
  environmentId: number,
  fields: FieldRules,
  data: JsonObject,
): Promise<Problem[]> {
  const problems: Problem[] = [];
  for (const [name, rule] of fields) {
    const id = rule.type === "file" && Object.hasOwn(data, name) ? data[name] : undefined;
    if (typeof id !== "string") continue;
    const field = `data.${name}`;
    const file = await findFile(tx, environmentId, id);
    if (file === null) {
      const message = `\`${field}\` is not a file of this environment: upload the file first and use its id.`;
      problems.push({ field, message });
    } else if (rule.max !== null && file.bytes > rule.max) {
      const message = `\`${field}\` names a file of ${file.bytes} bytes: the field takes at most ${rule.max}.`;
      problems.push({ field, message });
    }
  }
  return problems;
}

/** Checks a value for a field. Returns what completes "`where.total` …", or null for a valid value. */
export function checkFieldValue(rule: FieldRule, value: Json): string | null {
  const reading = readFieldValue(rule, value, false);
  return "reason" in reading ? reading.reason : null;
}

/** The value to store (undefined: absent), or the problem, which completes "`data.total` …". */
type FieldReading = { value: Json | undefined } | { reason: string };

/** A JSON number without anything around it (RFC 8259, section 6). */
const NUMBER = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?$/;
const DATE =
  /^(\d{4})-(\d{2})-(\d{2})(?:T([01]\d|2[0-3]):[0-5]\d(?::[0-5]\d(?:\.\d{1,9})?)?(?:Z|[+-](?:[01]\d|2[0-3]):[0-5]\d))?$/;

/**
 * Reads a value for a field. `rendered`: it comes from a template and is always text. Number, boolean, date, json and file fields accept such
 * a text only if it is exactly one of their values, and an empty one (a path that resolved to nothing) counts as absent. Nothing is guessed:
 * "4,200" is no number and "yes" is no boolean.
 */
function readFieldValue(rule: FieldRule, given: Json, rendered: boolean): FieldReading {
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
    if (typeof given !== "string") return { reason: `is ${describe(given)}: it must be text` };
    const broken = breaksPlainText(given);
    if (broken !== null) return { reason: `${broken}: remove it` };
    if (rule.max !== null && given.length > rule.max && countChars(given) > rule.max) {
      return { reason: `is longer than ${rule.max} characters: shorten it` };
    }
    return { value: given };
  },
  number(rule, given) {
    if (isBeyondDouble(given)) {
      return { reason: "is too large or too small to be stored as a number: use a text field for it" };
    }
    if (typeof given !== "number" && typeof given !== "bigint") {
      return { reason: `is ${describe(given)}: it must be a number` };
    }
    if (rule.max !== null && given > rule.max) return { reason: `is greater than ${rule.max}: lower it` };
    return { value: given };
  },
  boolean(_rule, given) {
    return typeof given === "boolean"
      ? { value: given }
      : { reason: `is ${describe(given)}: it must be true or false` };
  },
  date(_rule, given) {
    return typeof given === "string" && isDate(given)
      ? { value: given }
      : {
          reason: `is ${describe(given)}: it must be an ISO date such as "2030-01-31" or "2030-01-31T12:00:00Z"`,
        };
  },
  json(rule, given) {
    const broken = breaksJson(given, 1);
    if (broken !== null) return { reason: `${broken}: correct it` };
    if (rule.max !== null && utf8Bytes(writeJson(given)) > rule.max) {
      return { reason: `takes more than ${rule.max} bytes as JSON: shorten it` };
    }
    return { value: given };
  },
  file(_rule, given) {
    return typeof given === "string" && isId("fil", given)
      ? { value: given }
      : { reason: `is ${describe(given)}: it must be the id of an uploaded file, such as fil_…` };
  },
};

/** Checks a value nested in a json field, where the rules of plain text apply too. */
function breaksJson(value: Json, depth: number): string | null {
  if (typeof value === "string") return breaksPlainText(value);
  if (typeof value === "number" && !Number.isFinite(value))
    return "contains a number that is too large to store";
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

/** Reports whether it is a number that is stored by its digits only (json.ts). */
function isBeyondDouble(given: Json): boolean {
  if (typeof given === "number") return !Number.isFinite(given);
  return typeof given === "object" && given !== null && !Array.isArray(given) && !isJsonObject(given);
}

function describe(given: Json): string {
  if (Array.isArray(given)) return "a list";
  if (given === null) return "null";
  if (isBeyondDouble(given)) return "a number";
  if (typeof given === "string") return given === "" ? "empty" : "text";
  return typeof given === "bigint"
    ? "a number"
    : typeof given === "object"
      ? "an object"
      : `a ${typeof given}`;
}
