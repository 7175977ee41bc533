/**
 * Documents every rule of a definition that the schemas of fields do not express, each with a definition that breaks it. The error message comes
 * from the validator when the page is made, so it cannot be outdated.
 */
import { isJsonObject, type Json, type JsonObject } from "../../base/json.ts";
import { checkDefinition } from "../../rules/relay/definition.ts";
import { writeBlock, writeJsonBlock } from "./schema-table.ts";

interface RuleExample {
  /** One sentence with the rule. */
  rule: string;
  /** The parts of a valid definition that are replaced to break the rule. */
  broken: JsonObject;
}

const RECIPE = { scheme: "signature", header: "X-Signature" };
const GRANT = { type: "grant_access", entitlement: "access:members" };
const NOTICE = { type: "call_url", url: "https://example.com/notice" };

/** A valid definition. The examples of rules replace parts of it. */
export const RIGHT: JsonObject = {
  name: "orders",
  trigger: {
    kind: "receiver",
    verify: { scheme: "hooks" },
    map: { event_id: "id", person_email: "customer.email" },
  },
  actions: [NOTICE],
};

function verified(verify: JsonObject): JsonObject {
  return { trigger: { verify } };
}

const RULES: Readonly<Record<string, readonly RuleExample[]>> = {
  "Names and numbers": [
    {
      rule: "A name is 2 to 63 lowercase letters, digits and hyphens, and starts with a letter.",
      broken: { name: "Paid Orders" },
    },
    { rule: "A relay has one to ten actions.", broken: { actions: [] } },
    {
      rule: "A field that is not known is refused by its name, and the nearest known one is offered.",
      broken: { actions: [{ type: "call_url", ur: "https://example.com/notice" }] },
    },
    { rule: "A definition never contains a secret.", broken: { trigger: { secret: "whsec_…" } } },
  ],
  "map and when": [
    { rule: "A map reads dotted paths of the body.", broken: { trigger: { map: { order: "data..id" } } } },
    {
      rule: "One event acts on one person, so a map holds one person key.",
      broken: { trigger: { map: { person_email: "customer.email", person_id: "customer.ref" } } },
    },
    {
      rule: "`when` reads only mapped names.",
      broken: { trigger: { map: { event_type: "type" }, when: { event_typ: "order.paid" } } },
    },
    {
      rule: "`when` compares texts: a number is written in quotes.",
      broken: { trigger: { map: { amount: "amount" }, when: { amount: 4200 } } },
    },
  ],
  "A signature recipe": [
    { rule: "The signature is in a header or in the body.", broken: verified({ scheme: "signature" }) },
    { rule: "It is not in both.", broken: verified({ ...RECIPE, signatureField: "sig" }) },
    {
      rule: "`signatureKey` names a part of a header.",
      broken: verified({ scheme: "signature", signatureField: "sig", signatureKey: "v1" }),
    },
    { rule: "`separator` splits a header that has parts.", broken: verified({ ...RECIPE, separator: ";" }) },
    { rule: "`timestampKey` needs `signatureKey`.", broken: verified({ ...RECIPE, timestampKey: "t" }) },
    {
      rule: "The two parts have two names.",
      broken: verified({ ...RECIPE, signatureKey: "t", timestampKey: "t" }),
    },
    {
      rule: "The timestamp is in one place.",
      broken: verified({ ...RECIPE, timestampHeader: "X-Time", timestampField: "time" }),
    },
    { rule: "`toleranceSeconds` needs a timestamp.", broken: verified({ ...RECIPE, toleranceSeconds: 60 }) },
    {
      rule: "The old scheme name is refused.",
      broken: verified({ scheme: "hmac_sha256_header", header: "X-Signature" }),
    },
  ],
  "The signed text": [
    {
      rule: "It ends with `{body}`, `{params}` or `{token}`.",
      broken: verified({ ...RECIPE, signedPayload: "{body}.end" }),
    },
    { rule: "It holds exactly one of these three.", broken: verified({ ...RECIPE, signedPayload: "v0" }) },
    {
      rule: "Each placeholder appears once.",
      broken: verified({
        ...RECIPE,
        timestampHeader: "X-Time",
        signedPayload: "{timestamp}.{timestamp}.{body}",
      }),
    },
    {
      rule: "Only letters, digits and `. : _ -` stand around placeholders.",
      broken: verified({ ...RECIPE, signedPayload: "v0/{body}" }),
    },
    {
      rule: "A digit never comes right after `{timestamp}`.",
      broken: verified({ ...RECIPE, timestampHeader: "X-Time", signedPayload: "{timestamp}0{body}" }),
    },
    {
      rule: "`{timestamp}` needs a source.",
      broken: verified({ ...RECIPE, signedPayload: "{timestamp}.{body}" }),
    },
    {
      rule: "A timestamp that is named is signed.",
      broken: verified({ ...RECIPE, timestampHeader: "X-Time", signedPayload: "{body}" }),
    },
    { rule: "`{token}` needs `tokenField`.", broken: verified({ ...RECIPE, signedPayload: "{token}" }) },
    { rule: "`tokenField` needs `{token}`.", broken: verified({ ...RECIPE, tokenField: "token" }) },
    {
      rule: "A signature inside the body never signs the body.",
      broken: verified({ scheme: "signature", signatureField: "sig", signedPayload: "{body}" }),
    },
  ],
  "Unsigned events": [
    {
      rule: "A sender that signs no event may only write records and call URLs.",
      broken: {
        trigger: { verify: { scheme: "shared_token" }, map: { event_id: "id", person_id: "user" } },
        actions: [GRANT],
      },
    },
    {
      rule: "It may not make people by their address.",
      broken: { trigger: { verify: { scheme: "shared_token" }, map: { person_email: "email" } } },
    },
    {
      rule: "If the sender signs its events, there is nothing to trust.",
      broken: { trigger: { trustUnsignedEvents: true } },
    },
  ],
  Schedules: [
    {
      rule: "Nothing is shorter than 15 minutes.",
      broken: { trigger: { kind: "schedule", every: "5m" } },
    },
    {
      rule: "`at` pairs with `1d` and `1w`.",
      broken: { trigger: { kind: "schedule", every: "1h", at: "06:30" } },
    },
    { rule: "`on` is for `1w`.", broken: { trigger: { kind: "schedule", every: "1d", on: "monday" } } },
    {
      rule: "A schedule has no person.",
      broken: { trigger: { kind: "schedule", every: "1d" }, actions: [GRANT] },
    },
  ],
  Actions: [
    {
      rule: "A template is a path, without expressions.",
      broken: { actions: [{ ...GRANT, reason: "{{mapped.a + 1}}" }] },
    },
    {
      rule: "A template that opens is closed.",
      broken: { actions: [{ ...GRANT, reason: "Order {{mapped.order" }] },
    },
    {
      rule: "An entitlement takes no template.",
      broken: { actions: [{ type: "grant_access", entitlement: "{{mapped.plan}}" }] },
    },
    {
      rule: "A URL takes no template.",
      broken: { actions: [{ type: "call_url", url: "https://example.com/{{mapped.order}}" }] },
    },
    {
      rule: "A URL is https.",
      broken: { actions: [{ type: "call_url", url: "http://example.com/notice" }] },
    },
    {
      rule: "A URL names no address by number.",
      broken: { actions: [{ type: "call_url", url: "https://203.0.113.7/notice" }] },
    },
    {
      rule: "A grant ends at a date or after a duration.",
      broken: { actions: [{ ...GRANT, expiresAt: "soon" }] },
    },
    { rule: "Credits are 1 to 10,000.", broken: { actions: [{ type: "grant_credits", amount: 0 }] } },
  ],
};

/** Returns the valid definition with the broken parts. A trigger of the same kind retains its other fields. */
export function breakRule(broken: JsonObject): JsonObject {
  const right = RIGHT.trigger as JsonObject;
  const { trigger } = broken;
  if (!isJsonObject(trigger)) return { ...RIGHT, ...broken };
  return { ...RIGHT, ...broken, trigger: "kind" in trigger ? trigger : { ...right, ...trigger } };
}

/** Returns the messages of the validator for a definition. */
export function formatProblems(definition: Json): string[] {
  const checked = checkDefinition(definition);
  return "problems" in checked ? checked.problems.map(({ message }) => message) : [];
}

/** Documents the rules of a heading, each with an example that breaks it and the resulting message. */
export function writeRules(heading: string): string {
  return (RULES[heading] ?? [])
    .map(({ rule, broken }) =>
      [
        `**${rule}**`,
        writeJsonBlock("refused", broken),
        writeBlock("text problem", formatProblems(breakRule(broken)).join("\n")),
      ].join("\n\n"),
    )
    .join("\n\n");
}
