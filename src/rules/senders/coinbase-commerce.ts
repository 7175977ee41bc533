/** Coinbase Commerce, by its page on webhooks and its library. */
import type { Sender } from "./sender.ts";

export const coinbaseCommerce: Sender = {
  name: "coinbase-commerce",
  title: "Coinbase Commerce",
  summary: "Tells of charges in cryptocurrency: made, pending, confirmed, failed.",
  verify: { scheme: "signature", header: "X-CC-Webhook-Signature", signedPayload: "{body}", encoding: "hex" },
  map: {
    event_id: "event.id",
    event_type: "event.type",
    charge: "event.data.code",
    customer: "event.data.metadata.customer_id",
  },
  when: { event_type: "charge:confirmed" },
  personEmail: null,
  secret: { from: "sender", where: "Settings, Notifications, Webhook subscriptions: Show shared secrets." },
  register: "Settings, Notifications, Webhook subscriptions, Add an endpoint.",
  example: {
    json: {
      attempt_number: 1,
      event: {
        api_version: "2018-03-22",
        created_at: "2026-01-15T12:00:00Z",
        data: {
          id: "f765421f-2451-4a7b-8f5c-2d1e6b4a9c3d",
          code: "66BEOV2A",
          name: "Premium",
          pricing_type: "fixed_price",
          metadata: { customer_id: "ada" },
          pricing: { local: { amount: "42.00", currency: "EUR" } },
        },
        id: "24934862-d980-46cb-9402-43c81b0cdba6",
        resource: "event",
        type: "charge:confirmed",
      },
      id: "8ba6d3c8-2a4e-4b7b-9b1d-7c0f1e2d3a4b",
      scheduled_for: "2026-01-15T12:00:00Z",
    },
  },
  eventTypes: [
    { type: "charge:created", meaning: "A charge was made." },
    { type: "charge:pending", meaning: "A payment was seen, and is not confirmed." },
    { type: "charge:confirmed", meaning: "A payment is confirmed: the one to fulfil on." },
    { type: "charge:failed", meaning: "The charge was not paid in time." },
  ],
  pitfalls: [
    "A repeat’s body differs, as `attempt_number` is in it; `event.id` is the same. The outer `id` is the delivery’s.",
    "Who pays is not told: put a customer’s id into the charge’s metadata.",
  ],
  docs: "https://docs.cdp.coinbase.com/commerce/api-arcitecture/webhooks-overview",
};
