/**
 * The shape of a complete definition, made from the registries' shapes, also as JSON Schema. A new trigger, scheme or action is part of
 * it automatically. This file also repairs a value that does not fit, so that the rules beyond the shapes can report their problems too.
 * A part that does not fit is replaced by one of its type's examples; only the shape reports it.
 */
import { type TSchema, Type } from "typebox";
import { checkShape, dropStrangers } from "../../base/check-shape.ts";
import { isJsonObject, type Json, type JsonObject } from "../../base/json.ts";
import { MAX_ACTIONS_PER_RELAY } from "../../base/limit.ts";
import { RELAY_NAME } from "../../base/shape.ts";
import { ACTIONS, findAction } from "../action/registry.ts";
import { findTrigger, TRIGGERS, type Trigger } from "../trigger/registry.ts";
import { findScheme, SCHEMES } from "../verify/registry.ts";

export type Definition = {
  /** 2 to 63 characters: the file's name and the last segment of the receiver URL. */
  name: string;
  trigger: Trigger;
  /** 1 to 10, run in order. */
  actions: ActionDefinition[];
};

/** An action that fits its type's shape. */
export interface ActionDefinition {
  type: string;
  [field: string]: Json;
}

const triggerShape = Type.Union(
  TRIGGERS.map((trigger): TSchema => trigger.shape),
  {
    description: "The event that the relay waits for: exactly one trigger.",
    expects: `one trigger object, such as { "kind": "schedule", "every": "1d" }`,
    discriminator: "kind",
  },
);

const actionShape = Type.Union(
  ACTIONS.map((action): TSchema => action.shape),
  {
    description: "One step that the relay runs.",
    expects: `an action object, such as { "type": "call_url", "url": "https://example.com/notice" }`,
    discriminator: "type",
  },
);

export const definitionShape = Type.Object(
  {
    name: Type.String({
      pattern: RELAY_NAME.source,
      description:
        "The relay's name, which is also the name of its file and the last segment of its receiver URL. It cannot change later.",
      expects: "2 to 63 characters, lowercase letters, digits and hyphens, starting with a letter",
    }),
    trigger: triggerShape,
    actions: Type.Array(actionShape, {
      minItems: 1,
      maxItems: MAX_ACTIONS_PER_RELAY,
      description: "The actions that the relay runs, in order; a failure stops the rest.",
      expects: `a list of 1 to ${MAX_ACTIONS_PER_RELAY} actions, run in order`,
    }),
  },
  {
    additionalProperties: false,
    description: "A relay: when the trigger happens, run the actions in order.",
    expects: "a JSON object with name, trigger and actions",
    strangers: {
      $schema: "remove it; `relay init` writes editor settings that name the schema",
      secret: "remove it, because a definition contains no secrets; set it with relay relays set-secret",
      triggers: "name it `trigger`; a relay has exactly one",
      action: "name it `actions` and make it a list",
      when: "move it into `trigger`",
      map: "move it into `trigger`",
      verify: "move it into `trigger`",
    },
  },
);

/** The keywords of JSON Schema that the shapes use. Other properties of a shape are the project's own and are not published. */
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

/** The project's own words from which an editor completes, under names that JSON Schema allows. */
const EDITOR_KEYWORDS = { names: "x-names", knownNames: "x-known-names", templated: "x-templated" } as const;

/** The names after the first word of a template path, where they are fixed. */
export const TEMPLATE_NAMES: Readonly<Record<string, readonly string[]>> = {
  person: ["email", "id"],
  previous: ["data", "id"],
  record: ["data", "id"],
  tick: ["periodStart"],
};

function templatePaths(roots: readonly string[]): string[] {
  return roots.flatMap((root) => TEMPLATE_NAMES[root]?.map((name) => `${root}.${name}`) ?? [root]);
}

/** Title and examples of each variant, by the field and the literal that identify it. */
const VARIANT_NOTES: ReadonlyMap<string, VariantNotes> = new Map<string, VariantNotes>([
  ...ACTIONS.map(({ type, title, examples }) => [`type ${type}`, { title, examples }] as const),
  ...TRIGGERS.map(
    ({ kind, title, examples, templateRoots }) =>
      [`kind ${kind}`, { title, examples, "x-template-paths": templatePaths(templateRoots) }] as const,
  ),
  ...SCHEMES.map(({ name, title, examples }) => [`scheme ${name}`, { title, examples }] as const),
]);

interface VariantNotes {
  title: string;
  examples: readonly unknown[];
  /** The paths that a template may read under a trigger. */
  "x-template-paths"?: readonly string[];
}

/** Makes a new copy each time. */
export function makeDefinitionSchema(): JsonObject {
  return {
    $schema: "https://json-schema.org/draft/2020-12/schema",
    title: "Relay definition",
    ...toJsonSchema(definitionShape),
  };
}

/** Converts a shape of this project to plain JSON Schema, for editors. */
export function toJsonSchema(shape: object): JsonObject {
  return translate(shape as Shape);
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
  for (const [word, keyword] of Object.entries(EDITOR_KEYWORDS)) {
    if (shape[word] !== undefined) schema[keyword] = structuredClone(shape[word]);
  }
  for (const keyword of ["properties", "patternProperties"]) {
    const named = shape[keyword];
    if (isShape(named)) {
      schema[keyword] = Object.fromEntries(
        Object.entries(named).map(([name, part]) => [name, translate(part as Shape)]),
      );
    }
  }
  // The check also rejects a name that fits no pattern.
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
    // Repeated outside the variants, so that an editor can complete the name before a variant is chosen.
    properties: { [discriminator]: { enum: names } },
    oneOf: variants.map((variant, index) => ({
      ...VARIANT_NOTES.get(`${discriminator} ${names[index]}`),
      ...translate(variant),
    })),
  };
}

function readLiteral(variant: Shape, discriminator: string): string {
  const properties = variant.properties as Record<string, Shape> | undefined;
  return String(properties?.[discriminator]?.const);
}

function describe({ description, expects, type, properties }: Shape): string | null {
  if (typeof description !== "string") return null;
  const showsExpectation = typeof expects === "string" && type !== "object" && properties === undefined;
  return showsExpectation ? `${description} It must be ${expects}.` : description;
}

function isShape(value: unknown): value is Shape {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

export interface DefinitionParts {
  /** `kind`, and the fields that fit or were repaired. null: the kind is unknown. */
  trigger: ({ kind: Trigger["kind"] } & JsonObject) | null;
  /** True if `trigger.verify` fits as written, so that the unsigned rule can ask its scheme. */
  verifyFits: boolean;
  /** The action at each index, repaired if needed; only its type if the type is unknown or it does not fit; null without a type. */
  actions: readonly ({ action: ActionDefinition; fits: boolean } | null)[];
}

/** Reads the parts of an object that breaks no limit. */
export function readParts(value: JsonObject): DefinitionParts {
  const trigger = readTrigger(value.trigger);
  const given = isJsonObject(value.trigger) ? value.trigger.verify : undefined;
  return {
    trigger,
    verifyFits: trigger?.kind === "receiver" && isJsonObject(given) && fitsScheme(given),
    actions: Array.isArray(value.actions) ? value.actions.map(readAction) : [],
  };
}

function readTrigger(given: Json | undefined): DefinitionParts["trigger"] {
  if (!isJsonObject(given) || typeof given.kind !== "string") return null;
  const trigger = findTrigger(given.kind);
  if (trigger === null) return null;
  const value = dropStrangers(trigger.shape, given) as JsonObject;
  const parts: JsonObject = {};
  for (const [name, shape] of Object.entries(propertiesOf(trigger.shape))) {
    const part = Object.hasOwn(value, name) ? value[name] : undefined;
    const repaired = part === undefined ? undefined : repairPart(name, shape, part);
    if (repaired !== undefined) parts[name] = repaired;
  }
  return { ...parts, kind: trigger.kind };
}

/** Returns the part where it fits, else a repaired one, else undefined. */
function repairPart(name: string, shape: TSchema, part: Json): Json | undefined {
  if (fits(shape, part)) return part;
  if (!isJsonObject(part)) return undefined;
  const scheme = name === "verify" && typeof part.scheme === "string" ? findScheme(part.scheme) : null;
  if (scheme !== null) return repairObject(scheme.shape, part, scheme.examples as readonly JsonObject[]);
  const entry = Object.values(
    (shape as { patternProperties?: Record<string, TSchema> }).patternProperties ?? {},
  )[0];
  if (entry === undefined) return undefined;
  return Object.fromEntries(
    Object.entries(part).map(([key, one]) => [key, fits(entry, one) ? one : "stand-in"]),
  );
}

function readAction(given: Json): { action: ActionDefinition; fits: boolean } | null {
  if (!isJsonObject(given) || typeof given.type !== "string") return null;
  const type = findAction(given.type);
  if (type === null) return { action: given as ActionDefinition, fits: false };
  const value = dropStrangers(type.shape, given) as JsonObject;
  const repaired = repairObject(type.shape, value, type.examples as readonly JsonObject[]);
  return repaired === undefined
    ? { action: given as ActionDefinition, fits: false }
    : { action: repaired as ActionDefinition, fits: true };
}

function repairObject(
  shape: TSchema,
  value: JsonObject,
  examples: readonly JsonObject[],
): JsonObject | undefined {
  const required = (shape as { required?: readonly string[] }).required ?? [];
  const repaired: JsonObject = {};
  for (const [name, property] of Object.entries(propertiesOf(shape))) {
    const part = Object.hasOwn(value, name) ? value[name] : undefined;
    if (part === undefined && !required.includes(name)) continue;
    const standIn =
      part !== undefined && fits(property, part) ? part : examples.find((one) => name in one)?.[name];
    if (standIn !== undefined) repaired[name] = standIn;
  }
  return fits(shape, repaired) ? repaired : undefined;
}

function fitsScheme(verify: JsonObject): boolean {
  const scheme = typeof verify.scheme === "string" ? findScheme(verify.scheme) : null;
  return scheme !== null && fits(scheme.shape, dropStrangers(scheme.shape, verify));
}

function fits(shape: TSchema, value: unknown): boolean {
  return checkShape(shape, value).length === 0;
}

function propertiesOf(shape: TSchema): Record<string, TSchema> {
  return (shape as { properties?: Record<string, TSchema> }).properties ?? {};
}
