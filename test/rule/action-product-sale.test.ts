import { describe, expect, test } from "bun:test";
import { listAudit } from "../../src/platform/audit/audit.ts";
import { revokeAccess } from "../../src/rules/action/access.ts";
import type { ActionOutcome } from "../../src/rules/action/contract.ts";
import { fulfilProduct, grantPlan, refundProduct } from "../../src/rules/action/sale.ts";
import { grantAccess } from "../../src/shop/people/access-grant.ts";
import { addCredits } from "../../src/shop/people/credit.ts";
import type { PersonRow } from "../../src/shop/people/person.ts";
import { listPurchases } from "../../src/shop/selling/purchase.ts";
import { recordReceipt } from "../../src/shop/selling/receipt.ts";
import type { Occurrence } from "../kit/people.ts";
import { openSellingStore } from "../kit/selling-store.ts";

const market = await openSellingStore();
const { store, environmentId, clock } = market;
await market.product("linked", { soldThrough: { kind: "payment_link", url: "https://pay.example/x" } });
await market.product("bundle", { key: "access:members", soldThrough: { kind: "relay", relay: "shop" } });

let refs = 0;
const newRef = () => `pay_${++refs}`;
const fulfil = (person: PersonRow, product: string, ref?: string, on: Occurrence = {}) =>
  market.sell(fulfilProduct, { type: "fulfil_product", product, ...(ref === undefined ? {} : { ref }) }, person, on);
const refund = (person: PersonRow, product: string, ref?: string, on: Occurrence = {}) =>
  market.sell(refundProduct, { type: "refund_product", product, ...(ref === undefined ? {} : { ref }) }, person, on);
const spend = (person: PersonRow, amount: number) =>
  store.write("app", (tx) =>
    addCredits(tx, {
      environmentId,
      personId: person.id,
      amount: -amount,
      reason: "spent",
      source: "hand",
      relayName: null,
      eventId: null,
      onceKey: null,
      nowMs: clock.now(),
    }),
  );
const receipts = async (person: PersonRow) =>
  (await store.read((tx) => listPurchases(tx, environmentId, { limit: 200, after: null }, { person: person.id }))).items;
const summary = (outcome: ActionOutcome) =>
  outcome.outcome === "failed" ? [outcome.code, outcome.final ? "final" : "tried again"] : [outcome.outcome];
const nothing = { grants: [], credits: 0, plan: "free" };
const aLamp = { grants: ["lamp from purchase"], credits: 100, plan: "free" };

describe("fulfil_product", () => {
  test("grants the product's key and credits to the event's person and writes the receipt", async () => {
    const person = await market.newPerson();
    const ref = newRef();
    const outcome = await fulfil(person, "lamp", ref, { event: "evt_first" });
    expect(outcome).toMatchObject({
      outcome: "done",
      before: { grants: [], credits: 0 },
      after: { credits: 100, ref },
    });
    expect(await market.holdings(person)).toEqual(aLamp);
    expect(await receipts(person)).toMatchObject([
      {
        kind: "purchase",
        ref,
        item: "lamp",
        origin: "relay",
        relay: "shop",
        eventId: "evt_first",
        refundedBy: null,
      },
    ]);
  });

  test("keeps the mapped amount and currency on the receipt and on its refund", async () => {
    const person = await market.newPerson();
    const [ref, plain] = [newRef(), newRef()];
    await fulfil(person, "lamp", ref, { payload: { mapped: { amount: "42.00", currency: "eur" } } });
    await fulfil(person, "lamp", plain, { payload: { mapped: { amount: "42,00", currency: "eur" } } });
    await refund(person, "lamp", ref);
    const amounts = (await receipts(person)).map((one) => [one.kind, one.ref, one.amountMinor, one.currency]);
    expect(amounts).toEqual([
      ["refund", ref, 4200, "EUR"],
      ["purchase", plain, null, null],
      ["purchase", ref, 4200, "EUR"],
    ]);
  });

  test("reports the newest 20 grants of a frequent buyer, and that there are more", async () => {
    const person = await market.newPerson();
    for (let sold = 0; sold < 20; sold++) await fulfil(person, "lamp", newRef());
    const last = await fulfil(person, "lamp", newRef());
    expect(last).toMatchObject({ outcome: "done", after: { moreGrants: true, credits: 2_100 } });
    const { before, after }: { before: { grants: string[] }; after: { grants: string[] } } = JSON.parse(JSON.stringify(last));
    expect(before).not.toHaveProperty("moreGrants");
    expect(before.grants).toHaveLength(20);
    expect(after.grants.slice(1)).toEqual(before.grants.slice(0, 19));
    expect(before.grants).not.toContain(after.grants[0] as string);
    expect((await market.holdings(person)).grants).toHaveLength(21);
  });

  test("grants the key that the product names, not the product's name", async () => {
    const person = await market.newPerson();
    await fulfil(person, "bundle", newRef());
    expect(await market.holdings(person)).toEqual({ ...nothing, grants: ["access:members from purchase"] });
  });

  test("is idempotent on ref, for other events too", async () => {
    const person = await market.newPerson();
    const ref = newRef();
    await fulfil(person, "lamp", ref);
    expect(summary(await fulfil(person, "lamp", ref))).toEqual(["skipped"]);
    expect(await market.holdings(person)).toEqual(aLamp);
    expect(await receipts(person)).toHaveLength(1);
  });

  test.each([
    ["the sale moved to another relay", { credits: 100, soldThrough: { kind: "relay", relay: "other" } }],
    ["the sale moved to a payment link", { soldThrough: { kind: "payment_link", url: "https://pay.example.com/x" } }],
    ["the product is no longer for sale", {}],
  ])("skips a ref fulfilled before although %s", async (_rule, moved) => {
    await market.product("moved", { soldThrough: { kind: "relay", relay: "shop" } });
    const person = await market.newPerson();
    const ref = newRef();
    await fulfil(person, "moved", ref);
    await market.product("moved", moved);
    expect(summary(await fulfil(person, "moved", ref))).toEqual(["skipped"]);
    expect(summary(await fulfil(person, "moved", newRef()))).toEqual(["product_not_sold_here", "final"]);
    expect(await receipts(person)).toHaveLength(1);
  });

  test("fulfills again under another ref", async () => {
    const person = await market.newPerson();
    await fulfil(person, "lamp", newRef());
    await fulfil(person, "lamp", newRef());
    expect((await market.holdings(person)).credits).toBe(200);
  });

  test("grants the purchase to a person who is only invited", async () => {
    const person = await market.newPerson();
    expect(person.status).toBe("invited");
    expect(summary(await fulfil(person, "lamp", newRef()))).toEqual(["done"]);
  });

  test.each([
    ["a product sold through another relay", "lamp", "other", ["product_not_sold_here", "final"]],
    ["a product sold through a payment link", "linked", "shop", ["product_not_sold_here", "final"]],
    ["a product that does not exist", "chair", "shop", ["product_unknown", "final"]],
    ["a plan's name", "pro", "shop", ["product_unknown", "final"]],
  ])("refuses %s and writes nothing", async (_rule, product, relay, expected) => {
    const person = await market.newPerson();
    expect(summary(await fulfil(person, product, newRef(), { relay }))).toEqual(expected);
    expect([await market.holdings(person), await receipts(person)]).toEqual([nothing, []]);
  });

  test("refuses a suspended person permanently", async () => {
    const person = await market.newPerson({ suspended: true });
    expect(summary(await fulfil(person, "lamp", newRef()))).toEqual(["person_suspended", "final"]);
    expect(await market.holdings(person)).toEqual(nothing);
  });
});

describe("the order of arrival", () => {
  const take = (person: PersonRow, arrival: number) =>
    market.sell(revokeAccess, { type: "revoke_access", entitlement: "lamp" }, person, { arrival, event: `evt_${arrival}` });

  test("records a late purchase with its credits and ends its key at once when its event arrived before a revocation", async () => {
    const person = await market.newPerson();
    await take(person, 8_120);
    const outcome = await fulfil(person, "lamp", newRef(), { arrival: 8_110 });
    expect(outcome).toMatchObject({ outcome: "done", message: expect.stringContaining("evt_8120"), after: { grants: [], credits: 100 } });
    expect(await receipts(person)).toHaveLength(1);
    await fulfil(person, "lamp", newRef(), { arrival: 8_130 });
    expect(await market.holdings(person)).toEqual({ ...aLamp, credits: 200 });
  });

  test("orders a purchase that two events report by the event that arrived first", async () => {
    const person = await market.newPerson();
    const ref = newRef();
    await fulfil(person, "lamp", ref, { arrival: 8_205 });
    expect(await take(person, 8_203)).toMatchObject({ after: { granted: true } });
    expect(summary(await fulfil(person, "lamp", ref, { arrival: 8_207 }))).toEqual(["skipped"]);
    expect(await market.holdings(person)).toEqual(aLamp);
    expect(summary(await fulfil(person, "lamp", ref, { arrival: 8_201 }))).toEqual(["skipped"]);
    expect(await market.holdings(person)).toEqual({ ...nothing, credits: 100 });
  });
});

describe("a ref", () => {
  test.each([
    ["a path that resolves to nothing", "{{mapped.nothing}}", {}],
    ["a path that is empty on the event", "{{mapped.id}}", { mapped: { id: "" } }],
    ["a path that is blank on the event", "{{mapped.id}}", { mapped: { id: "   " } }],
    ["text with a path that resolves to nothing", "pay-{{mapped.nothing}}", {}],
    ["text with a path that is empty on the event", "pay-{{mapped.id}}", { mapped: { id: "" } }],
    ["a path that is null on the event", "{{mapped.id}}", { mapped: { id: null } }],
    ["more than 200 characters", "{{mapped.id}}", { mapped: { id: "x".repeat(201) } }],
  ])("that resolves to %s is refused instead of replaced", async (_rule, ref, payload) => {
    const person = await market.newPerson();
    for (const outcome of [await fulfil(person, "lamp", ref, { payload }), await refund(person, "lamp", ref, { payload })]) {
      expect(summary(outcome)).toEqual(["ref_unresolved", "final"]);
    }
    expect([await market.holdings(person), await receipts(person)]).toEqual([nothing, []]);
  });

  test("is a template, and keeps every digit of an integer beyond 2^53", async () => {
    const person = await market.newPerson();
    await fulfil(person, "lamp", "pi-{{mapped.id}}", { payload: { mapped: { id: 12345678901234567890n } } });
    expect((await receipts(person)).map(({ ref }) => ref)).toEqual(["pi-12345678901234567890"]);
  });

  test("that is absent falls back to rly:<eventId>", async () => {
    const person = await market.newPerson();
    await fulfil(person, "lamp", undefined, { event: "evt_absent" });
    expect((await receipts(person)).map(({ ref }) => ref)).toEqual(["rly:evt_absent"]);
  });

  test("already used by another person's purchase is refused, with one audit entry for each event", async () => {
    const [buyer, thief] = [await market.newPerson(), await market.newPerson()];
    const ref = newRef();
    await fulfil(buyer, "lamp", ref);
    const on = { event: "evt_thief" };
    expect(summary(await fulfil(thief, "lamp", ref, on))).toEqual(["ref_used", "final"]);
    expect(summary(await fulfil(thief, "lamp", ref, on))).toEqual(["ref_used", "final"]);
    expect([await market.holdings(thief), await receipts(thief)]).toEqual([nothing, []]);
    const filter = { action: "ref_refused", target: `ref:${ref}` };
    const { items } = await store.read((tx) => listAudit(tx, environmentId, filter, { limit: 10, after: null }));
    expect(items).toMatchObject([{ actor: "relay:shop", after: { person: thief.id, item: "lamp", eventId: "evt_thief" } }]);
  });

  test("already used by the same person's purchase of another product is refused", async () => {
    const person = await market.newPerson();
    const ref = newRef();
    await fulfil(person, "lamp", ref);
    expect(summary(await fulfil(person, "bundle", ref))).toEqual(["ref_used", "final"]);
    expect(await market.holdings(person)).toEqual(aLamp);
  });

  test("of another environment can be used here", async () => {
    const person = await market.newPerson();
    const ref = newRef();
    await store.write("app", (tx) =>
      tx.run(
        `INSERT INTO purchase (id, environment_id, kind, ref, item_kind, item, person_id, origin, created_at)
         VALUES ('prc_elsewhere', ?1, 'purchase', ?2, 'product', 'lamp', 'per_elsewhere', 'relay', 0)`,
        market.otherEnvironmentId,
        ref,
      ),
    );
    expect(summary(await fulfil(person, "lamp", ref))).toEqual(["done"]);
  });
});

describe("refund_product", () => {
  test("reverses what fulfil_product under the same ref granted, and stores its own receipt", async () => {
    const person = await market.newPerson();
    const ref = newRef();
    await fulfil(person, "lamp", ref);
    expect(await refund(person, "lamp", ref)).toMatchObject({
      outcome: "done",
      before: { credits: 100 },
      after: { credits: 0, grants: [], takenBack: { grants: 1, credits: 100, creditsShort: 0 } },
    });
    expect(await market.holdings(person)).toEqual(nothing);
    const [refunded, bought] = await receipts(person);
    expect(refunded).toMatchObject({ kind: "refund", ref, refunds: bought?.id ?? "" });
    expect(bought).toMatchObject({ kind: "purchase", ref, refundedBy: refunded?.id ?? "" });
  });

  test("leaves what another purchase, a manual grant or a relay gave", async () => {
    const person = await market.newPerson();
    const ref = newRef();
    await fulfil(person, "lamp", ref);
    await fulfil(person, "lamp", newRef());
    await store.write("app", (tx) =>
      grantAccess(tx, {
        environmentId,
        personId: person.id,
        entitlement: "lamp",
        source: "hand",
        sourceRef: "key:test",
        relayName: null,
        eventId: null,
        reason: null,
        expiresAtMs: null,
        arrival: 0,
        nowMs: clock.now(),
      }),
    );
    await refund(person, "lamp", ref);
    const grants = ["lamp from hand", "lamp from purchase"];
    expect(await market.holdings(person)).toEqual({ ...nothing, grants, credits: 100 });
  });

  test("can run from any relay in the environment", async () => {
    const person = await market.newPerson();
    const ref = newRef();
    await fulfil(person, "lamp", ref);
    expect(summary(await refund(person, "lamp", ref, { relay: "other" }))).toEqual(["done"]);
  });

  test("is idempotent on ref", async () => {
    const person = await market.newPerson();
    const ref = newRef();
    await fulfil(person, "lamp", ref);
    await fulfil(person, "lamp", newRef());
    await refund(person, "lamp", ref);
    expect(summary(await refund(person, "lamp", ref))).toEqual(["skipped"]);
    expect((await market.holdings(person)).credits).toBe(100);
  });

  test("never takes the balance below zero, and reports the credits that were already spent", async () => {
    const person = await market.newPerson();
    const ref = newRef();
    await fulfil(person, "lamp", ref);
    await spend(person, 70);
    const outcome = await refund(person, "lamp", ref);
    expect(outcome).toMatchObject({
      outcome: "done",
      after: { takenBack: { credits: 30, creditsShort: 70 } },
    });
    expect("message" in outcome && outcome.message).toContain("Only 30 of 100 credits");
    expect(await market.holdings(person)).toEqual(nothing);
  });

  test("takes back what was granted at purchase, not what the product grants today", async () => {
    const person = await market.newPerson();
    const ref = newRef();
    await market.product("changing", { credits: 10, soldThrough: { kind: "relay", relay: "shop" } });
    await fulfil(person, "changing", ref);
    await fulfil(person, "lamp", newRef());
    await market.product("changing", { credits: 90 });
    // Reproduces a product that was changed by a release that did not protect keys with live grants.
    await store.write("app", (tx) => tx.run("UPDATE product SET key = 'access:members' WHERE name = 'changing'"));
    await refund(person, "changing", ref);
    expect(await market.holdings(person)).toEqual(aLamp);
  });

  test("keeps a purchase refunded when the payment's event runs again", async () => {
    const person = await market.newPerson();
    const ref = newRef();
    await fulfil(person, "lamp", ref);
    await refund(person, "lamp", ref);
    const again = await fulfil(person, "lamp", ref);
    expect(again).toMatchObject({
      outcome: "skipped",
      message: expect.stringContaining("it stays refunded"),
    });
    expect(await market.holdings(person)).toEqual(nothing);
  });

  test("that runs before its payment's event is retried, and succeeds after the payment", async () => {
    const person = await market.newPerson();
    const ref = newRef();
    expect(summary(await refund(person, "lamp", ref))).toEqual(["purchase_missing", "tried again"]);
    await fulfil(person, "lamp", ref);
    expect(summary(await refund(person, "lamp", ref))).toEqual(["done"]);
    expect(await market.holdings(person)).toEqual(nothing);
  });

  test("without a ref finds nothing under its own event's id", async () => {
    const person = await market.newPerson();
    await fulfil(person, "lamp");
    expect(summary(await refund(person, "lamp"))).toEqual(["purchase_missing", "tried again"]);
    expect(await market.holdings(person)).toEqual(aLamp);
  });

  test("refunds only a purchase of the event's person, writes an audit entry, and says where to refund the other", async () => {
    const [buyer, other] = [await market.newPerson(), await market.newPerson()];
    const ref = newRef();
    await fulfil(buyer, "lamp", ref);
    const audited = await market.count("audit");
    const refused = await refund(other, "lamp", ref);
    expect(summary(refused)).toEqual(["ref_used", "final"]);
    const message = "message" in refused ? refused.message : "";
    expect(message).toContain("belongs to another person's purchase");
    expect(message).toContain(`relay receipts refund ${ref}`);
    expect(message).not.toContain(buyer.email);
    expect([await market.holdings(buyer), await market.count("audit")]).toEqual([aLamp, audited + 1]);
  });

  test("skips the ref of another product's purchase, with one audit entry for each event", async () => {
    const person = await market.newPerson();
    const ref = newRef();
    await fulfil(person, "lamp", ref);
    const on = { event: "evt_other_product" };
    for (let turn = 0; turn < 2; turn++)
      expect(await refund(person, "bundle", ref, on)).toMatchObject({
        outcome: "skipped",
        code: "other_product",
        message: expect.stringContaining("for the product lamp and not for bundle"),
      });
    expect(await market.holdings(person)).toEqual(aLamp);
    const filter = { action: "ref_refused", target: `ref:${ref}` };
    const { items } = await store.read((tx) => listAudit(tx, environmentId, filter, { limit: 10, after: null }));
    expect(items).toMatchObject([{ after: { code: "other_product", item: "bundle", eventId: "evt_other_product" } }]);
    expect(summary(await refund(person, "lamp", ref))).toEqual(["done"]);
  });

  test("skips the ref of a plan's payment, and refuses a product that never existed", async () => {
    const person = await market.newPerson();
    const ref = newRef();
    await market.sell(grantPlan, { type: "grant_plan", plan: "pro", ref }, person);
    expect(await refund(person, "lamp", ref)).toMatchObject({ outcome: "skipped", code: "other_product" });
    expect(summary(await refund(person, "chair", ref))).toEqual(["product_unknown", "final"]);
    expect((await market.holdings(person)).plan).toBe("pro");
  });

  test("permanently refuses a purchase that no relay fulfilled", async () => {
    const person = await market.newPerson();
    const ref = newRef();
    await recordReceipt(store, { environmentId, by: "key:test", nowMs: clock.now() }, { ref, person: person.id, product: "lamp" });
    expect(summary(await refund(person, "lamp", ref))).toEqual(["purchase_not_by_relay", "final"]);
    expect(await market.holdings(person)).toEqual(aLamp);
  });

  test("refuses a product that never existed, and refunds one that was deleted after the purchase", async () => {
    const person = await market.newPerson();
    const ref = newRef();
    expect(summary(await refund(person, "chair", newRef()))).toEqual(["product_unknown", "final"]);
    await market.product("fad", { soldThrough: { kind: "relay", relay: "shop" } });
    await fulfil(person, "fad", ref);
    await store.write("app", (tx) => tx.run("DELETE FROM product WHERE name = 'fad'"));
    expect(summary(await refund(person, "fad", ref))).toEqual(["done"]);
    expect(await market.holdings(person)).toEqual(nothing);
  });

  test("refuses a suspended person permanently", async () => {
    const person = await market.newPerson({ suspended: true });
    expect(summary(await refund(person, "lamp", newRef()))).toEqual(["person_suspended", "final"]);
  });
});
