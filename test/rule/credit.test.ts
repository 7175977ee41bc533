import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { readPageRequest } from "../../src/base/page.ts";
import { Refusal } from "../../src/base/refusal.ts";
import { addCredits, addCreditsManually, type CreditLine, findBalance, listCredits, refundCredits } from "../../src/shop/people/credit.ts";
import { roundsOf } from "../kit/chosen-store.ts";
import { refusalOf } from "../kit/fresh-store.ts";
import { openTown } from "../kit/people.ts";

const town = await openTown();
const { store, clock, environmentId } = town;

const line = (personId: string, amount: number, onceKey: string | null): CreditLine => ({
  environmentId,
  personId,
  amount,
  reason: "test",
  source: "hand",
  relayName: null,
  eventId: null,
  onceKey,
  nowMs: clock.now(),
});
const add = (personId: string, amount: number, onceKey: string | null = null) =>
  store.write("app", (tx) => addCredits(tx, line(personId, amount, onceKey)));
const balanceOf = (personId: string) => store.read((tx) => findBalance(tx, environmentId, personId));
const ledgerOf = (personId: string, query: { limit?: string; cursor?: string | undefined } = {}) =>
  store.read((tx) => listCredits(tx, { environmentId, personId }, readPageRequest(query)));

describe("the ledger", () => {
  test("has balance zero for a person without a line", async () => {
    const { id } = await town.newPerson();
    expect(await ledgerOf(id)).toEqual({ balance: 0, items: [], next: null });
  });

  test("holds a line for every change and the balance after it, newest first, in pages", async () => {
    const { id } = await town.newPerson();
    for (const amount of [10, -4, 3]) await add(id, amount);
    const first = await ledgerOf(id, { limit: "2" });
    const second = await ledgerOf(id, { limit: "2", cursor: first.next ?? undefined });
    const shown = [...first.items, ...second.items].map((item) => [item.amount, item.balance]);
    expect(shown).toEqual([
      [3, 9],
      [-4, 6],
      [10, 10],
    ]);
    expect([first.balance, second.balance, second.next]).toEqual([9, 9, null]);
  });

  test("spends to zero and never below zero", async () => {
    const { id } = await town.newPerson();
    await add(id, 5);
    const refusal = await refusalOf(() => add(id, -6));
    expect([refusal.code, refusal.status]).toEqual(["credits_short", 409]);
    expect(refusal.message).toContain("has 5 credits");
    await add(id, -5);
    expect(await balanceOf(id)).toBe(0);
  });

  test("applies a key once, and returns the first line again", async () => {
    const { id } = await town.newPerson();
    const first = await add(id, 5, "key:a");
    await add(id, 1);
    const second = await add(id, 5, "key:a");
    expect([first.applied, second.applied, second.line]).toEqual([true, false, first.line]);
    expect(await balanceOf(id)).toBe(6);
  });

  test("refuses a key used before for another amount", async () => {
    const { id } = await town.newPerson();
    await add(id, 5, "key:a");
    expect((await refusalOf(() => add(id, 6, "key:a"))).code).toBe("invalid_input");
    expect(await balanceOf(id)).toBe(5);
  });

  test("separates the keys of different people", async () => {
    const [one, other] = [await town.newPerson(), await town.newPerson()];
    await add(one.id, 5, "key:a");
    expect((await add(other.id, 7, "key:a")).applied).toBe(true);
  });

  test("does not use up a key on a refused line", async () => {
    const { id } = await town.newPerson();
    await refusalOf(() => add(id, -5, "key:later"));
    await add(id, 5);
    expect((await add(id, -5, "key:later")).applied).toBe(true);
  });

  test.each([0, 1.5, Number.NaN, Number.POSITIVE_INFINITY, 1_000_000_001, -1_000_000_001])("refuses the amount %p", async (amount) => {
    const { id } = await town.newPerson();
    expect((await refusalOf(() => add(id, amount))).code).toBe("invalid_input");
  });

  test("takes back what is left when part was spent, once for each key", async () => {
    const { id } = await town.newPerson();
    await add(id, 10);
    await add(id, -7);
    const take = () => store.write("app", (tx) => refundCredits(tx, line(id, 10, "refund:prc_1")));
    const first = await take();
    expect([first.line.amount, first.line.balance, first.line.source]).toEqual([-3, 0, "refund"]);
    expect(await take()).toEqual({ line: first.line, applied: false });
    expect((await store.write("app", (tx) => refundCredits(tx, line(id, 4, "refund:prc_2")))).line.amount).toBe(0);
  });
});

describe("concurrent changes of credits", () => {
  test("that spend one credit each stop at zero: of a hundred, forty succeed", async () => {
    const { id } = await town.newPerson();
    await add(id, 40);
    const answers = await Promise.allSettled(Array.from({ length: 100 }, (_, index) => add(id, -1, `key:${index}`)));
    const refused = answers.filter((answer) => answer.status === "rejected");
    expect(refused).toHaveLength(60);
    for (const answer of refused) expect((answer.reason as Refusal).code).toBe("credits_short");
    expect(await balanceOf(id)).toBe(0);
  });

  test("with one key in one group apply once", async () => {
    const { id } = await town.newPerson();
    const answers = await Promise.all(Array.from({ length: 50 }, () => add(id, 9, "key:same")));
    expect(answers.filter((answer) => answer.applied)).toHaveLength(1);
    expect(await balanceOf(id)).toBe(9);
  });

  test("in any order match a model that never falls below zero", async () => {
    const operation = fc.record({
      person: fc.nat(1),
      amount: fc.integer({ min: -30, max: 30 }),
      key: fc.option(fc.nat(5), { nil: null }),
      takeBack: fc.boolean(),
    });
    await fc.assert(
      fc.asyncProperty(fc.array(operation, { maxLength: 40 }), async (operations) => {
        const people = [(await town.newPerson()).id, (await town.newPerson()).id];
        const model = people.map(() => ({ balance: 0, keys: new Map<string, number>(), lines: 0 }));
        // Starts all operations at once. The store runs them in this order, in one group or several.
        const answers = await Promise.allSettled(
          operations.map(({ person, amount, key, takeBack }) => {
            const given = line(people[person] ?? "", amount, key === null ? null : `key:${key}`);
            return store.write("app", (tx) => (takeBack ? refundCredits(tx, given) : addCredits(tx, given)));
          }),
        );
        operations.forEach(({ person, amount, key, takeBack }, index) => {
          const state = model[person];
          const answer = answers[index];
          if (state === undefined || answer === undefined) throw new Error("A model is missing.");
          const once = key === null ? null : `key:${key}`;
          const expected = modelNext(state, amount, once, takeBack);
          if (answer.status === "fulfilled") {
            expect([answer.value.applied, answer.value.line.amount]).toEqual([expected.applied, expected.amount]);
            if (answer.value.applied) expect(answer.value.line.balance).toBe(state.balance);
          } else {
            expect((answer.reason as Refusal).code as string).toBe(expected.code ?? "none");
          }
          expect(state.balance).toBeGreaterThanOrEqual(0);
        });
        for (const [index, personId] of people.entries()) {
          const ledger = await ledgerOf(personId, { limit: "200" });
          expect([ledger.balance, ledger.items.length]).toEqual([model[index]?.balance ?? -1, model[index]?.lines ?? -1]);
          expect(ledger.items.reduce((sum, item) => sum + item.amount, 0)).toBe(ledger.balance);
        }
      }),
      { numRuns: roundsOf(40) },
    );
  });
});

interface Model {
  balance: number;
  keys: Map<string, number>;
  lines: number;
}

/** Returns what must happen by the rules, and updates the model. */
function modelNext(state: Model, amount: number, once: string | null, takeBack: boolean): { applied: boolean; amount: number; code: string | null } {
  const refused = (code: string) => ({ applied: false, amount: 0, code });
  if (!takeBack && amount === 0) return refused("invalid_input");
  const first = once === null ? undefined : state.keys.get(once);
  if (first !== undefined) {
    if (takeBack || first === amount) return { applied: false, amount: first, code: null };
    return refused("invalid_input");
  }
  const change = takeBack ? 0 - Math.min(state.balance, Math.max(0, amount)) : amount;
  if (state.balance + change < 0) return refused("credits_short");
  state.balance += change;
  state.lines += 1;
  if (once !== null) state.keys.set(once, change);
  return { applied: true, amount: change, code: null };
}

describe("manual credits", () => {
  const give = (personId: string, more: { amount?: number; key?: string; reason?: string } = {}) =>
    store.write("app", (tx) =>
      addCreditsManually(tx, {
        environmentId,
        by: "key:x",
        personId,
        amount: 5,
        reason: "a gift",
        key: "k1",
        nowMs: clock.now(),
        ...more,
      }),
    );

  test("show the caller's own key on the line", async () => {
    const { id } = await town.newPerson();
    await give(id);
    const [item] = (await ledgerOf(id)).items;
    expect(item).toMatchObject({
      amount: 5,
      balance: 5,
      reason: "a gift",
      source: "hand",
      key: "k1",
      relay: null,
    });
  });

  test("never collide with a relay's ref of the same text", async () => {
    const { id } = await town.newPerson();
    await add(id, 1, "ref:k1");
    expect((await give(id)).applied).toBe(true);
  });

  test.each([
    ["an empty key", { key: "" }],
    ["a key over two lines", { key: "a\nb" }],
    ["a key of 201 characters", { key: "x".repeat(201) }],
    ["a reason of 201 characters", { reason: "x".repeat(201) }],
    ["a reason with half a surrogate pair", { reason: "\udc00" }],
  ])("refuse %s", async (_what, more) => {
    const { id } = await town.newPerson();
    expect((await refusalOf(() => give(id, more))).code).toBe("invalid_input");
  });

  test("refuse a suspended person and an unknown one", async () => {
    const { id } = await town.newPerson({ suspended: true });
    expect((await refusalOf(() => give(id))).code).toBe("person_suspended");
    expect((await refusalOf(() => give("per_none"))).code).toBe("not_found");
    expect(await refusalOf(() => give("per_none"))).toBeInstanceOf(Refusal);
  });
});
