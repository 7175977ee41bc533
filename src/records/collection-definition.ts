/**
 * What a collection may say: its name, its kind and its fields, read from what a person wrote, every problem at once. It never asks
 * the store whether the name is free. Source: decisions, section 5.
 */
import { isJsonObject } from "../ground/json.ts";
import { type Problem, Refusal } from "../ground/refusal.ts";
import { CATALOG_NAME } from "../ground/shape.ts";
import { type FieldRules, parseFieldRules } from "./collection-field.ts";

/** shared: anyone signed in reads. private: its owner. addressed: app-owned, one recipient. direct: person to person. */
export const COLLECTION_KINDS = ["shared", "private", "addressed", "direct"] as const;
export type CollectionKind = (typeof COLLECTION_KINDS)[number];

export interface CollectionDefinition {
  name: string;
  kind: CollectionKind;
  fields: FieldRules;
}

/** Reads `{ name, kind, fields }` as a person wrote it. `definition` is null when there is a problem. */
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

/** `parseCollection`, or the refusal `invalid_input` with every problem. */
export function requireCollectionDefinition(value: unknown): CollectionDefinition {
  const { definition, problems } = parseCollection(value);
  if (definition !== null) return definition;
  throw new Refusal("invalid_input", problems.map((problem) => problem.message).join(" "), { problems });
}
