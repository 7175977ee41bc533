/**
 * The receiver trigger: a signed webhook from a provider. This file says what its definition may contain. rules/verify verifies, and
 * rules/relay reads an event and holds the unsigned-event rule. Source: the specification's "Triggers" and "Map names".
 */
import { type TSchema, Type } from "typebox";
import { MAX_MAP_NAMES, MAX_WHEN_VALUES } from "../../base/limit.ts";
import type { Problem } from "../../base/refusal.ts";
import {
  FIELD_NAME,
  joinField,
  PERSON_KEYS,
  type PersonKey,
  placeProblems,
  RELAY_NAME,
  showMatch,
  showName,
  showWanted,
} from "../../base/shape.ts";
import { findNearestName } from "../../base/text.ts";
import { MAX_PATH_CHARS, MAX_PATH_SEGMENTS, parsePath } from "../../platform/template/template.ts";
import type { VerifyFields } from "../verify/contract.ts";
import { bindScheme, RENAMED_SCHEME, SCHEMES } from "../verify/registry.ts";
import type { TriggerType } from "./contract.ts";

export type ReceiverTrigger = {
  kind: "receiver";
  verify: VerifyFields;
  /** Name to dotted path. */
  map: Record<string, string>;
  when?: When;
  customer?: CustomerField;
  trustUnsignedEvents?: boolean;
};

/** The provider's own id of the event's customer. */
type CustomerField = {
  /** The mapped name that has the id. */
  id: string;
  /** The space of the id; absent: the name of the relay, or of the relay that it follows. */
  space?: string;
};

/** Mapped name to the text that its value must have, or to several of which it must have one. */
export type When = Record<string, string | string[]>;

/** Earlier names of schemes, and their names today. A stored relay with an earlier name answers `scheme_renamed`. */
export const RENAMED_SCHEMES: Readonly<Record<string, string>> = { [RENAMED_SCHEME]: "signature" };

const expectsName =
  "letters, digits, hyphens and underscores, at most 63 of them, starting with a letter or underscore";

const verifyShape = Type.Unsafe<VerifyFields>(
  Type.Union(
    SCHEMES.map((scheme): TSchema => scheme.shape),
    {
      description: "How a request is verified: a scheme and its fields.",
      expects: 'an object that names a scheme, such as { "scheme": "hooks" }',
      discriminator: "scheme",
      renamed: RENAMED_SCHEMES,
    },
  ),
);

const whenListShape = Type.Array(
  Type.String({
    description: "One of the texts that the mapped value may equal.",
    expects: 'a text in quotes (a number or boolean is compared as its text: "4200", "true")',
  }),
  {
    minItems: 1,
    maxItems: MAX_WHEN_VALUES,
    uniqueItems: true,
    expects: `a list of 1 to ${MAX_WHEN_VALUES} texts, any of which matches`,
  },
);

const shape = Type.Object(
  {
    kind: Type.Literal("receiver", {
      description: "A signed webhook from a provider.",
      expects: '"receiver"',
    }),
    verify: verifyShape,
    map: Type.Record(
      Type.String({ pattern: FIELD_NAME.source }),
      Type.String({
        description: "A dotted path into the provider's body; a number is an array index.",
        expects: `a dotted path into the provider's body such as "data.object.id", with no empty part, at most ${MAX_PATH_SEGMENTS} parts and ${MAX_PATH_CHARS} characters`,
      }),
      {
        maxProperties: MAX_MAP_NAMES,
        description:
          "Names for values in the provider's body; event_id, event_type, person_email, person_id and person_token have a meaning.",
        expects: `an object of at most ${MAX_MAP_NAMES} names, each with a dotted path`,
        expectsName,
        knownNames: {
          event_id: "The provider's id of the event: a second request with the same id is a duplicate.",
          event_type: "The provider's name for what happened, such as order.paid.",
          person_email: "The event's person, by email address.",
          person_id: "The event's person, by the person's id in this environment.",
          person_token: "The event's person, by a token stored for the person.",
        },
      },
    ),
    when: Type.Optional(
      Type.Record(
        Type.String({ pattern: FIELD_NAME.source }),
        Type.Union([Type.String(), whenListShape], {
          description:
            "The exact text that the mapped value must equal, or a list of texts of which it must equal one.",
          expects: `a text in quotes, or a list of 1 to ${MAX_WHEN_VALUES} of them (a number or boolean is compared as its text: "4200", "true")`,
        }),
        {
          maxProperties: MAX_MAP_NAMES,
          description: "The receiver takes only events whose mapped values equal these texts exactly.",
          expects:
            "an object of names that map defines, each with the exact text to match or a list of such texts",
          names: "mapped",
          expectsName: "a name that map defines",
        },
      ),
    ),
    customer: Type.Optional(
      Type.Object(
        {
          id: Type.String({
            pattern: FIELD_NAME.source,
            description: "The mapped name that has the provider's id of the customer.",
            expects: 'a name that map defines, such as "customer_id"',
            names: "mapped",
          }),
          space: Type.Optional(
            Type.String({
              pattern: RELAY_NAME.source,
              names: "relay",
              description:
                "The receiver relay that shares its customer ids with this one. Absent: this relay, or the one that it follows.",
              expects: 'the name of a receiver relay of the environment, such as "stripe"',
            }),
          ),
        },
        {
          additionalProperties: false,
          description:
            "The provider's own id of the customer. Relay remembers the person of each id, and finds them by it where map names no person.",
          expects: 'an object with the mapped name of the id, such as { "id": "customer_id" }',
        },
      ),
    ),
    trustUnsignedEvents: Type.Optional(
      Type.Boolean({
        description: "Lets the relay act on events whose sender does not sign them. Read the warning first.",
        expects: "true or false",
      }),
    ),
  },
  {
    additionalProperties: false,
    description: "A signed webhook from a provider.",
    expects: "a trigger object",
    strangers: {
      secret: "remove it, because a definition contains no secrets; set it with relay relays set-secret",
      scheme: 'move it into `verify`, as "verify": { "scheme": … }',
      every: 'remove it, or make the trigger\'s kind "schedule"',
      collection: 'remove it, or make the trigger\'s kind "data_change"',
      where: "name it `when`, which a receiver has",
    },
  },
);

export const receiverTrigger: TriggerType<ReceiverTrigger> = {
  kind: "receiver",
  title: "A signed webhook from a provider",
  shape,
  check: (trigger) => [
    ...(trigger.verify === undefined
      ? []
      : placeProblems("verify", bindScheme(trigger.verify)?.check() ?? [])),
    ...(trigger.map === undefined ? [] : checkMap(trigger.map)),
    ...(trigger.map === undefined ? [] : checkWhen(trigger.when ?? {}, trigger.map)),
    ...(trigger.map === undefined || trigger.customer === undefined
      ? []
      : checkCustomer(trigger.customer, trigger.map)),
  ],
  canHavePerson: true,
  templateRoots: ["event", "mapped", "person"],
  inWords: (trigger) => describeReceiver(trigger),
  examples: [
    { kind: "receiver", verify: { scheme: "hooks" }, map: {} },
    {
      kind: "receiver",
      verify: { scheme: "processor" },
      map: {
        event_id: "id",
        event_type: "type",
        person_email: "data.object.customer_details.email",
        payment_id: "data.object.payment_intent",
      },
      when: { event_type: "checkout.session.completed" },
    },
    {
      kind: "receiver",
      verify: { scheme: "hooks" },
      map: { event_type: "type", account: "data.account" },
      when: { event_type: ["subscription.created", "subscription.renewed"], account: "main" },
    },
    {
      kind: "receiver",
      verify: { scheme: "processor" },
      map: { event_type: "type", customer_id: "data.object.customer" },
      when: { event_type: "customer.subscription.deleted" },
      customer: { id: "customer_id" },
    },
    {
      kind: "receiver",
      verify: { scheme: "shared_token" },
      map: { event_id: "id", person_id: "user.id" },
      trustUnsignedEvents: true,
    },
  ],
};

/** Returns the person key in the map, or null. */
export function findPersonKey(map: Readonly<Record<string, string>>): PersonKey | null {
  return PERSON_KEYS.find((key) => Object.hasOwn(map, key)) ?? null;
}

function checkMap(map: Readonly<Record<string, string>>): Problem[] {
  const problems: Problem[] = [];
  for (const [name, path] of Object.entries(map)) {
    if (parsePath(path) !== null) continue;
    const field = joinField("map", name);
    const message = `${showName(field)} is not a dotted path: write names joined by single dots, such as "data.items.0.id", at most ${MAX_PATH_SEGMENTS} of them and ${MAX_PATH_CHARS} characters.`;
    problems.push({ field, message });
  }
  const [kept, ...others] = PERSON_KEYS.filter((key) => Object.hasOwn(map, key));
  for (const key of others) {
    const message = `\`map.${key}\` is set in addition to ${kept}, but one event acts on one person: keep one of them.`;
    problems.push({ field: `map.${key}`, message });
  }
  return problems;
}

/** The map names whose value has another meaning than a customer's id. */
const TAKEN_NAMES: readonly string[] = ["event_id", "event_type", ...PERSON_KEYS];

function checkCustomer({ id }: CustomerField, map: Readonly<Record<string, string>>): Problem[] {
  const field = "customer.id";
  if (!Object.hasOwn(map, id)) {
    const near = findNearestName(id, Object.keys(map));
    const todo =
      near === null ? "add it to map with its path in the body" : `write ${near}, or add it to map`;
    return [{ field, message: `\`${field}\` is not a name in map, so no event has a customer ID: ${todo}.` }];
  }
  if (TAKEN_NAMES.includes(id)) {
    const message = `\`${field}\` is ${id}, which has its own meaning in map: map the customer's ID under another name, such as customer_id, and write that name here.`;
    return [{ field, message }];
  }
  const others = Object.keys(map).filter((name) => name !== id && map[name] === map[id]);
  return others.map((name) => {
    const twin = joinField("map", name);
    const message = `${showName(twin)} has the same path as map.${id}, so one customer ID has two names: keep one of them, and write it in trigger.customer.id.`;
    return { field: twin, message };
  });
}

function checkWhen(when: When, map: Readonly<Record<string, string>>): Problem[] {
  const known = Object.keys(map);
  return Object.keys(when)
    .filter((name) => !Object.hasOwn(map, name))
    .map((name) => {
      const field = joinField("when", name);
      const near = findNearestName(name, known);
      const todo =
        near === null ? "add it to map with its path in the body" : `write ${near}, or add it to map`;
      return {
        field,
        message: `${showName(field)} is not a name in map, so no event can match it: ${todo}.`,
      };
    });
}

function describeReceiver(trigger: ReceiverTrigger): string {
  const { when = {} } = trigger;
  const { event_type: type, ...others } = when;
  return type !== undefined && Object.keys(others).length === 0
    ? `when ${showWanted(type)} arrives`
    : `when a webhook arrives${showMatch(when, "with")}`;
}
