/** Flutterwave, by its page on webhooks (version 3). */
import type { Sender } from "./sender.ts";

export const flutterwave: Sender = {
  name: "flutterwave",
  title: "Flutterwave",
  summary: "Tells of charges, transfers and subscriptions.",
  verify: { scheme: "shared_token", header: "verif-hash" },
  map: {
    event_id: "data.id",
    event_type: "event",
    status: "data.status",
    reference: "data.tx_ref",
    amount: "data.amount",
    email: "data.customer.email",
  },
  when: { event_type: "charge.completed", status: "successful" },
  personEmail: "data.customer.email",
  secret: { from: "relay", where: "Settings, Webhooks: Secret hash takes the one made here." },
  register: "Settings, Webhooks: URL.",
  example: {
    json: {
      event: "charge.completed",
      data: {
        id: 285959875,
        tx_ref: "Links-616626414629",
        flw_ref: "PeterEkene/FLW270177170",
        amount: 4200,
        currency: "NGN",
        charged_amount: 4200,
        status: "successful",
        payment_type: "card",
        created_at: "2026-01-15T12:00:00.000Z",
        customer: { id: 215604089, name: "Ada Lovelace", email: "ada@example.com" },
      },
    },
  },
  eventTypes: [
    { type: "charge.completed", meaning: "A charge has ended; `data.status` is successful or failed." },
    { type: "transfer.completed", meaning: "A transfer has ended." },
    { type: "subscription.cancelled", meaning: "A subscription was cancelled." },
  ],
  pitfalls: [
    "The hash is sent as it is and signs nothing: the relay may write records and call URLs; more needs `trustUnsignedEvents`.",
    "Its retries are off until they are switched on under Settings, Webhooks.",
  ],
  docs: "https://developer.flutterwave.com/docs/webhooks",
};
