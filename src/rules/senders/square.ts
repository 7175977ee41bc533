/** Square, by its pages on subscribing to and validating event notifications. */
import type { Sender } from "./sender.ts";

export const square: Sender = {
  name: "square",
  title: "Square",
  summary: "Tells of payments, orders, refunds, invoices, bookings and customers.",
  verify: {
    scheme: "signature",
    header: "x-square-hmacsha256-signature",
    signedPayload: "{url}{body}",
    encoding: "base64",
  },
  map: {
    event_id: "event_id",
    event_type: "type",
    payment: "data.object.payment.id",
    status: "data.object.payment.status",
    amount: "data.object.payment.amount_money.amount",
  },
  when: { event_type: "payment.updated", status: "COMPLETED" },
  personEmail: null,
  secret: {
    from: "sender",
    where:
      "The Developer Console, the app’s Webhooks, Subscriptions, the subscription’s page: Signature Key.",
  },
  register:
    "The Developer Console, the app’s Webhooks, Subscriptions, Add subscription: Notification URL, exactly the receiver URL.",
  example: {
    json: {
      merchant_id: "6SSW7HV8K2ST5",
      type: "payment.updated",
      event_id: "13b867cf-db3d-4b1c-90b6-2f32a9d78124",
      created_at: "2026-01-15T12:00:00.792Z",
      data: {
        type: "payment",
        id: "hYy9pRFVxpDsO1FB05SunFWUe9JZY",
        object: {
          payment: {
            id: "hYy9pRFVxpDsO1FB05SunFWUe9JZY",
            status: "COMPLETED",
            amount_money: { amount: 4200, currency: "EUR" },
            order_id: "03O3USaPaAaFnI6kkwB1JxGgBsUZY",
            location_id: "S8GWD5R9QB376",
            source_type: "CARD",
          },
        },
      },
    },
  },
  eventTypes: [
    { type: "payment.updated", meaning: "A payment changed; `status` COMPLETED says that it was taken." },
    { type: "payment.created", meaning: "A payment has begun; it may be approved and not taken." },
    { type: "refund.updated", meaning: "A refund changed its state." },
    { type: "invoice.payment_made", meaning: "An invoice was paid, whole or in part." },
  ],
  pitfalls: [
    "The URL is signed: paste the receiver URL exactly, with nothing after it.",
    "A payment tells of itself several times: fulfil by `data.object.payment.id` as the ref, not by the event.",
    "The sandbox has a signature key of its own.",
  ],
  docs: "https://developer.squareup.com/docs/webhooks/step3validate",
};
