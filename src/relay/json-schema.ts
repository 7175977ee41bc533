/**
 * The JSON Schema (draft 2020-12) of a definition, for editors, made from the shapes that the check reads. It says less than the check
 * does: rules between fields are only in the check.
 */
import { ACTIONS } from "../action/registry.ts";
import type { JsonObject } from "../ground/json.ts";
import { TRIGGERS } from "../trigger/registry.ts";
import { SCHEMES } from "../verify/registry.ts";
import { definitionShape } from "./definition-shape.ts";

/** The keywords of JSON Schema that the shapes use; every other property of a shape is the house's own and stays in it. */
const KEYWORDS = [
  "type",
  "const",
  "enum",
  "required",
  "additionalProperties",
  "minItems",
  "maxItems",
  "uniqueItems",
  "minLength",
  "maxLength",
  "minimum",
  "maximum",
  "minProperties",
  "maxProperties",
  "pattern",
] as const;

/** Title and examples of each variant, by the literal that tells it apart. */
const NOTES: ReadonlyMap<string, { title: string; examples: readonly unknown[] }> = new Map([
  ...ACTIONS.map(({ type, title, examples }) => [type, { title, examples }] as const),
  ...TRIGGERS.map(({ kind, title, examples }) => [kind, { title, examples }] as const),
  ...SCHEMES.map(({ name, title, examples }) => [name, { title, examples }] as const),
]);

/** A new copy each time. */
export function makeDefinitionSchema(): JsonObject {
  return {
    $schema: "https://json-schema.org/draft/2020-12/schema",
    title: "Relay definition",
    ...translate(definitionShape as unknown as Shape),
  };
}

type Shape = { [keyword: string]: unknown };

function translate(shape: Shape): JsonObject {
  const schema: Shape = {};
  const description = describe(shape);
  if (description !== null) schema.description = description;
  for (const keyword of KEYWORDS) {
    const value = shape[keyword];
    if (value !== undefined) schema[keyword] = isShape(value) ? translate(value) : structuredClone(value);
  }
  for (const keyword of ["properties", "patternProperties"]) {
    const named = shape[keyword];
    if (isShape(named)) {
      schema[keyword] = Object.fromEntries(
        Object.entries(named).map(([name, part]) => [name, translate(part as Shape)]),
      );
    }
  }
  // A name that fits no pattern is refused by the check too.
  if (isShape(shape.patternProperties)) schema.additionalProperties ??= false;
  if (isShape(shape.items)) schema.items = translate(shape.items);
  if (Array.isArray(shape.anyOf)) Object.assign(schema, translateUnion(shape, shape.anyOf as Shape[]));
  return schema as JsonObject;
}

function translateUnion(shape: Shape, variants: readonly Shape[]): Shape {
  const literals = variants.map((variant) => variant.const);
  if (literals.every((literal) => literal !== undefined)) return { enum: literals };
  const { discriminator } = shape;
  if (typeof discriminator !== "string") return { anyOf: variants.map(translate) };
  const names = variants.map((variant) => readLiteral(variant, discriminator));
  return {
    type: "object",
    required: [discriminator],
    // Said once more outside the variants, so that an editor completes the name before a variant is chosen.
    properties: { [discriminator]: { enum: names } },
    oneOf: variants.map((variant, index) => ({ ...NOTES.get(names[index] ?? ""), ...translate(variant) })),
  };
}

function readLiteral(variant: Shape, discriminator: string): string {
  const properties = variant.properties as Record<string, Shape> | undefined;
  return String(properties?.[discriminator]?.const);
}

function describe({ description, expects, type, properties }: Shape): string | null {
  if (typeof description !== "string") return null;
  const told = typeof expects === "string" && type !== "object" && properties === undefined;
  return told ? `${description} It must be ${expects}.` : description;
}

function isShape(value: unknown): value is Shape {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
