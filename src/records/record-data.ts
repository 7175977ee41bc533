/**
 * A record's data against its collection's fields: known names only, every value by its field's rule, bounded in all. It says
 * every problem at once (the first twenty of a hopeless one), and never looks a file up; record.ts does. Source: decisions, section 5.
 */
import { isJsonObject, type Json, type JsonObject, writeJson } from "../ground/json.ts";
import { MAX_RECORD_BYTES } from "../ground/limit.ts";
import type { Problem } from "../ground/refusal.ts";
import { cutToLine, findNearestName, utf8Bytes } from "../ground/text.ts";
import type { FieldRules } from "./collection-field.ts";
import { readFieldValue } from "./field-value.ts";

interface RecordData {
  /** What is stored; fields given null are left out. */
  data: JsonObject;
  problems: Problem[];
}

const LONGEST_NAME_SHOWN = 63;
/** Enough to correct a record by; a hostile one with a million unknown names is not worth a million sentences. */
const MAX_PROBLEMS = 20;

/** Reads `data` for a collection. `rendered`: its strings went through templates (see field-value.ts). */
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
      problems.push(refuseUnknown(name, fields));
      continue;
    }
    const reading = readFieldValue(rule, given, rendered);
    if ("refused" in reading) problems.push(refuse(name, reading.refused));
    else if (reading.value !== undefined) kept.push([name, reading.value]);
  }
  const present = new Set([
    ...kept.map(([name]) => name),
    ...problems.map((problem) => problem.field.slice(5)),
  ]);
  for (const [name, rule] of fields) {
    if (problems.length >= MAX_PROBLEMS) break;
    if (rule.required && !present.has(name)) {
      const why = Object.hasOwn(data, name) ? "is empty" : "is missing";
      problems.push(refuse(name, `${why}: the collection requires it, so give it a value`));
    }
  }
  // Object.fromEntries makes own properties, also of a name such as __proto__.
  const stored = Object.fromEntries(kept);
  if (problems.length === 0 && utf8Bytes(writeJson(stored)) > MAX_RECORD_BYTES) {
    const message = `\`data\` takes more than ${MAX_RECORD_BYTES} bytes as JSON: upload large things as files and keep their ids.`;
    problems.push({ field: "data", message });
  }
  return { data: stored, problems };
}

function refuse(name: string, sentence: string): Problem {
  return { field: `data.${name}`, message: `\`data.${name}\` ${sentence}.` };
}

function refuseUnknown(name: string, fields: FieldRules): Problem {
  const shown = cutToLine(name, LONGEST_NAME_SHOWN);
  const near = findNearestName(shown, [...fields.keys()]);
  const todo = near === null ? "remove it, or add the field to the collection" : `did you mean ${near}?`;
  return {
    field: `data.${shown}`,
    message: `\`data.${shown}\` is not a field of the collection: ${todo}${near === null ? "." : ""}`,
  };
}
