/** The parts of the specification's "Unsigned-event rule" that a save can check. */
import { describe, expect, test } from "bun:test";
import type { JsonObject } from "../../src/base/json.ts";
import { ACTIONS } from "../../src/rules/action/registry.ts";
import { checkDefinition } from "../../src/rules/relay/definition.ts";
import type { Definition } from "../../src/rules/relay/definition-shape.ts";
import { arrivesUnsigned, checkUnsignedRule, rejectsUnsigned, unsignedWarning, widensUnsigned } from "../../src/rules/relay/unsigned-rule.ts";

const TOKEN = { scheme: "shared_token" };
const TOKEN_RECIPE = {
  scheme: "signature",
  header: "x-signature",
  signedPayload: "{token}",
  tokenField: "token",
};
const SIGNED = { scheme: "signature", header: "x-signature" };
const CREDITS = { type: "grant_credits", amount: 100 };
/** Paths of a sender that signs only part of its events. */
const ITEM = "notificationItems.0.NotificationRequestItem";
const RECORD = { type: "write_record", collection: "log", data: { a: "b" } };

interface Parts {
  verify?: JsonObject;
  map?: Record<string, string>;
  trust?: boolean;
  actions?: JsonObject[];
}

function relay({ verify = TOKEN, map = { person_id: "user" }, trust, actions = [RECORD] }: Parts): Definition {
  const trigger = {
    kind: "receiver",
    verify,
    map,
    ...(trust === undefined ? {} : { trustUnsignedEvents: trust }),
  };
  return { name: "paid", trigger, actions } as unknown as Definition;
}

function listFields(definition: unknown): string[] {
  const checked = checkDefinition(definition);
  return "problems" in checked ? checked.problems.map((problem) => problem.field) : [];
}

const ACTING = ACTIONS.filter((type) => ["gives", "takes", "mails"].includes(type.effect));

describe("a sender that does not sign the event", () => {
  test("is one with a shared token", () => {
    expect(arrivesUnsigned(relay({ verify: TOKEN }).trigger)).toBe(true);
  });
  test("is one with a recipe that signs only a token", () => {
    expect(arrivesUnsigned(relay({ verify: TOKEN_RECIPE }).trigger)).toBe(true);
  });
  test.each([[SIGNED], [{ scheme: "hooks" }], [{ scheme: "processor" }]] as [JsonObject][])("is not %j", (verify) => {
    expect(arrivesUnsigned(relay({ verify }).trigger)).toBe(false);
  });
  test("is neither a schedule nor a record change", () => {
    expect(arrivesUnsigned({ kind: "schedule", every: "1d" })).toBe(false);
    expect(arrivesUnsigned({ kind: "data_change", collection: "a", on: ["created"] })).toBe(false);
  });
});

describe("a relay of such a sender without the opt-in", () => {
  for (const verify of [TOKEN, TOKEN_RECIPE] as JsonObject[]) {
    test(`can run write_record and call_url (${verify.scheme})`, () => {
      const actions = [RECORD, { type: "call_url", url: "https://example.com/" }];
      expect(listFields(relay({ verify, actions }))).toEqual([]);
    });
    test.each(ACTING.map((type) => [type.type, type.examples[0] as JsonObject] as const))(`cannot run %s (${verify.scheme})`, (_type, action) => {
      expect(listFields(relay({ verify, actions: [RECORD, action] }))).toEqual(["actions.1.type"]);
    });
    test(`cannot map person_email (${verify.scheme})`, () => {
      expect(listFields(relay({ verify, map: { person_email: "email" } }))).toEqual(["trigger.map.person_email"]);
    });
    test.each([["person_id"], ["person_token"]])(`can map %s (${verify.scheme})`, (key) => {
      expect(listFields(relay({ verify, map: { [key]: "user" } }))).toEqual([]);
    });
  }

  test("can name a customer, because it only reads who that is", () => {
    const { trigger, ...rest } = relay({ map: { customer_id: "customer" } });
    expect(listFields({ ...rest, trigger: { ...trigger, customer: { id: "customer_id" } } })).toEqual([]);
  });

  test("has every problem reported at once, with what to do", () => {
    const problems = checkUnsignedRule(relay({ map: { person_email: "email" }, actions: [CREDITS, CREDITS] }));
    expect(problems.map((problem) => problem.field)).toEqual(["trigger.map.person_email", "actions.0.type", "actions.1.type"]);
    for (const { message } of problems) expect(message).toContain("trigger.trustUnsignedEvents: true");
  });

  test("has it reported even if other fields are wrong", () => {
    const fields = listFields({ ...relay({ actions: [{ type: "grant_credits" }] }), name: "A" });
    expect(fields).toEqual(["name", "actions.0.amount", "actions.0.type"]);
  });

  test("cannot use start_run, which is one of the granting types", () => {
    expect(rejectsUnsigned(relay({ actions: [{ type: "start_run" }] }))).toBe(true);
    expect(checkUnsignedRule(relay({ actions: [{ type: "start_run" }] }))).toHaveLength(1);
  });

  test("acts if it gives, takes, mails or creates a person by address, and only then", () => {
    for (const type of ACTIONS) {
      const acting = ACTING.includes(type);
      expect(rejectsUnsigned(relay({ actions: [type.examples[0] as JsonObject] }))).toBe(acting);
    }
    expect(rejectsUnsigned(relay({ map: { person_email: "email" } }))).toBe(true);
  });
});

describe("the opt-in", () => {
  test("lets the relay act, with a one-line warning about what a captured request allows", () => {
    const checked = checkDefinition(relay({ trust: true, map: { person_email: "email" }, actions: [CREDITS] }));
    const warnings = "warnings" in checked ? checked.warnings : [];
    expect(warnings).toHaveLength(1);
    expect(warnings[0]?.message).toContain("run grant_credits with forged values and create people by address");
    expect(warnings[0]?.message).not.toContain("\n");
  });
  test("warns even if the relay does not act yet", () => {
    expect(unsignedWarning(relay({ trust: true }))?.message).toContain("any action that is added later");
  });
  test.each([[SIGNED], [{ scheme: "hooks" }], [{ scheme: "processor" }]] as [JsonObject][])(
    "is refused on a sender that signs the event: %j",
    (verify) => {
      expect(listFields(relay({ verify, trust: true, actions: [CREDITS] }))).toEqual(["trigger.trustUnsignedEvents"]);
      expect(listFields(relay({ verify, trust: false, actions: [CREDITS] }))).toEqual([]);
    },
  );
  test("is not set by false", () => {
    expect(listFields(relay({ trust: false, actions: [CREDITS] }))).toEqual(["actions.0.type"]);
    expect(unsignedWarning(relay({ trust: false }))).toBeNull();
  });
});

describe("a sender that signs only some values of the body", () => {
  const ADYEN = { scheme: "adyen" };
  const item = ITEM;
  const signed = { event_id: `${item}.pspReference`, person_id: `${item}.merchantReference`, amount: `${item}.amount.value` };
  const address = { ...signed, address: `${item}.additionalData.shopperEmail` };
  const mail = (text: string) => ({ type: "email_person", subject: "Paid", text });

  test("can act on signed values", () => {
    expect(listFields(relay({ verify: ADYEN, map: signed, actions: [CREDITS, mail(`{{event.${item}.eventCode}} {{mapped.amount}}`)] }))).toEqual([]);
    const { person_id, ...rest } = signed;
    expect(listFields(relay({ verify: ADYEN, map: { ...rest, person_email: person_id } }))).toEqual([]);
    expect(arrivesUnsigned(relay({ verify: ADYEN, map: signed }).trigger)).toBe(false);
  });
  test("can read any value if it only writes records and calls URLs", () => {
    const record = { type: "write_record", collection: "log", data: { all: "{{event.notificationItems}}" } };
    expect(listFields(relay({ verify: ADYEN, map: address, actions: [record] }))).toEqual([]);
    expect(listFields(relay({ verify: ADYEN, map: signed, actions: [record, CREDITS] }))).toEqual([]);
    expect(arrivesUnsigned(relay({ verify: ADYEN, map: address }).trigger)).toBe(true);
  });
  const refused: [string, Record<string, string>, JsonObject, string][] = [
    ["a mapped value", address, CREDITS, "trigger.map.address"],
    ["a part of a signed value", { ...signed, amount: `${item}.amount` }, CREDITS, "trigger.map.amount"],
    ["another item", { ...signed, amount: "notificationItems.1.NotificationRequestItem.amount.value" }, CREDITS, "trigger.map.amount"],
    ["a template", signed, mail(`{{event.${item}.reason}}`), "actions.0.text"],
    ["the list of all items", signed, mail("{{event.notificationItems}}"), "actions.0.text"],
  ];
  test.each(refused)("cannot act on unsigned values: %s", (_what, map, action, field) => {
    const problems = checkUnsignedRule(relay({ verify: ADYEN, map, actions: [action] }));
    expect(problems.map((problem) => problem.field)).toEqual([field]);
    expect(problems[0]?.message).toContain("which this sender does not sign");
    expect(problems[0]?.message).toContain(
      "pspReference, originalReference, merchantAccountCode, merchantReference, value, currency, eventCode, success",
    );
  });
  test("cannot name a person by an unsigned address", () => {
    const map = { person_email: `${item}.additionalData.shopperEmail` };
    expect(listFields(relay({ verify: ADYEN, map }))).toEqual(["trigger.map.person_email"]);
  });
  test("accepts the opt-in with its warning, and only if it trusts unsigned values", () => {
    const trusting = relay({ verify: ADYEN, map: address, trust: true, actions: [CREDITS] });
    expect(listFields(trusting)).toEqual([]);
    expect(unsignedWarning(trusting)?.message).toContain("the sender signs only a part of its events");
    expect(unsignedWarning(relay({ verify: ADYEN, map: signed, trust: true, actions: [mail("{{event.live}}")] }))).not.toBeNull();
    expect(listFields(relay({ verify: ADYEN, map: signed, trust: true, actions: [CREDITS] }))).toEqual(["trigger.trustUnsignedEvents"]);
  });
});

const SHARED: JsonObject = { scheme: "shared_token" };
const TIMED: JsonObject = { ...TOKEN_RECIPE, timestampField: "at", signedPayload: "{timestamp}.{token}" };

function withTrigger(change: JsonObject): Definition {
  const { trigger, ...rest } = relay({
    trust: true,
    actions: [CREDITS],
    map: { person_id: "user", user: "u", other: "o" },
  });
  return { ...rest, trigger: { ...trigger, ...change } } as unknown as Definition;
}

/** A sender that signs only part of its events, with an unsigned address. */
const partly = (map: JsonObject): Definition =>
  relay({ verify: { scheme: "adyen" }, trust: true, actions: [CREDITS], map: { ...map, mail: `${ITEM}.additionalData.shopperEmail` } });

describe("a save widens what a captured request allows", () => {
  const before = relay({ trust: true, actions: [CREDITS] });
  const rows: [title: string, before: Definition | null, after: Definition, widens: boolean][] = [
    ["if the relay is new", null, before, true],
    ["if the opt-in is new", relay({}), before, true],
    ["if an acting action is added", before, relay({ trust: true, actions: [CREDITS, CREDITS] }), true],
    ["if an amount grows", before, relay({ trust: true, actions: [{ ...CREDITS, amount: 101 }] }), true],
    ["if a once-only ref is removed", relay({ trust: true, actions: [{ ...CREDITS, ref: "a" }] }), before, true],
    ["if the map now creates people by address", before, relay({ trust: true, actions: [CREDITS], map: { person_email: "e" } }), true],
    ...["person_id", "person_token"].map((key): (typeof rows)[number] => [
      `if ${key} now names the person`,
      relay({ trust: true, actions: [CREDITS], map: {} }),
      relay({ trust: true, actions: [CREDITS], map: { [key]: "user" } }),
      true,
    ]),
    ["if a customer now names the person", withTrigger({}), withTrigger({ customer: { id: "user" } }), true],
    ["but not if the customer stays", withTrigger({ customer: { id: "user" } }), withTrigger({ customer: { id: "user" } }), false],
    ["if a timed recipe becomes a shared token", withTrigger({ verify: TIMED }), withTrigger({ verify: SHARED }), true],
    ["if a timed recipe loses its timestamp", withTrigger({ verify: TIMED }), withTrigger({ verify: TOKEN_RECIPE }), true],
    ["if a timestamp gets a longer window", withTrigger({ verify: { ...TIMED, toleranceSeconds: 10 } }), withTrigger({ verify: TIMED }), true],
    ["if a once-only token becomes a shared token", withTrigger({ verify: TOKEN_RECIPE }), withTrigger({ verify: SHARED }), true],
    ["if a name is read from an unsigned value", partly({ person_id: `${ITEM}.merchantReference` }), partly({ person_id: `${ITEM}.reason` }), true],
    ["if when is removed", withTrigger({ when: { user: "a" } }), withTrigger({}), true],
    ["if a name of when is removed", withTrigger({ when: { user: "a", other: "b" } }), withTrigger({ when: { user: "a" } }), true],
    ["if a name of when gets another text", withTrigger({ when: { user: "a" } }), withTrigger({ when: { user: "b" } }), true],
    ["if a name of when accepts one more text", withTrigger({ when: { user: "a" } }), withTrigger({ when: { user: ["a", "b"] } }), true],
    ["but not if when is narrowed", withTrigger({ when: { user: ["a", "b"] } }), withTrigger({ when: { user: "b", other: "c" } }), false],
    ["but not if a window is shortened", withTrigger({ verify: TIMED }), withTrigger({ verify: { ...TIMED, toleranceSeconds: 10 } }), false],
    ["but not if a shared token becomes once-only", withTrigger({ verify: SHARED }), withTrigger({ verify: TOKEN_RECIPE }), false],
    ["but not if a token gets a timestamp", withTrigger({ verify: SHARED }), withTrigger({ verify: TIMED }), false],
    ["but not if nothing changes", before, before, false],
    ["but not if an amount shrinks", before, relay({ trust: true, actions: [{ ...CREDITS, amount: 99 }] }), false],
    ["but not if an action is removed", before, relay({ trust: true }), false],
    ["but not if it also writes a record", before, relay({ trust: true, actions: [RECORD, CREDITS] }), false],
    ["but not if the opt-in is withdrawn", before, relay({}), false],
  ];
  test.each(rows)("%s", (_title, was, is, widens) => {
    expect(widensUnsigned(was, is)).toBe(widens);
  });
});
