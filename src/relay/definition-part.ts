/**
 * The parts of a value that fits no definition, on which the rules beyond the shapes are checked all the same, so that all problems are told at
 * once. A field that does not fit is stood in for by one of the type's own examples; its problem is told by the shape alone.
 */
import type { TSchema } from "typebox";
import { findAction } from "../action/registry.ts";
import { checkShape, dropStrangers } from "../ground/check-shape.ts";
import { isJsonObject, type Json, type JsonObject } from "../ground/json.ts";
import { findTrigger, type Trigger } from "../trigger/registry.ts";
import { findScheme } from "../verify/registry.ts";
import type { ActionDefinition } from "./definition-shape.ts";

export interface DefinitionParts {
  /** `kind`, and the fields that fit or could be stood in for; null without a known kind. */
  trigger: ({ kind: Trigger["kind"] } & JsonObject) | null;
  /** Whether `trigger.verify` is as written, so that it may be asked whether the sender signs. */
  verifyFits: boolean;
  /** By index: an action of a known type that fits, with stand-ins where needed; else its type alone; null without any type. */
  actions: readonly ({ action: ActionDefinition; fits: boolean } | null)[];
}

/** The parts of any object that breaks no bound. */
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
    const mended = part === undefined ? undefined : mendPart(name, shape, part);
    if (mended !== undefined) parts[name] = mended;
  }
  return { ...parts, kind: trigger.kind };
}

/** The part as it is where it fits, else with stand-ins for what does not, else undefined. */
function mendPart(name: string, shape: TSchema, part: Json): Json | undefined {
  if (fits(shape, part)) return part;
  if (!isJsonObject(part)) return undefined;
  const scheme = name === "verify" && typeof part.scheme === "string" ? findScheme(part.scheme) : null;
  if (scheme !== null) return mendObject(scheme.shape, part, scheme.examples as readonly JsonObject[]);
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
  const mended = mendObject(type.shape, value, type.examples as readonly JsonObject[]);
  return mended === undefined
    ? { action: given as ActionDefinition, fits: false }
    : { action: mended as ActionDefinition, fits: true };
}

function mendObject(
  shape: TSchema,
  value: JsonObject,
  examples: readonly JsonObject[],
): JsonObject | undefined {
  const required = (shape as { required?: readonly string[] }).required ?? [];
  const mended: JsonObject = {};
  for (const [name, property] of Object.entries(propertiesOf(shape))) {
    const part = Object.hasOwn(value, name) ? value[name] : undefined;
    if (part === undefined && !required.includes(name)) continue;
    const standIn =
      part !== undefined && fits(property, part) ? part : examples.find((one) => name in one)?.[name];
    if (standIn !== undefined) mended[name] = standIn;
  }
  return fits(shape, mended) ? mended : undefined;
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
