/** Lemon Squeezy, by its pages on signing requests and webhook events. */
import type { Sender } from "./sender.ts";

export const lemonSqueezy: Sender = {
  name: "lemon-squeezy",
  title: "Lemon Squeezy",
  summary: "Tells of orders, subscriptions, refunds and licence keys.",
  verify: { scheme: "signature", header: "X-Signature", signedPayload: "{body}", encoding: "hex" },
  map: {
    event_type: "meta.event_name",
    order: "data.id",
    email: "data.attributes.user_email",
    status: "data.attributes.status",
    total: "data.attributes.total",
  },
  when: { event_type: "order_created", status: "paid" },
  personEmail: "data.attributes.user_email",
  secret: {
    from: "sender",
    where:
      "The webhook’s field Signing secret: write 24 to 40 random letters and digits there, and paste them here (the one made here is longer than its 40).",
  },
  register: "Settings, Webhooks, the plus: Callback URL and the events.",
  example: {
    json: {
      meta: { test_mode: true, event_name: "order_created", custom_data: { user: "ada" } },
      data: {
        type: "orders",
        id: "1024",
        attributes: {
          store_id: 7,
          customer_id: 12,
          identifier: "104e18a2-d755-4d4b-80c4-a6c1dcbe1c10",
          order_number: 1,
          user_name: "Ada Lovelace",
          user_email: "ada@example.com",
          currency: "EUR",
          total: 4200,
          status: "paid",
          refunded: false,
        },
      },
    },
  },
  eventTypes: [
    { type: "order_created", meaning: "An order was placed; `status` says whether it is paid." },
    { type: "order_refunded", meaning: "An order was paid back, whole or in part." },
    { type: "subscription_payment_success", meaning: "A payment of a subscription arrived." },
    { type: "subscription_expired", meaning: "A subscription has ended." },
    { type: "license_key_created", meaning: "A licence key was made." },
  ],
  pitfalls: [
    "No id of the event is mapped: repeats are told by their body, within the same UTC day; fulfil by `data.id` as the ref.",
    "A delivery sent again on another day is an event again: its ref keeps it from fulfilling twice, and a mail goes out again. In a relay of order_created alone `data.id` may be mapped as event_id, which stops both.",
    "It sends again three times at most, within about two minutes: import what was missed.",
  ],
  docs: "https://docs.lemonsqueezy.com/help/webhooks/signing-requests",
};
