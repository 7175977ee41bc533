/**
 * Five providers that sign with their own npm packages. If a package only verifies, the test signs and the package confirms. Each relay uses the
 * definition of the recorded requests, so the recipe and the signer have different authors.
 */
import { createHmac } from "node:crypto";
import { sign as signGithub, verify as verifyGithub } from "@octokit/webhooks-methods";
import "@shopify/shopify-api/adapters/web-api";
import { ApiVersion, shopifyApi } from "@shopify/shopify-api";
import { verifySlackRequest } from "@slack/bolt";
import { Webhook } from "standardwebhooks";
import Stripe from "stripe";
import type { SentRequest } from "./executable-api.ts";
import { PROVIDERS } from "./sender-example.ts";

export interface PackageSender {
  provider: string;
  package: string;
  secret: string;
  contentType: string;
  /** The mapped name that contains the reference given to `makeBody`. */
  reference: string;
  signatureHeader: string;
  /** The text between two signatures in the header, or null if the header is one signature. */
  separator: string | null;
  /** True if the sender signs a timestamp. */
  timestamped: boolean;
  /** Returns the body of an event that passes the relay's `when`. */
  makeBody(reference: string): string;
  sign(body: string, secret: string, atSeconds: number): Promise<Record<string, string>>;
  /** Verifies with the package at the current time. Rejects or resolves with false if the package refuses the request. */
  verify(sent: SentRequest): Promise<boolean>;
}

const JSON_TYPE = "application/json";
const stripe = new Stripe("sk_test_none");

const STRIPE_SECRET = "whsec_4nQhW8sTzK0pXv3JrY6uBc9dLm2eFgAa";
const GITHUB_SECRET = "b7f1c02e94d8a3650fe2719c8d4b6a53";
const SHOPIFY_SECRET = "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";
const SLACK_SECRET = "c31f8a2e7b9d40561fe2a8837d05b94c";
const STANDARD_SECRET = `whsec_${Buffer.from("a standard webhooks key, 32 byte").toString("base64")}`;

const shopify = shopifyApi({
  apiKey: "none",
  apiSecretKey: SHOPIFY_SECRET,
  hostName: "relay.example.test",
  apiVersion: ApiVersion.October25,
  isEmbeddedApp: false,
  logger: { log: () => undefined },
});

export const PACKAGE_SENDERS: readonly PackageSender[] = [
  {
    provider: "stripe",
    package: "stripe",
    secret: STRIPE_SECRET,
    contentType: JSON_TYPE,
    reference: "payment",
    signatureHeader: "Stripe-Signature",
    separator: ",v1=",
    timestamped: true,
    makeBody: (reference) =>
      JSON.stringify(
        {
          id: `evt_${reference}`,
          object: "event",
          type: "checkout.session.completed",
          data: { object: { object: "checkout.session", payment_intent: reference, amount_total: 4200 } },
        },
        null,
        2,
      ),
    sign: async (payload, secret, timestamp) => ({
      "Stripe-Signature": await stripe.webhooks.generateTestHeaderStringAsync({ payload, secret, timestamp }),
    }),
    async verify({ body, headers }) {
      await stripe.webhooks.constructEventAsync(body, headers["Stripe-Signature"] ?? "", STRIPE_SECRET);
      return true;
    },
  },
  {
    provider: "github",
    package: "@octokit/webhooks-methods",
    secret: GITHUB_SECRET,
    contentType: JSON_TYPE,
    reference: "payment",
    signatureHeader: "X-Hub-Signature-256",
    separator: ",sha256=",
    timestamped: false,
    makeBody: (reference) =>
      JSON.stringify({
        action: "created",
        sponsorship: {
          node_id: reference,
          sponsor: { login: "añdrea" },
          tier: { monthly_price_in_cents: 500 },
        },
      }),
    sign: async (body, secret) => ({
      "X-GitHub-Event": "sponsorship",
      "X-Hub-Signature-256": await signGithub(secret, body),
    }),
    verify: ({ body, headers }) => verifyGithub(GITHUB_SECRET, body, headers["X-Hub-Signature-256"] ?? ""),
  },
  {
    provider: "shopify",
    package: "@shopify/shopify-api",
    secret: SHOPIFY_SECRET,
    contentType: JSON_TYPE,
    reference: "order",
    signatureHeader: "X-Shopify-Hmac-Sha256",
    separator: null,
    timestamped: false,
    // An order's number is an integer without quotes, which can exceed what a double holds.
    makeBody: (reference) =>
      `{"id":${reference},"admin_graphql_api_id":"gid://shopify/Order/${reference}","financial_status":"paid","total_price":"42.00"}`,
    sign: async (body, secret) => ({
      "X-Shopify-Topic": "orders/paid",
      "X-Shopify-Shop-Domain": "example.myshopify.com",
      "X-Shopify-API-Version": "2025-10",
      "X-Shopify-Webhook-Id": "b54557e4-bdd9-4b37-8a5f-bf7d70bcd043",
      "X-Shopify-Hmac-Sha256": createHmac("sha256", secret).update(body).digest("base64"),
    }),
    async verify({ body, headers }) {
      const rawRequest = new Request("https://relay.example.test/", { method: "POST", headers, body });
      return (await shopify.webhooks.validate({ rawBody: body, rawRequest })).valid;
    },
  },
  {
    provider: "slack",
    package: "@slack/bolt",
    secret: SLACK_SECRET,
    contentType: "application/x-www-form-urlencoded",
    reference: "text",
    signatureHeader: "X-Slack-Signature",
    separator: ",v0=",
    timestamped: true,
    makeBody: (reference) => `command=%2Fbuy&text=${reference}&user_id=U2147483697&user_name=ad%C3%A4&trigger_id=13345224609.${reference}`,
    sign: async (body, secret, atSeconds) => ({
      "X-Slack-Request-Timestamp": String(atSeconds),
      "X-Slack-Signature": `v0=${createHmac("sha256", secret).update(`v0:${atSeconds}:${body}`).digest("hex")}`,
    }),
    async verify({ body, headers }) {
      verifySlackRequest({
        signingSecret: SLACK_SECRET,
        body,
        headers: {
          "x-slack-signature": headers["X-Slack-Signature"] ?? "",
          "x-slack-request-timestamp": Number(headers["X-Slack-Request-Timestamp"]),
        },
      });
      return true;
    },
  },
  {
    provider: "standardwebhooks",
    package: "standardwebhooks",
    secret: STANDARD_SECRET,
    contentType: JSON_TYPE,
    reference: "payment",
    signatureHeader: "webhook-signature",
    separator: " v1,",
    timestamped: true,
    makeBody: (reference) => JSON.stringify({ type: "invoice.paid", data: { invoice: reference } }),
    async sign(body, secret, atSeconds) {
      const id = `msg_${Bun.hash(body).toString(36)}`;
      return {
        "webhook-id": id,
        "webhook-timestamp": String(atSeconds),
        "webhook-signature": new Webhook(secret).sign(id, new Date(atSeconds * 1000), body),
      };
    },
    async verify({ body, headers }) {
      new Webhook(STANDARD_SECRET).verify(body, headers);
      return true;
    },
  },
];

/** Returns the relay that a user writes for the sender: the recipe, one record, and one notice to `noticeUrl`. */
export function makeSenderRelay(sender: PackageSender, noticeUrl: string): Record<string, unknown> {
  const recorded = PROVIDERS.find(({ provider }) => provider === sender.provider);
  if (recorded === undefined) throw new Error(`No definition is recorded for ${sender.provider}.`);
  return {
    ...recorded.definition,
    name: sender.provider,
    actions: [
      {
        type: "write_record",
        collection: "payments",
        data: { provider: sender.provider, reference: `{{mapped.${sender.reference}}}` },
      },
      { type: "call_url", url: noticeUrl },
    ],
  };
}

/** Returns the request that the provider sends now. */
export async function signNow(sender: PackageSender, body: string): Promise<SentRequest> {
  const signed = await sender.sign(body, sender.secret, Math.floor(Date.now() / 1000));
  return { headers: { "content-type": sender.contentType, ...signed }, body };
}
