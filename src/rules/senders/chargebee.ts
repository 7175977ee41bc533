/** Chargebee, by its pages on webhook settings and events. */
import type { Sender } from "./sender.ts";

export const chargebee: Sender = {
  name: "chargebee",
  title: "Chargebee",
  summary: "Tells of subscriptions, invoices, payments and customers.",
  verify: { scheme: "shared_token", header: "Authorization" },
  map: {
    event_id: "id",
    event_type: "event_type",
    subscription: "content.subscription.id",
    customer: "content.customer.id",
    email: "content.customer.email",
  },
  when: { event_type: "subscription_created" },
  personEmail: "content.customer.email",
  secret: {
    from: "sender",
    where:
      "The webhook’s basic authentication: choose a user name and a password there, and paste here what it sends, Basic and the two in base64 (see the pitfalls).",
  },
  register:
    "Settings, Configure Chargebee, API Keys and Webhooks, Webhooks, Add Webhook: protect it by basic authentication.",
  example: {
    json: {
      id: "ev_16BPgETyVrQbiGhA",
      occurred_at: 1768478400,
      source: "admin_console",
      object: "event",
      api_version: "v2",
      event_type: "subscription_created",
      webhook_status: "scheduled",
      content: {
        subscription: {
          id: "16BPgETyVrQVHGh1",
          customer_id: "16BPgETyVrQUjGh0",
          status: "active",
          currency_code: "EUR",
          object: "subscription",
        },
        customer: {
          id: "16BPgETyVrQUjGh0",
          first_name: "Ada",
          last_name: "Lovelace",
          email: "ada@example.com",
          object: "customer",
        },
      },
    },
  },
  eventTypes: [
    { type: "subscription_created", meaning: "A subscription was made." },
    { type: "subscription_renewed", meaning: "A subscription went into its next term." },
    { type: "subscription_cancelled", meaning: "A subscription has ended." },
    { type: "payment_succeeded", meaning: "A payment arrived." },
    { type: "payment_refunded", meaning: "A payment was paid back." },
  ],
  pitfalls: [
    'What to paste: printf \'Basic %s\' "$(printf \'%s:%s\' "$USER" "$PASSWORD" | base64 -w0)".',
    "Nothing is signed: the relay may write records and call URLs; more needs `trustUnsignedEvents`.",
    "Events may come in another order than they happened, and more than once.",
  ],
  docs: "https://www.chargebee.com/docs/billing/2.0/site-configuration/webhook_settings",
};
