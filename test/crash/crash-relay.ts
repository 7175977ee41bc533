/** The relays of the crash loop, and the events that are sent to them. Each event's effects can be told from its id alone. */
import { createHmac } from "node:crypto";

export const CRASH_SECRET = "Qk7bXFQsq4OKAPhAIVqsHMpkNhzCwRnS";

const verify = { scheme: "signature", header: "x-signature", signedPayload: "{body}", encoding: "hex" };
const write = (step: string) => ({
  type: "write_record",
  collection: "orders",
  data: { order: "{{mapped.event_id}}", step },
});

export interface CrashDefinition {
  name: string;
  trigger: object;
  actions: object[];
}

/** One relay a road: the database alone, a send between two writes, people with access and credits, a sale. */
export function crashRelays(sinkUrl: string): CrashDefinition[] {
  const map = { event_id: "id" };
  const person = { ...map, person_email: "email" };
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
    relay("sales", { ...person, payment: "payment" }, [
      { type: "fulfil_product", product: "pack", ref: "{{mapped.payment}}" },
    ]),
  ];
}

export interface CrashEvent {
  relay: "writes" | "sends" | "gives" | "sales";
  id: string;
  email: string;
  payment: string;
}

const RELAYS = ["writes", "sends", "gives", "sales"] as const;
const PEOPLE = 7;

/** The nth event. Two sales share each payment, as when a provider tells of one payment twice under two ids. */
export function makeCrashEvent(number: number): CrashEvent {
  const payment = Math.floor(number / 8);
  return {
    relay: RELAYS[number % RELAYS.length] ?? "writes",
    id: `e${number}`,
    email: `person${payment % PEOPLE}@example.com`,
    payment: `pay_${payment}`,
  };
}

/** The signed call of an event. */
export function signCrashEvent(event: CrashEvent): { headers: Record<string, string>; body: string } {
  const body = JSON.stringify({ id: event.id, email: event.email, payment: event.payment });
  const signature = createHmac("sha256", CRASH_SECRET).update(body).digest("hex");
  return { headers: { "content-type": "application/json", "x-signature": signature }, body };
}
