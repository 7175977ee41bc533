/**
 * The unsigned-event rule: what a relay may do whose sender does not sign the event itself. It reads the registries' effects and
 * `signsEvent`, so the rule covers a new action or scheme automatically. It verifies nothing. Source: the specification's "Unsigned-event
 * rule".
 */

import { isJsonObject, type Json } from "../../base/json.ts";
import { MAX_TOLERANCE_SECONDS } from "../../base/limit.ts";
import type { Problem, Warning } from "../../base/refusal.ts";
import { joinField, PERSON_KEYS, showName, showNames, showText } from "../../base/shape.ts";
import { listTemplateUses } from "../../platform/template/template.ts";
import type { ActionEffect } from "../action/contract.ts";
import { findAction } from "../action/registry.ts";
import { RENAMED_SCHEMES, type ReceiverTrigger } from "../trigger/receiver.ts";
import type { Trigger } from "../trigger/registry.ts";
import { FOLLOWED_RECEIVER } from "../verify/followed-receiver.ts";
import { bindScheme } from "../verify/registry.ts";
import type { Definition } from "./definition-shape.ts";

/** Effects on a person. Writing a record and calling a URL are none. */
const PERSON_EFFECTS: ReadonlySet<ActionEffect> = new Set<ActionEffect>(["gives", "takes", "mails"]);
/** Types that act on people in other versions and are unknown here. */
const UNKNOWN_ACTING_TYPES: ReadonlySet<string> = new Set(["start_run"]);
const EFFECT_WORDS: Readonly<Record<string, string>> = {
  gives: "gives something to a person",
  takes: "takes something from a person",
  mails: "mails a person",
};

/** The parts of a definition that the rule reads. A missing part is not checked. */
interface UnsignedParts {
  trigger: { kind: string } & Partial<Pick<ReceiverTrigger, "verify" | "map" | "trustUnsignedEvents">>;
  /** The type of the action at each index; null without a type. */
  actions: readonly ({ type: string } | null)[];
}

/**
 * Reports whether events reach this trigger without the sender's signature over the event: by a token recipe, a shared token, or a map that reads
 * unsigned values.
 */
export function arrivesUnsigned(trigger: Trigger | UnsignedParts["trigger"]): boolean {
  return signsEvent(trigger) === false;
}

/** null: no receiver, no known scheme, or a follower whose source is not known here (source.ts). */
function signsEvent(trigger: Trigger | UnsignedParts["trigger"]): boolean | null {
  if (trigger.kind !== "receiver") return null;
  const { verify } = trigger as UnsignedParts["trigger"];
  if (verify === undefined || verify.scheme === FOLLOWED_RECEIVER) return null;
  const name = Object.hasOwn(RENAMED_SCHEMES, verify.scheme) ? RENAMED_SCHEMES[verify.scheme] : verify.scheme;
  const signs = bindScheme({ ...verify, scheme: name ?? "" })?.signsEvent() ?? null;
  return signs === true ? listMappedUnsigned(trigger).length === 0 : signs;
}

/** Reports whether an unsigned event must not act. Such a relay has no opt-in. It gives, takes or mails, or its map creates a person by address. */
export function rejectsUnsigned({ trigger, actions }: Definition): boolean {
  return !isTrusted(trigger) && (mapsAddress(trigger) || actions.some((action) => actsOnPerson(action.type)));
}

function actsOnPerson(type: string): boolean {
  const effect = findAction(type)?.effect;
  return effect === undefined ? UNKNOWN_ACTING_TYPES.has(type) : PERSON_EFFECTS.has(effect);
}

function mapsAddress(trigger: Trigger | UnsignedParts["trigger"]): boolean {
  if (trigger.kind !== "receiver") return false;
  const { map } = trigger as UnsignedParts["trigger"];
  return isJsonObject(map) && Object.hasOwn(map, "person_email");
}

function isTrusted(trigger: Trigger | UnsignedParts["trigger"]): boolean {
  return trigger.kind === "receiver" && (trigger as ReceiverTrigger).trustUnsignedEvents === true;
}

/** Lists every break of the rule, one problem for each action. Also rejects an opt-in where the sender signs the event. */
export function checkUnsignedRule(definition: Definition | UnsignedParts): Problem[] {
  const { trigger, actions } = definition;
  const signed = signedPathsOf(trigger);
  if (signed !== null) return checkPartlySigned(definition, signed);
  const signs = signsEvent(trigger);
  if (signs === true && isTrusted(trigger)) {
    const message =
      "`trigger.trustUnsignedEvents` is true, but this sender signs its events, so there is nothing to trust: remove it.";
    return [{ field: "trigger.trustUnsignedEvents", message }];
  }
  if (signs !== false || isTrusted(trigger)) return [];
  const why = "this sender does not sign the event, so anyone who captures one request could forge events";
  const todo =
    "use a recipe that signs the body, use only write_record and call_url, or accept the risk with trigger.trustUnsignedEvents: true";
  const problems: Problem[] = [];
  if (mapsAddress(trigger)) {
    const message = `\`trigger.map.person_email\` creates a person by address, which is refused because ${why}: map person_id or person_token, or accept the risk with trigger.trustUnsignedEvents: true.`;
    problems.push({ field: "trigger.map.person_email", message });
  }
  actions.forEach((action, index) => {
    if (action === null || !actsOnPerson(action.type)) return;
    const doing = EFFECT_WORDS[findAction(action.type)?.effect ?? "gives"];
    const message = `\`actions.${index}.type\` is ${action.type}, which ${doing}; it is refused because ${why}: ${todo}.`;
    problems.push({ field: `actions.${index}.type`, message });
  });
  return problems;
}

/** The rule for a sender that signs only some values of the body: a relay that acts on people must read no others. */
function checkPartlySigned(definition: Definition | UnsignedParts, signed: readonly string[]): Problem[] {
  const { trigger, actions } = definition;
  const reads = listUnsignedReads(definition, actsOnPerson);
  if (isTrusted(trigger) && reads.length === 0) {
    const message =
      "`trigger.trustUnsignedEvents` is true, but this relay reads only what its sender signs, so there is nothing to trust: remove it.";
    return [{ field: "trigger.trustUnsignedEvents", message }];
  }
  const isActing =
    mapsAddress(trigger) || actions.some((action) => action !== null && actsOnPerson(action.type));
  if (isTrusted(trigger) || !isActing) return [];
  return reads.map((read) => rejectUnsignedRead(read, signed));
}

/**
 * A value that a relay reads and that the sender does not sign, although it signs other values of the body. Anyone who captures a request could
 * change these values and send the rest unchanged. Actions that affect no person may read them.
 */

interface UnsignedRead {
  /** The place in the definition that reads it. */
  field: string;
  /** The path in the body. */
  path: string;
}

/** null: no receiver, or the sender signs the complete body or none of it. */
function signedPathsOf({ kind, verify }: UnsignedParts["trigger"]): readonly string[] | null {
  if (kind !== "receiver" || verify === undefined) return null;
  return bindScheme(verify)?.signedPaths ?? null;
}

function listMappedUnsigned(trigger: UnsignedParts["trigger"]): UnsignedRead[] {
  const signed = signedPathsOf(trigger);
  if (signed === null) return [];
  return Object.entries(trigger.map ?? {}).flatMap(([name, path]) =>
    signed.includes(path) ? [] : [{ field: joinField("trigger.map", name), path }],
  );
}

/** Lists what the map reads, and the templates of the actions that act on people. */
function listUnsignedReads(
  { trigger, actions }: UnsignedParts,
  acts: (type: string) => boolean,
): UnsignedRead[] {
  const signed = signedPathsOf(trigger);
  if (signed === null) return [];
  const templates = actions.flatMap((action, index) =>
    action === null || !acts(action.type) ? [] : listTemplateUses(action as Json, `actions.${index}`),
  );
  const inTemplates = templates.flatMap(({ field, path }): UnsignedRead[] => {
    const [root, ...rest] = path.split(".");
    const read = rest.join(".");
    return root !== "event" || signed.includes(read) ? [] : [{ field, path: read }];
  });
  return [...listMappedUnsigned(trigger), ...inTemplates];
}

/** Returns the problem of reading an unsigned value in a relay that acts on people. */
function rejectUnsignedRead({ field, path }: UnsignedRead, signed: readonly string[]): Problem {
  const last = signed.map((one) => one.split(".").at(-1) ?? one);
  const message = `${showName(field)} reads ${showText(path)}, which this sender does not sign. Anyone who captures one request could change it, and this relay acts on people. Read a signed field (${last.join(", ")}), read it only in write_record or call_url with {{event.…}}, or accept the risk with trigger.trustUnsignedEvents: true.`;
  return { field, message };
}

/** Describes what anyone with a captured request can make a relay with the opt-in do. null: there is no opt-in, or the sender signs. */
export function describeCapturedCall(definition: Definition): string | null {
  const { trigger } = definition;
  const isUnsigned = arrivesUnsigned(trigger) || listUnsignedReads(definition, actsOnPerson).length > 0;
  if (!isTrusted(trigger) || !isUnsigned) return null;
  const types = new Set(definition.actions.map((action) => action.type).filter(actsOnPerson));
  const bought = [
    ...(types.size > 0 ? [`run ${showNames([...types])} with forged values`] : []),
    ...(mapsAddress(definition.trigger) ? ["create people by address"] : []),
  ];
  return bought.length === 0 ? "run any action that is added later" : bought.join(" and ");
}

/** Returns the opt-in's warning of one line; null: the opt-in is absent or not used. */
export function unsignedWarning(definition: Definition): Warning | null {
  const what = describeCapturedCall(definition);
  if (what === null) return null;
  const does =
    signedPathsOf(definition.trigger) === null
      ? "does not sign its events"
      : "signs only a part of its events";
  return {
    code: "unsigned_events",
    field: "trigger.trustUnsignedEvents",
    message: `\`trigger.trustUnsignedEvents\` is true although the sender ${does}: anyone who captures one request can make this relay ${what}.`,
  };
}

/**
 * Reports whether `after` lets a captured request do more than `before`: the opt-in is new, a person key or the customer is new, a request is valid for longer, more
 * of it is unsigned, more events match `when`, or an acting action is new, changed, or has a larger number.
 */
export function widensUnsigned(before: Definition | null, after: Definition): boolean {
  if (unsignedWarning(after) === null) return false;
  if (before === null || unsignedWarning(before) === null) return true;
  if (widensTrigger(before.trigger as ReceiverTrigger, after.trigger as ReceiverTrigger)) return true;
  const read = listUnsignedReads(before, actsOnPerson).map(({ path }) => path);
  if (listUnsignedReads(after, actsOnPerson).some(({ path }) => !read.includes(path))) return true;
  const left = before.actions.filter((action) => actsOnPerson(action.type));
  return after.actions.some((action) => {
    if (!actsOnPerson(action.type)) return false;
    const found = left.findIndex((earlier) => covers(earlier, action));
    if (found === -1) return true;
    left.splice(found, 1);
    return false;
  });
}

function widensTrigger(before: ReceiverTrigger, after: ReceiverTrigger): boolean {
  const names = PERSON_KEYS.some((key) => Object.hasOwn(after.map, key) && !Object.hasOwn(before.map, key));
  const isNewCustomer = after.customer !== undefined && before.customer === undefined;
  if (names || isNewCustomer || replayableSeconds(after) > replayableSeconds(before)) return true;
  return Object.entries(before.when ?? {}).some(([name, wanted]) => {
    const later = after.when !== undefined && Object.hasOwn(after.when, name) ? after.when[name] : undefined;
    if (later === undefined) return true;
    const taken = typeof wanted === "string" ? [wanted] : wanted;
    return (typeof later === "string" ? [later] : later).some((value) => !taken.includes(value));
  });
}

/** Returns the seconds for which a captured request is valid: its timestamp's window, MAX_VALUE if a signed token makes it work once, or infinity. */
function replayableSeconds({ verify }: ReceiverTrigger): number {
  const isTimed = ["timestampHeader", "timestampKey", "timestampField"].some((name) => name in verify);
  if (isTimed) return Number(verify.toleranceSeconds ?? MAX_TOLERANCE_SECONDS);
  return "tokenField" in verify ? Number.MAX_VALUE : Number.POSITIVE_INFINITY;
}

/** Reports whether `later` is `earlier`, or the same with smaller numbers. */
function covers(earlier: Definition["actions"][number], later: Definition["actions"][number]): boolean {
  const names = new Set([...Object.keys(earlier), ...Object.keys(later)]);
  return [...names].every((name) => {
    const was = earlier[name];
    const is = later[name];
    return was === is || (typeof was === "number" && typeof is === "number" && is <= was);
  });
}
