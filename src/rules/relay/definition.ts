/**
 * Checks a definition, in every path that saves or applies one. All problems are reported at once. It looks nothing up: the save checks
 * whether a collection, product or relay exists. Source: the specification's "Relay definition".
 */

import { checkShape } from "../../base/check-shape.ts";
import { isJsonObject, type JsonObject } from "../../base/json.ts";
import { MAX_JSON_DEPTH } from "../../base/limit.ts";
import { capProblems, type Problem, rejectDefinition, type Warning } from "../../base/refusal.ts";
import { joinField, placeProblems, showNames, showText } from "../../base/shape.ts";
import { findNearestName, formatCount } from "../../base/text.ts";
import {
  checkCallUrl,
  isLocalOnlyUrl,
  mayBeAllowed,
  ownHostOf,
} from "../../platform/outbound/call-target.ts";
import { hasTemplate, listTemplateUses } from "../../platform/template/template.ts";
import { findAction } from "../action/registry.ts";
import { parseExpiry } from "../action/shape.ts";
import { canHavePerson, findTrigger, type Trigger } from "../trigger/registry.ts";
import {
  type ActionDefinition,
  type Definition,
  type DefinitionParts,
  definitionShape,
  readParts,
  TEMPLATE_NAMES,
} from "./definition-shape.ts";
import { checkUnsignedRule, unsignedWarning } from "./unsigned-rule.ts";

/** A definition without problems. Only `checkDefinition` makes one. */
export interface Checked {
  definition: Definition;
  warnings: Warning[];
}

const THIS = "The definition";

/**
 * Returns the definition with its warnings, or at most `MAX_PROBLEMS` problems. Never throws, and takes bounded time on any JSON value.
 * `definition` is the value itself, not a copy. `nowMs` adds warnings about past times; null: no time is known.
 */
export function checkDefinition(
  value: unknown,
  nowMs: number | null = null,
): Checked | { problems: Problem[] } {
  const unbounded = checkBounds(value);
  if (unbounded.length > 0) return { problems: capProblems(unbounded, THIS) };
  if (!isJsonObject(value)) {
    const message =
      'The definition is not a JSON object: write { "name": …, "trigger": { … }, "actions": [ … ] }.';
    return { problems: [{ field: "", message }] };
  }
  const misfits = checkShape(definitionShape, value);
  const problems = sortProblems([...misfits, ...checkRules(value, misfits)]);
  if (problems.length > 0) return { problems: capProblems(problems, THIS) };
  const definition = value as Definition;
  return { definition, warnings: listWarnings(definition, nowMs) };
}

/** Returns what `checkDefinition` returns. Throws `invalid_definition` with every problem. */
export function requireDefinition(value: unknown, nowMs: number | null = null): Checked {
  const checked = checkDefinition(value, nowMs);
  if ("problems" in checked) throw rejectDefinition(checked.problems);
  return checked;
}

/** Objects, lists and scalars together. */
const MAX_DEFINITION_VALUES = 2_500;
/** Characters of all names and texts together: ten of the longest emails, doubled. */
const MAX_DEFINITION_CHARS = 256 * 1024;
/** Template openings, `{{`, in all texts together, because a save parses each several times. */
const MAX_DEFINITION_TEMPLATES = 2_000;

const RESERVED_NAME = "__proto__";

interface Place {
  value: unknown;
  depth: number;
  field: string;
}

/** Finds the limit that the value breaks, or every reserved name. The limits bound the time that any value takes. */
function checkBounds(root: unknown): Problem[] {
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
      return [tooLarge(`more than ${formatCount(MAX_DEFINITION_TEMPLATES)} templates`)];
    }
    if (typeof value === "bigint" && isLong(value)) return [tooLarge("a number of more than 300 digits")];
    if (depth > MAX_JSON_DEPTH) return [tooLarge(`nested more than ${MAX_JSON_DEPTH} levels deep`)];
    const names = isJsonObject(value) ? Object.keys(value) : null;
    const size = names?.length ?? (Array.isArray(value) ? value.length : 0);
    if (values + open.length + size > MAX_DEFINITION_VALUES) {
      return [tooLarge(`more than ${formatCount(MAX_DEFINITION_VALUES)} values`)];
    }
    for (const name of names ?? []) {
      chars += name.length;
      if (name === RESERVED_NAME) problems.push(rejectReservedName(field));
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
      return [tooLarge(`more than ${formatCount(MAX_DEFINITION_CHARS)} characters`)];
    }
  }
  return problems;
}

/** Stops counting after `most`. */
function countOpenings(text: string, most: number): number {
  let count = 0;
  for (let at = text.indexOf("{{"); at >= 0 && count <= most; at = text.indexOf("{{", at + 2)) count += 1;
  return count;
}

/** Comparing a bigint is cheap; writing its digits is not. */
function isLong(value: bigint): boolean {
  return value >= LONGEST || value <= -LONGEST;
}

const LONGEST = 10n ** 300n;

function rejectReservedName(field: string): Problem {
  const place = joinField(field, RESERVED_NAME);
  return {
    field: place,
    message: `\`${place}\` is a reserved name: choose another name.`,
  };
}

function tooLarge(what: string): Problem {
  return {
    field: "",
    message: `The definition is ${what.startsWith("nested") ? what : `too large: ${what}`}; make it smaller.`,
  };
}

/** Checks the rules beyond the shapes. Leaves out a field whose shape problem was already found. */
function checkRules(value: JsonObject, shapeProblems: readonly Problem[]): Problem[] {
  const parts = shapeProblems.length === 0 ? partsOf(value as Definition) : readParts(value);
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
  const fields = new Set(shapeProblems.map((problem) => problem.field));
  return [
    ...problems.filter((problem) => !fields.has(problem.field)),
    ...checkPersonRule(parts),
    ...checkUnsignedParts(parts),
  ];
}

/** Returns the parts of a definition that fits every shape. */
function partsOf({ trigger, actions }: Definition): DefinitionParts {
  return {
    trigger,
    verifyFits: trigger.kind === "receiver",
    actions: actions.map((action) => ({ action, fits: true })),
  };
}

function checkUnsignedParts({ trigger, verifyFits, actions }: DefinitionParts): Problem[] {
  if (trigger === null || !verifyFits) return [];
  // An unknown type is rejected as unknown, not for what it might do.
  const known = actions.map((part) =>
    part !== null && findAction(part.action.type) !== null ? part.action : null,
  );
  return checkUnsignedRule({ trigger, actions: known });
}

/** Sorts by the definition's order: name, trigger, actions by index, then the rest. */
function sortProblems(problems: readonly Problem[]): Problem[] {
  const rank = ({ field }: Problem): number => {
    const [first = "", second = ""] = field.split(".");
    const place = ["name", "trigger", "actions"].indexOf(first);
    if (place === -1) return Number.MAX_SAFE_INTEGER;
    return place === 2 ? place + (Number(second) || 0) : place;
  };
  return problems.toSorted((left, right) => rank(left) - rank(right));
}

/** Finds actions that need a person under a trigger that never has one. */
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

/** Lists every warning of a definition without problems. Needs a time to warn of past dates. */
function listWarnings(definition: Definition, nowMs: number | null): Warning[] {
  const optIn = unsignedWarning(definition);
  return [
    ...(optIn === null ? [] : [optIn]),
    ...definition.actions.flatMap((action, index) => [
      ...warnPerson(definition.trigger, action, index),
      ...warnPaths(definition.trigger, action, `actions.${index}`),
      ...warnRef(definition.actions, index),
      ...warnExpiry(action, index, nowMs),
      ...warnUrl(action, index),
    ]),
  ];
}

/** `why` follows the field's name. */
function warn(code: Warning["code"], field: string, why: string): Warning[] {
  return [{ code, field, message: `\`${field}\` ${why}` }];
}

const sells = ({ type }: ActionDefinition): boolean => findAction(type)?.sells === true;

function warnRef(actions: readonly ActionDefinition[], index: number): Warning[] {
  const action = actions[index] as ActionDefinition;
  const { type, ref } = action;
  const field = `actions.${index}.ref`;
  if (typeof ref === "string" && !hasTemplate(ref)) {
    const what =
      type === "grant_credits"
        ? "each person gets these credits only once, for all their payments"
        : "it can name only one payment, and every other payment is refused";
    return warn(
      "ref_not_unique",
      field,
      `is the same for every event, so ${what}: write the provider's payment identifier, such as {{mapped.payment_id}}.`,
    );
  }
  const refunds = type === "refund_product";
  if (refunds && ref === undefined) {
    const why = `is absent, so the event's own id is used, and no payment was fulfilled under it: write the ref of the fulfilled payment, such as {{mapped.payment_id}}.`;
    return warn("ref_of_nothing", field, why);
  }
  if (!refunds && !sells(action)) return [];
  const earlier = actions.findIndex((one) => (refunds ? one.type === type : sells(one)) && one.ref === ref);
  if (earlier === index || (refunds && actions[earlier]?.product === action.product)) return [];
  const what = ref === undefined ? "is absent, as in" : "is the ref of";
  const so = refunds
    ? "one of the two is refused on every event and no later action runs: create a relay for each product and distinguish them by `when`"
    : `the second sale never happens: give each its own ref, such as "{{mapped.payment_id}}-${index}"`;
  const why = `${what} actions.${earlier} too, and a ref belongs to one purchase, so ${so}.`;
  return warn("ref_not_unique", field, why);
}

function warnExpiry({ expiresAt }: ActionDefinition, index: number, nowMs: number | null): Warning[] {
  if (nowMs === null || typeof expiresAt !== "string") return [];
  const ends = parseExpiry(expiresAt, nowMs);
  if (ends === null || ends > nowMs) return [];
  return warn(
    "expiry_past",
    `actions.${index}.expiresAt`,
    `is past (${expiresAt}), so every grant ends before it begins: write a later date, or a duration such as "30d".`,
  );
}

function warnUrl({ type, url }: ActionDefinition, index: number): Warning[] {
  if (type !== "call_url" || typeof url !== "string" || !isLocalOnlyUrl(url)) return [];
  return warn(
    "url_local",
    `actions.${index}.url`,
    `is an address that only local development calls; a server refuses it on every event. Set a public https address before you move the relay to a server, or ask the operator to allow a private name.`,
  );
}

/** Drops each `url_local` warning whose URL the server may call, because its operator allows private addresses. */
export function dropAllowedUrls(
  warnings: readonly Warning[],
  { actions }: Definition,
  allowPrivate: readonly string[],
): Warning[] {
  const isAllowed = ({ field }: Warning): boolean => {
    const url = actions[Number(field?.split(".")[1])]?.url;
    return typeof url === "string" && mayBeAllowed(url, allowPrivate);
  };
  return warnings.filter((warning) => warning.code !== "url_local" || !isAllowed(warning));
}

/** Warns of calls to the service itself, which the service rejects. `baseUrl`: its public origin. */
export function warnOwnHost(definition: Definition, baseUrl: string): Warning[] {
  const isOwn = (url: string) =>
    checkCallUrl(url, { local: true, ownHosts: [ownHostOf(baseUrl)] })?.code === "own_host";
  return definition.actions.flatMap(({ type, url }, index) =>
    type === "call_url" && typeof url === "string" && isOwn(url)
      ? warn(
          "own_host",
          `actions.${index}.url`,
          `is this service's own host, and the service refuses to call itself on every event: set the address of your server.`,
        )
      : [],
  );
}

function warnPerson(trigger: Trigger, action: ActionDefinition, index: number): Warning[] {
  if (canHavePerson(trigger) || findAction(action.type)?.needsPerson(action) !== true) return [];
  return warn(
    "person_never_found",
    `actions.${index}`,
    `(${action.type}) acts on the event's person, but the map names no person, so every event fails: map person_email, person_id or person_token, or add trigger.customer.`,
  );
}

function warnPaths(trigger: Trigger, action: ActionDefinition, field: string): Warning[] {
  return listTemplateUses(action, field).flatMap((use): Warning[] => {
    const fault = findFault(trigger, use.path);
    if (fault === null) return [];
    const message = `\`${use.field}\` contains ${showText(`{{${use.path}}}`)}, which resolves to nothing: ${fault}.`;
    return [{ code: "path_names_nothing", field: use.field, message }];
  });
}

/** Explains why a path never names anything in this trigger's events; null: it can. */
function findFault(trigger: Trigger, path: string): string | null {
  const [root = "", name] = path.split(".");
  const roots = findTrigger(trigger.kind)?.templateRoots ?? [];
  if (!roots.includes(root)) return `a ${trigger.kind} offers ${showNames(roots)}`;
  if (root === "person" && !canHavePerson(trigger))
    return "neither the map nor trigger.customer names a person";
  if (root === "previous" && trigger.kind === "data_change" && trigger.on.every((on) => on === "created"))
    return "a created record has no earlier state, and trigger.on names no other change";
  if (name === undefined) return null;
  const known =
    root === "mapped" && trigger.kind === "receiver" ? Object.keys(trigger.map) : TEMPLATE_NAMES[root];
  if (known === undefined || known.includes(name)) return null;
  const near = findNearestName(name, known);
  const what =
    root === "mapped" ? `${showText(name)} is not a name in map` : `${root} offers ${showNames(known)}`;
  return near === null ? what : `${what}; did you mean ${root}.${near}?`;
}
