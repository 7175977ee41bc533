/**
 * Reading a value that may be anything: how large it may be, checked before anything walks it by a walk that stops at the first bound, and the
 * parts that the rules beyond the shapes can be checked on, whatever else is wrong with it, so that all problems are told at once. A field
 * that does not fit is stood in for by one of the type's own examples; its problem is told by the shape alone.
 */
import type { TSchema } from "typebox";
import { findAction } from "../action/registry.ts";
import { checkShape, dropStrangers } from "../ground/check-shape.ts";
import { isJsonObject, type Json, type JsonObject } from "../ground/json.ts";
import { MAX_JSON_DEPTH } from "../ground/limit.ts";
import type { Problem } from "../ground/refusal.ts";
import { joinField } from "../ground/shape.ts";
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

/** The parts of any object; `checkBounds` found none broken. */
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

/** Objects, lists and scalars together. */
const MAX_DEFINITION_VALUES = 2_500;
/** Characters of all names and texts together: ten of the longest e-mails and as much again. */
const MAX_DEFINITION_CHARS = 256 * 1024;

/** Openings of templates, `{{`, in all texts together: each is parsed and judged several times in a save. */
const MAX_DEFINITION_TEMPLATES = 2_000;

const RESERVED = "__proto__";

interface Place {
  value: unknown;
  depth: number;
  field: string;
}

/** The bound that the value breaks, if any, or every place of a reserved name. Takes time bounded by the limits, whatever the value. */
export function checkBounds(root: unknown): Problem[] {
  const open: Place[] = [{ value: root, depth: 0, field: "" }];
  const problems: Problem[] = [];
  let values = 0;
  let chars = 0;
  let templates = 0;
  for (let place = open.pop(); place !== undefined; place = open.pop()) {
    const { value, depth, field } = place;
    values += 1;
    if (typeof value === "string") {
      chars += value.length;
      templates += countOpenings(value, MAX_DEFINITION_TEMPLATES - templates);
    }
    if (templates > MAX_DEFINITION_TEMPLATES) {
      return [tooLarge(`more than ${MAX_DEFINITION_TEMPLATES.toLocaleString("en")} templates`)];
    }
    if (typeof value === "bigint" && isLong(value)) return [tooLarge("a number of more than 300 digits")];
    if (depth > MAX_JSON_DEPTH) return [tooLarge(`nested more than ${MAX_JSON_DEPTH} levels deep`)];
    const names = isJsonObject(value) ? Object.keys(value) : null;
    const size = names?.length ?? (Array.isArray(value) ? value.length : 0);
    if (values + open.length + size > MAX_DEFINITION_VALUES) {
      return [tooLarge(`more than ${MAX_DEFINITION_VALUES.toLocaleString("en")} values`)];
    }
    for (const name of names ?? []) {
      chars += name.length;
      if (name === RESERVED) problems.push(refuseReserved(field));
      open.push({
        value: (value as Record<string, unknown>)[name],
        depth: depth + 1,
        field: joinField(field, name),
      });
    }
    if (Array.isArray(value)) {
      value.forEach((item, index) => {
        open.push({ value: item, depth: depth + 1, field: joinField(field, String(index)) });
      });
    }
    if (chars > MAX_DEFINITION_CHARS) {
      return [tooLarge(`more than ${MAX_DEFINITION_CHARS.toLocaleString("en")} characters`)];
    }
  }
  return problems;
}

/** Stops counting behind `most`. */
function countOpenings(text: string, most: number): number {
  let count = 0;
  for (let at = text.indexOf("{{"); at >= 0 && count <= most; at = text.indexOf("{{", at + 2)) count += 1;
  return count;
}

/** Comparing is cheap, writing its digits is not. */
function isLong(value: bigint): boolean {
  return value >= LONGEST || value <= -LONGEST;
}

const LONGEST = 10n ** 300n;

function refuseReserved(field: string): Problem {
  const place = joinField(field, RESERVED);
  return {
    field: place,
    message: `\`${place}\` is a name that no object may have here: choose another name.`,
  };
}

function tooLarge(what: string): Problem {
  return {
    field: "",
    message: `The definition is ${what.startsWith("nested") ? what : `too large: ${what}`}; make it smaller.`,
  };
}
