/** Stripe, by its page on webhook signatures and its own library. */
import type { Sender } from "./sender.ts";

export const stripe: Sender = {
  name: "stripe",
  title: "Stripe",
  summary: "Tells of checkouts, payments, invoices, subscriptions and refunds.",
  verify: {
    scheme: "signature",
    header: "Stripe-Signature",
    signatureKey: "v1",
    separator: ",",
    timestampKey: "t",
    signedPayload: "{timestamp}.{body}",
    encoding: "hex",
  },
  map: {
    event_id: "id",
    event_type: "type",
    object: "data.object.id",
    payment: "data.object.payment_intent",
    product: "data.object.metadata.product",
    paid: "data.object.payment_status",
    amount: "data.object.amount_total",
    currency: "data.object.currency",
    email: "data.object.customer_details.email",
  },
  when: {
    event_type: ["checkout.session.completed", "checkout.session.async_payment_succeeded"],
    product: "premium",
    paid: ["paid", "no_payment_required"],
  },
  personEmail: "data.object.customer_details.email",
  secret: {
    from: "sender",
    where: "Workbench, Webhooks, the destination’s page: Signing secret, which starts with whsec_.",
  },
  register: "Workbench, Webhooks, Add destination: choose the events, then Webhook endpoint.",
  example: {
    json: {
      id: "evt_1SqB4kLkdIwHu7ix0mZQp3aV",
      object: "event",
      api_version: "2025-09-30.clover",
      created: 1768478400,
      livemode: false,
      pending_webhooks: 1,
      request: { id: null, idempotency_key: null },
      type: "checkout.session.completed",
      data: {
        object: {
          id: "cs_test_a1b2c3",
          object: "checkout.session",
          mode: "payment",
          metadata: { product: "premium" },
          amount_total: 4200,
          currency: "eur",
          payment_status: "paid",
          payment_intent: "pi_3SqB4jLkdIwHu7ix1xW0rT5c",
          customer_details: { email: "ada@example.com", name: "Ada Lovelace" },
        },
      },
    },
  },
  eventTypes: [
    {
      type: "checkout.session.completed",
      meaning:
        "A checkout was finished; `payment_status` says whether it is paid. `no_payment_required` counts as paid: the order costs nothing.",
    },
    {
      type: "checkout.session.async_payment_succeeded",
      meaning: "A payment that takes days, such as a bank debit, has arrived.",
    },
    { type: "invoice.paid", meaning: "An invoice, such as a subscription’s of this month, was paid." },
    { type: "customer.subscription.deleted", meaning: "A subscription has ended." },
    {
      type: "charge.refunded",
      meaning: "A charge was paid back, whole or in part; `refunded` is true where it was whole.",
    },
  ],
  pitfalls: [
    "Every paid checkout of the account arrives at the URL. Put the product's name into the metadata of each payment link or checkout session and match it in `when`, as `product` does, or match `data.object.payment_link`. A refund is a charge, which has the metadata of its payment: set `payment_intent_data.metadata` too.",
    "An order that costs nothing has no payment_intent: its ref is `data.object.id`, the session's id.",
    "Each destination has a signing secret of its own, and so has `stripe listen` on a laptop: a secret of another one refuses every call.",
    "A checkout of a subscription has no payment_intent: map `data.object.invoice`, or wait for invoice.paid.",
    "Events are sent again for up to three days and may come in another order than they happened; `event_id` lets each run once.",
    "Choose snapshot payloads: thin ones hold no `data.object`.",
    "A relay has a URL of its own, so each takes a destination and that one's secret. The scheme `processor` verifies the same signature by one secret for the whole environment: it fits one destination alone, or `stripe listen`, whose secret is the same for every URL.",
    "A subscription and a dispute name their customer by id alone: put the address into the checkout’s `subscription_data.metadata` and map `data.object.metadata.email`, or file the id as the person’s token and map it as person_token.",
    "The invoice of a changed plan lists first what is paid back of the old one: `lines.data.0` may be the old price.",
  ],
  docs: "https://docs.stripe.com/webhooks/signatures",
};
