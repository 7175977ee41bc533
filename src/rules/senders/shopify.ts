/** Shopify, by its pages on HTTPS delivery and on webhook topics, and its own library. */
import type { Sender } from "./sender.ts";

export const shopify: Sender = {
  name: "shopify",
  title: "Shopify",
  summary: "Tells of orders, payments, refunds, customers and products of a shop.",
  verify: {
    scheme: "signature",
    header: "X-Shopify-Hmac-Sha256",
    signedPayload: "{body}",
    encoding: "base64",
  },
  map: {
    event_id: "admin_graphql_api_id",
    status: "financial_status",
    order: "id",
    number: "name",
    email: "email",
    total: "total_price",
  },
  when: { status: "paid" },
  personEmail: "email",
  secret: {
    from: "sender",
    where:
      "For webhooks made in the shop’s admin: Settings, Notifications, Webhooks shows it below the list. For an app’s: the app’s client secret.",
  },
  register: "The shop’s Settings, Notifications, Webhooks, Create webhook: event Order payment, format JSON.",
  example: {
    json: {
      id: 820982911946154500,
      admin_graphql_api_id: "gid://shopify/Order/820982911946154500",
      name: "#1001",
      email: "ada@example.com",
      currency: "EUR",
      total_price: "42.00",
      financial_status: "paid",
      customer: { id: 115310627314723950, first_name: "Ada", last_name: "Lovelace" },
    },
  },
  eventTypes: [
    { type: "orders/paid", meaning: "An order was paid: the topic that this recipe’s map is for." },
    { type: "orders/create", meaning: "An order was made, paid or not." },
    { type: "refunds/create", meaning: "A refund was made; `order_id` names its order." },
    { type: "orders/cancelled", meaning: "An order was cancelled." },
  ],
  pitfalls: [
    "The topic is in the header X-Shopify-Topic alone, and no map reads headers: make one webhook and one relay a topic.",
    "No id of the delivery is in the body. `admin_graphql_api_id` is the order’s: right for a topic that is told once an order, such as orders/paid; remove event_id for orders/updated, whose repeats are then told by their body.",
    "Shopify wants an answer within five seconds and sends again eight times within four hours; a subscription made through the API that keeps failing is removed.",
  ],
  docs: "https://shopify.dev/docs/apps/build/webhooks/subscribe/https",
};
