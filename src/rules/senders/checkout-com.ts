/** Checkout.com, by its pages on receiving webhooks. */
import type { Sender } from "./sender.ts";

export const checkoutCom: Sender = {
  name: "checkout-com",
  title: "Checkout.com",
  summary: "Tells of payments: approved, captured, declined, refunded, disputed.",
  verify: { scheme: "signature", header: "Cko-Signature", signedPayload: "{body}", encoding: "hex" },
  map: {
    event_id: "id",
    event_type: "type",
    payment: "data.id",
    reference: "data.reference",
    amount: "data.amount",
  },
  when: { event_type: "payment_captured" },
  personEmail: null,
  secret: {
    from: "either",
    where: "The webhook’s Signature key takes the one made here, or makes one to be pasted here.",
  },
  register: "Developers, Webhooks, Create webhook: Endpoint URL and the event types.",
  example: {
    json: {
      id: "evt_az5sblvku4ge3dwpztvyizgcau",
      type: "payment_captured",
      version: "2.0.0",
      created_on: "2026-01-15T12:00:00Z",
      data: {
        id: "pay_mbabizu24mvu3mela5njyhpit4",
        action_id: "act_ui6pzpr7w7xubjmwqsagtzpasa",
        processed_on: "2026-01-15T11:59:59Z",
        response_code: "10000",
        response_summary: "Approved",
        amount: 4200,
        currency: "EUR",
        reference: "ORD-1042",
        metadata: {},
      },
      _links: {},
    },
  },
  eventTypes: [
    { type: "payment_approved", meaning: "A payment was authorised." },
    { type: "payment_captured", meaning: "A payment was taken: the one to fulfil on." },
    { type: "payment_declined", meaning: "A payment was declined." },
    { type: "payment_refunded", meaning: "A payment was paid back, whole or in part." },
  ],
  pitfalls: [
    "The sandbox has webhooks and keys of its own.",
    "The authorization header that a webhook may send besides is not read here: the signature is.",
  ],
  docs: "https://www.checkout.com/docs/developer-resources/webhooks/manage-webhooks",
};
