/**
 * Tests a complete purchase over HTTP with events that Stripe's own package signs: checkout, repeats, a refund, and a renewed and canceled
 * subscription. Each step checks what the person has.
 */

import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { MINUTE_MS } from "../../src/base/limit.ts";
import { makeAuthority } from "../kit/certificate.ts";
import { type EventView, replay, showEvent } from "../kit/event-flow.ts";
import { startMailServer } from "../kit/mail-server.ts";
import { type RunningService, startRunningService } from "../kit/running-service.ts";
import { drainWithMail, lookAt, openShop, SHOP_RELAYS, signStripe } from "../kit/shop.ts";

const ADA = "ada@example.com";
const mails = await startMailServer({ security: "none", authority: makeAuthority("story") });
const txt: string[] = [];
let running: RunningService;
let ada: string;

beforeAll(async () => {
  running = await startRunningService({
    config: { allowPrivate: ["127.0.0.1"] },
    ports: { resolveTxt: async () => txt },
  });
  await openShop(running);
  const { settings } = (await running.api("GET", "/settings")).body;
  const smtp = { host: "127.0.0.1", port: mails.port, security: "none" };
  await running.api("PUT", "/settings", { version: settings.version, mail: { smtp } });
  ada = (await running.api("POST", "/persons", { email: ADA })).body.person.id;
});
afterAll(() => running[Symbol.asyncDispose]());

async function send(relay: string, id: string, type: string, object: object): Promise<EventView> {
  const { status, body } = await running.hook(relay, await signStripe(running, id, type, object));
  expect(status).toBe(200);
  await drainWithMail(running);
  return showEvent(running, body.eventId);
}

const checkout = (id: string, payment = "pi_1", email = ADA) =>
  send("checkout", id, "checkout.session.completed", {
    id: "cs_1",
    payment_intent: payment,
    customer_details: { email },
  });
const refund = (id: string, payment = "pi_1", email = ADA) =>
  send("refund", id, "charge.refunded", { id: "ch_1", payment_intent: payment, billing_details: { email } });
const invoice = (id: string, number: string, email = ADA) => send("invoice", id, "invoice.paid", { id: number, customer_email: email });
const cancel = (id: string) => send("cancellation", id, "customer.subscription.deleted", { id: "sub_1", metadata: { person: ada } });

const results = (event: EventView) => event.runs.at(-1)?.results.map(({ type, outcome, code }) => [type, outcome, ...(code ? [code] : [])]);
const purchases = async () => (await running.api("GET", "/purchases?limit=200")).body.items;
const BOUGHT = { grants: ["access:forum from relay", "course from purchase"], credits: 55, plan: "free" };

let first: EventView;

describe("a checkout", () => {
  test("before the sender domain is verified rejects only the mail, and its result says so", async () => {
    first = await checkout("evt_1");
    expect(results(first)).toEqual([
      ["fulfil_product", "done"],
      ["grant_credits", "done"],
      ["grant_access", "done"],
      ["write_record", "done"],
      ["email_person", "failed", "sender_domain_required"],
    ]);
    expect([first.state, first.reason]).toEqual(["queued", "sender_domain_required"]);
    expect(await lookAt(running, ada)).toEqual(BOUGHT);
    expect(mails.taken).toEqual([]);
  });

  test("verifies the domain by its TXT record, and the next attempt sends only the mail", async () => {
    await running.api("PUT", "/sender-domain", { domain: "shop.example", eventWord: "orders" });
    const unverified = await running.api("POST", "/sender-domain/verify");
    expect(unverified.body.senderDomain.verified).toBe(false);
    txt.push("v=spf1 -all", unverified.body.senderDomain.record.value);
    expect((await running.api("POST", "/sender-domain/verify")).body.senderDomain.verified).toBe(true);
    await running.clock.advance(MINUTE_MS);
    await drainWithMail(running);
    const retried = await showEvent(running, first.id);
    expect(results(retried)).toEqual([
      ["fulfil_product", "skipped"],
      ["grant_credits", "skipped"],
      ["grant_access", "skipped"],
      ["write_record", "skipped"],
      ["email_person", "done"],
    ]);
    expect([retried.state, retried.attempts]).toEqual(["done", 2]);
    expect(mails.taken.map(({ from, to }) => [from, to])).toEqual([["orders@shop.example", [ADA]]]);
    expect(mails.taken[0]?.raw).toContain("Subject: Your order pi_1");
    expect(await lookAt(running, ada)).toEqual(BOUGHT);
  });

  test("writes one immutable receipt under its ref, with the relay and the event as its source", async () => {
    const [receipt, ...more] = await purchases();
    expect(more).toEqual([]);
    expect(receipt).toMatchObject({
      kind: "purchase",
      ref: "pi_1",
      itemKind: "product",
      item: "course",
      person: ada,
      origin: "relay",
      relay: "checkout",
      eventId: first.id,
      granted: { entitlement: "course", credits: 50 },
    });
  });

  test("names the relay as source of everything it created: grants, credits, the mail, the record", async () => {
    const from = { relay: "checkout", eventId: first.id };
    const { grants } = (await running.api("GET", `/persons/${ada}/access`)).body;
    for (const grant of grants) expect(grant).toMatchObject(from);
    const { items: lines } = (await running.api("GET", `/persons/${ada}/credits`)).body;
    expect(lines.map(({ reason }: { reason: string }) => reason)).toEqual(["relay: Thanks for pi_1", "purchase: course"]);
    for (const line of lines) expect(line).toMatchObject(from);
    const { items: sent } = (await running.api("GET", "/emails?state=sent")).body;
    expect(sent).toMatchObject([{ ...from, person: ada, kind: "event", to: ADA }]);
    const { items: records } = (await running.api("GET", "/collections/orders/records")).body;
    expect(records).toMatchObject([{ by: "relay:checkout", owner: null, recipient: ada }]);
  });

  test("leaves one audit row per run with each action's before and after", async () => {
    const { items } = (await running.api("GET", "/audit?kind=run")).body;
    expect(items).toHaveLength(2);
    expect(items[1]).toMatchObject({ actor: "relay:checkout", target: "relay:checkout", eventId: first.id });
    expect(items[1].before[0]).toMatchObject({ credits: 0, grants: [] });
    expect(items[1].after[0]).toMatchObject({
      type: "fulfil_product",
      outcome: "done",
      after: { credits: 50 },
    });
  });
});

describe("a repeat gives nothing twice", () => {
  test("and the same event is a duplicate that runs nothing", async () => {
    const call = await signStripe(running, "evt_1", "checkout.session.completed", { payment_intent: "pi_1" });
    const { body } = await running.hook("checkout", call);
    expect(body).toEqual({ received: true, eventId: first.id, duplicate: true });
    await drainWithMail(running);
    expect((await showEvent(running, first.id)).runs).toHaveLength(2);
  });

  test("and the same payment in another event is skipped by its ref, while actions without a ref run", async () => {
    const again = await checkout("evt_2");
    expect(results(again)).toEqual([
      ["fulfil_product", "skipped"],
      ["grant_credits", "skipped"],
      ["grant_access", "done"],
      ["write_record", "done"],
      ["email_person", "done"],
    ]);
    expect(await lookAt(running, ada)).toMatchObject({ credits: 55 });
    expect(await purchases()).toHaveLength(1);
  });

  test("and a replay finds the earlier result of each action", async () => {
    expect((await replay(running, first.id)).status).toBe(202);
    await drainWithMail(running);
    const replayed = await showEvent(running, first.id);
    expect(results(replayed)?.map(([, outcome]) => outcome)).toEqual(Array(5).fill("skipped"));
    expect([replayed.state, replayed.attempts, replayed.replays]).toEqual(["done", 1, 1]);
    expect(mails.taken).toHaveLength(2);
    expect(await purchases()).toHaveLength(1);
  });

  test("and the same ref from another person's event is rejected and audited, and gives nothing", async () => {
    const stolen = await checkout("evt_3", "pi_1", "eve@example.com");
    expect(results(stolen)).toEqual([["fulfil_product", "failed", "ref_used"]]);
    const eve = stolen.person?.id ?? "";
    expect(await lookAt(running, eve)).toEqual({ grants: [], credits: 0, plan: "free" });
    const { items } = (await running.api("GET", "/audit?target=ref:pi_1")).body;
    expect(items).toMatchObject([{ action: "ref_refused", actor: "relay:checkout", after: { person: eve, eventId: stolen.id } }]);
    expect((await running.api("GET", `/persons/${eve}`)).body.person).toMatchObject({
      status: "invited",
      createdBy: "relay:checkout",
    });
  });
});

describe("a refund twin", () => {
  test("revokes the key and the remaining credits, in a separate row", async () => {
    const spent = { amount: -20, reason: "a lesson", key: "lesson-1" };
    expect((await running.api("POST", `/persons/${ada}/credits`, spent)).body).toMatchObject({ balance: 35 });
    expect((await running.api("POST", `/persons/${ada}/credits`, spent)).body).toMatchObject({
      balance: 35,
      applied: false,
    });
    const refunded = await refund("evt_4");
    expect(results(refunded)).toEqual([["refund_product", "done"]]);
    expect(refunded.runs[0]?.results[0].message).toContain("35 of 50");
    expect(await lookAt(running, ada)).toEqual({
      grants: ["access:forum from relay", "access:forum from relay"],
      credits: 0,
      plan: "free",
    });
    const [row, receipt] = await purchases();
    expect(row).toMatchObject({ kind: "refund", ref: "pi_1", refunds: receipt.id, relay: "refund" });
    expect(receipt).toMatchObject({ kind: "purchase", refundedBy: row.id, eventId: first.id });
  });

  test("stays in effect after a replay or a repeat of the payment's event", async () => {
    expect(results(await refund("evt_5"))).toEqual([["refund_product", "skipped"]]);
    await replay(running, first.id);
    await drainWithMail(running);
    expect(results(await checkout("evt_6"))?.[0]).toEqual(["fulfil_product", "skipped"]);
    expect(await lookAt(running, ada)).toMatchObject({ credits: 0 });
    expect(await purchases()).toHaveLength(2);
  });

  test("that arrives before its payment is retried, and succeeds after the payment", async () => {
    const early = await refund("evt_7", "pi_2");
    expect([early.state, early.reason]).toEqual(["queued", "purchase_missing"]);
    await checkout("evt_8", "pi_2");
    expect((await lookAt(running, ada)).grants).toContain("course from purchase");
    await running.clock.advance(MINUTE_MS);
    await drainWithMail(running);
    expect((await showEvent(running, early.id)).state).toBe("done");
    expect((await lookAt(running, ada)).grants).not.toContain("course from purchase");
  });
});

describe("a plan", () => {
  let paid: EventView;
  const subscriptions = async () => (await running.api("GET", `/subscriptions?person=${ada}`)).body.items;
  const payments = async () => (await purchases()).filter(({ itemKind }: { itemKind: string }) => itemKind === "plan");

  test("is granted with its key, stamped with the event, billed by the relay", async () => {
    paid = await invoice("evt_20", "in_1");
    expect(await lookAt(running, ada)).toMatchObject({ plan: "pro" });
    expect((await lookAt(running, ada)).grants).toContain("pro from plan");
    expect(await subscriptions()).toMatchObject([
      {
        plan: "pro",
        status: "active",
        billedBy: "relay",
        relay: "invoice",
        eventId: paid.id,
        renewedAt: null,
      },
    ]);
    expect((await running.rows("SELECT processor_customer_id AS id FROM subscription"))[0]).toEqual({
      id: null,
    });
  });

  test("is skipped for a repeat, and a new ref renews the same subscription with one key", async () => {
    expect(results(await invoice("evt_21", "in_1"))).toEqual([["grant_plan", "skipped"]]);
    running.clock.jump(30 * 24 * 60 * MINUTE_MS);
    expect(results(await invoice("evt_22", "in_2"))).toEqual([["grant_plan", "done"]]);
    expect(await subscriptions()).toMatchObject([{ status: "active", eventId: paid.id }]);
    expect((await subscriptions())[0].renewedAt).not.toBeNull();
    expect((await lookAt(running, ada)).grants).toEqual(["pro from plan"]);
    expect(await payments()).toHaveLength(2);
  });

  test("ends by its cancellation twin: the default plan, no key", async () => {
    const ended = await cancel("evt_23");
    expect(results(ended)).toEqual([["revoke_plan", "done"]]);
    expect(ended.runs[0]?.results[0]).toMatchObject({ before: { plan: "pro" }, after: { plan: "free" } });
    expect(await lookAt(running, ada)).toMatchObject({ grants: [], plan: "free" });
    expect(results(await cancel("evt_24"))).toEqual([["revoke_plan", "skipped"]]);
    await replay(running, paid.id);
    await drainWithMail(running);
    expect((await lookAt(running, ada)).plan).toBe("free");
  });

  test("depends on the relay's name: after a deletion nothing is fulfilled until a relay with that name exists again", async () => {
    const definition = SHOP_RELAYS.find(({ name }) => name === "invoice");
    const renamed = { ...definition, name: "invoice-two" };
    expect((await running.api("POST", "/relays", { definition: renamed })).status).toBe(201);
    expect((await running.api("DELETE", "/relays/invoice")).status).toBe(200);
    const stopped = await send("invoice-two", "evt_25", "invoice.paid", { id: "in_3", customer_email: ADA });
    expect([stopped.state, stopped.reason]).toEqual(["dead", "plan_not_sold_here"]);
    expect((await running.api("POST", "/relays", { definition })).status).toBe(201);
    expect(results(await invoice("evt_26", "in_3"))).toEqual([["grant_plan", "done"]]);
    expect(await lookAt(running, ada)).toMatchObject({ plan: "pro" });
  });

  test("that the card processor bills is never ended by a relay, and the result says so", async () => {
    const receipt = { ref: "ch_9", person: ada, plan: "pro", processorCustomerId: "cus_1" };
    expect((await running.api("POST", "/receipts", receipt)).status).toBe(201);
    const untouched = await cancel("evt_27");
    expect(results(untouched)).toEqual([["revoke_plan", "skipped", "billed_by_processor"]]);
    const [active] = await subscriptions();
    expect(active).toMatchObject({ status: "active", billedBy: "processor", relay: null });
    expect(await lookAt(running, ada)).toMatchObject({ grants: ["pro from plan"], plan: "pro" });
  });

  test("of a suspended person makes the event dead at once", async () => {
    await running.api("PATCH", `/persons/${ada}`, { status: "suspended" });
    const dead = await invoice("evt_28", "in_4");
    expect([dead.state, dead.reason, dead.attempts]).toEqual(["dead", "person_suspended", 1]);
    expect(await payments()).toHaveLength(4);
  });
});
