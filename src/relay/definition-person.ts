/** The rule that a schedule has no person, so that no action may act on one. It never asks who a person is. Source: "Triggers", schedule. */
import { findAction } from "../action/registry.ts";
import type { Problem } from "../ground/refusal.ts";
import { findTrigger } from "../trigger/registry.ts";
import type { DefinitionParts } from "./definition-part.ts";

/** One problem an action that needs a person under a trigger that never has one. */
export function checkPersonRule({ trigger, actions }: DefinitionParts): Problem[] {
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
