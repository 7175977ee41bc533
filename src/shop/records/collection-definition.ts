/**
 * The definition of a collection: its name, kind and fields, parsed from user input with all problems at once. It does not check whether the
 * name is free and reads no record. Source: decisions, section 5.
 */
import { isJsonObject, type JsonObject } from "../../base/json.ts";
import { MAX_COLLECTION_FIELDS } from "../../base/limit.ts";
import { type Problem, Refusal } from "../../base/refusal.ts";
import { CATALOG_NAME, FIELD_NAME } from "../../base/shape.ts";

/** shared: any signed-in person reads. private: its owner. addressed: owned by the app, with one recipient. direct: from person to person. */
export const COLLECTION_KINDS = ["shared", "private", "addressed", "direct"] as const;
export type CollectionKind = (typeof COLLECTION_KINDS)[number];

export interface CollectionDefinition {
  name: string;
  kind: CollectionKind;
  fields: FieldRules;
}

/** Parses `{ name, kind, fields }`. `definition` is null if there is a problem. */
export function parseCollection(value: unknown): {
  definition: CollectionDefinition | null;
  problems: Problem[];
} {
  if (!isJsonObject(value)) {
    const message = "The collection is not an object: give its name, kind and fields.";
    return { definition: null, problems: [{ field: "", message }] };
  }
  const problems: Problem[] = [];
  for (const key of Object.keys(value)) {
    if (key === "name" || key === "kind" || key === "fields") continue;
    problems.push({
      field: key,
      message: `\`${key}\` is not known: a collection has name, kind and fields, so remove it.`,
    });
  }
  const { name } = value;
  if (typeof name !== "string" || !CATALOG_NAME.test(name)) {
    const message =
      "`name` is not valid: use lowercase letters, digits, hyphens and underscores, starting with a letter, at most 63 characters.";
    problems.push({ field: "name", message });
  }
  const kind = COLLECTION_KINDS.find((known) => known === value.kind);
  if (kind === undefined) {
    problems.push({
      field: "kind",
      message: `\`kind\` is not valid: use one of ${COLLECTION_KINDS.join(", ")}.`,
    });
  }
  const fields = parseFieldRules(value.fields);
  problems.push(...fields.problems);
  if (typeof name !== "string" || kind === undefined || problems.length > 0)
    return { definition: null, problems };
  return { definition: { name, kind, fields: fields.rules }, problems };
}

/** Parses a definition, or throws `invalid_input` with every problem. */
export function requireCollectionDefinition(value: unknown): CollectionDefinition {
  const { definition, problems } = parseCollection(value);
  if (definition !== null) return definition;
  throw new Refusal("invalid_input", problems.map((problem) => problem.message).join(" "), { problems });
}

const FIELD_TYPES = ["text", "number", "boolean", "date", "json", "file"] as const;
export type FieldType = (typeof FIELD_TYPES)[number];

/** Builds the JSON Schema of a collection in `catalog.json`, for editors. `parseCollection` decides what is valid. */
export function makeCollectionSchema(): JsonObject {
  const type = { enum: [...FIELD_TYPES], description: "What the field holds." };
  const rule = {
    type: "object",
    required: ["type"],
    additionalProperties: false,
    properties: {
      type,
      required: { type: "boolean", description: "Present and not null." },
      max: {
        type: "number",
        description:
          "The most characters of a text, the greatest number, or the most bytes of a json or file field; other types have no max.",
      },
    },
  };
  return {
    type: "object",
    description: "A collection: the fields of its records, and who can read them.",
    required: ["kind", "fields"],
    additionalProperties: false,
    properties: {
      kind: {
        enum: [...COLLECTION_KINDS],
        description:
          "shared: every signed-in person reads; private: only the owner; addressed: from the app to one recipient; direct: from person to person.",
      },
      fields: {
        type: "object",
        description: "Each field by name: only its type, or a rule.",
        maxProperties: MAX_COLLECTION_FIELDS,
        additionalProperties: false,
        patternProperties: { [FIELD_NAME.source]: { anyOf: [type, rule] } },
      },
    },
  };
}

/** The unit that `max` limits, as a phrase; other types have no `max`. */
const MAX_MEANS: Readonly<Partial<Record<FieldType, string>>> = {
  text: "characters",
  number: "the greatest value",
  json: "bytes of JSON",
  file: "bytes of the file",
};

export interface FieldRule {
  type: FieldType;
  /** True if the field must be present and not null; an empty text counts as present. */
  required: boolean;
  /** The most characters of a text, the greatest number, or the most bytes of a json or file; null: the field sets no limit. */
  max: number | null;
}

export type FieldRules = ReadonlyMap<string, FieldRule>;

/** The fields as stored and shown: `{ "title": { "type": "text", "required": true, "max": 200 } }`. */
export type ShownFields = Readonly<Record<string, ShownRule>>;
type ShownRule = { type: FieldType; required?: boolean; max?: number };

export function showFields(rules: FieldRules): ShownFields {
  return Object.fromEntries([...rules].map(([name, rule]) => [name, showRule(rule)]));
}

function showRule({ type, required, max }: FieldRule): ShownRule {
  return { type, ...(required ? { required } : {}), ...(max === null ? {} : { max }) };
}

/** Parses the fields: each is an object or only its type (`"title": "text"`). Returns all problems at once. */
function parseFieldRules(fields: unknown): { rules: FieldRules; problems: Problem[] } {
  const rules = new Map<string, FieldRule>();
  if (!isJsonObject(fields)) {
    const message =
      '`fields` is not an object: give each field\'s name and rule, such as { "title": { "type": "text" } }.';
    return { rules, problems: [{ field: "fields", message }] };
  }
  const problems: Problem[] = [];
  const names = Object.keys(fields);
  if (names.length > MAX_COLLECTION_FIELDS) {
    const message = `\`fields\` has ${names.length} fields: a collection can have at most ${MAX_COLLECTION_FIELDS}, so put the others into a json field.`;
    return { rules, problems: [{ field: "fields", message }] };
  }
  for (const name of names) {
    const given = fields[name];
    const rule = readRule(name, typeof given === "string" ? { type: given } : given, problems);
    if (rule !== null) rules.set(name, rule);
  }
  return { rules, problems };
}

function readRule(name: string, given: unknown, problems: Problem[]): FieldRule | null {
  const field = `fields.${name}`;
  const before = problems.length;
  const reject = (place: string, sentence: string) =>
    problems.push({ field: place, message: `\`${place}\` ${sentence}` });
  if (!FIELD_NAME.test(name) || name === "__proto__") {
    reject(
      field,
      "is not a field name: use letters, digits, underscores and hyphens, starting with a letter, at most 63.",
    );
  }
  if (!isJsonObject(given)) {
    reject(field, 'is not a rule: write an object such as { "type": "text", "required": true }.');
    return null;
  }
  for (const key of Object.keys(given)) {
    if (key !== "type" && key !== "required" && key !== "max") {
      reject(`${field}.${key}`, "is not known: a field has type, required and max, so remove it.");
    }
  }
  const type = FIELD_TYPES.find((known) => known === given.type);
  if (type === undefined) reject(`${field}.type`, `is not a type: use one of ${FIELD_TYPES.join(", ")}.`);
  const required = given.required ?? false;
  if (typeof required !== "boolean")
    reject(`${field}.required`, "is neither true nor false: write one of them.");
  const max = readMax(given.max, type, (sentence) => reject(`${field}.max`, sentence));
  if (type === undefined || problems.length > before) return null;
  return { type, required: required === true, max };
}

function readMax(
  given: unknown,
  type: FieldType | undefined,
  reject: (sentence: string) => void,
): number | null {
  if (given === undefined || given === null || type === undefined) return null;
  const means = MAX_MEANS[type];
  if (means === undefined) {
    reject(`does not apply to a ${type} field: remove it.`);
    return null;
  }
  const fits =
    typeof given === "number" &&
    Number.isFinite(given) &&
    (type === "number" || (Number.isInteger(given) && given >= 1));
  if (!fits) {
    reject(
      `is not valid: for a ${type} field it is ${means}, ${type === "number" ? "a number" : "an integer from 1"}.`,
    );
    return null;
  }
  return given;
}
