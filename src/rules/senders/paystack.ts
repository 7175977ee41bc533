/** Paystack, by its page on webhooks. */
import type { Sender } from "./sender.ts";

export const paystack: Sender = {
  name: "paystack",
  title: "Paystack",
  summary: "Tells of charges, transfers, refunds and subscriptions.",
  verify: {
    scheme: "signature",
    algorithm: "hmac-sha512",
    header: "x-paystack-signature",
    signedPayload: "{body}",
    encoding: "hex",
  },
  map: {
    event_id: "data.id",
    event_type: "event",
    reference: "data.reference",
    amount: "data.amount",
    email: "data.customer.email",
  },
  when: { event_type: "charge.success" },
  personEmail: "data.customer.email",
  secret: {
    from: "sender",
    where:
      "Settings, API Keys & Webhooks: Secret key (sk_live_… or sk_test_…), which signs the webhooks too.",
  },
  register: "Settings, API Keys & Webhooks: Live (or Test) Webhook URL.",
  example: {
    json: {
      event: "charge.success",
      data: {
        id: 302961,
        domain: "live",
        status: "success",
        reference: "qTPrJoy9Bx",
        amount: 420000,
        message: null,
        gateway_response: "Approved by Financial Institution",
        paid_at: "2026-01-15T12:00:00.000Z",
        channel: "card",
        currency: "NGN",
        customer: {
          id: 68324,
          first_name: "Ada",
          last_name: "Lovelace",
          email: "ada@example.com",
          customer_code: "CUS_qo38as2hpsgk2r0",
        },
      },
    },
  },
  eventTypes: [
    { type: "charge.success", meaning: "A charge was paid." },
    { type: "transfer.success", meaning: "A transfer arrived." },
    { type: "refund.processed", meaning: "A refund was made." },
    { type: "subscription.create", meaning: "A subscription was made." },
    { type: "subscription.disable", meaning: "A subscription has ended." },
  ],
  pitfalls: [
    "An account has one webhook URL: every event comes to it, and `when` lets through what the relay is for. Several relays need a sender of their own between.",
    "No id of the event is in the body: event_id is the charge, which is told of once a type.",
    "The test key signs what the test mode sends: another relay, or another environment, for it.",
  ],
  docs: "https://paystack.com/docs/payments/webhooks/",
};
