/** RevenueCat, by its pages on webhooks and their event types. */
import type { Sender } from "./sender.ts";

export const revenuecat: Sender = {
  name: "revenuecat",
  title: "RevenueCat",
  summary: "Tells of purchases in app stores: begun, renewed, cancelled, expired.",
  verify: { scheme: "shared_token", header: "Authorization" },
  map: {
    event_id: "event.id",
    event_type: "event.type",
    person: "event.app_user_id",
    product: "event.product_id",
    transaction: "event.transaction_id",
  },
  when: { event_type: ["INITIAL_PURCHASE", "RENEWAL"] },
  personEmail: null,
  secret: { from: "relay", where: "The webhook’s field Authorization header value takes the one made here." },
  register: "The project’s Integrations, Webhooks, Add new configuration: Webhook URL.",
  example: {
    json: {
      api_version: "1.0",
      event: {
        id: "12345678-1234-1234-1234-123456789012",
        type: "INITIAL_PURCHASE",
        app_user_id: "7d1c2f0e-5f0b-4a35-9d3c-1b1f4f6f2a10",
        aliases: [],
        product_id: "premium_monthly",
        entitlement_ids: ["premium"],
        period_type: "NORMAL",
        purchased_at_ms: 1768478400000,
        expiration_at_ms: 1771156800000,
        environment: "PRODUCTION",
        store: "APP_STORE",
        price: 4.2,
        currency: "EUR",
        transaction_id: "700002054157982",
        original_transaction_id: "700002054157982",
        event_timestamp_ms: 1768478400000,
      },
    },
  },
  eventTypes: [
    { type: "INITIAL_PURCHASE", meaning: "A subscription’s first payment." },
    { type: "RENEWAL", meaning: "A later payment, with a transaction of its own." },
    { type: "CANCELLATION", meaning: "It will not renew; the time that was paid goes on." },
    { type: "EXPIRATION", meaning: "It has ended." },
    { type: "NON_RENEWING_PURCHASE", meaning: "Something was bought once." },
  ],
  pitfalls: [
    "The header’s value is sent as it is and signs nothing: the relay may write records and call URLs; more needs `trustUnsignedEvents`. The templates App-store purchase and expiry begin with that.",
    "`app_user_id` is what your app gave RevenueCat: file it as the person’s store account token, and map it as person_token.",
    "Sandbox purchases cost nothing: let them go to the development environment alone.",
  ],
  docs: "https://www.revenuecat.com/docs/integrations/webhooks",
};
