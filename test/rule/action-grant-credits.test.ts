import { describe, expect, test } from "bun:test";
import { checkShape } from "../../src/base/check-shape.ts";
import type { JsonObject } from "../../src/base/json.ts";
import { readPageRequest } from "../../src/base/page.ts";
import { type GrantCredits, grantCredits } from "../../src/rules/action/grant-credits.ts";
import { listCredits } from "../../src/shop/people/credit.ts";
import type { PersonRow } from "../../src/shop/people/person.ts";
import { openTown } from "../kit/people.ts";

const town = await openTown();
const { store, environmentId } = town;

const act = (person: PersonRow | null, action: Omit<GrantCredits, "type">, mapped: JsonObject = {}) =>
  town.act(grantCredits, { type: "grant_credits", ...action }, person, { mapped });
const ledgerOf = (person: PersonRow) => store.read((tx) => listCredits(tx, { environmentId, personId: person.id }, readPageRequest({})));

describe("grant_credits", () => {
  test("adds to the balance with a line that reads `relay: <reason>`, and says the balance before and after", async () => {
    const person = await town.newPerson();
    await act(person, { amount: 5 });
    const outcome = await act(person, { amount: 100, reason: "Top-up {{mapped.id}}" }, { id: "T1" });
    const ledger = await ledgerOf(person);
    expect(ledger.items[0]).toMatchObject({
      amount: 100,
      balance: 105,
      reason: "relay: Top-up T1",
      source: "relay",
      relay: "shop",
      eventId: "evt_test",
      key: null,
    });
    expect(outcome).toEqual({
      outcome: "done",
      before: { balance: 5 },
      after: { balance: 105, amount: 100, line: ledger.items[0]?.id ?? "" },
    });
  });

  test.each([
    ["without a reason", {}, {}, "relay"],
    ["with a reason that renders empty", { reason: "{{mapped.none}}" }, {}, "relay"],
    ["with a reason that renders long", { reason: "{{mapped.x}}" }, { x: "é".repeat(500) }, `relay: ${"é".repeat(200)}`],
    ["with a reason over two lines", { reason: "{{mapped.x}}" }, { x: "a\nb" }, "relay: a b"],
  ])("%s has this reason on its balance line", async (_what, more, mapped, reason) => {
    const person = await town.newPerson();
    await act(person, { amount: 1, ...more }, mapped);
    expect((await ledgerOf(person)).items[0]?.reason).toBe(reason);
  });

  test("with a ref applies once for each person and ref, whatever the amount and however much later", async () => {
    const person = await town.newPerson();
    const ref = "{{mapped.payment}}";
    expect((await act(person, { amount: 10, ref }, { payment: "pay_1" })).outcome).toBe("done");
    const again = await act(person, { amount: 20, ref }, { payment: "pay_1" });
    expect(again).toMatchObject({ outcome: "skipped", after: { amount: 10 } });
    expect((await act(person, { amount: 20, ref }, { payment: "pay_2" })).outcome).toBe("done");
    expect((await act(await town.newPerson(), { amount: 20, ref }, { payment: "pay_1" })).outcome).toBe("done");
    expect((await ledgerOf(person)).balance).toBe(30);
  });

  test("without a ref adds every time it is called, because the runner calls it once for each event", async () => {
    const person = await town.newPerson();
    for (let time = 0; time < 3; time++) await act(person, { amount: 1 });
    expect((await ledgerOf(person)).balance).toBe(3);
  });

  test("with one ref in twenty concurrent events applies once", async () => {
    const person = await town.newPerson();
    const outcomes = await Promise.all(Array.from({ length: 20 }, () => act(person, { amount: 7, ref: "same" })));
    expect(outcomes.filter((outcome) => outcome.outcome === "done")).toHaveLength(1);
    expect((await ledgerOf(person)).balance).toBe(7);
  });

  const failures: [string, string, JsonObject, string][] = [
    ["whose path resolves to nothing", "{{mapped.payment}}", {}, "ref_unresolved"],
    ["whose path resolves to empty text", "{{mapped.payment}}", { payment: "" }, "ref_unresolved"],
    ["with one part that resolves to nothing", "{{mapped.a}}-{{mapped.b}}", { a: "1" }, "ref_unresolved"],
    ["that grows over 200 characters", "{{mapped.payment}}", { payment: "x".repeat(201) }, "ref_unresolved"],
    ["with text and one part that resolves to empty text", "pay-{{mapped.payment}}", { payment: "" }, "ref_unresolved"],
    ["that is an object", "{{mapped.payment}}", { payment: { id: "pi_1" } }, "ref_unresolved"],
    ["that is a list", "{{mapped.payment}}", { payment: ["pi_1"] }, "ref_unresolved"],
    ["with text and a boolean", "pay-{{mapped.payment}}", { payment: true }, "ref_unresolved"],
    ["that is null", "{{mapped.payment}}", { payment: null }, "ref_unresolved"],
    ["of control characters only", "{{mapped.payment}}", { payment: "\u0000\u001f\u0085" }, "ref_unresolved"],
    ["of invisible characters only", "pay-{{mapped.payment}}", { payment: "\u200b\u2060\ufeff\u3164\u2800" }, "ref_unresolved"],
  ];
  test.each(failures)("with a ref %s is refused, never replaced", async (_what, ref, mapped, code) => {
    const person = await town.newPerson();
    expect(await act(person, { amount: 1, ref }, mapped)).toMatchObject({
      outcome: "failed",
      code,
      final: true,
    });
    expect((await ledgerOf(person)).items).toEqual([]);
  });

  test.each([
    ["a text", "pi_1"],
    ["an integer, every digit of it", 9007199254740993n],
    ["text of another script with invisible characters", "\u200f\u0645\u200d"],
  ])("a ref can be %s", async (_what, payment) => {
    const person = await town.newPerson();
    const ref = "{{mapped.payment}}";
    expect((await act(person, { amount: 1, ref }, { payment })).outcome).toBe("done");
    expect((await act(person, { amount: 1, ref }, { payment })).outcome).toBe("skipped");
  });

  test("for a suspended person fails finally with person_suspended", async () => {
    const outcome = await act(await town.newPerson({ suspended: true }), { amount: 1 });
    expect(outcome).toMatchObject({ outcome: "failed", code: "person_suspended", final: true });
  });

  test("on an event without a person fails with person_not_found", async () => {
    expect(await act(null, { amount: 1 })).toMatchObject({ outcome: "failed", code: "person_not_found" });
  });
});

describe("grant_credits in a definition", () => {
  const check = (action: unknown) => {
    const problems = checkShape(grantCredits.shape, action);
    return problems.length > 0 ? problems : grantCredits.check(action as GrantCredits);
  };

  test.each([...grantCredits.examples, { type: "grant_credits", amount: 1 }, { type: "grant_credits", amount: 10_000 }])("%j is valid", (example) => {
    expect(check(example)).toEqual([]);
  });

  const bad: [string, JsonObject, string][] = [
    ["no amount", {}, "amount"],
    ["an amount of 0", { amount: 0 }, "amount"],
    ["an amount below zero", { amount: -5 }, "amount"],
    ["an amount of 10,001", { amount: 10_001 }, "amount"],
    ["a broken amount", { amount: 1.5 }, "amount"],
    ["an amount that is text", { amount: "5" }, "amount"],
    ["an empty ref", { amount: 1, ref: "" }, "ref"],
    ["a ref of 201 characters", { amount: 1, ref: "x".repeat(201) }, "ref"],
    ["a filter in its ref", { amount: 1, ref: "{{mapped.x | trim}}" }, "ref"],
    ["an unknown name", { amount: 1, credits: 5 }, "credits"],
  ];
  test.each(bad)("with %s is refused at the field", (_what, fields, field) => {
    expect(check({ type: "grant_credits", ...fields }).map((problem) => problem.field)).toEqual([field]);
  });
});
