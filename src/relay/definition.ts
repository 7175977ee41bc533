/**
 * The definition of a relay: what it is, and the check that every path which saves or carries one goes through. All problems are told
 * at once. It looks nothing up: whether a collection, product or relay exists is the save's question.
 * Source: the specification's "Relay definition".
 */
import type { TSchema } from "typebox";
import { findAction } from "../action/registry.ts";
import { checkShape, dropStrangers } from "../ground/check-shape.ts";
import { isJsonObject, type Json, type JsonObject } from "../ground/json.ts";
import { type Problem, placeProblems } from "../ground/problem.ts";
import { refuseDefinition } from "../ground/refusal.ts";
import { findTrigger, type Trigger } from "../trigger/registry.ts";
import { checkBounds } from "./definition-bounds.ts";
import { checkPersonRule } from "./definition-person.ts";
import { definitionShape } from "./definition-shape.ts";
import { listWarnings } from "./definition-warning.ts";
import { checkUnsignedRule } from "./unsigned-rule.ts";

export interface Definition {
  name: string;
  trigger: Trigger;
  actions: ActionDefinition[];
}

/** An action as its type's shape says. */
export interface ActionDefinition {
  type: string;
  [field: string]: Json;
}

export type CheckedDefinition = { definition: Definition; warnings: string[] } | { problems: Problem[] };

/** More problems than anyone fixes in one go; the rest is counted. */
const MAX_PROBLEMS = 50;

/**
 * The definition with its warnings, or every problem. Never throws and takes bounded time on any JSON value. `definition` is the value
 * itself, not a copy.
 */
export function checkDefinition(value: unknown): CheckedDefinition {
  const unbounded = checkBounds(value);
  if (unbounded.length > 0) return { problems: unbounded };
  if (!isJsonObject(value)) {
    const message =
      'The definition is not a JSON object: write { "name": …, "trigger": { … }, "actions": [ … ] }.';
    return { problems: [{ field: "", message }] };
  }
  const problems = [...checkShape(definitionShape, value, ""), ...checkParts(readParts(value))];
  if (problems.length > 0) return { problems: capProblems(problems) };
  const definition = value as unknown as Definition;
  return { definition, warnings: listWarnings(definition) };
}

/** As `checkDefinition`; throws the Refusal `invalid_definition` with every problem. */
export function requireDefinition(value: unknown): { definition: Definition; warnings: string[] } {
  const checked = checkDefinition(value);
  if ("problems" in checked) throw refuseDefinition(checked.problems);
  return checked;
}

/** The parts of a definition that are well formed in themselves, so that rules are checked on them whatever else is wrong. */
export interface DefinitionParts {
  /** `kind`, and the fields that fit; null without a known kind. */
  trigger: ({ kind: Trigger["kind"] } & JsonObject) | null;
  /** By index: the whole action where it fits; `fits: false` keeps its type alone; null without a known type. */
  actions: readonly ({ fits: boolean; action: ActionDefinition } | null)[];
}

function readParts(value: JsonObject): DefinitionParts {
  return {
    trigger: readTrigger(value.trigger),
    actions: Array.isArray(value.actions) ? value.actions.map(readAction) : [],
  };
}

function readTrigger(given: Json | undefined): DefinitionParts["trigger"] {
  if (!isJsonObject(given) || typeof given.kind !== "string") return null;
  const trigger = findTrigger(given.kind);
  if (trigger === null) return null;
  const value = dropStrangers(trigger.shape, given) as JsonObject;
  const properties = (trigger.shape as { properties?: Record<string, TSchema> }).properties ?? {};
  const fitting = Object.entries(properties).filter(
    ([name, shape]) => Object.hasOwn(value, name) && checkShape(shape, value[name], name).length === 0,
  );
  const parts = Object.fromEntries(fitting.map(([name]) => [name, value[name] ?? null]));
  return { ...parts, kind: trigger.kind };
}

function readAction(given: Json): { fits: boolean; action: ActionDefinition } | null {
  if (!isJsonObject(given) || typeof given.type !== "string") return null;
  const type = findAction(given.type);
  if (type === null) return { fits: false, action: given as ActionDefinition };
  const action = dropStrangers(type.shape, given);
  return { fits: checkShape(type.shape, action, "").length === 0, action: action as ActionDefinition };
}

function checkParts(parts: DefinitionParts): Problem[] {
  const trigger = parts.trigger;
  const problems: Problem[] = [];
  if (trigger !== null) {
    problems.push(...placeProblems("trigger", findTrigger(trigger.kind)?.check(trigger) ?? []));
  }
  parts.actions.forEach((part, index) => {
    if (part?.fits !== true) return;
    const found = findAction(part.action.type)?.check(part.action) ?? [];
    problems.push(...placeProblems(`actions.${index}`, found));
  });
  if (trigger === null) return problems;
  const types = parts.actions.map((part) => part && { type: part.action.type });
  return [...problems, ...checkPersonRule(parts), ...checkUnsignedRule({ trigger, actions: types })];
}

function capProblems(problems: readonly Problem[]): Problem[] {
  if (problems.length <= MAX_PROBLEMS) return [...problems];
  const more = problems.length - MAX_PROBLEMS;
  const message = `The definition has ${more} more problems: fix these ${MAX_PROBLEMS} first, then check again.`;
  return [...problems.slice(0, MAX_PROBLEMS), { field: "", message }];
}
