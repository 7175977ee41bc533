/**
 * A shop after eight days in production. It has people who bought, relays that sell, a called URL that was down, events that are dead because a
 * collection is missing, a sender whose secret was rotated, a schedule and a record change. Tests use it to check what a user sees.
 */
import { DAY_MS, HOUR_MS, MINUTE_MS } from "../../src/base/limit.ts";
import { type DashboardVisit, openDashboardVisit } from "./dashboard-visit.ts";
import { FakeCaller, OK } from "./fake-caller.ts";
import { HOOK_SECRET, receiverDefinition, signedCall } from "./relay-definition.ts";
import { openShop, signStripe } from "./shop.ts";

const SHOP_DAYS = 8;
const STEP_MS = 2 * HOUR_MS;
const NAMES = ["ada", "bela", "carol", "dmitri", "emeka", "fatima", "gwen", "hugo", "ines", "jun", "kofi", "lena"];
const DOWN = { kind: "answered", ok: false, status: 503, body: "Service Unavailable" } as const;

const ROTATED = "the-secret-that-is-theirs-now";
const call = (url: string) => ({ type: "call_url", url });

const RECEIVERS = [
  receiverDefinition({
    name: "invoices",
    map: { event_id: "id", event_type: "type", number: "number" },
    actions: [{ type: "write_record", collection: "invoices", data: { number: "{{mapped.number}}" } }],
  }),
  receiverDefinition({
    name: "stock",
    map: { event_id: "id", event_type: "type", sku: "sku", left: "left" },
    actions: [call("https://warehouse.example.com/stock")],
  }),
  receiverDefinition({ name: "newsletter", map: { event_id: "id" }, actions: [call("https://list.example.com/add")] }),
];
const OTHERS = [
  { name: "nightly-report", trigger: { kind: "schedule", every: "1d", at: "03:00" }, actions: [call("https://list.example.com/report")] },
  { name: "order-made", trigger: { kind: "data_change", collection: "orders", on: ["created"] }, actions: [call("https://chat.example.com/order")] },
];

/** Opens the shop in production, shortly before now. No owner has signed in. */
export async function openFullShop(): Promise<DashboardVisit> {
  const caller = new FakeCaller();
  const txt: string[] = [];
  const mailer = { send: async () => ({ kind: "sent" }) as const };
  await using stack = new AsyncDisposableStack();
  const visit = stack.use(await openDashboardVisit(SHOP_DAYS * DAY_MS, { caller, mailer, resolveTxt: async () => txt }));
  const running = { ...visit.running, service: visit.running.service, clock: visit.clock, api: visit.api };
  const must = async (method: string, path: string, body?: unknown) => {
    const { status, body: answer } = await visit.api(method, path, body);
    if (status >= 300) throw new Error(`${method} ${path}: ${status} ${JSON.stringify(answer)}`);
    return answer;
  };
  await openShop(running);
  const { settings } = await must("GET", "/settings");
  await must("PUT", "/settings", { version: settings.version, mail: { smtp: { host: "smtp.example.com", port: 465, security: "tls" } } });
  txt.push((await must("PUT", "/sender-domain", { domain: "shop.example", eventWord: "orders" })).senderDomain.record.value);
  await must("POST", "/sender-domain/verify");
  for (const definition of RECEIVERS) await must("POST", "/relays", { definition, secret: HOOK_SECRET });
  for (const definition of OTHERS) await must("POST", "/relays", { definition });
  const people: string[] = [];
  for (const name of NAMES) people.push((await must("POST", "/persons", { email: `${name}@example.com` })).person.id);
  const startMs = visit.clock.now();
  const passed = (): number => visit.clock.now() - startMs;
  const isDown = (): boolean => passed() > 6 * DAY_MS && passed() < 7 * DAY_MS;
  caller.reply = (url) => (url.includes("warehouse") && isDown() ? DOWN : OK);
  const hook = (name: string, event: object, secret = HOOK_SECRET) => visit.running.hook(name, signedCall(event, secret));
  const pay = async (relay: string, id: string, type: string, object: object) =>
    visit.running.hook(relay, await signStripe(running, id, type, object));
  for (let at = 0; passed() < SHOP_DAYS * DAY_MS - STEP_MS; at++) {
    const who = `${NAMES[(at * 5) % NAMES.length]}@example.com`;
    const email = at % 17 === 16 ? "nobody@example.org" : who;
    await pay("checkout", `evt_shop_${at}`, "checkout.session.completed", {
      customer_details: { email },
      payment_intent: `pi_${at}`,
      amount_total: 9_900,
    });
    if (at % 6 === 5) await pay("invoice", `evt_invoice_${at}`, "invoice.paid", { customer_email: who, id: `in_${at}` });
    if (at % 20 === 19) await pay("refund", `evt_refund_${at}`, "charge.refunded", { billing_details: { email: who }, payment_intent: `pi_${at}` });
    if (at === 60) await pay("cancellation", "evt_end", "customer.subscription.deleted", { metadata: { person: people[1] } });
    for (let item = 0; item < 3; item++)
      await hook("stock", { id: `stock_${at}_${item}`, type: "stock.changed", sku: `sku-${item}`, left: 40 - (at % 40) });
    if (passed() > 7 * DAY_MS) await hook("invoices", { id: `inv_${at}`, type: "invoice.made", number: `2026-${at}` });
    await hook("newsletter", { id: `news_${at}`, email: who }, passed() > 7.5 * DAY_MS ? ROTATED : HOOK_SECRET);
    await visit.running.drain();
    await visit.clock.leap(STEP_MS);
  }
  for (let at = 0; at < 8; at++) {
    await hook("newsletter", { id: `late_${at}` }, ROTATED);
    await visit.clock.leap(5 * MINUTE_MS);
  }
  stack.move();
  return visit;
}
