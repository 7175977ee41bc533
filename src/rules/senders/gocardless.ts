/** GoCardless, by its guide to webhooks and its library. */
import type { Sender } from "./sender.ts";

export const gocardless: Sender = {
  name: "gocardless",
  title: "GoCardless",
  summary: "Tells of mandates, payments, payouts, refunds and subscriptions by bank debit.",
  verify: { scheme: "signature", header: "Webhook-Signature", signedPayload: "{body}", encoding: "hex" },
  map: {
    event_id: "events.0.id",
    kind: "events.0.resource_type",
    event_type: "events.0.action",
    payment: "events.0.links.payment",
  },
  when: {},
  personEmail: null,
  secret: {
    from: "either",
    where: "The endpoint’s field Secret takes the one made here, or makes one to be pasted here.",
  },
  register: "Developers, Webhook endpoints, Create webhook endpoint.",
  example: {
    json: {
      events: [
        {
          id: "EV00BD05S5VM2T",
          created_at: "2026-01-15T12:00:00.404Z",
          resource_type: "payments",
          action: "confirmed",
          links: { payment: "PM0007BKP9F8K2" },
          details: {
            origin: "gocardless",
            cause: "payment_confirmed",
            description: "The payment has been confirmed.",
          },
          metadata: {},
        },
      ],
      meta: { webhook_id: "WB00001K3RC1AF" },
    },
  },
  eventTypes: [
    { type: "confirmed", meaning: "A payment arrived (`resource_type` payments)." },
    { type: "failed", meaning: "A payment failed." },
    { type: "paid_out", meaning: "A payment is on its way to you." },
    { type: "cancelled", meaning: "A mandate, a payment or a subscription was cancelled." },
  ],
  pitfalls: [
    "Events come in lists of up to 250, and a call is one event here: the map reads the first of the list. Let call_url hand the whole list to a server of yours where more than one may come.",
    "A `when` on the first one’s action ignores the rest of the list with it: leave it out.",
  ],
  docs: "https://developer.gocardless.com/getting-started/staying-up-to-date-with-webhooks/",
};
