import { describe, expect, test } from "bun:test";
import type { RefusalCode } from "../../src/base/code/refusal-code.ts";
import { requireEnvironment, saveSettings } from "../../src/platform/account/environment.ts";
import { listAudit } from "../../src/platform/audit/audit.ts";
import { fulfilProduct } from "../../src/rules/action/sale.ts";
import { listPurchases } from "../../src/shop/selling/purchase.ts";
import { type ReceiptInput, recordReceipt } from "../../src/shop/selling/receipt.ts";
import { refusalOf } from "../kit/fresh-store.ts";
import { openSellingStore } from "../kit/selling-store.ts";

const market = await openSellingStore();
const { store, environmentId, clock } = market;
const record = (input: ReceiptInput) => recordReceipt(store, { environmentId, by: "key:test", nowMs: clock.now() }, input);
let refs = 0;
const newRef = () => `ch_${++refs}`;
const records = () =>
  store.read((tx) =>
    tx.all<{ data: string; recipient: string; by: string }>("SELECT data, recipient_id AS recipient, written_by AS by FROM record ORDER BY seq"),
  );

describe("a card receipt", () => {
  test("grants the product's key and credits, with origin payment", async () => {
    const person = await market.newPerson();
    const input = {
      ref: newRef(),
      person: person.id,
      product: "lamp",
      amountMinor: 1999,
      currency: "EUR",
      data: { note: "x" },
    };
    const { receipt, created } = await record(input);
    expect(created).toBe(true);
    expect(receipt).toMatchObject({
      origin: "payment",
      relay: null,
      amountMinor: 1999,
      currency: "EUR",
      data: { note: "x" },
    });
    expect(await market.holdings(person)).toEqual({
      grants: ["lamp from purchase"],
      credits: 100,
      plan: "free",
    });
  });

  test("sent twice is the same receipt", async () => {
    const person = await market.newPerson();
    const input = { ref: newRef(), person: person.id, product: "lamp" };
    const first = await record(input);
    const second = await record(input);
    expect([second.created, second.receipt.id]).toEqual([false, first.receipt.id]);
    expect((await market.holdings(person)).credits).toBe(100);
  });

  test("is audited once, with its reporter, before and after", async () => {
    const person = await market.newPerson();
    const input = { ref: newRef(), person: person.id, product: "lamp" };
    const { receipt } = await record(input);
    await record(input);
    const filter = { target: `purchase:${receipt.id}` };
    const { items } = await store.read((tx) => listAudit(tx, environmentId, filter, { limit: 9, after: null }));
    expect(items).toMatchObject([{ action: "receipt.recorded", actor: "key:test", before: { credits: 0 }, after: { credits: 100 } }]);
  });

  test("with a ref of another purchase is refused and audited", async () => {
    const [buyer, other] = [await market.newPerson(), await market.newPerson()];
    const ref = newRef();
    await record({ ref, person: buyer.id, product: "lamp" });
    expect((await refusalOf(() => record({ ref, person: other.id, product: "lamp" }))).code).toBe("ref_used");
    expect((await market.holdings(other)).credits).toBe(0);
    const filter = { target: `ref:${ref}` };
    const { items } = await store.read((tx) => listAudit(tx, environmentId, filter, { limit: 9, after: null }));
    expect(items).toMatchObject([{ action: "ref_refused", actor: "receipt", after: { person: other.id } }]);
  });

  test("is refunded once, by a second receipt that takes the product back", async () => {
    const person = await market.newPerson();
    const input = { ref: newRef(), person: person.id, product: "lamp" };
    await record(input);
    const first = await record({ ...input, kind: "refund" });
    const second = await record({ ...input, kind: "refund" });
    expect([first.created, second.created, second.receipt.kind]).toEqual([true, false, "refund"]);
    expect(await market.holdings(person)).toEqual({ grants: [], credits: 0, plan: "free" });
    const filter = { target: `purchase:${first.receipt.id}` };
    const { items } = await store.read((tx) => listAudit(tx, environmentId, filter, { limit: 9, after: null }));
    expect(items).toMatchObject([{ action: "receipt.refunded", actor: "key:test", before: { credits: 100 }, after: { credits: 0 } }]);
  });

  test("never refunds a relay's purchase", async () => {
    const person = await market.newPerson();
    const ref = newRef();
    const held = { grants: ["lamp from purchase"], credits: 100, plan: "free" };
    await market.sell(fulfilProduct, { type: "fulfil_product", product: "lamp", ref }, person);
    expect(await market.holdings(person)).toEqual(held);
    expect((await refusalOf(() => record({ kind: "refund", ref, person: person.id, product: "lamp" }))).code).toBe("not_found");
    expect(await market.holdings(person)).toEqual(held);
  });

  test("for a plan starts a subscription billed by the processor, and the next one renews it", async () => {
    const person = await market.newPerson();
    for (let month = 0; month < 2; month++) {
      await record({ ref: newRef(), person: person.id, plan: "pro", processorCustomerId: "cus_1" });
    }
    const rows = await store.read((tx) =>
      tx.all("SELECT billed_by, processor_customer_id, status FROM subscription WHERE person_id = ?1", person.id),
    );
    expect(rows).toEqual([{ billed_by: "processor", processor_customer_id: "cus_1", status: "active" }]);
    expect(await market.holdings(person)).toEqual({ grants: ["pro from plan"], credits: 0, plan: "pro" });
  });

  test.each<[string, { [Name in keyof ReceiptInput]?: ReceiptInput[Name] | undefined }, RefusalCode]>([
    ["an empty ref", { ref: "" }, "invalid_input"],
    ["a ref over 200 characters", { ref: "x".repeat(201) }, "invalid_input"],
    ["a ref of two lines", { ref: "a\nb" }, "invalid_input"],
    ["both a product and a plan", { plan: "pro" }, "invalid_input"],
    ["neither a product nor a plan", { product: undefined }, "invalid_input"],
    ["the refund of a plan", { kind: "refund", product: undefined, plan: "pro" }, "invalid_input"],
    ["an amount below zero", { amountMinor: -1 }, "invalid_input"],
    ["an invalid currency", { currency: "euro" }, "invalid_input"],
    ["a processor's customer on a product", { processorCustomerId: "cus_1" }, "invalid_input"],
    ["a product that does not exist", { product: "chair" }, "not_found"],
    ["a person who does not exist", { person: "per_nobody" }, "not_found"],
    ["the refund of an unknown purchase", { kind: "refund" }, "not_found"],
  ])("refuses %s and writes nothing", async (_rule, wrong, code) => {
    const person = await market.newPerson();
    const before = await market.count("purchase");
    const input = { ref: newRef(), person: person.id, product: "lamp", ...wrong } as ReceiptInput;
    expect((await refusalOf(() => record(input))).code).toBe(code);
    expect(await market.count("purchase")).toBe(before);
  });

  test("is recorded for a suspended person too, because the money was taken", async () => {
    const person = await market.newPerson({ suspended: true });
    expect((await record({ ref: newRef(), person: person.id, product: "lamp" })).created).toBe(true);
    expect((await market.holdings(person)).credits).toBe(100);
  });

  test("is listed newest first, for one person or for all", async () => {
    const person = await market.newPerson();
    const [first, second] = [newRef(), newRef()];
    await record({ ref: first, person: person.id, product: "lamp" });
    await record({ ref: second, person: person.id, product: "lamp" });
    const page = await store.read((tx) => listPurchases(tx, environmentId, { limit: 200, after: null }, { person: person.id }));
    expect(page.items.map(({ ref }) => ref)).toEqual([second, first]);
  });
});

describe("a collection mapped to receipts", () => {
  test("gets a record for each one, for the buyer, with the facts it has fields for, and none for a repeat", async () => {
    await market.newCollection("payments", "addressed", {
      ref: { type: "text", required: true },
      product: { type: "text" },
      amountMinor: { type: "number" },
    });
    const environment = await store.read((tx) => requireEnvironment(tx, "app_test", "development"));
    await store.write("dashboard", (tx) => saveSettings(tx, environment, { receipts: { collection: "payments" } }, environment.version));
    const person = await market.newPerson();
    const input = { ref: newRef(), person: person.id, product: "lamp", amountMinor: 5, currency: "EUR" };
    await record(input);
    await record(input);
    const found = await records();
    expect(found.map(({ data, ...row }) => ({ ...row, ...JSON.parse(data) }))).toEqual([
      { recipient: person.id, by: "receipt", ref: input.ref, product: "lamp", amountMinor: 5 },
    ]);
  });

  test("that refuses the record refuses the receipt, and neither is written", async () => {
    const person = await market.newPerson();
    await store.write("app", (tx) => tx.run("UPDATE collection SET fields = ?1 WHERE name = 'payments'", '{"iban":{"type":"text","required":true}}'));
    const refusal = await refusalOf(() => record({ ref: newRef(), person: person.id, product: "lamp" }));
    expect(refusal.code).toBe("data_invalid");
    expect(await market.holdings(person)).toEqual({ grants: [], credits: 0, plan: "free" });
  });
});
