/**
 * A manual refund of any purchase: the preview says what it takes back, and the refund does exactly that. See the decisions, section 3, "refund by
 * hand".
 */
import { describe, expect, test } from "bun:test";
import { listAudit } from "../../src/platform/audit/audit.ts";
import { fulfilProduct, grantPlan, refundProduct, revokePlan } from "../../src/rules/action/sale.ts";
import { addCreditsManually } from "../../src/shop/people/credit.ts";
import { type PersonRow, updatePerson } from "../../src/shop/people/person.ts";
import { erasePerson } from "../../src/shop/people/person-erase.ts";
import { previewRefund, refundManually } from "../../src/shop/selling/manual-refund.ts";
import { listPurchases } from "../../src/shop/selling/purchase.ts";
import { recordReceipt } from "../../src/shop/selling/receipt.ts";
import { refusalOf } from "../kit/fresh-store.ts";
import { openSellingStore } from "../kit/selling-store.ts";

const market = await openSellingStore();
const { store, environmentId, clock } = market;
await market.plan("team", { soldThrough: { kind: "relay", relay: "shop" } });

let refs = 0;
const newRef = () => `pay_${++refs}`;
const change = () => ({ environmentId, by: "owner:ann@example.com", nowMs: clock.now() });
const fulfil = (person: PersonRow, ref: string) => market.sell(fulfilProduct, { type: "fulfil_product", product: "lamp", ref }, person);
const grant = (person: PersonRow, plan: string, ref?: string) =>
  market.sell(grantPlan, { type: "grant_plan", plan, ...(ref === undefined ? {} : { ref }) }, person);
const pay = (person: PersonRow, ref: string, what: { product: string } | { plan: string }) =>
  recordReceipt(store, { ...change(), by: "key:test" }, { ref, person: person.id, ...what });
const under = async (ref: string) => (await store.read((tx) => listPurchases(tx, environmentId, { limit: 9, after: null }, { ref }))).items;
const bought = async (ref: string) => (await under(ref)).find(({ kind }) => kind !== "refund")?.id ?? "";
const plan = async (ref: string) => {
  const id = await bought(ref);
  return await store.read((tx) => previewRefund(tx, environmentId, id, clock.now()));
};
const refund = async (ref: string) => {
  const id = await bought(ref);
  return await store.write("dashboard", (tx) => refundManually(tx, change(), id));
};
const none = { grants: [], credits: 0, plan: "free" };

describe("a product", () => {
  const origins: [how: string, buy: (person: PersonRow, ref: string) => Promise<unknown>, origin: string][] = [
    ["a relay fulfilled", fulfil, "relay"],
    ["a server recorded", (person, ref) => pay(person, ref, { product: "lamp" }), "payment"],
  ];
  test.each(origins)("that %s is refunded once and audited", async (_how, buy, origin) => {
    const person = await market.newPerson();
    const ref = newRef();
    await buy(person, ref);
    expect(await plan(ref)).toEqual({
      ...{ grants: 1, credits: 100, creditsShort: 0, endsPlan: null, refundedBy: null },
      message: `Refunds the purchase of lamp (ref ${ref}) of ${person.email}. Its access to lamp ends. The refund removes 100 of its credits. This moves no money: refund the payment where it was paid.`,
    });
    const { receipt, created } = await refund(ref);
    expect([created, receipt]).toMatchObject([true, { kind: "refund", ref, origin, relay: null, takenBack: { grants: 1, credits: 100 } }]);
    expect(await market.holdings(person)).toEqual(none);
    const { items } = await store.read((tx) =>
      listAudit(tx, environmentId, { action: "receipt.refunded", target: `purchase:${receipt.id}` }, { limit: 9, after: null }),
    );
    expect(items).toMatchObject([{ actor: "owner:ann@example.com", before: { credits: 100 }, after: { credits: 0, ref } }]);
    expect(await plan(ref)).toMatchObject({ grants: 0, credits: 0, refundedBy: receipt.id });
    expect((await refund(ref)).created).toBe(false);
    if (origin === "relay") {
      expect(await fulfil(person, ref)).toMatchObject({ outcome: "skipped", message: expect.stringContaining("it stays refunded") });
      expect(await market.sell(refundProduct, { type: "refund_product", product: "lamp", ref }, person)).toMatchObject({ outcome: "skipped" });
    }
    expect([await market.holdings(person), (await under(ref)).length]).toEqual([none, 2]);
  });

  test("leaves other purchases and spent credits, and says so in the preview", async () => {
    const person = await market.newPerson();
    const [ref, other] = [newRef(), newRef()];
    await fulfil(person, ref);
    await fulfil(person, other);
    const spent = { personId: person.id, amount: -150, reason: "spent", key: ref };
    await store.write("app", (tx) => addCreditsManually(tx, { ...change(), ...spent }));
    const { message, ...takes } = await plan(ref);
    expect(takes).toEqual({ grants: 1, credits: 50, creditsShort: 50, endsPlan: null, refundedBy: null });
    expect(message).toContain(
      "Its access to lamp ends, and the person keeps it by another grant. The refund removes 50 of its credits; 50 more are already spent and cannot be removed.",
    );
    expect((await refund(ref)).receipt.takenBack).toEqual({ grants: 1, credits: 50, creditsShort: 50 });
    expect(await market.holdings(person)).toEqual({ ...none, grants: ["lamp from purchase"] });
  });

  test("of a suspended or erased person can be refunded", async () => {
    const [suspended, erased] = [await market.newPerson(), await market.newPerson()];
    const refs = [newRef(), newRef()] as const;
    await fulfil(suspended, refs[0]);
    await fulfil(erased, refs[1]);
    const at = { environmentId, personId: suspended.id, nowMs: clock.now() };
    await store.write("app", (tx) => updatePerson(tx, at, { status: "suspended" }));
    const sealer = { seal: () => new Uint8Array(), digest: () => new Uint8Array() };
    await store.write("erasure", (tx) => erasePerson(tx, { environmentId, personId: erased.id, by: "key:test", nowMs: clock.now() }, sealer));
    expect((await plan(refs[1])).message).toContain("of a person who was erased (");
    for (const [at, person] of [suspended, erased].entries()) {
      expect((await refund(refs[at] as string)).created).toBe(true);
      expect(await market.holdings(person)).toEqual(none);
    }
  });
});

describe("a plan", () => {
  test("ends when its newest payment is refunded, and later events of the provider change nothing", async () => {
    const person = await market.newPerson();
    const [first, second] = [newRef(), newRef()];
    await grant(person, "pro", first);
    await grant(person, "pro", second);
    expect(await plan(second)).toMatchObject({ grants: 1, endsPlan: "pro", message: expect.stringContaining("The plan pro ends") });
    expect((await refund(second)).receipt).toMatchObject({ kind: "refund", itemKind: "plan", takenBack: { grants: 1, credits: 0 } });
    expect(await market.holdings(person)).toEqual(none);
    expect(await grant(person, "pro", second)).toMatchObject({ outcome: "skipped", message: expect.stringContaining("it stays refunded") });
    await market.sell(revokePlan, { type: "revoke_plan", plan: "pro", ref: second }, person);
    expect(await market.holdings(person)).toEqual(none);
    await grant(person, "pro", newRef());
    expect((await market.holdings(person)).plan).toBe("pro");
  });

  test("stays because of a later payment, which the message names", async () => {
    const person = await market.newPerson();
    const [first, second] = [newRef(), newRef()];
    await grant(person, "pro", first);
    await grant(person, "pro", second);
    expect(await plan(first)).toMatchObject({ grants: 0, endsPlan: null, message: expect.stringContaining(`under the ref ${second} came later`) });
    expect((await refund(first)).created).toBe(true);
    expect((await market.holdings(person)).plan).toBe("pro");
    await refund(second);
    expect(await market.holdings(person)).toEqual(none);
  });

  test("does not stay because of a refunded payment or a confirmation", async () => {
    const person = await market.newPerson();
    const [first, second] = [newRef(), newRef()];
    await grant(person, "pro", first);
    await grant(person, "pro", second);
    await grant(person, "pro");
    await refund(second);
    expect(await market.holdings(person)).toEqual(none);
    await grant(person, "team", newRef());
    expect(await plan(first)).toMatchObject({ endsPlan: null, message: expect.stringContaining("not on pro now") });
    await refund(first);
    expect((await market.holdings(person)).plan).toBe("team");
  });

  test("that the card processor bills ends too, and the message says to end it there", async () => {
    const person = await market.newPerson();
    const ref = newRef();
    await pay(person, ref, { plan: "pro" });
    expect((await plan(ref)).message).toContain("The card processor continues to bill it: end it there too.");
    await refund(ref);
    expect(await market.holdings(person)).toEqual(none);
  });
});

test("a refund, a confirmation and an unknown id are refused", async () => {
  const person = await market.newPerson();
  const ref = newRef();
  await fulfil(person, ref);
  const { receipt } = await refund(ref);
  await grant(person, "pro", newRef());
  await market.sell(grantPlan, { type: "grant_plan", plan: "pro" }, person, { event: "evt_confirms" });
  const refusals = [receipt.id, await bought("rly:evt_confirms"), "prc_nothing"];
  const said = [];
  for (const id of refusals) said.push((await refusalOf(() => store.read((tx) => previewRefund(tx, environmentId, id, clock.now())))).code);
  expect(said).toEqual(["invalid_input", "invalid_input", "not_found"]);
});
