/** Paddle Billing, by its page on signature verification and its own library. */
import type { Sender } from "./sender.ts";

export const paddle: Sender = {
  name: "paddle",
  title: "Paddle",
  summary: "Tells of transactions, subscriptions, customers and adjustments of Paddle Billing.",
  verify: {
    scheme: "signature",
    header: "Paddle-Signature",
    signatureKey: "h1",
    separator: ";",
    timestampKey: "ts",
    signedPayload: "{timestamp}:{body}",
    encoding: "hex",
  },
  map: {
    event_id: "event_id",
    event_type: "event_type",
    transaction: "data.id",
    customer: "data.customer_id",
  },
  when: { event_type: "transaction.completed" },
  personEmail: null,
  secret: {
    from: "sender",
    where:
      "Developer tools, Notifications, the destination’s menu, Edit destination: Secret key, which starts with pdl_ntfset_.",
  },
  register: "Developer tools, Notifications, New destination, of the type URL.",
  example: {
    json: {
      event_id: "evt_01kf0q8zv5m9w3d7t2r6y4x1cb",
      event_type: "transaction.completed",
      occurred_at: "2026-01-15T12:00:00.000000Z",
      notification_id: "ntf_01kf0q8zx2n8h4j6k3p5s7v9wd",
      data: {
        id: "txn_01kf0q8yr6c4e2g8b5a7d9f1hj",
        status: "completed",
        customer_id: "ctm_01kf0q7m2k4n6p8r1t3v5x7z9b",
        subscription_id: "sub_01kf0q7w8y1a3c5e7g9j2l4n6q",
        currency_code: "EUR",
        custom_data: null,
        details: { totals: { total: "4200" } },
      },
    },
  },
  eventTypes: [
    {
      type: "transaction.completed",
      meaning: "A transaction was paid and everything about it is settled: the one to fulfil on.",
    },
    { type: "transaction.paid", meaning: "A transaction was paid, but is not settled whole." },
    { type: "subscription.activated", meaning: "A subscription became active, also after its trial." },
    { type: "subscription.canceled", meaning: "A subscription has ended." },
    { type: "adjustment.created", meaning: "A refund, credit or chargeback was made." },
  ],
  pitfalls: [
    "Paddle’s own libraries take a timestamp of five seconds; this recipe takes five minutes, either way.",
    "A customer is told by id alone: put the address into the checkout’s custom data, and map `data.custom_data.email`.",
    "What is bought once has no subscription: map `data.subscription_id` in a relay of subscriptions alone, as an action that names what an event does not hold leaves a warning each time.",
    "An adjustment holds no custom data: for refunds file the customer’s id as the person’s token, and map `data.customer_id` as person_token.",
    "A refund is told when it is asked for and when it is allowed: take adjustment.created and adjustment.updated where `data.status` is approved.",
    "Paddle Classic signs another way, which no recipe can say.",
  ],
  docs: "https://developer.paddle.com/webhooks/signature-verification",
};
