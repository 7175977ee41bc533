/**
 * Definitions to start from that name what has to stand beside them: the dashboard and the command line offer them, a person changes what is
 * theirs and saves. A new template is one entry here. It saves nothing.
 * Source: the specification's "Relay-sold products and plans" (the two templates of app-store purchases).
 */
import type { JsonObject } from "../ground/json.ts";
import type { Definition } from "./definition-type.ts";

export interface RelayTemplate {
  /** What the offer is called by, in an address or on a command line. */
  name: string;
  title: string;
  /** One sentence: what happens when. */
  summary: string;
  definition: Definition;
  /** What the definition names, in the shape of catalog.json; products and plans are saved after the relay that sells them. */
  catalog: JsonObject;
  /** What is left to do, one sentence each, in order. */
  steps: readonly string[];
}

/**
 * App stores themselves sign with certificate chains, which no recipe checks; a service between them and the app (RevenueCat is the one
 * these fields are named after) sends a token of the app's own choosing, so that the opt-in to unsigned events is needed to act.
 */
const STORE_VERIFY = { scheme: "shared_token", header: "authorization" };
const STORE_MAP = {
  event_id: "event.id",
  event_type: "event.type",
  person_token: "event.app_user_id",
  transaction: "event.transaction_id",
};
const FILE_TOKEN =
  "File the account token that your app gives the store for each person: PUT …/persons/{id}/tokens/{token}.";
const PASTE_TOKEN =
  "Paste the same long random text here as the relay's secret and at the sender as its authorization header.";
const ONE_ENVIRONMENT =
  "Let the sender's sandbox purchases go to your development environment alone: they cost nothing.";

export const RELAY_TEMPLATES: readonly RelayTemplate[] = [
  {
    name: "store-purchase",
    title: "App-store purchase",
    summary:
      "A purchase in an app store fulfils a product for the person whose store account token it carries.",
    definition: {
      name: "store-purchase",
      trigger: {
        kind: "receiver",
        verify: STORE_VERIFY,
        map: STORE_MAP,
        when: { event_type: "INITIAL_PURCHASE" },
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
      "Make the product and let its soldThrough name this relay.",
      "For what is bought once, let `when` read NON_RENEWING_PURCHASE.",
      ONE_ENVIRONMENT,
    ],
  },
  {
    name: "store-expiry",
    title: "App-store expiry or cancellation",
    summary:
      "A store subscription that expired or was cancelled ends the person's access to what it had given.",
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
      "Name the product that the purchase's relay fulfils.",
      "To end access when a person cancels rather than when the paid time is over, let `when` read CANCELLATION.",
      ONE_ENVIRONMENT,
    ],
  },
];
