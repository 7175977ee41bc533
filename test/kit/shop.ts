/**
 * A shop in a complete service: its catalog, the relays that sell it for a card processor, and a query of what a person holds, all through the API.
 * Stripe's own package signs the events.
 */
import Stripe from "stripe";
import type { RunningService } from "./running-service.ts";

const PROCESSOR_SECRET = "whsec_4cVqGZKd2TtW0nY8mRjXsLb6HuEaPo9f";

interface AccessQuery {
  /** Live grants as `<entitlement> from <source>`, sorted. */
  grants: string[];
  credits: number;
  plan: string | null;
}

const fromProcessor = (map: Record<string, string>, type: string) => ({
  kind: "receiver",
  verify: { scheme: "processor" },
  map: { event_id: "id", event_type: "type", ...map },
  when: { event_type: type },
});

/** A checkout and its refund, an invoice and its cancellation, and credits in addition. */
export const SHOP_RELAYS: readonly Record<string, unknown>[] = [
  {
    name: "checkout",
    trigger: fromProcessor(
      { person_email: "data.object.customer_details.email", payment: "data.object.payment_intent" },
      "checkout.session.completed",
    ),
    actions: [
      { type: "fulfil_product", product: "course", ref: "{{mapped.payment}}" },
      {
        type: "grant_credits",
        amount: 5,
        reason: "Thanks for {{mapped.payment}}",
        ref: "{{mapped.payment}}",
      },
      { type: "grant_access", entitlement: "access:forum", expiresAt: "30d", reason: "{{mapped.payment}}" },
      { type: "write_record", collection: "orders", to: "person", data: { payment: "{{mapped.payment}}" } },
      { type: "email_person", subject: "Your order {{mapped.payment}}", text: "Hello {{person.email}}." },
    ],
  },
  {
    name: "refund",
    trigger: fromProcessor({ person_email: "data.object.billing_details.email", payment: "data.object.payment_intent" }, "charge.refunded"),
    actions: [{ type: "refund_product", product: "course", ref: "{{mapped.payment}}" }],
  },
  {
    name: "invoice",
    trigger: fromProcessor({ person_email: "data.object.customer_email", invoice: "data.object.id" }, "invoice.paid"),
    actions: [{ type: "grant_plan", plan: "pro", ref: "{{mapped.invoice}}" }],
  },
  {
    name: "cancellation",
    trigger: fromProcessor({ person_id: "data.object.metadata.person" }, "customer.subscription.deleted"),
    actions: [{ type: "revoke_plan", plan: "pro" }],
  },
];

/** Creates the relays and then the catalog, because the items that relays sell name them. */
export async function openShop(running: RunningService): Promise<void> {
  const call = async (method: string, path: string, body: unknown) => {
    const { status, body: answer } = await running.api(method, path, body);
    if (status >= 300) throw new Error(`${method} ${path}: ${status} ${JSON.stringify(answer)}`);
    return answer;
  };
  const { settings } = await call("GET", "/settings", undefined);
  await call("PUT", "/settings", { version: settings.version, processorSecret: PROCESSOR_SECRET });
  await call("POST", "/collections", { name: "orders", kind: "addressed", fields: { payment: "text" } });
  await call("PUT", "/access/forum", {});
  for (const definition of SHOP_RELAYS) await call("POST", "/relays", { definition });
  await call("PUT", "/products/course", { credits: 50, soldThrough: { kind: "relay", relay: "checkout" } });
  await call("PUT", "/plans/free", {});
  await call("PUT", "/plans/pro", { soldThrough: { kind: "relay", relay: "invoice" } });
}

/** Returns a Stripe event at the clock's time, signed by Stripe's own package. */
export async function signStripe(running: Pick<RunningService, "clock">, id: string, type: string, object: object) {
  const body = JSON.stringify({ id, object: "event", type, data: { object } });
  const timestamp = Math.floor(running.clock.now() / 1000);
  const signature = await Stripe.webhooks.generateTestHeaderStringAsync({
    payload: body,
    secret: PROCESSOR_SECRET,
    timestamp,
  });
  return { headers: { "content-type": "application/json", "stripe-signature": signature }, body };
}

/** Returns what the person holds now, as the API reports it. */
export async function lookAt(running: RunningService, person: string): Promise<AccessQuery> {
  const { grants } = (await running.api("GET", `/persons/${person}/access`)).body;
  const { balance } = (await running.api("GET", `/persons/${person}/credits`)).body;
  const { plan } = (await running.api("GET", `/persons/${person}`)).body;
  const held = grants.map((grant: { entitlement: string; source: string }) => {
    return `${grant.entitlement} from ${grant.source}`;
  });
  return { grants: held.sort(), credits: balance, plan };
}

/** Drains a service that uses a real mail server. `drain` waits for the mail server too. */
export const drainWithMail = (running: RunningService): Promise<void> => running.drain();
