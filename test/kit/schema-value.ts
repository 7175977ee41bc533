/** Draws values of a JSON Schema of definitions. */
import fc from "fast-check";
import type { Json } from "../../src/base/json.ts";
import type { Schema } from "../../web/editor/schema.ts";

interface Limits {
  maxLength?: number;
  minimum?: number;
  maximum?: number;
  minItems?: number;
  maxItems?: number;
  pattern?: string;
}

const MAX_PARTS = 4;

/** Returns values that the schema allows. The rules of a save beyond the schema can refuse them. */
export function valuesOf(schema: Schema & Limits): fc.Arbitrary<Json> {
  const { oneOf, anyOf, type, items } = schema;
  if (oneOf !== undefined || anyOf !== undefined) return fc.oneof(...(oneOf ?? anyOf ?? []).map(valuesOf));
  if (schema.const !== undefined) return fc.constant(schema.const as Json);
  if (schema.enum !== undefined) return fc.constantFrom(...(schema.enum as Json[]));
  if (schema.properties !== undefined) return recordsOf(schema);
  const [[pattern, value] = []] = Object.entries(schema.patternProperties ?? {});
  if (pattern !== undefined && value !== undefined)
    return fc.dictionary(fc.stringMatching(new RegExp(pattern)), valuesOf(value), { maxKeys: MAX_PARTS });
  if (type === "array" && items !== undefined) {
    const { minItems = 0, maxItems = MAX_PARTS } = schema;
    return fc.uniqueArray(valuesOf(items), { minLength: minItems, maxLength: Math.min(maxItems, MAX_PARTS), selector: (one) => JSON.stringify(one) });
  }
  if (type === "integer") return fc.integer({ min: schema.minimum ?? -1_000, max: schema.maximum ?? 1_000 });
  if (type === "number") return fc.integer();
  if (type === "boolean") return fc.boolean();
  if (type !== "string") return fc.jsonValue({ maxDepth: 3 }) as fc.Arbitrary<Json>;
  return schema.pattern === undefined ? fc.string({ maxLength: 40 }) : fc.stringMatching(new RegExp(schema.pattern));
}

function recordsOf({ properties = {}, required = [] }: Schema): fc.Arbitrary<Json> {
  const values = Object.fromEntries(Object.entries(properties).map(([name, own]) => [name, valuesOf(own)]));
  return fc.record(values, { requiredKeys: [...required] }) as fc.Arbitrary<Json>;
}
