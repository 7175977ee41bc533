/**
 * Definitions to start from, together with the catalog items that they name. The dashboard and the command line offer them; a person
 * adapts and saves them. To add a template, add one entry here. The app stores' own notifications (JWS, base64) are not plain JSON, so a
 * service between them and the relay must convert them. Source: the specification's "Relay-sold products and plans" (the two templates of
 * app-store purchases).
 */
import type { JsonObject } from "../../base/json.ts";
import type { Definition } from "./definition-shape.ts";

interface RelayTemplate {
  /** The template's name in a URL or on a command line. */
  name: string;
  title: string;
  /** One sentence: what happens when. */
  summary: string;
  definition: Definition;
  /** The items that the definition names, in the shape of catalog.json. Products and plans are saved after the relay that sells them. */
  catalog: JsonObject;
  /** The remaining steps, one sentence each, in order. */
  steps: readonly string[];
}

/**
 * App stores send what no map can read and no recipe can check (see THE_STORES_THEMSELVES). RevenueCat, after which these fields and
 * types are named, sends plain JSON with a token that the app chooses, so acting on it needs the opt-in to unsigned events. Its types:
 * INITIAL_PURCHASE is the first payment of a subscription. Each later payment is a RENEWAL with its own transaction. CANCELLATION only
 * says that it will not renew, and EXPIRATION ends the access. PRODUCT_CHANGE and UNCANCELLATION move no money; a payment follows.
 */
const STORE_VERIFY = { scheme: "shared_token", header: "authorization" };
const STORE_MAP = {
  event_id: "event.id",
  event_type: "event.type",
  person_token: "event.app_user_id",
  transaction: "event.transaction_id",
};
/**
 * The second type reports payments that arrive days later, such as bank transfers. A subscription's checkout has no payment; its invoices
 * have.
 */
const PAID_CHECKOUTS = ["checkout.session.completed", "checkout.session.async_payment_succeeded"];
/** The paths in a checkout session that the template maps. The page about selling shows the same. */
const CHECKOUT_MAP = {
  event_id: "id",
  event_type: "type",
  person_email: "data.object.customer_details.email",
  product: "data.object.metadata.product",
  mode: "data.object.mode",
  paid: "data.object.payment_status",
};
const DISTINGUISH =
  'Put "product": "premium" into the metadata of the payment link or checkout session, so that only payments of this product match. Create a separate relay, with another text there, for each further product. If only payment links distinguish your products, map "product": "data.object.payment_link" and match the link\'s id.';
const FILE_TOKEN =
  "Store the account token that your app gives the app store for each person: PUT …/persons/{id}/tokens/{token}.";
const PASTE_TOKEN =
  "Paste the same long random text here as the relay's secret and at the sender as its authorization header.";
const THE_STORES_THEMSELVES =
  "A receiver cannot read the stores' own notifications: Apple sends one signed text (JWS) and Google sends its event in base64. Use a service that sends plain JSON, as this template expects.";
const ONE_ENVIRONMENT =
  "Send the sender's sandbox purchases only to your development environment: they cost nothing.";

export const RELAY_TEMPLATES: readonly RelayTemplate[] = [
  {
    name: "checkout",
    title: "Paid checkout",
    summary:
      "A checkout that was paid at your payment processor, such as Stripe, fulfills a product for the buyer, once per payment, and mails the buyer.",
    definition: {
      name: "checkout",
      trigger: {
        kind: "receiver",
        verify: { scheme: "processor" },
        map: {
          ...CHECKOUT_MAP,
          payment: "data.object.payment_intent",
          amount: "data.object.amount_total",
          currency: "data.object.currency",
        },
        when: { event_type: PAID_CHECKOUTS, product: "premium", mode: "payment", paid: "paid" },
      },
      actions: [
        { type: "fulfil_product", product: "premium", ref: "{{mapped.payment}}" },
        {
          type: "email_person",
          subject: "Thank you for your order",
          text: "Hello,\n\nyour payment has arrived, and what you bought is yours now.\n\nYour payment: {{mapped.payment}}",
        },
      ],
    },
    catalog: {
      products: { premium: { title: "Premium", soldThrough: { kind: "relay", relay: "checkout" } } },
    },
    steps: [
      "The types and fields are Stripe's: for another processor, write its types and fields in `map` and `when`.",
      DISTINGUISH,
      "Store the processor's signing secret in this environment's settings: every relay with the scheme `processor` verifies with it. Stripe gives each destination its own secret, so if you have two, start from the sender Stripe instead.",
      "Create the product and set its soldThrough to this relay.",
      "Set up a sender domain and a mail server for the mail, or remove email_person.",
      'For refunds create another relay with "payment": "data.object.payment_intent", "product": "data.object.metadata.product" and "whole": "data.object.refunded" in its map, "when": { "event_type": "charge.refunded", "product": "premium", "whole": "true" }, because a partial refund sends the same event type, and refund_product under the same ref. A charge has the metadata of its payment: put the product into payment_intent_data.metadata of the checkout session too.',
      "An order that costs nothing has no payment: add the template Free checkout if you offer discounts of 100 %.",
    ],
  },
  {
    name: "checkout-free",
    title: "Free checkout",
    summary:
      "A checkout that needed no payment, such as one with a discount of 100 %, fulfills the product too, once per checkout session.",
    definition: {
      name: "checkout-free",
      trigger: {
        kind: "receiver",
        verify: { scheme: "processor" },
        map: { ...CHECKOUT_MAP, session: "data.object.id" },
        when: {
          event_type: "checkout.session.completed",
          product: "premium",
          mode: "payment",
          paid: "no_payment_required",
        },
      },
      actions: [{ type: "fulfil_product", product: "premium-free", ref: "{{mapped.session}}" }],
    },
    catalog: {
      products: {
        premium: { title: "Premium" },
        "premium-free": {
          title: "Premium, free",
          key: "premium",
          soldThrough: { kind: "relay", relay: "checkout-free" },
        },
      },
    },
    steps: [
      "A free checkout has no payment, so the session's id is the ref.",
      "One relay sells one product, and the relay of paid checkouts sells premium. Create the product premium-free with the key premium, so a buyer gets the same entitlement. Give it the same credits.",
      DISTINGUISH,
      "Store the processor's signing secret in this environment's settings, or start from the sender Stripe if each destination has its own secret.",
    ],
  },
  {
    name: "store-purchase",
    title: "App-store purchase",
    summary:
      "A purchase in an app store, and each renewal, fulfills a product for the person whose store account token it contains.",
    definition: {
      name: "store-purchase",
      trigger: {
        kind: "receiver",
        verify: STORE_VERIFY,
        map: STORE_MAP,
        when: { event_type: ["INITIAL_PURCHASE", "RENEWAL"] },
        trustUnsignedEvents: true,
      },
      actions: [{ type: "fulfil_product", product: "premium", ref: "{{mapped.transaction}}" }],
    },
    catalog: {
      products: { premium: { title: "Premium", soldThrough: { kind: "relay", relay: "store-purchase" } } },
    },
    steps: [
      FILE_TOKEN,
      PASTE_TOKEN,
      "Create the product and set its soldThrough to this relay.",
      "Each renewal has its own transaction, so it counts as a separate purchase: every renewal grants the product's credits.",
      "For a one-time purchase, set `when` to NON_RENEWING_PURCHASE; the store sends no event when such a purchase ends.",
      'If your app sells more than one thing, add "store_product": "event.product_id" to the map and the store\'s ids of this product to `when`, and create a relay for each product; a PRODUCT_CHANGE is then a payment under the other id.',
      ONE_ENVIRONMENT,
      THE_STORES_THEMSELVES,
    ],
  },
  {
    name: "store-expiry",
    title: "App-store expiry or cancellation",
    summary: "A store subscription that expires or was canceled ends the access that it gave the person.",
    definition: {
      name: "store-expiry",
      trigger: {
        kind: "receiver",
        verify: STORE_VERIFY,
        map: STORE_MAP,
        when: { event_type: "EXPIRATION" },
        trustUnsignedEvents: true,
      },
      actions: [{ type: "revoke_access", entitlement: "premium" }],
    },
    catalog: { products: { premium: { title: "Premium" } } },
    steps: [
      FILE_TOKEN,
      PASTE_TOKEN,
      "Name the product that the purchase's relay fulfills.",
      "A CANCELLATION ends no access: it says that the subscription will not renew. EXPIRATION arrives at the end of the paid time. UNCANCELLATION reverses the cancellation.",
      'A refund arrives as a CANCELLATION too: create another relay for it, with "cancel_reason": "event.cancel_reason" in its map, "when": { "event_type": "CANCELLATION", "cancel_reason": "CUSTOMER_SUPPORT" } and refund_product under the same ref as the purchase.',
      "To end access as soon as a person cancels, even in the paid time, list both EXPIRATION and CANCELLATION in `when`.",
      ONE_ENVIRONMENT,
      THE_STORES_THEMSELVES,
    ],
  },
];
