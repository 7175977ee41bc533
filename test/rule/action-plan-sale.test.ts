import { describe, expect, test } from "bun:test";
import { revokeAccess } from "../../src/rules/action/access.ts";
import type { ActionOutcome } from "../../src/rules/action/contract.ts";
import { grantPlan, revokePlan } from "../../src/rules/action/sale.ts";
import { type GrantSource, grantAccess } from "../../src/shop/people/access-grant.ts";
import type { PersonRow } from "../../src/shop/people/person.ts";
import { listPurchases } from "../../src/shop/selling/purchase.ts";
import { recordReceipt } from "../../src/shop/selling/receipt.ts";
import { endSubscriptionManually, findActiveSubscription, listSubscriptions } from "../../src/shop/selling/subscription.ts";
import type { Occurrence } from "../kit/people.ts";
import { openSellingStore } from "../kit/selling-store.ts";

const market = await openSellingStore();
const { store, environmentId, clock } = market;
await market.plan("team", { soldThrough: { kind: "relay", relay: "shop" } });
await market.plan("linked", { soldThrough: { kind: "payment_link", url: "https://pay.example/x" } });

let refs = 0;
const newRef = () => `inv_${++refs}`;
const grant = (person: PersonRow, plan: string, ref?: string, on: Occurrence = {}) =>
  market.sell(grantPlan, { type: "grant_plan", plan, ...(ref === undefined ? {} : { ref }) }, person, on);
const revoke = (person: PersonRow, plan: string, ref?: string, on: Occurrence = {}) =>
  market.sell(revokePlan, { type: "revoke_plan", plan, ...(ref === undefined ? {} : { ref }) }, person, on);
const payByCard = (person: PersonRow, plan: string) =>
  recordReceipt(
    store,
    { environmentId, by: "key:test", nowMs: clock.now() },
    { ref: newRef(), person: person.id, plan, processorCustomerId: "cus_1" },
  );
const active = (person: PersonRow) => store.read((tx) => findActiveSubscription(tx, environmentId, person.id));
const receipts = async (person: PersonRow) =>
  (await store.read((tx) => listPurchases(tx, environmentId, { limit: 200, after: null }, { person: person.id }))).items;
const subscriptions = async (person: PersonRow) =>
  (await store.read((tx) => listSubscriptions(tx, environmentId, { limit: 9, after: null }, { person: person.id }))).items;
const give = (person: PersonRow, source: GrantSource) =>
  store.write("app", (tx) =>
    grantAccess(tx, {
      environmentId,
      personId: person.id,
      entitlement: "pro",
      source,
      sourceRef: "elsewhere",
      relayName: null,
      eventId: null,
      reason: null,
      expiresAtMs: null,
      arrival: 0,
      nowMs: clock.now(),
    }),
  );
const summary = (outcome: ActionOutcome) =>
  outcome.outcome === "failed" ? [outcome.code, outcome.final ? "final" : "tried again"] : [outcome.outcome];
const onFree = { grants: [], credits: 0, plan: "free" };
const onPro = { grants: ["pro from plan"], credits: 0, plan: "pro" };

describe("grant_plan", () => {
  test("keeps the mapped amount and currency on the receipt", async () => {
    const person = await market.newPerson();
    await grant(person, "pro", newRef(), { payload: { mapped: { amount: 990, currency: "USD" } } });
    expect(await receipts(person)).toMatchObject([{ amountMinor: 990, currency: "USD" }]);
  });

  test("writes the person's subscription, grants the plan's key sourced on it, and records the payment", async () => {
    const person = await market.newPerson();
    const ref = newRef();
    const outcome = await grant(person, "pro", ref, { event: "evt_start" });
    expect(outcome).toMatchObject({ outcome: "done", before: { plan: "free" }, after: { plan: "pro", ref } });
    expect(await market.holdings(person)).toEqual(onPro);
    expect(await active(person)).toMatchObject({
      plan: "pro",
      status: "active",
      billedBy: "relay",
      relayName: "shop",
      eventId: "evt_start",
      processorCustomerId: null,
    });
    expect(await receipts(person)).toMatchObject([{ kind: "purchase", itemKind: "plan", item: "pro", ref }]);
  });

  test("is idempotent on ref", async () => {
    const person = await market.newPerson();
    const ref = newRef();
    await grant(person, "pro", ref);
    expect(summary(await grant(person, "pro", ref))).toEqual(["skipped"]);
    expect([(await receipts(person)).length, (await active(person))?.renewedAt]).toEqual([1, null]);
  });

  test("renews with a new ref: the plan stays active, one key, another payment", async () => {
    const person = await market.newPerson();
    await grant(person, "pro", newRef());
    const first = await active(person);
    await clock.advance(1_000);
    await grant(person, "pro", newRef());
    const renewed = await active(person);
    expect(renewed).toEqual({ ...(first as NonNullable<typeof first>), renewedAt: clock.now() });
    expect([await market.holdings(person), (await receipts(person)).length]).toEqual([onPro, 2]);
  });

  test("a renewal grants the key again if it was revoked in the meantime", async () => {
    const person = await market.newPerson();
    await grant(person, "pro", newRef());
    await market.sell(revokeAccess, { type: "revoke_access", entitlement: "pro" }, person);
    await grant(person, "pro", newRef());
    expect(await market.holdings(person)).toEqual(onPro);
  });

  test("skips a repeated payment after the plan was revoked", async () => {
    const person = await market.newPerson();
    const ref = newRef();
    await grant(person, "pro", ref);
    await revoke(person, "pro");
    expect(summary(await grant(person, "pro", ref))).toEqual(["skipped"]);
    expect(await market.holdings(person)).toEqual(onFree);
  });

  test("ends the relay-granted plan and its key when another plan starts, because a person has one active plan", async () => {
    const person = await market.newPerson();
    await grant(person, "pro", newRef());
    await grant(person, "team", newRef());
    expect(await market.holdings(person)).toEqual({ grants: ["team from plan"], credits: 0, plan: "team" });
    expect((await subscriptions(person)).map(({ plan, status }) => `${plan} ${status}`)).toEqual(["team active", "pro ended"]);
  });

  test("stays active until it is revoked, however long that takes", async () => {
    const person = await market.newPerson();
    await grant(person, "pro", newRef());
    clock.jump(10 * 365 * 86_400_000);
    expect(await market.holdings(person)).toEqual(onPro);
    clock.jump(-10 * 365 * 86_400_000);
  });

  test.each([
    ["a plan sold through another relay", "pro", "other", ["plan_not_sold_here", "final"]],
    ["a plan sold through a payment link", "linked", "shop", ["plan_not_sold_here", "final"]],
    ["the default plan, which is not sold", "free", "shop", ["plan_not_sold_here", "final"]],
    ["a plan that does not exist", "gold", "shop", ["plan_unknown", "final"]],
    ["a product's name", "lamp", "shop", ["plan_unknown", "final"]],
  ])("refuses %s and writes nothing", async (_rule, plan, relay, expected) => {
    const person = await market.newPerson();
    expect(summary(await grant(person, plan, newRef(), { relay }))).toEqual(expected);
    expect([await market.holdings(person), await receipts(person)]).toEqual([onFree, []]);
  });

  test("refuses a suspended person permanently", async () => {
    const person = await market.newPerson({ suspended: true });
    expect(summary(await grant(person, "pro", newRef()))).toEqual(["person_suspended", "final"]);
  });

  test("refuses a person whose plan the card processor bills, and leaves that plan unchanged", async () => {
    const person = await market.newPerson();
    await payByCard(person, "team");
    expect(summary(await grant(person, "pro", newRef()))).toEqual(["billed_by_processor", "tried again"]);
    expect(await active(person)).toMatchObject({ plan: "team", billedBy: "processor" });
    expect(await receipts(person)).toHaveLength(1);
  });

  test("refuses a ref of another purchase, and writes an audit entry", async () => {
    const [buyer, other] = [await market.newPerson(), await market.newPerson()];
    const ref = newRef();
    await grant(buyer, "pro", ref);
    const audited = await market.count("audit");
    expect(summary(await grant(other, "pro", ref))).toEqual(["ref_used", "final"]);
    expect(summary(await grant(buyer, "team", ref))).toEqual(["ref_used", "final"]);
    expect([await market.count("audit"), await market.holdings(buyer)]).toEqual([audited + 2, onPro]);
  });

  test("refuses a ref that resolves to nothing, and falls back to the event's id only without a ref", async () => {
    const person = await market.newPerson();
    expect(summary(await grant(person, "pro", "{{mapped.id}}"))).toEqual(["ref_unresolved", "final"]);
    await grant(person, "pro", undefined, { event: "evt_plan" });
    expect((await receipts(person)).map(({ ref }) => ref)).toEqual(["rly:evt_plan"]);
  });
});

describe("grant_plan without a ref on the plan that the person has", () => {
  test("stores a receipt of kind confirmation, which purchase lists omit, and renews nothing", async () => {
    const person = await market.newPerson();
    const ref = newRef();
    await grant(person, "pro", ref);
    const outcome = await grant(person, "pro", undefined, { event: "evt_again" });
    expect(outcome).toMatchObject({ outcome: "done", after: { plan: "pro", ref: "rly:evt_again", confirmation: true } });
    expect((await receipts(person)).map((one) => one.ref)).toEqual([ref]);
    const page = { limit: 9, after: null };
    const list = (filter: Parameters<typeof listPurchases>[3]) => store.read((tx) => listPurchases(tx, environmentId, page, filter));
    expect((await list({ person: person.id, kind: "purchase" })).items.map((one) => one.ref)).toEqual([ref]);
    expect((await list({ person: person.id, kind: "confirmation" })).items).toMatchObject([{ kind: "confirmation", ref: "rly:evt_again" }]);
    expect((await list({ ref: "rly:evt_again" })).items).toMatchObject([{ kind: "confirmation" }]);
    expect((await active(person))?.renewedAt).toBeNull();
  });

  test("does not keep a plan whose payment was canceled, and counts as a purchase when it starts one", async () => {
    const person = await market.newPerson();
    const ref = newRef();
    await grant(person, "pro", ref);
    await grant(person, "pro");
    expect(summary(await revoke(person, "pro", ref))).toEqual(["done"]);
    await grant(person, "pro");
    expect((await receipts(person)).map(({ kind }) => kind)).toEqual(["purchase", "purchase"]);
    expect(summary(await revoke(person, "pro", ref))).toEqual(["skipped"]);
    expect(await market.holdings(person)).toEqual(onPro);
  });

  test("grants the key again if it was revoked in the meantime", async () => {
    const person = await market.newPerson();
    await grant(person, "pro", newRef());
    await market.sell(revokeAccess, { type: "revoke_access", entitlement: "pro" }, person);
    await grant(person, "pro");
    expect(await market.holdings(person)).toEqual(onPro);
  });
});

describe("revoke_plan", () => {
  test("ends the relay-granted subscription, moves the person to the default plan and revokes the key", async () => {
    const person = await market.newPerson();
    await grant(person, "pro", newRef());
    const outcome = await revoke(person, "pro");
    expect(outcome).toMatchObject({
      outcome: "done",
      before: { plan: "pro" },
      after: { plan: "free", grants: [] },
    });
    expect(await market.holdings(person)).toEqual(onFree);
    expect(await subscriptions(person)).toMatchObject([{ status: "ended", plan: "pro" }]);
  });

  test("leaves manual and purchase grants", async () => {
    const person = await market.newPerson();
    await grant(person, "pro", newRef());
    await give(person, "hand");
    await give(person, "purchase");
    await revoke(person, "pro");
    expect((await market.holdings(person)).grants).toEqual(["pro from hand", "pro from purchase"]);
  });

  test("can run from any relay in the environment", async () => {
    const person = await market.newPerson();
    await grant(person, "pro", newRef());
    expect(summary(await revoke(person, "pro", undefined, { relay: "other" }))).toEqual(["done"]);
  });

  test("never ends a subscription that the card processor bills, and says so in the result", async () => {
    const person = await market.newPerson();
    await payByCard(person, "pro");
    const outcome = await revoke(person, "pro");
    expect(outcome).toMatchObject({
      outcome: "skipped",
      code: "billed_by_processor",
      message: expect.stringContaining("billed_by_processor"),
    });
    expect(await market.holdings(person)).toEqual(onPro);
  });

  test("ends nothing when the person is on another plan or on no plan", async () => {
    const person = await market.newPerson();
    const early = await revoke(person, "pro");
    expect(early).toMatchObject({
      outcome: "skipped",
      message: expect.stringContaining("A payment that arrives after its cancellation still starts the plan"),
    });
    await grant(person, "team", newRef());
    expect(summary(await revoke(person, "pro"))).toEqual(["skipped"]);
    expect((await market.holdings(person)).plan).toBe("team");
  });

  test("with a payment's ref ends the plan unless a payment under another ref came later", async () => {
    const person = await market.newPerson();
    const [first, second] = [newRef(), newRef()];
    await grant(person, "pro", first);
    await revoke(person, "pro", first);
    await grant(person, "pro", second);
    expect(summary(await revoke(person, "pro", first))).toEqual(["skipped"]);
    expect(await market.holdings(person)).toEqual(onPro);
    expect(summary(await revoke(person, "pro", second))).toEqual(["done"]);
  });

  test("with one ref of two names the other ref, which keeps the plan", async () => {
    const person = await market.newPerson();
    const [first, second] = [newRef(), newRef()];
    await grant(person, "pro", first);
    await grant(person, "pro", second);
    const kept = await revoke(person, "pro", first);
    expect(kept).toMatchObject({ outcome: "skipped", message: expect.stringContaining(second), after: { keptByRef: second } });
    expect(await market.holdings(person)).toEqual(onPro);
    expect(summary(await revoke(person, "pro", second))).toEqual(["done"]);
    expect(await market.holdings(person)).toEqual(onFree);
  });

  test("with a ref of no payment ends the plan each time, until a payment uses that ref", async () => {
    const person = await market.newPerson();
    const cancelled = newRef();
    for (let turn = 0; turn < 2; turn++) {
      await grant(person, "pro", newRef());
      expect(summary(await revoke(person, "pro", cancelled))).toEqual(["done"]);
    }
    await grant(person, "pro", cancelled);
    await grant(person, "pro", newRef());
    expect(summary(await revoke(person, "pro", cancelled))).toEqual(["skipped"]);
    expect(await market.holdings(person)).toEqual(onPro);
  });

  test("of one plan under a ref does not affect another plan under the same ref", async () => {
    const person = await market.newPerson();
    const ref = newRef();
    await grant(person, "pro", newRef());
    await revoke(person, "pro", ref);
    await grant(person, "team", newRef());
    expect(summary(await revoke(person, "team", ref))).toEqual(["done"]);
  });

  test("orders a payment that two events report by the event that arrived first", async () => {
    const person = await market.newPerson();
    const ref = newRef();
    await grant(person, "pro", ref, { arrival: 8_005 });
    expect(summary(await revoke(person, "pro", undefined, { arrival: 8_003 }))).toEqual(["skipped"]);
    expect(summary(await grant(person, "pro", ref, { arrival: 8_007 }))).toEqual(["skipped"]);
    expect(await market.holdings(person)).toEqual(onPro);
    expect(summary(await grant(person, "pro", ref, { arrival: 8_001 }))).toEqual(["skipped"]);
    expect(await market.holdings(person)).toEqual(onFree);
  });

  test("refuses a ref of another person's purchase and a ref that resolves to nothing", async () => {
    const [person, other] = [await market.newPerson(), await market.newPerson()];
    const ref = newRef();
    await grant(other, "pro", ref);
    await grant(person, "pro", newRef());
    expect(summary(await revoke(person, "pro", ref))).toEqual(["ref_used", "final"]);
    expect(summary(await revoke(person, "pro", "{{mapped.id}}"))).toEqual(["ref_unresolved", "final"]);
    expect(await market.holdings(person)).toEqual(onPro);
  });

  test("permanently refuses a plan that does not exist and a suspended person", async () => {
    expect(summary(await revoke(await market.newPerson(), "gold"))).toEqual(["plan_unknown", "final"]);
    const suspended = await market.newPerson({ suspended: true });
    expect(summary(await revoke(suspended, "pro"))).toEqual(["person_suspended", "final"]);
  });
});

describe("a subscription", () => {
  test("can be ended manually for both kinds of billing, with one audit entry", async () => {
    const person = await market.newPerson();
    await payByCard(person, "pro");
    const id = (await active(person))?.id ?? "";
    const audited = await market.count("audit");
    const change = { environmentId, by: "owner:a@example.com", nowMs: clock.now() };
    for (let turn = 0; turn < 2; turn++) await store.write("app", (tx) => endSubscriptionManually(tx, change, id));
    expect([await market.holdings(person), await market.count("audit")]).toEqual([onFree, audited + 1]);
  });

  test("starts again when it moves from a relay to the card processor", async () => {
    const person = await market.newPerson();
    await grant(person, "pro", newRef());
    await payByCard(person, "pro");
    await payByCard(person, "pro");
    expect((await subscriptions(person)).map(({ billedBy, status }) => `${billedBy} ${status}`)).toEqual(["processor active", "relay ended"]);
    expect(await market.holdings(person)).toEqual(onPro);
  });
});
