/** The relays of the crash loop and the events for them. The id of an event determines its effects. */
import { createHmac } from "node:crypto";

export const CRASH_SECRET = "Qk7bXFQsq4OKAPhAIVqsHMpkNhzCwRnS";

const verify = { scheme: "signature", header: "x-signature", signedPayload: "{body}", encoding: "hex" };
const write = (step: string) => ({
  type: "write_record",
  collection: "orders",
  data: { order: "{{mapped.event_id}}", step },
});

interface CrashDefinition {
  name: string;
  trigger: object;
  actions: object[];
}

/**
 * Returns one relay for each kind of work: only the database, a call between two writes, people with access and credits, a sale and its refund, a
 * plan that is renewed, effects that are given and taken back around a call, and an email.
 */
export function crashRelays(sinkUrl: string): CrashDefinition[] {
  const map = { event_id: "id" };
  const person = { ...map, person_email: "email" };
  const paid = { ...person, payment: "payment" };
  const relay = (name: string, names: object, actions: object[]): CrashDefinition => ({
    name,
    trigger: { kind: "receiver", verify, map: names },
    actions,
  });
  return [
    relay("writes", map, [write("one"), write("two")]),
    relay("sends", map, [write("before"), { type: "call_url", url: sinkUrl }, write("after")]),
    relay("gives", person, [
      { type: "grant_credits", amount: 3, reason: "event {{mapped.event_id}}" },
      { type: "grant_access", entitlement: "access:pro" },
    ]),
    relay("sales", paid, [{ type: "fulfil_product", product: "pack", ref: "{{mapped.payment}}" }]),
    relay("refunds", paid, [{ type: "refund_product", product: "pack", ref: "{{mapped.payment}}" }]),
    relay("plans", paid, [{ type: "grant_plan", plan: "gold", ref: "gold-{{mapped.payment}}" }]),
    relay("lapses", paid, [
      { type: "grant_plan", plan: "silver", ref: "silver-{{mapped.payment}}" },
      { type: "grant_access", entitlement: "access:trial" },
      { type: "fulfil_product", product: "box", ref: "box-{{mapped.payment}}" },
      { type: "call_url", url: sinkUrl },
      { type: "refund_product", product: "box", ref: "box-{{mapped.payment}}" },
      { type: "revoke_access", entitlement: "access:trial" },
      { type: "revoke_plan", plan: "silver", ref: "silver-{{mapped.payment}}" },
    ]),
    relay("mails", person, [{ type: "email_person", subject: "{{mapped.event_id}}", text: "Hello." }]),
  ];
}

/** The products, each with the relay that sells it. */
export const CRASH_PRODUCTS = { pack: { relay: "sales", credits: 10 }, box: { relay: "lapses", credits: 4 } };
export const CRASH_PLANS = { gold: "plans", silver: "lapses" };

const RELAYS = ["writes", "sends", "gives", "sales", "refunds", "plans", "lapses", "mails"] as const;
export type CrashRelay = (typeof RELAYS)[number];

export interface CrashEvent {
  relay: CrashRelay;
  id: string;
  email: string;
  payment: string;
}

const PEOPLE = 7;

/**
 * Returns the event with this number. Sixteen consecutive events share a payment, so each relay gets it twice under two ids, as providers do. Every
 * second payment is never refunded. Buyers of gold and of silver are different people, because a person has one plan.
 */
export function makeCrashEvent(number: number): CrashEvent {
  const payment = Math.floor(number / (2 * RELAYS.length));
  const turn = RELAYS[number % RELAYS.length] ?? "writes";
  const relay = turn === "refunds" && payment % 2 === 1 ? "mails" : turn;
  const who = relay === "plans" ? "gold" : relay === "lapses" ? "silver" : "person";
  return {
    relay,
    id: `e${number}`,
    email: `${who}${payment % PEOPLE}@example.com`,
    payment: `pay_${payment}`,
  };
}

/** Returns the event with this id. */
export function readCrashEvent(id: string): CrashEvent {
  return makeCrashEvent(Number(id.slice(1)));
}

/** Returns the signed request of an event. */
export function signCrashEvent(event: CrashEvent): { headers: Record<string, string>; body: string } {
  const body = JSON.stringify({ id: event.id, email: event.email, payment: event.payment });
  const signature = createHmac("sha256", CRASH_SECRET).update(body).digest("hex");
  return { headers: { "content-type": "application/json", "x-signature": signature }, body };
}
