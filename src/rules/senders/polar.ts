/** Polar, by its pages on webhook delivery and its library; Standard Webhooks. */
import type { Sender } from "./sender.ts";

export const polar: Sender = {
  name: "polar",
  title: "Polar",
  summary: "Tells of orders, subscriptions, customers and benefits.",
  verify: { scheme: "hooks" },
  map: {
    event_type: "type",
    order: "data.id",
    email: "data.customer.email",
    product: "data.product_id",
    status: "data.status",
  },
  when: { event_type: "order.paid" },
  personEmail: "data.customer.email",
  secret: {
    from: "sender",
    where:
      "Settings, Webhooks, the endpoint’s page: Secret. Paste whsec_ and the whole of it in base64 (see the pitfalls).",
  },
  register: "The organisation’s Settings, Webhooks, Add Endpoint: URL, format Raw, and the events.",
  example: {
    json: {
      type: "order.paid",
      timestamp: "2026-01-15T12:00:00.000000Z",
      data: {
        id: "5e2c1d7a-9b3f-4a6e-8c5f-1d7b3e9a2c4f",
        created_at: "2026-01-15T11:59:58.000000Z",
        status: "paid",
        total_amount: 4200,
        currency: "eur",
        billing_reason: "purchase",
        customer_id: "992fae2a-2a17-4b7a-8d9e-e287cf90131b",
        product_id: "d8dd2de1-21b7-4a41-8bc3-ce909c0cfe23",
        customer: {
          id: "992fae2a-2a17-4b7a-8d9e-e287cf90131b",
          email: "ada@example.com",
          name: "Ada Lovelace",
        },
      },
    },
  },
  eventTypes: [
    { type: "order.paid", meaning: "An order was paid, also a renewal of a subscription." },
    { type: "order.refunded", meaning: "An order was paid back, whole or in part." },
    { type: "subscription.active", meaning: "A subscription runs." },
    { type: "subscription.revoked", meaning: "A subscription has ended, and with it what it gave." },
  ],
  pitfalls: [
    'Polar’s secret is the key itself, not base64 as the specification has it. Encode it whole before it is pasted: printf %s "$SECRET" | base64 -w0, with whsec_ before it.',
    "The message’s id is in the header webhook-id, which is what repeats are told by: the map needs no event_id.",
  ],
  docs: "https://polar.sh/docs/integrate/webhooks/delivery",
};
