/**
 * The definition of a relay: what it is, and the check that every path which saves or carries one goes through. All problems are told
 * at once. It looks nothing up: whether a collection, product or relay exists is the save's question.
 * Source: the specification's "Relay definition".
 */
import { findAction } from "../action/registry.ts";
import { checkShape } from "../ground/check-shape.ts";
import { isJsonObject, type JsonObject } from "../ground/json.ts";
import { type Problem, placeProblems, refuseDefinition, type Warning } from "../ground/refusal.ts";
import { findTrigger } from "../trigger/registry.ts";
import { checkBounds, type DefinitionParts, readParts } from "./definition-part.ts";
import { type Definition, definitionShape } from "./definition-shape.ts";
import { listWarnings } from "./definition-warning.ts";
import { checkUnsignedRule } from "./unsigned-rule.ts";

type CheckedDefinition = { definition: Definition; warnings: Warning[] } | { problems: Problem[] };

/** More problems than anyone fixes in one go; the rest is counted. */
const MAX_PROBLEMS = 50;

/**
 * The definition with its warnings, or every problem. Never throws and takes bounded time on any JSON value. `definition` is the value
 * itself, not a copy. `nowMs`: what is past by then is warned of; null: no time is known.
 */
export function checkDefinition(value: unknown, nowMs: number | null = null): CheckedDefinition {
  const unbounded = checkBounds(value);
  if (unbounded.length > 0) return { problems: unbounded };
  if (!isJsonObject(value)) {
    const message =
      'The definition is not a JSON object: write { "name": …, "trigger": { … }, "actions": [ … ] }.';
    return { problems: [{ field: "", message }] };
  }
  const misfits = checkShape(definitionShape, value);
  const problems = sortProblems([...misfits, ...checkRules(value, misfits)]);
  if (problems.length > 0) return { problems: capProblems(problems) };
  const definition = value as unknown as Definition;
  return { definition, warnings: listWarnings(definition, nowMs) };
}

/** As `checkDefinition`; throws the Refusal `invalid_definition` with every problem. */
export function requireDefinition(
  value: unknown,
  nowMs: number | null = null,
): { definition: Definition; warnings: Warning[] } {
  const checked = checkDefinition(value, nowMs);
  if ("problems" in checked) throw refuseDefinition(checked.problems);
  return checked;
}

/** The rules beyond the shapes; a field that the shapes refused already is not told twice. */
function checkRules(value: JsonObject, told: readonly Problem[]): Problem[] {
  const parts = readParts(value);
  const { trigger } = parts;
  const problems: Problem[] = [];
  if (trigger !== null) {
    problems.push(...placeProblems("trigger", findTrigger(trigger.kind)?.check(trigger) ?? []));
  }
  parts.actions.forEach((part, index) => {
    if (part?.fits !== true) return;
    const found = findAction(part.action.type)?.check(part.action) ?? [];
    problems.push(...placeProblems(`actions.${index}`, found));
  });
  const fields = new Set(told.map((problem) => problem.field));
  return [
    ...problems.filter((problem) => !fields.has(problem.field)),
    ...checkPersonRule(parts),
    ...checkUnsignedParts(parts),
  ];
}

function checkUnsignedParts({ trigger, verifyFits, actions }: DefinitionParts): Problem[] {
  if (trigger === null || !verifyFits) return [];
  // A type that is unknown is refused as such, not for what it might do.
  const known = actions.map((part) =>
    part !== null && findAction(part.action.type) !== null ? part.action : null,
  );
  return checkUnsignedRule({ trigger, actions: known });
}

/** In the order of the definition: name, trigger, actions by index, and what does not belong. */
function sortProblems(problems: readonly Problem[]): Problem[] {
  const rank = ({ field }: Problem): number => {
    const [first = "", second = ""] = field.split(".");
    const place = ["name", "trigger", "actions"].indexOf(first);
    if (place === -1) return Number.MAX_SAFE_INTEGER;
    return place === 2 ? place + (Number(second) || 0) : place;
  };
  return problems.toSorted((left, right) => rank(left) - rank(right));
}

function capProblems(problems: Problem[]): Problem[] {
  if (problems.length <= MAX_PROBLEMS) return problems;
  const more = problems.length - MAX_PROBLEMS;
  const message = `The definition has ${more} more problems: fix these ${MAX_PROBLEMS} first, then check again.`;
  return [...problems.slice(0, MAX_PROBLEMS), { field: "", message }];
}

/** One problem an action that needs a person under a trigger that never has one. */
function checkPersonRule({ trigger, actions }: DefinitionParts): Problem[] {
  if (trigger === null || findTrigger(trigger.kind)?.canHavePerson !== false) return [];
  const problems: Problem[] = [];
  actions.forEach((part, index) => {
    const type = part === null ? null : findAction(part.action.type);
    if (part === null || type?.needsPerson(part.action) !== true) return;
    const toPerson = part.action.to === "person";
    const field = toPerson ? `actions.${index}.to` : `actions.${index}.type`;
    const what = toPerson ? 'is "person"' : `is ${type.type}, which acts on the event's person`;
    const todo = toPerson ? "leave `to` out" : "remove the action";
    const message = `\`${field}\` ${what}, but a ${trigger.kind} has no person: ${todo}, or use a receiver or data_change trigger.`;
    problems.push({ field, message });
  });
  return problems;
}
