/** A merge of two people: what moves, what stays, what a repetition does, and which merges are refused without a change. */
import { describe, expect, test } from "bun:test";
import type { Json } from "../../src/base/json.ts";
import { listAudit } from "../../src/platform/audit/audit.ts";
import { findMailStop, setMailStop } from "../../src/platform/mail/mail-stop.ts";
import { fulfilProduct, grantPlan, refundProduct, revokePlan } from "../../src/rules/action/sale.ts";
import { grantManually } from "../../src/shop/people/access-grant.ts";
import { addCreditsManually } from "../../src/shop/people/credit.ts";
import { changePersonManually, findPerson, type PersonRow } from "../../src/shop/people/person.ts";
import { erasePerson } from "../../src/shop/people/person-erase.ts";
import { fileToken, findPersonByToken } from "../../src/shop/people/person-identifier.ts";
import { mergePeopleManually } from "../../src/shop/selling/person-merge.ts";
import { recordReceipt } from "../../src/shop/selling/receipt.ts";
import { dryRunWithin } from "../../src/store/dry-run.ts";
import type { Writer } from "../../src/store/port.ts";
import { refusalOf } from "../kit/fresh-store.ts";
import { openSellingStore } from "../kit/selling-store.ts";

const market = await openSellingStore();
const { store, environmentId, clock } = market;
await market.plan("team", { soldThrough: { kind: "relay", relay: "shop" } });

let refs = 0;
const newRef = () => `pay_${++refs}`;
const change = () => ({ environmentId, by: "owner:ann@example.com", nowMs: clock.now() });
const write = <Result>(work: (tx: Writer) => Promise<Result>): Promise<Result> => store.write("app", work);
const fulfil = (person: PersonRow, ref = newRef()) => market.sell(fulfilProduct, { type: "fulfil_product", product: "lamp", ref }, person);
const takeBack = (person: PersonRow, ref: string) => market.sell(refundProduct, { type: "refund_product", product: "lamp", ref }, person);
const grantOf = (person: PersonRow, plan: string, ref: string) => market.sell(grantPlan, { type: "grant_plan", plan, ref }, person);
const cancel = (person: PersonRow, plan: string, ref: string) => market.sell(revokePlan, { type: "revoke_plan", plan, ref }, person);
const credit = (person: PersonRow, amount: number) =>
  write((tx) => addCreditsManually(tx, { ...change(), personId: person.id, amount, reason: "by hand", key: newRef() }));
const grant = (person: PersonRow) =>
  write((tx) => grantManually(tx, { ...change(), personId: person.id, entitlement: "lamp", reason: null, expiresAtMs: null }));
const merge = (from: PersonRow, to: PersonRow) => write((tx) => mergePeopleManually(tx, change(), from.id, to.email));
const planOf = (from: PersonRow, to: PersonRow) => write((tx) => dryRunWithin(tx, () => mergePeopleManually(tx, change(), from.id, to.email)));
const twoPeople = async () => [await market.newPerson(), await market.newPerson()] as const;
const state = async (...people: PersonRow[]) => await Promise.all(people.map((person) => market.holdings(person)));
const NONE = { grants: [], credits: 0, plan: "free" };
const NOTHING = { purchases: 0, grants: 0, credits: 0, tokens: 0, customers: 0, records: 0, attributes: 0, stopsMail: false };

describe("a merge", () => {
  const PARTS: [part: string, give: (from: PersonRow) => Promise<unknown>, counts: Partial<typeof NOTHING>, held: object][] = [
    ["a product", fulfil, { purchases: 1, credits: 100 }, { grants: ["lamp from purchase"], credits: 100 }],
    ["two products", async (from) => [await fulfil(from), await fulfil(from)], { purchases: 2, credits: 200 }, { credits: 200 }],
    ["spent credits", async (from) => [await fulfil(from), await credit(from, -30)], { purchases: 1, credits: 70 }, { credits: 70 }],
    ["a plan", (from) => grantOf(from, "pro", newRef()), { purchases: 1 }, { grants: ["pro from plan"], plan: "pro" }],
    [
      "a renewed plan",
      async (from) => [await grantOf(from, "pro", newRef()), await grantOf(from, "pro", newRef())],
      { purchases: 2 },
      { plan: "pro" },
    ],
    [
      "a plan of the processor",
      (from) => recordReceipt(store, change(), { ref: newRef(), person: from.id, plan: "pro" }),
      { purchases: 1 },
      { plan: "pro" },
    ],
    ["access by hand", grant, { grants: 1 }, { grants: ["lamp from hand"] }],
    ["credits by hand", (from) => credit(from, 7), { credits: 7 }, { credits: 7 }],
  ];
  test.each(PARTS)("moves %s as its plan says, and a second one changes nothing", async (_part, give, counts, held) => {
    const [from, to] = await twoPeople();
    await give(from);
    const before = await state(from, to);
    const { plan } = await planOf(from, to);
    expect(plan).toMatchObject({ ...NOTHING, ...counts, from: from.id, to: to.id });
    expect(await state(from, to)).toEqual(before);
    expect(await merge(from, to)).toEqual({ plan, merged: true });
    const after = await state(from, to);
    expect(after).toMatchObject([NONE, { ...held }]);
    expect(await merge(from, to)).toMatchObject({ merged: false, plan: { ...NOTHING, message: expect.stringContaining("nothing that can move") } });
    expect(await state(from, to)).toEqual(after);
  });

  test("names a few of many different attributes, cut, and changes none of them", async () => {
    const [from, to] = await twoPeople();
    const names = Array.from({ length: 7 }, (_, at) => `n${at}`);
    const set = (person: PersonRow, value: Json) =>
      write((tx) => changePersonManually(tx, change(), person.id, { attributes: Object.fromEntries(names.map((name) => [name, value])) }));
    await set(from, { list: ["x".repeat(1_000)] });
    await set(to, "new");
    const { plan, merged } = await merge(from, to);
    expect([merged, plan.attributes, plan.differentAttributes.length]).toEqual([false, 0, 7]);
    await fulfil(from);
    const { message } = (await merge(from, to)).plan;
    expect(message).toContain(`7 different attributes: n0 "new" (not {"list":["${"x".repeat(30)}…)`);
    expect(message).toContain(" and 2 more. ");
    expect(message.length).toBeLessThan(1_000);
    const people = await store.read((tx) => Promise.all([from, to].map(({ id }) => findPerson(tx, environmentId, id))));
    expect(people.map((person) => person?.attributes.n6)).toEqual([{ list: ["x".repeat(1_000)] }, "new"]);
  });

  test("adds to what the other person has, and goes back in a circle without a loss", async () => {
    const [from, to] = await twoPeople();
    await fulfil(from);
    await fulfil(to);
    await credit(to, 5);
    const both = { grants: ["lamp from purchase", "lamp from purchase"], credits: 205, plan: "free" };
    for (const [one, other] of [
      [from, to],
      [to, from],
      [from, to],
    ] as const) {
      await merge(one, other);
      expect(await state(one, other)).toEqual([NONE, both]);
    }
  });

  test("lets a refund and a cancellation for the old person find what moved", async () => {
    const [from, to] = await twoPeople();
    const [lamp, pro] = [newRef(), newRef()];
    await fulfil(from, lamp);
    await grantOf(from, "pro", pro);
    await merge(from, to);
    await takeBack(from, lamp);
    await cancel(from, "pro", pro);
    expect(await state(from, to)).toEqual([NONE, NONE]);
  });

  test("leaves a payment that arrives later with the old person, and another merge moves it", async () => {
    const [from, to] = await twoPeople();
    await Promise.all([fulfil(from), merge(from, to), fulfil(from), merge(from, to)]);
    await merge(from, to);
    expect(await state(from, to)).toEqual([NONE, { grants: ["lamp from purchase", "lamp from purchase"], credits: 200, plan: "free" }]);
  });

  test("moves tokens, missing attributes and the stop of event mail, and is audited at both people", async () => {
    const [from, to] = await twoPeople();
    const set = (person: PersonRow, attributes: Record<string, string>) =>
      write((tx) => changePersonManually(tx, change(), person.id, { attributes }));
    await set(from, { team: "old", city: "Ulm", locale: "de" });
    await set(to, { team: "new", locale: "de" });
    await write((tx) => fileToken(tx, { environmentId, personId: from.id, token: "tok_1", nowMs: clock.now() }));
    await write((tx) => setMailStop(tx, change(), { personId: from.id, stopped: true }));
    const { plan } = await planOf(from, to);
    expect(plan).toMatchObject({ tokens: 1, attributes: 1, stopsMail: true, differentAttributes: [{ name: "team", from: "old", to: "new" }] });
    expect(plan.message).toContain(`${to.email} keeps their own value of 1 different attribute: team "new" (not "old"). `);
    expect(await merge(from, to)).toEqual({ plan, merged: true });
    await store.read(async (tx) => {
      expect((await findPersonByToken(tx, environmentId, "tok_1"))?.id).toBe(to.id);
      expect((await findPerson(tx, environmentId, to.id))?.attributes).toEqual({ team: "new", locale: "de", city: "Ulm" });
      expect((await findPerson(tx, environmentId, from.id))?.attributes).toEqual({ team: "old" });
      expect(await findMailStop(tx, { environmentId, personId: to.id })).not.toBeNull();
      for (const [person, after] of [
        [from, { into: to.id, differentAttributes: ["team"] }],
        [to, { from: from.id, differentAttributes: ["team"] }],
      ] as const) {
        const filter = { action: "person.merged", target: `person:${person.id}` } as const;
        expect((await listAudit(tx, environmentId, filter, { limit: 9, after: null })).items).toMatchObject([{ after }]);
      }
    });
  });
});

describe("a merge is refused without a change", () => {
  const sealer = { seal: () => new Uint8Array(), digest: () => new Uint8Array() };
  const erase = (person: PersonRow) =>
    store.write("erasure", (tx) => erasePerson(tx, { environmentId, personId: person.id, by: "key:test", nowMs: clock.now() }, sealer));
  const suspend = (person: PersonRow) => write((tx) => changePersonManually(tx, change(), person.id, { status: "suspended" }));
  const REFUSALS: [case_: string, prepare: (from: PersonRow, to: PersonRow) => Promise<unknown>, code: string, words: string][] = [
    ["into an erased person", (_from, to) => erase(to), "not_found", "No person"],
    ["of an erased person", (from) => erase(from), "not_found", "No person"],
    ["into a suspended person", (_from, to) => suspend(to), "person_suspended", "suspended"],
    ["of a suspended person", (from) => suspend(from), "person_suspended", "suspended"],
    [
      "of two people with a plan",
      async (from, to) => [await grantOf(from, "pro", newRef()), await grantOf(to, "team", newRef())],
      "invalid_input",
      "is on the plan team",
    ],
  ];
  test.each(REFUSALS)("%s", async (_case, prepare, code, words) => {
    const [from, to] = await twoPeople();
    await fulfil(from);
    await prepare(from, to);
    const before = await state(from, to);
    expect(await refusalOf(() => merge(from, to))).toMatchObject({ code, message: expect.stringContaining(words) });
    expect(await state(from, to)).toEqual(before);
  });

  test("of a person with themselves", async () => {
    const person = await market.newPerson();
    expect(await refusalOf(() => merge(person, person))).toMatchObject({ code: "invalid_input" });
  });

  test("of a person with more purchases than one transaction moves, before the first one moves", async () => {
    const [from, to] = await twoPeople();
    // The first purchase could not move.
    await grantOf(from, "pro", newRef());
    await grantOf(to, "team", newRef());
    for (let count = 0; count < 31; count++) await fulfil(from);
    const before = await state(from, to);
    expect(await refusalOf(() => merge(from, to))).toMatchObject({
      code: "invalid_input",
      message: expect.stringContaining("more than 30 purchases"),
    });
    expect(await state(from, to)).toEqual(before);
  });

  test("of a person with more receipts than a merge reads", async () => {
    const [from, to] = await twoPeople();
    await fulfil(from);
    await market.addRefunds(from, 500);
    const before = await state(from, to);
    expect(await refusalOf(() => merge(from, to))).toMatchObject({
      code: "invalid_input",
      message: expect.stringContaining("more than 500 receipts: move each purchase with relay receipts move"),
    });
    expect(await state(from, to)).toEqual(before);
    await write((tx) => tx.run("DELETE FROM purchase WHERE id = ?1", `prc_z${from.id}1`));
    expect(await merge(from, to)).toMatchObject({ merged: true });
  });
});
