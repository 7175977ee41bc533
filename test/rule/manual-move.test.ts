/**
 * A manual move of a purchase: the plan says what moves, and the move does exactly that. A refund finds the purchase afterwards, by the ref and for
 * the person that the provider still names.
 */
import { describe, expect, test } from "bun:test";
import { listAudit } from "../../src/platform/audit/audit.ts";
import { fulfilProduct, grantPlan, refundProduct, revokePlan } from "../../src/rules/action/sale.ts";
import { revokeAccess } from "../../src/shop/people/access-grant.ts";
import { addCreditsManually } from "../../src/shop/people/credit.ts";
import { type PersonRow, updatePerson } from "../../src/shop/people/person.ts";
import { erasePerson } from "../../src/shop/people/person-erase.ts";
import { movePurchaseManually } from "../../src/shop/selling/manual-move.ts";
import { refundManually } from "../../src/shop/selling/manual-refund.ts";
import { listPurchases } from "../../src/shop/selling/purchase.ts";
import { recordReceipt } from "../../src/shop/selling/receipt.ts";
import { dryRunWithin } from "../../src/store/dry-run.ts";
import { refusalOf } from "../kit/fresh-store.ts";
import { openSellingStore } from "../kit/selling-store.ts";

const market = await openSellingStore();
const { store, environmentId, clock } = market;
await market.plan("team", { soldThrough: { kind: "relay", relay: "shop" } });

let refs = 0;
const newRef = () => `pay_${++refs}`;
const change = () => ({ environmentId, by: "owner:ann@example.com", nowMs: clock.now() });
const fulfil = (person: PersonRow, ref: string) => market.sell(fulfilProduct, { type: "fulfil_product", product: "lamp", ref }, person);
const takeBack = (person: PersonRow, ref: string) => market.sell(refundProduct, { type: "refund_product", product: "lamp", ref }, person);
const grant = (person: PersonRow, plan: string, ref: string) => market.sell(grantPlan, { type: "grant_plan", plan, ref }, person);
const cancel = (person: PersonRow, plan: string, ref: string) => market.sell(revokePlan, { type: "revoke_plan", plan, ref }, person);
const pay = (person: PersonRow, ref: string, what: { product: string } | { plan: string }, more = {}) =>
  recordReceipt(store, { ...change(), by: "key:test" }, { ref, person: person.id, ...what, ...more });
const spend = (person: PersonRow, amount: number) =>
  store.write("app", (tx) => addCreditsManually(tx, { ...change(), personId: person.id, amount: -amount, reason: "spent", key: newRef() }));
const under = async (ref: string) => (await store.read((tx) => listPurchases(tx, environmentId, { limit: 9, after: null }, { ref }))).items;
const bought = async (ref: string) => (await under(ref)).find(({ kind, movedTo }) => kind === "purchase" && movedTo === null)?.id ?? "";
const moveId = (id: string, to: PersonRow | string) =>
  store.write("dashboard", (tx) => movePurchaseManually(tx, change(), id, typeof to === "string" ? to : to.id));
const move = async (ref: string, to: PersonRow | string) => await moveId(await bought(ref), to);
const plan = async (ref: string, to: PersonRow) => {
  const id = await bought(ref);
  return (await store.write("dashboard", (tx) => dryRunWithin(tx, () => movePurchaseManually(tx, change(), id, to.id)))).plan;
};
const refund = async (ref: string) => {
  const id = await bought(ref);
  return await store.write("dashboard", (tx) => refundManually(tx, change(), id));
};
const suspend = (person: PersonRow) =>
  store.write("app", (tx) => updatePerson(tx, { environmentId, personId: person.id, nowMs: clock.now() }, { status: "suspended" }));
const sealer = { seal: () => new Uint8Array(), digest: () => new Uint8Array() };
const erase = (person: PersonRow) =>
  store.write("erasure", (tx) => erasePerson(tx, { environmentId, personId: person.id, by: "key:test", nowMs: clock.now() }, sealer));
const twoPeople = async () => [await market.newPerson(), await market.newPerson()] as const;
const state = async (...people: PersonRow[]) => await Promise.all(people.map((person) => market.holdings(person)));
const NONE = { grants: [], credits: 0, plan: "free" };
const A_LAMP = { grants: ["lamp from purchase"], credits: 100, plan: "free" };
const PRO = { grants: ["pro from plan"], credits: 0, plan: "pro" };
const TEAM = { grants: ["team from plan"], credits: 0, plan: "team" };
const REFUSED = { code: "invalid_input" };

describe("a product", () => {
  const origins: [how: string, buy: (person: PersonRow, ref: string) => Promise<unknown>, origin: string][] = [
    ["a relay fulfilled", fulfil, "relay"],
    ["a server recorded", (person, ref) => pay(person, ref, { product: "lamp" }, { amountMinor: 4200, currency: "EUR" }), "payment"],
  ];
  test.each(origins)("that %s moves once, as its plan says, and is audited", async (_how, buy, origin) => {
    const [from, to] = await twoPeople();
    const ref = newRef();
    await buy(from, ref);
    const planned = await plan(ref, to);
    expect(planned).toEqual({
      ...{ from: from.id, to: to.id, grants: 1, credits: 100, creditsShort: 0, plan: null, refundedBy: null },
      message: `Moves the purchase of lamp (ref ${ref}) from ${from.email} to ${to.email}. Its access to lamp moves. Its 100 credits move. Its ref stays, so a later refund finds it. No money moves.`,
    });
    expect([await state(from, to), (await under(ref)).length]).toEqual([[A_LAMP, NONE], 1]);
    const first = await bought(ref);
    const { receipt, moved, ...made } = await move(ref, to);
    expect([moved, made.plan, receipt]).toMatchObject([true, planned, { kind: "purchase", ref, origin, person: to.id, movedTo: null }]);
    expect(await state(from, to)).toEqual([NONE, A_LAMP]);
    expect((await under(ref)).map(({ kind, person, movedTo }) => [kind, person === to.id, movedTo])).toEqual([
      ["purchase", true, null],
      ["refund", false, to.id],
      ["purchase", false, to.id],
    ]);
    const amount = origin === "relay" ? null : 4200;
    expect((await under(ref)).map(({ amountMinor }) => amountMinor)).toEqual([amount, amount, amount]);
    for (const id of [first, receipt.id])
      expect(await moveId(id, to.email)).toMatchObject({
        moved: false,
        receipt: { id: receipt.id },
        plan: { grants: 0, message: expect.stringContaining("already") },
      });
    expect([await state(from, to), (await under(ref)).length]).toEqual([[NONE, A_LAMP], 3]);
    const audit = { action: "receipt.moved", target: `purchase:${first}` } as const;
    const { items } = await store.read((tx) => listAudit(tx, environmentId, audit, { limit: 9, after: null }));
    expect(items).toMatchObject([{ actor: "owner:ann@example.com", before: { person: from.id, ref }, after: { person: to.id } }]);
  });

  const refunds: [how: string, run: (ref: string, from: PersonRow, to: PersonRow) => Promise<unknown>, origin: string][] = [
    ["by the provider's event for the old person", (ref, from) => takeBack(from, ref), "relay"],
    ["by the provider's event for the new person", (ref, _from, to) => takeBack(to, ref), "relay"],
    ["by hand", refund, "relay"],
    ["by hand", refund, "payment"],
    ["by the app's server for the old person", (ref, from) => pay(from, ref, { product: "lamp" }, { kind: "refund" }), "payment"],
    ["by the app's server for the new person", (ref, _from, to) => pay(to, ref, { product: "lamp" }, { kind: "refund" }), "payment"],
  ];
  test.each(refunds)("is refunded %s after a move, and after two", async (_how, run, origin) => {
    for (const moves of [1, 2]) {
      const [from, between, to] = [...(await twoPeople()), await market.newPerson()];
      const ref = newRef();
      await (origin === "relay" ? fulfil(from, ref) : pay(from, ref, { product: "lamp" }));
      if (moves === 2) await move(ref, between);
      await move(ref, to);
      await run(ref, from, to);
      expect(await state(from, between, to)).toEqual([NONE, NONE, NONE]);
      expect((await under(ref))[0]).toMatchObject({ kind: "refund", person: to.id, takenBack: { grants: 1, credits: 100, creditsShort: 0 } });
      expect((await move(ref, from)).moved).toBe(false);
      await run(ref, from, to);
      expect(await state(from, between, to)).toEqual([NONE, NONE, NONE]);
    }
  });

  test("that was refunded does not move, and its plan names the refund", async () => {
    const [from, to] = await twoPeople();
    const ref = newRef();
    await fulfil(from, ref);
    await takeBack(from, ref);
    const [refunded] = await under(ref);
    expect(await plan(ref, to)).toMatchObject({ grants: 0, credits: 0, refundedBy: refunded?.id, message: expect.stringContaining("does not move") });
    expect([(await move(ref, to)).moved, await state(from, to)]).toEqual([false, [NONE, NONE]]);
  });

  test("keeps spent credits where they were spent, and never doubles them in a circle", async () => {
    const [from, to] = await twoPeople();
    const ref = newRef();
    await fulfil(from, ref);
    await spend(from, 30);
    expect((await plan(ref, to)).message).toContain("70 of its credits move. 30 credits are spent and do not move.");
    for (const person of [to, from, to, from]) await move(ref, person);
    expect(await state(from, to)).toEqual([{ ...A_LAMP, credits: 70 }, NONE]);
    await refund(ref);
    expect(await state(from, to)).toEqual([NONE, NONE]);
  });

  test("whose access ended moves without access", async () => {
    const [from, to] = await twoPeople();
    const ref = newRef();
    await fulfil(from, ref);
    const event = { id: "evt_late", arrival: 1e9, arrivedAtMs: clock.now() };
    const of = { environmentId, personId: from.id, entitlement: "lamp", by: "relay:shop", nowMs: clock.now() };
    await store.write("relay", (tx) => revokeAccess(tx, { ...of, event }));
    expect((await plan(ref, to)).message).toContain("Its access to lamp ended before, so no access moves.");
    await move(ref, to);
    expect(await state(from, to)).toEqual([NONE, { ...A_LAMP, grants: [] }]);
  });

  test("is not sold again when the provider repeats the payment for the old person", async () => {
    const [from, to] = await twoPeople();
    const ref = newRef();
    await fulfil(from, ref);
    await move(ref, to);
    expect(await fulfil(from, ref)).toMatchObject({ outcome: "skipped", message: expect.stringContaining("already fulfilled") });
    expect(await state(from, to)).toEqual([NONE, A_LAMP]);
    // Another relay sells the item now, and the ref still finds the purchase.
    const other = market.sell(fulfilProduct, { type: "fulfil_product", product: "lamp", ref }, from, { relay: "other" });
    expect(await other).toMatchObject({ outcome: "skipped", message: expect.stringContaining("already fulfilled") });
    const stranger = await market.newPerson();
    expect(await fulfil(stranger, ref)).toMatchObject({ outcome: "failed", code: "ref_used" });
    expect(await takeBack(stranger, ref)).toMatchObject({ outcome: "failed", code: "ref_used" });
  });
});

describe("a plan", () => {
  test("moves with its subscription, and a cancellation for the old person ends it", async () => {
    const [from, to] = await twoPeople();
    const ref = newRef();
    await grant(from, "pro", ref);
    expect((await plan(ref, to)).message).toContain(`The plan pro ends for ${from.email}. ${to.email} is on pro then.`);
    await move(ref, to);
    expect(await state(from, to)).toEqual([NONE, PRO]);
    expect(await grant(from, "pro", ref)).toMatchObject({ outcome: "skipped" });
    await cancel(from, "pro", ref);
    expect(await state(from, to)).toEqual([NONE, NONE]);
  });

  test("that another payment keeps stays, and only the receipt moves", async () => {
    const [from, to] = await twoPeople();
    const [first, second] = [newRef(), newRef()];
    await grant(from, "pro", first);
    await grant(from, "pro", second);
    expect((await plan(first, to)).message).toContain(`${from.email} stays on pro, because another payment keeps it, so only the receipt moves.`);
    await move(first, to);
    expect(await state(from, to)).toEqual([PRO, NONE]);
    await move(second, to);
    expect(await state(from, to)).toEqual([NONE, PRO]);
    await refund(first);
    expect(await state(from, to)).toEqual([NONE, PRO]);
    await refund(second);
    expect(await state(from, to)).toEqual([NONE, NONE]);
  });

  test("that was canceled moves as a receipt only", async () => {
    const [from, to] = await twoPeople();
    const ref = newRef();
    await grant(from, "pro", ref);
    await cancel(from, "pro", ref);
    expect((await plan(ref, to)).message).toContain(`This payment keeps ${from.email} on no plan now, so only the receipt moves.`);
    await move(ref, to);
    expect(await state(from, to)).toEqual([NONE, NONE]);
  });

  test("goes nowhere that it would be lost: to a person with a plan, or who canceled it later", async () => {
    const [from, to] = await twoPeople();
    const [ref, other] = [newRef(), newRef()];
    await grant(from, "pro", ref);
    await grant(to, "team", other);
    expect(await refusalOf(() => move(ref, to))).toMatchObject({ ...REFUSED, message: expect.stringContaining("is on the plan team") });
    await cancel(to, "team", other);
    const later = newRef();
    await grant(to, "pro", later);
    await cancel(to, "pro", later);
    expect(await refusalOf(() => move(ref, to))).toMatchObject({ ...REFUSED, message: expect.stringContaining("canceled or paid for after") });
    expect(await state(from, to)).toEqual([PRO, NONE]);
    const third = await market.newPerson();
    for (const person of [third, from, third]) await move(ref, person);
    expect(await state(from, third)).toEqual([NONE, PRO]);
  });

  test("that the card processor bills moves with its customer, and not to a person with a plan", async () => {
    const [from, to, other] = [...(await twoPeople()), await market.newPerson()];
    const ref = newRef();
    await pay(from, ref, { plan: "pro" }, { processorCustomerId: "cus_1" });
    await grant(other, "team", newRef());
    expect(await refusalOf(() => move(ref, other))).toMatchObject({ ...REFUSED, message: expect.stringContaining("end that plan first") });
    expect(await state(from, other)).toEqual([PRO, TEAM]);
    await move(ref, to);
    expect(await state(from, to)).toEqual([NONE, PRO]);
    const sql = "SELECT processor_customer_id AS customer, billed_by AS by FROM subscription WHERE person_id = ?1 AND status = 'active'";
    expect(await store.read((tx) => tx.all(sql, to.id))).toEqual([{ customer: "cus_1", by: "processor" }]);
  });
});

describe("a move is refused", () => {
  test("to and from people who cannot have it, of other rows, and by a receipt that moved on", async () => {
    const [from, to, third] = [...(await twoPeople()), await market.newPerson()];
    const ref = newRef();
    await fulfil(from, ref);
    const [suspended, erased] = await twoPeople();
    await suspend(suspended);
    await erase(erased);
    expect(await refusalOf(() => move(ref, suspended))).toMatchObject({ code: "person_suspended" });
    expect(await refusalOf(() => move(ref, erased))).toMatchObject({ code: "not_found" });
    expect(await refusalOf(() => move(ref, "nobody@example.com"))).toMatchObject({ code: "not_found" });
    expect(await refusalOf(() => moveId("prc_none", to))).toMatchObject({ code: "not_found" });
    const first = await bought(ref);
    await move(ref, to);
    const refundId = (await under(ref)).find(({ kind }) => kind === "refund")?.id ?? "";
    expect(await refusalOf(() => moveId(refundId, third))).toMatchObject(REFUSED);
    expect(await refusalOf(() => moveId(first, third))).toMatchObject({ ...REFUSED, message: expect.stringContaining(`moved to ${to.id} before`) });
    await erase(to);
    expect(await refusalOf(() => move(ref, third))).toMatchObject({ ...REFUSED, message: expect.stringContaining("was erased") });
    expect(await state(from, third)).toEqual([NONE, NONE]);
  });
});
