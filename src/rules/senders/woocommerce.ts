/** WooCommerce, by its REST API’s page on webhooks. */
import type { Sender } from "./sender.ts";

export const woocommerce: Sender = {
  name: "woocommerce",
  title: "WooCommerce",
  summary: "Tells of orders, customers, products and coupons of a shop.",
  verify: {
    scheme: "signature",
    header: "X-WC-Webhook-Signature",
    signedPayload: "{body}",
    encoding: "base64",
  },
  map: { order: "id", number: "number", status: "status", total: "total", email: "billing.email" },
  when: { status: "processing" },
  personEmail: "billing.email",
  secret: {
    from: "either",
    where: "The webhook’s field Secret takes the one made here; left empty, it makes one to be pasted here.",
  },
  register:
    "WooCommerce, Settings, Advanced, Webhooks, Add webhook: status Active, topic Order updated, Delivery URL.",
  example: {
    json: {
      id: 727,
      number: "727",
      status: "processing",
      currency: "EUR",
      date_created: "2026-01-15T12:00:00",
      total: "42.00",
      customer_id: 0,
      payment_method: "bacs",
      date_paid: "2026-01-15T12:00:00",
      billing: { first_name: "Ada", last_name: "Lovelace", email: "ada@example.com" },
      line_items: [{ id: 315, name: "Premium", product_id: 93, quantity: 1, total: "42.00" }],
    },
  },
  eventTypes: [
    { type: "processing", meaning: "`status` of an order that was paid." },
    { type: "completed", meaning: "`status` of an order that was delivered." },
    { type: "refunded", meaning: "`status` of an order that was paid back whole." },
    { type: "cancelled", meaning: "`status` of an order that was called off." },
  ],
  pitfalls: [
    "The topic is in the header X-WC-Webhook-Topic alone, and no map reads headers: make one webhook and one relay a topic.",
    "An order is told of whenever it changes: fulfil by `id` as the ref, not by the event.",
    "When it is made, a ping without a signature comes, a form with webhook_id alone, and is refused; what follows is signed.",
    "After five failures in a row WooCommerce switches the webhook off.",
  ],
  docs: "https://woocommerce.github.io/woocommerce-rest-api-docs/#webhooks",
};
