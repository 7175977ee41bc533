/** Edits of a form's parts. Each one changes only the lines of its part. */
import { ExactNumber, type Json, parseExact } from "../../base/exact-json.ts";
import { type JsonNode, nodeAt, readTree, type Step } from "../../editor/json-tree.ts";
import type { Schema } from "../../editor/schema.ts";
import { removeAt, setValue } from "../../editor/text-edit.ts";
import { constOf, type GroupPart, isNumber, type Part } from "./form-part.ts";

/** Writes a text. An optional field that becomes empty is removed. */
export function writeText(text: string, part: Part, typed: string): string {
  return typed === "" && !part.isRequired ? removePart(text, part) : setValue(text, part.steps, typed);
}

/** Writes a number with its digits as typed. Returns null if it is no number. */
export function writeNumber(text: string, part: Part, typed: string): string | null {
  if (typed === "" && !part.isRequired) return removePart(text, part);
  return isNumber(typed) ? setValue(text, part.steps, new ExactNumber(typed)) : null;
}

/** Removes a field, and the optional object around it that becomes empty. */
export function removePart(text: string, { steps, holder }: Part): string {
  const edited = removeAt(text, steps);
  if (holder === null) return edited;
  const node = nodeAt(readTree(edited), holder);
  return node?.kind === "object" && node.members.length === 0 ? removeAt(edited, holder) : edited;
}

/** Chooses another variant. Fields that both variants have alike keep their values. */
export function chooseVariant(text: string, part: GroupPart, chosen: string): string {
  const { variants, node, steps } = part;
  const variant = variants?.schemas.find((one) => constOf(one, variants.name) === chosen);
  if (variants === null || variant === undefined) return text;
  const before = variants.schemas.find((one) => constOf(one, variants.name) === variants.chosen);
  const ruleOf = (schema: Schema | undefined, name: string) => JSON.stringify(schema?.properties?.[name]);
  const kept = Object.entries(readValue(text, node)).filter(
    ([name]) => variant.properties?.[name] !== undefined && ruleOf(variant, name) === ruleOf(before, name),
  );
  return setValue(text, steps, { ...emptyVariant(variant, variants.name), ...Object.fromEntries(kept) });
}

/** Returns the value of a node of the text. */
export function readValue(text: string, node: JsonNode | null): { [name: string]: Json } {
  return node === null ? {} : (parseExact(text.slice(node.from, node.to)) as { [name: string]: Json });
}

/** Returns a value of the variant with only its required fields, which the user fills in. */
export function emptyVariant(variant: Schema, name: string): { [name: string]: Json } {
  const [example] = (variant.examples ?? []) as readonly { [name: string]: Json }[];
  const fields = (variant.required ?? [])
    .filter((one) => one !== name)
    .map((one) => [one, emptyValue(variant.properties?.[one] ?? {}, example?.[one])] as const);
  return { [name]: constOf(variant, name), ...Object.fromEntries(fields) };
}

/** Only choices start as in the example, because the user would overwrite every other text. */
function emptyValue(schema: Schema, example: Json | undefined): Json {
  if (schema.oneOf !== undefined && example !== undefined) return example;
  if (schema.enum !== undefined) return (example ?? schema.enum[0] ?? "") as Json;
  if (schema.items?.enum !== undefined) return example ?? [];
  if (schema.type === "array") return [];
  if (schema.type === "object") return {};
  if (schema.type === "integer" || schema.type === "number") return schema.minimum ?? 0;
  return schema.type === "boolean" ? false : "";
}

/** Returns the steps as a problem names its field. */
export function pathOf(steps: readonly Step[]): string {
  return steps.join(".");
}
