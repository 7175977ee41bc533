/** The parts of the specification's "Relay definition", "Triggers", "Actions", "Map names" and "Templates" that a save can check. */
import { describe, expect, test } from "bun:test";
import type { JsonObject } from "../../src/base/json.ts";
import { Refusal } from "../../src/base/refusal.ts";
import { ACTIONS } from "../../src/rules/action/registry.ts";
import { checkDefinition, requireDefinition } from "../../src/rules/relay/definition.ts";
import { TRIGGERS } from "../../src/rules/trigger/registry.ts";
import { SCHEMES } from "../../src/rules/verify/registry.ts";

const CALL = { type: "call_url", url: "https://example.com/notice" };
const GRANT = { type: "grant_access", entitlement: "access:members" };
const HOOKS = { kind: "receiver", verify: { scheme: "hooks" }, map: { person_email: "email", order: "id" } };
const DAILY = { kind: "schedule", every: "1d" };
const CHANGE = { kind: "data_change", collection: "orders", on: ["created"] };

function relay(part: { name?: unknown; trigger?: unknown; actions?: unknown }): JsonObject {
  return { name: "paid", trigger: HOOKS, actions: [CALL], ...part } as JsonObject;
}

function receiver(part: JsonObject): JsonObject {
  return relay({ trigger: { ...HOOKS, ...part } });
}

function action(part: JsonObject): JsonObject {
  return relay({ actions: [part] });
}

function recipe(part: JsonObject): JsonObject {
  return receiver({ verify: { scheme: "signature", header: "x-signature", ...part } });
}

function listProblems(value: unknown): { field: string; message: string }[] {
  const checked = checkDefinition(value);
  return "problems" in checked ? checked.problems : [];
}

type Row = [rule: string, definition: unknown, field: string, says: string];

const REFUSED: Row[] = [
  ["a definition is a JSON object", [], "", "not a JSON object"],
  ["a definition is not null", null, "", "not a JSON object"],
  ["name is required", { trigger: HOOKS, actions: [CALL] }, "name", "is missing"],
  ["trigger is required", { name: "paid", actions: [CALL] }, "trigger", "is missing"],
  ["actions is required", { name: "paid", trigger: HOOKS }, "actions", "is missing"],
  ["a name has at least 2 characters", relay({ name: "a" }), "name", "2 to 63 characters"],
  ["a name has at most 63 characters", relay({ name: "a".repeat(64) }), "name", "2 to 63 characters"],
  ["a name is lowercase", relay({ name: "Paid" }), "name", "lowercase"],
  ["a name starts with a letter", relay({ name: "1paid" }), "name", "starting with a letter"],
  ["a name has no underscore", relay({ name: "paid_order" }), "name", "hyphens"],
  ["a name ends where its text ends", relay({ name: "paid\n" }), "name", "2 to 63 characters"],
  ["a relay has at least one action", relay({ actions: [] }), "actions", "1 to 10 actions"],
  ["a relay has at most 10 actions", relay({ actions: Array(11).fill(CALL) }), "actions", "has 11 entries"],
  ["an unknown field of the definition is refused by name", { ...relay({}), extra: 1 }, "extra", "not a known field"],
  ["a mistyped field is refused with a suggestion", { name: "paid", triger: HOOKS, actions: [CALL] }, "triger", "`trigger`"],
  ["$schema is an unknown field too", { ...relay({}), $schema: "x" }, "$schema", "editor settings that name the schema"],
  ["an unknown field of a trigger is refused by name", receiver({ extra: 1 }), "trigger.extra", "not a known field"],
  [
    "an unknown field of verify is refused by name",
    receiver({ verify: { scheme: "hooks", header: "x" } }),
    "trigger.verify.header",
    "not a known field",
  ],
  ["an unknown field of an action is refused by name", action({ ...CALL, method: "GET" }), "actions.0.method", "not a known field"],
  ["a definition contains no secret", receiver({ secret: "s" }), "trigger.secret", "a definition contains no secrets"],
  ["the trigger kind is one of three", relay({ trigger: { kind: "recever" } }), "trigger.kind", "did you mean receiver?"],
  ["the trigger kind is a text", relay({ trigger: { kind: 7 } }), "trigger.kind", "is a number"],
  ["the action type is one of ten", action({ type: "send_sms" }), "actions.0.type", "not a known name"],
  ["the action type is required", action({}), "actions.0.type", "is missing"],
  ["start_run is an unknown type", action({ type: "start_run" }), "actions.0.type", '"start_run"'],
  ["an action is an object", relay({ actions: ["call_url"] }), "actions.0", "is a text"],
  // Receiver
  ["verify is required", relay({ trigger: { kind: "receiver", map: {} } }), "trigger.verify", "is missing"],
  ["map is required", relay({ trigger: { kind: "receiver", verify: { scheme: "hooks" } } }), "trigger.map", "is missing"],
  ["the scheme is one of four", receiver({ verify: { scheme: "hook" } }), "trigger.verify.scheme", "did you mean hooks?"],
  [
    "the old scheme name is refused, naming signature",
    receiver({ verify: { scheme: "hmac_sha256_header", header: "x-signature" } }),
    "trigger.verify.scheme",
    '"scheme": "signature"',
  ],
  [
    "a map has at most 20 names",
    receiver({ map: Object.fromEntries(Array.from({ length: 21 }, (_, n) => [`n${n}`, "a"])) }),
    "trigger.map",
    "21 names",
  ],
  ["a map's value is a text", receiver({ map: { a: 1 } }), "trigger.map.a", "is a number"],
  ["a map's path has no empty part", receiver({ map: { a: "b..c" } }), "trigger.map.a", "not a dotted path"],
  ["a map's path is no template", receiver({ map: { a: "{{b}}" } }), "trigger.map.a", "holds a template"],
  ["a map's name can be used in a template", receiver({ map: { "a b": "c" } }), "trigger.map.a b", "letters, digits"],
  ["__proto__ is no name", receiver({ map: JSON.parse('{"__proto__":"a"}') }), "trigger.map.__proto__", "choose another name"],
  [
    "a map names at most one person key",
    receiver({ map: { person_email: "a", person_id: "b" } }),
    "trigger.map.person_id",
    "one event acts on one person",
  ],
  [
    "a third person key is reported too",
    receiver({ map: { person_email: "a", person_id: "b", person_token: "c" } }),
    "trigger.map.person_token",
    "one event acts on one person",
  ],
  [
    "customer.id is a name in map",
    receiver({ customer: { id: "ordr" } }),
    "trigger.customer.id",
    "is not a name in map, so no event has a customer ID: write order, or add it to map.",
  ],
  [
    "customer.id is a name in map, or is added to it",
    receiver({ customer: { id: "customer_id" } }),
    "trigger.customer.id",
    "is not a name in map, so no event has a customer ID: add it to map with its path in the body.",
  ],
  ...["event_id", "event_type", "person_id", "person_token", "person_email"].map(
    (name): Row => [
      `customer.id is not ${name}, which has a meaning`,
      receiver({ map: { [name]: "a" }, customer: { id: name } }),
      "trigger.customer.id",
      `is ${name}, which has its own meaning in map: map the customer's ID under another name, such as customer_id, and write that name here.`,
    ],
  ),
  [
    "a customer's id is mapped once",
    receiver({ map: { customer_id: "customer", buyer: "customer" }, customer: { id: "customer_id" } }),
    "trigger.map.buyer",
    "has the same path as map.customer_id, so one customer ID has two names: keep one of them, and write it in trigger.customer.id.",
  ],
  [
    "a customer's id is not also the person",
    receiver({ map: { customer_id: "customer", person_token: "customer" }, customer: { id: "customer_id" } }),
    "trigger.map.person_token",
    "has the same path as map.customer_id",
  ],
  ["customer is an object", receiver({ customer: "order" }), "trigger.customer", 'such as { "id": "customer_id" }'],
  ["customer needs an id", receiver({ customer: { space: "stripe" } }), "trigger.customer.id", "is missing"],
  ["customer has no other field", receiver({ customer: { id: "order", name: "a" } }), "trigger.customer.name", "is not a known field"],
  ["a space is a relay's name", receiver({ customer: { id: "order", space: "Stripe" } }), "trigger.customer.space", "the name of a receiver relay"],
  ["a schedule has no customer", relay({ trigger: { ...DAILY, customer: { id: "a" } } }), "trigger.customer", "is not a known field"],
  ["every key of when is a name in map", receiver({ when: { ordr: "1" } }), "trigger.when.ordr", "write order"],
  ["when matches texts", receiver({ when: { order: 4200 } }), "trigger.when.order", "a text in quotes"],
  ["when holds texts in its lists", receiver({ when: { order: ["a", 1] } }), "trigger.when.order.1", "a text in quotes"],
  ["a list in when is not empty", receiver({ when: { order: [] } }), "trigger.when.order", "is empty: it must be a list of 1 to 20"],
  ["a list in when is bounded", receiver({ when: { order: Array.from({ length: 21 }, String) } }), "trigger.when.order", "has 21 entries"],
  ["a list in when names a text once", receiver({ when: { order: ["a", "a"] } }), "trigger.when.order.1", "is in the list twice"],
  ["when takes no lists in lists", receiver({ when: { order: [["a"]] } }), "trigger.when.order.0", "a text in quotes"],
  ["trustUnsignedEvents is true or false", receiver({ trustUnsignedEvents: "yes" }), "trigger.trustUnsignedEvents", "true or false"],
  // Recipe
  ["a recipe says where the signature is", receiver({ verify: { scheme: "signature" } }), "trigger.verify.header", "is missing"],
  ["a recipe's algorithm is one of five", recipe({ algorithm: "md5" }), "trigger.verify.algorithm", "hmac-sha256"],
  ["a recipe's separator is , or ;", recipe({ signatureKey: "v1", separator: "|" }), "trigger.verify.separator", '"," or ";"'],
  ["a recipe's encoding is one of three", recipe({ encoding: "base32" }), "trigger.verify.encoding", "base64url"],
  ["toleranceSeconds is at most 300", recipe({ timestampHeader: "x-time", toleranceSeconds: 301 }), "trigger.verify.toleranceSeconds", "is 301"],
  [
    "signedPayload ends with one of three",
    recipe({ signedPayload: "{timestamp}.", timestampHeader: "x-time" }),
    "trigger.verify.signedPayload",
    "{body}",
  ],
  ["{token} needs tokenField", recipe({ signedPayload: "{token}" }), "trigger.verify.tokenField", "is missing"],
  // Schedule
  ["nothing is shorter than 15 minutes", relay({ trigger: { kind: "schedule", every: "5m" } }), "trigger.every", "nothing shorter than 15 minutes"],
  ["every is required", relay({ trigger: { kind: "schedule" } }), "trigger.every", "is missing"],
  ["at is HH:MM", relay({ trigger: { ...DAILY, at: "9:00" } }), "trigger.at", "HH:MM"],
  ["at is a time of day", relay({ trigger: { ...DAILY, at: "24:00" } }), "trigger.at", "HH:MM"],
  ["at pairs only with 1d and 1w", relay({ trigger: { kind: "schedule", every: "12h", at: "09:00" } }), "trigger.at", "works only with 1d and 1w"],
  ["on is a lowercase weekday name", relay({ trigger: { kind: "schedule", every: "1w", on: "Monday" } }), "trigger.on", "lowercase weekday"],
  ["on is used only with 1w", relay({ trigger: { ...DAILY, on: "monday" } }), "trigger.on", "works only with 1w"],
  ...ACTIONS.filter((type) => type.needsPerson(type.examples[0])).map(
    (type): Row => [
      `${type.type} is refused on a schedule`,
      relay({ trigger: DAILY, actions: [type.examples[0]] }),
      "actions.0.type",
      "a schedule has no person",
    ],
  ),
  [
    'to: "person" is refused on a schedule',
    relay({ trigger: DAILY, actions: [{ type: "write_record", collection: "log", data: {}, to: "person" }] }),
    "actions.0.to",
    "a schedule has no person: leave `to` out",
  ],
  [
    "a broken action that needs a person is refused on a schedule too",
    relay({ trigger: DAILY, actions: [{ type: "grant_credits" }] }),
    "actions.0.type",
    "a schedule has no person",
  ],
  ["a schedule has no map", relay({ trigger: { ...DAILY, map: {} } }), "trigger.map", "receiver"],
  // Data change
  ["collection is required", relay({ trigger: { kind: "data_change", on: ["created"] } }), "trigger.collection", "is missing"],
  ["on names a change", relay({ trigger: { ...CHANGE, on: [] } }), "trigger.on", "is empty"],
  ["on is a list", relay({ trigger: { ...CHANGE, on: "created" } }), "trigger.on", "is a text"],
  ["on names known changes", relay({ trigger: { ...CHANGE, on: ["saved"] } }), "trigger.on.0", "created, updated or deleted"],
  ["on names a change once", relay({ trigger: { ...CHANGE, on: ["created", "created"] } }), "trigger.on.1", "twice"],
  ["where matches scalars", relay({ trigger: { ...CHANGE, where: { a: ["b"] } } }), "trigger.where.a", "is a list"],
  ["where names the record's own fields", relay({ trigger: { ...CHANGE, where: { "data.a": "b" } } }), "trigger.where.data.a", "no path"],
  ["where is not called when", relay({ trigger: { ...CHANGE, when: {} } }), "trigger.when", "`where`"],
  // Actions
  ["an entitlement is no template", action({ ...GRANT, entitlement: "{{mapped.order}}" }), "actions.0.entitlement", "holds a template"],
  ["an entitlement is a name or access:<slug>", action({ ...GRANT, entitlement: "role:admin" }), "actions.0.entitlement", "access:<slug>"],
  ["expiresAt is a duration or an ISO date", action({ ...GRANT, expiresAt: "3y" }), "actions.0.expiresAt", "neither a duration nor an ISO date"],
  ["expiresAt is a day that exists", action({ ...GRANT, expiresAt: "2030-02-30" }), "actions.0.expiresAt", "ISO date"],
  ["a reason has at most 200 characters", action({ ...GRANT, reason: "é".repeat(201) }), "actions.0.reason", "is 201 characters long"],
  ["a template has no filters", action({ ...GRANT, reason: "{{mapped.order | upper}}" }), "actions.0.reason", "no expressions or filters"],
  ["a template's braces pair", action({ ...GRANT, reason: "{{mapped.order" }), "actions.0.reason", "never closes it"],
  ["an amount is at least 1", action({ type: "grant_credits", amount: 0 }), "actions.0.amount", "1 to 10,000"],
  ["an amount is at most 10,000", action({ type: "grant_credits", amount: 10_001 }), "actions.0.amount", "is 10001"],
  ["an amount is an integer", action({ type: "grant_credits", amount: 1.5 }), "actions.0.amount", "is 1.5"],
  ["an amount is no text", action({ type: "grant_credits", amount: "5" }), "actions.0.amount", "is a text"],
  [
    "a ref has at most 200 characters",
    action({ type: "fulfil_product", product: "lamp", ref: "r".repeat(201) }),
    "actions.0.ref",
    "is 201 characters long",
  ],
  ["a ref is not empty", action({ type: "fulfil_product", product: "lamp", ref: "" }), "actions.0.ref", "is empty"],
  ["a product is named", action({ type: "refund_product" }), "actions.0.product", "is missing"],
  ["a plan is named", action({ type: "revoke_plan" }), "actions.0.plan", "is missing"],
  [
    "a subject has at most 300 characters",
    action({ type: "email_person", subject: "s".repeat(301), text: "t" }),
    "actions.0.subject",
    "is 301 characters long",
  ],
  [
    "a text has at most 10,000 characters",
    action({ type: "email_person", subject: "s", text: "t".repeat(10_001) }),
    "actions.0.text",
    "is 10001 characters long",
  ],
  [
    "the kind of an email is event or account",
    action({ type: "email_person", subject: "s", text: "t", kind: "promo" }),
    "actions.0.kind",
    '"event" or "account"',
  ],
  ["a url is no template", action({ ...CALL, url: "https://example.com/{{mapped.order}}" }), "actions.0.url", "holds a template"],
  ["a url is https", action({ ...CALL, url: "http://example.com/" }), "actions.0.url", "https"],
  ["a url holds no IP literal", action({ ...CALL, url: "https://93.184.216.34/" }), "actions.0.url", "IP"],
  ["a url holds no credentials", action({ ...CALL, url: "https://a:b@example.com/" }), "actions.0.url", "user name or password"],
  // Bounds
  ["a definition has limited nesting", relay({ actions: [nest(100)] }), "", "nested"],
  ["a definition has a limited number of values", relay({ actions: Array(100_000).fill(1) }), "", "values"],
  ["a definition has a limited number of characters", relay({ name: "a".repeat(300_000) }), "", "characters"],
];

function nest(levels: number): JsonObject {
  let value: JsonObject = {};
  for (let level = 0; level < levels; level++) value = { a: value };
  return value;
}

describe("a definition is refused, because", () => {
  test.each(REFUSED)("%s", (_rule, definition, field, says) => {
    const problems = listProblems(definition).filter((problem) => problem.field === field);
    expect(problems.map((problem) => problem.message).join("\n")).toContain(says);
    for (const { message } of problems) expect(message.length).toBeLessThan(600);
  });
});

describe("a check reports", () => {
  test("a broken rule between fields together with an unknown field and a field of the wrong kind", () => {
    const fields = listProblems(
      relay({
        name: "A",
        trigger: { ...HOOKS, map: { person_id: "a", person_token: "b", c: 1 }, when: { d: "e" }, extra: 1 },
        actions: [{ ...GRANT, entitlement: 5, expiresAt: "soon", extra: 1 }, CALL, { type: "nothing" }],
      }),
    ).map((problem) => problem.field);
    expect(fields).toEqual([
      "name",
      "trigger.map.c",
      "trigger.extra",
      "trigger.map.person_token",
      "trigger.when.d",
      "actions.0.entitlement",
      "actions.0.extra",
      "actions.0.expiresAt",
      "actions.2.type",
    ]);
  });

  test("broken rules of a recipe also under the old scheme name", () => {
    const verify = { scheme: "hmac_sha256_header", header: "x-signature", tokenField: "t" };
    const fields = listProblems(receiver({ verify })).map((problem) => problem.field);
    expect(fields).toEqual(["trigger.verify.scheme", "trigger.verify.tokenField"]);
  });

  test("twenty problems at most, and then that there are more", () => {
    const trigger = {
      ...HOOKS,
      ...Object.fromEntries(Array.from({ length: 80 }, (_, n) => [`extra${n}`, 1])),
    };
    const problems = listProblems(relay({ trigger }));
    expect(problems).toHaveLength(20);
    expect(problems.at(-1)?.message).toContain("has more problems: fix these 19 first");
  });

  test("every problem in the invalid_definition of requireDefinition", () => {
    let thrown: unknown;
    try {
      requireDefinition({});
    } catch (error) {
      thrown = error;
    }
    expect(thrown).toBeInstanceOf(Refusal);
    const refusal = thrown as Refusal;
    expect([refusal.code, refusal.status]).toEqual(["invalid_definition", 400]);
    expect(refusal.extra.problems?.map((problem) => problem.field)).toEqual(["name", "trigger", "actions"]);
  });

  test("a problem without its value if the value may be a secret", () => {
    const secret = "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD";
    const places = [
      { ...relay({}), secret },
      receiver({ verify: { scheme: "hooks", secret } }),
      recipe({ signatureKey: `${secret}==` }),
      receiver({ map: { a: `${secret}..` } }),
    ];
    for (const place of places) {
      const problems = listProblems(place);
      expect(problems).not.toEqual([]);
      expect(JSON.stringify(problems)).not.toContain(secret);
    }
  });
});

describe("every example is a valid definition", () => {
  const definitions = [
    ...TRIGGERS.flatMap(({ kind, examples }) => examples.map((trigger, n) => [`${kind} ${n}`, relay({ trigger })] as const)),
    ...ACTIONS.flatMap(({ type, examples }) => examples.map((one, n) => [`${type} ${n}`, relay({ actions: [one] })] as const)),
    ...SCHEMES.flatMap(({ name, examples }) =>
      examples.map((verify, n) => {
        const trigger = { kind: "receiver", verify, map: {} };
        return [`${name} ${n}`, relay({ trigger })] as const;
      }),
    ),
  ];
  test.each(definitions)("%s", (_title, definition) => {
    expect(listProblems(definition)).toEqual([]);
  });

  test("the examples cover all kinds, types and schemes, including the senders that no recipe describes", () => {
    expect(TRIGGERS.map((one) => one.kind).sort()).toEqual(["data_change", "receiver", "schedule"]);
    const named = ["adyen", "box", "hubspot", "telnyx", "twitch", "zendesk"];
    expect(SCHEMES.map((one) => one.name).sort()).toEqual([...named, "hooks", "processor", "receiver", "shared_token", "signature"].sort());
    expect(ACTIONS.map((one) => one.type)).toEqual([
      "write_record",
      "grant_access",
      "revoke_access",
      "grant_credits",
      "fulfil_product",
      "refund_product",
      "grant_plan",
      "revoke_plan",
      "email_person",
      "call_url",
    ]);
  });
});

const SALE = { type: "fulfil_product", product: "lamp", ref: "{{mapped.order}}" };

describe("a definition is accepted with", () => {
  const warned: [title: string, definition: JsonObject, says: string][] = [
    ["a warning for an action that never has a person", relay({ trigger: { ...HOOKS, map: {} }, actions: [GRANT] }), "the map names no person"],
    [
      "a warning for a word that the trigger does not offer",
      action({ ...GRANT, reason: "{{record.id}}" }),
      "a receiver offers event, mapped and person",
    ],
    ["a warning for a name that is not in map", action({ ...GRANT, reason: "{{mapped.oder}}" }), "did you mean mapped.order?"],
    ["a warning for a field that a person does not have", action({ ...GRANT, reason: "{{person.name}}" }), "person offers email and id"],
    [
      "a warning for a person that the map does not name",
      relay({
        trigger: { ...HOOKS, map: {} },
        actions: [{ type: "write_record", collection: "log", data: { who: ["{{person.email}}"] } }],
      }),
      "`actions.0.data.who.0`",
    ],
    [
      "a warning for a record's data field written as a field of the record",
      relay({ trigger: CHANGE, actions: [{ ...GRANT, reason: "{{record.title}}" }] }),
      "record offers data and id",
    ],
    [
      "a warning for two sales under equal refs",
      relay({ actions: [SALE, { type: "grant_plan", plan: "pro", ref: SALE.ref }] }),
      "`actions.1.ref` is the ref of actions.0 too",
    ],
    [
      "a warning for two sales without refs",
      relay({
        actions: [
          { type: "fulfil_product", product: "lamp" },
          { type: "fulfil_product", product: "book" },
        ],
      }),
      "`actions.1.ref` is absent, as in actions.0 too",
    ],
    [
      "a warning for two refunds of two products under one ref",
      relay({ actions: ["lamp", "book"].map((product) => ({ ...SALE, type: "refund_product", product })) }),
      "`actions.1.ref` is the ref of actions.0 too, and a ref belongs to one purchase, so one of the two is refused on every event",
    ],
    [
      "a warning for a refund without a ref",
      action({ type: "refund_product", product: "lamp" }),
      "`actions.0.ref` is absent, so the event's own id is used, and no payment was fulfilled under it",
    ],
    ["a warning for a constant ref of a sale", action({ ...SALE, ref: "order" }), "can name only one payment"],
    [
      "a warning for a constant ref of credits",
      action({ type: "grant_credits", amount: 1, ref: "welcome" }),
      "each person gets these credits only once",
    ],
    ["a warning for an end in the past", action({ ...GRANT, expiresAt: "2026-01-14" }), "is past (2026-01-14)"],
    ...[
      "http://localhost:3000/x",
      "http://127.0.0.1/x",
      "https://localhost/x",
      "https://app.localhost/x",
      "https://database/x",
      "https://printer.local/x",
      "https://api.internal/x",
      "https://nas.home.arpa/x",
    ].map((url): (typeof warned)[number] => [
      `a warning for ${url}, which a server never calls by default`,
      action({ type: "call_url", url }),
      "an address that only local development calls",
    ]),
  ];
  test.each(warned)("%s", (_title, definition, says) => {
    expect(listProblems(definition)).toEqual([]);
    const checked = checkDefinition(definition, Date.parse("2026-01-15T00:00:00Z"));
    expect("warnings" in checked && checked.warnings.map(({ message }) => message).join("\n")).toContain(says);
  });

  const clean: [title: string, definition: JsonObject][] = [
    ["no warning for two sales under different refs", relay({ actions: [SALE, { ...SALE, ref: "{{mapped.order}}-2" }] })],
    ["no warning for a sale and its refund under one ref", relay({ actions: [SALE, { ...SALE, type: "refund_product" }] })],
    [
      "no warning for two cancellations under one ref, because the person may have paid for either",
      relay({ actions: ["pro", "team"].map((plan) => ({ type: "revoke_plan", plan, ref: SALE.ref })) }),
    ],
    [
      "no warning for an end in the future, or a duration",
      relay({
        actions: [
          { ...GRANT, expiresAt: "2126-01-14" },
          { ...GRANT, expiresAt: "1h" },
        ],
      }),
    ],
    ["no warning for a public address", action({ type: "call_url", url: "https://internal.example.com/local" })],
    [
      "no warning for any path that a receiver provides",
      action({
        ...GRANT,
        reason: "{{event.a.0.b}} {{ mapped.order }} {{person.id}} {{person.email}}",
      }),
    ],
    [
      "no warning for the paths of a record",
      relay({
        trigger: CHANGE,
        actions: [{ ...GRANT, reason: "{{record.id}} {{record.data.title}} {{person.id}}" }],
      }),
    ],
    ["a weekly schedule without a day", relay({ trigger: { kind: "schedule", every: "1w" } })],
    ["JSON braces in a text", action({ type: "email_person", subject: "s", text: '{"a":{"b":{{mapped.order}}}}' })],
    ["an integer beyond 2^53 in where", relay({ trigger: { ...CHANGE, where: { id: 12345678901234567890n } } })],
    [
      "every duration and date of expiresAt",
      relay({
        actions: ["30d", "12h", "2w", "2030-01-31", "2030-01-31T12:00:00Z", "2030-01-31T12:00+02:00"].map((expiresAt) => ({ ...GRANT, expiresAt })),
      }),
    ],
  ];
  test.each(clean)("%s", (_title, definition) => {
    expect(checkDefinition(definition)).toEqual({ definition, warnings: [] } as never);
  });
});
