/**
 * What may be saved and is probably not meant: an action that never finds a person, a template path that always renders empty, refs that
 * cannot tell payments apart, an end that is past, a URL that no server calls, the opt-in to unsigned events. A warning
 * never refuses.
 */

import { findAction } from "../action/registry.ts";
import { parseExpiry } from "../action/shape.ts";
import type { Json } from "../ground/json.ts";
import type { Warning } from "../ground/refusal.ts";
import { joinField, showNames, showText } from "../ground/shape.ts";
import { findNearestName } from "../ground/text.ts";
import { checkCallUrl, isCalledLocallyAlone, ownHostOf } from "../outbound/url-rule.ts";
import { hasTemplate, listTemplatePaths } from "../template/template.ts";
import { findTrigger, type Trigger } from "../trigger/registry.ts";
import type { ActionDefinition, Definition } from "./definition-shape.ts";
import { canHavePerson } from "./event-map.ts";
import { unsignedWarning } from "./unsigned-rule.ts";

/** Every warning of a definition that has no problems; what is past is told where a time is given. */
export function listWarnings(definition: Definition, nowMs: number | null): Warning[] {
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

/** Actions that record a payment under their ref, which belongs to one purchase for good. */
const SALES: ReadonlySet<string> = new Set(["fulfil_product", "grant_plan"]);

function warnRef(actions: readonly ActionDefinition[], index: number): Warning[] {
  const { type, ref } = actions[index] as ActionDefinition;
  const field = `actions.${index}.ref`;
  if (typeof ref === "string" && !hasTemplate(ref)) {
    const what =
      type === "grant_credits"
        ? "each person gets these credits once, whatever else they pay"
        : "it can name one payment alone, and every other one is refused";
    return [
      {
        code: "ref_not_unique",
        field,
        message: `\`${field}\` is the same for every event, so that ${what}: write the provider's payment identifier, such as {{mapped.payment_id}}.`,
      },
    ];
  }
  if (!SALES.has(type)) return [];
  const earlier = actions.findIndex((one) => SALES.has(one.type) && one.ref === ref);
  if (earlier === index) return [];
  const what = ref === undefined ? "is absent as in" : "is the ref of";
  return [
    {
      code: "ref_not_unique",
      field,
      message: `\`${field}\` ${what} actions.${earlier} too, and a ref belongs to one purchase, so that the second sale never happens: give each its own ref, such as "{{mapped.payment_id}}-${index}".`,
    },
  ];
}

function warnExpiry({ expiresAt }: ActionDefinition, index: number, nowMs: number | null): Warning[] {
  if (nowMs === null || typeof expiresAt !== "string") return [];
  const ends = parseExpiry(expiresAt, nowMs);
  if (ends === null || ends > nowMs) return [];
  return [
    {
      code: "expiry_past",
      field: `actions.${index}.expiresAt`,
      message: `\`actions.${index}.expiresAt\` is past (${expiresAt}), so that every grant ends before it begins: write a later date, or a duration such as "30d".`,
    },
  ];
}

function warnUrl({ type, url }: ActionDefinition, index: number): Warning[] {
  if (type !== "call_url" || typeof url !== "string" || !isCalledLocallyAlone(url)) return [];
  return [
    {
      code: "url_local",
      field: `actions.${index}.url`,
      message: `\`actions.${index}.url\` is an address that local development alone calls; a server refuses it on every event: name a public https address before the relay goes there, or have the operator allow a private name.`,
    },
  ];
}

/** Calls to the service itself, which refuses them; `baseUrl`: its public origin. */
export function warnOwnHost(definition: Definition, baseUrl: string): Warning[] {
  const context = { local: true, ownHosts: [ownHostOf(baseUrl)] };
  return definition.actions.flatMap(({ type, url }, index) =>
    type === "call_url" && typeof url === "string" && checkCallUrl(url, context)?.code === "own_host"
      ? [
          {
            code: "own_host",
            field: `actions.${index}.url`,
            message: `\`actions.${index}.url\` is this service's own host, which refuses it on every event: name a server of yours.`,
          },
        ]
      : [],
  );
}

function warnPerson(trigger: Trigger, action: ActionDefinition, index: number): Warning[] {
  if (canHavePerson(trigger) || findAction(action.type)?.needsPerson(action) !== true) return [];
  return [
    {
      code: "person_never_found",
      field: `actions.${index}`,
      message: `\`actions.${index}\` (${action.type}) acts on the event's person, but the map names none, so that every event fails: map person_email, person_id or person_token.`,
    },
  ];
}

function warnPaths(trigger: Trigger, value: Json, field: string): Warning[] {
  if (typeof value === "string") {
    const faults = listTemplatePaths(value).map((path) => ({ path, fault: findFault(trigger, path) }));
    return faults.flatMap(({ path, fault }) =>
      fault === null
        ? []
        : [
            {
              code: "path_names_nothing",
              field,
              message: `\`${field}\` holds ${showText(`{{${path}}}`)}, which renders empty: ${fault}.`,
            },
          ],
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
