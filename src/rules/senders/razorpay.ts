/** Razorpay, by its pages on validating webhooks and on payment payloads. */
import type { Sender } from "./sender.ts";

export const razorpay: Sender = {
  name: "razorpay",
  title: "Razorpay",
  summary: "Tells of payments, orders, refunds, subscriptions and payment links.",
  verify: { scheme: "signature", header: "X-Razorpay-Signature", signedPayload: "{body}", encoding: "hex" },
  map: {
    event_id: "payload.payment.entity.id",
    event_type: "event",
    payment: "payload.payment.entity.id",
    amount: "payload.payment.entity.amount",
    email: "payload.payment.entity.email",
  },
  when: { event_type: "payment.captured" },
  personEmail: "payload.payment.entity.email",
  secret: { from: "relay", where: "The webhook’s field Secret takes the one made here." },
  register: "Account & Settings, Webhooks, Add New Webhook: Webhook URL and the active events.",
  example: {
    json: {
      entity: "event",
      account_id: "acc_BFQ7uQEaa7j2z7",
      event: "payment.captured",
      contains: ["payment"],
      payload: {
        payment: {
          entity: {
            id: "pay_DESlfW9H8K9uqM",
            entity: "payment",
            amount: 4200,
            currency: "INR",
            status: "captured",
            order_id: "order_DESlLckIVRkHWj",
            method: "netbanking",
            captured: true,
            email: "ada@example.com",
            contact: "+919876543210",
          },
        },
      },
      created_at: 1768478400,
    },
  },
  eventTypes: [
    { type: "payment.captured", meaning: "A payment was taken." },
    { type: "payment.failed", meaning: "A payment failed." },
    { type: "order.paid", meaning: "An order was paid whole." },
    { type: "refund.processed", meaning: "A refund was made." },
    { type: "subscription.charged", meaning: "A subscription’s payment was taken." },
  ],
  pitfalls: [
    "The event’s id is in the header x-razorpay-event-id, and no map reads headers: event_id is the payment, which is told of once a type. Make a relay a type.",
    "Events come in no certain order: payment.captured may come before payment.authorized.",
  ],
  docs: "https://razorpay.com/docs/webhooks/validate-test/",
};
