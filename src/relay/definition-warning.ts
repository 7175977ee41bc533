/**
 * What may be saved and is probably not meant: an action that never finds a person, a template path that always renders empty, the opt-in
 * to unsigned events. One sentence each; a warning never refuses.
 */

import { findAction } from "../action/registry.ts";
import type { Json } from "../ground/json.ts";
import { findNearestName } from "../ground/nearest-name.ts";
import { joinField, showNames, showText } from "../ground/shape-sentence.ts";
import { listTemplatePaths } from "../template/template.ts";
import { findTrigger, type Trigger } from "../trigger/registry.ts";
import type { ActionDefinition, Definition } from "./definition-type.ts";
import { canHavePerson } from "./person-key.ts";
import { unsignedWarning } from "./unsigned-rule.ts";

/** Every warning of a definition that has no problems. */
export function listWarnings(definition: Definition): string[] {
  const optIn = unsignedWarning(definition);
  return [
    ...(optIn === null ? [] : [optIn]),
    ...definition.actions.flatMap((action, index) => [
      ...warnPerson(definition.trigger, action, index),
      ...warnPaths(definition.trigger, action, `actions.${index}`),
    ]),
  ];
}

function warnPerson(trigger: Trigger, action: ActionDefinition, index: number): string[] {
  if (canHavePerson(trigger) || findAction(action.type)?.needsPerson(action) !== true) return [];
  return [
    `\`actions.${index}\` (${action.type}) acts on the event's person, but the map names none, so that every event fails: map person_email, person_id or person_token.`,
  ];
}

function warnPaths(trigger: Trigger, value: Json, field: string): string[] {
  if (typeof value === "string") {
    const faults = listTemplatePaths(value).map((path) => ({ path, fault: findFault(trigger, path) }));
    return faults.flatMap(({ path, fault }) =>
      fault === null ? [] : [`\`${field}\` holds ${showText(`{{${path}}}`)}, which renders empty: ${fault}.`],
    );
  }
  if (typeof value !== "object" || value === null) return [];
  return Object.entries(value).flatMap(([name, part]) => warnPaths(trigger, part, joinField(field, name)));
}

/** What each word offers, where that is fixed. */
const OFFERED: Readonly<Record<string, readonly string[]>> = {
  person: ["email", "id"],
  record: ["data", "id"],
  tick: ["periodStart"],
};

/** Why the path never names anything on this trigger's events, or null. */
function findFault(trigger: Trigger, path: string): string | null {
  const [root = "", name] = path.split(".");
  const roots = findTrigger(trigger.kind)?.templateRoots ?? [];
  if (!roots.includes(root)) return `a ${trigger.kind} offers ${showNames(roots)}`;
  if (root === "person" && !canHavePerson(trigger)) return "the map names no person";
  if (name === undefined) return null;
  const known = root === "mapped" && trigger.kind === "receiver" ? Object.keys(trigger.map) : OFFERED[root];
  if (known === undefined || known.includes(name)) return null;
  const near = findNearestName(name, known);
  const what =
    root === "mapped" ? `${showText(name)} is not a name in map` : `${root} offers ${showNames(known)}`;
  return near === null ? what : `${what}; did you mean ${root}.${near}?`;
}
