/**
 * Signs a sender's example as the sender does: with its own library if one is installed, otherwise with a few lines written from its documentation.
 * It uses none of the product's code.
 */
import { createHmac, generateKeyPairSync, sign as signByKey } from "node:crypto";
import { sign as signGithub } from "@octokit/webhooks-methods";
import { Webhook } from "standardwebhooks";
import Stripe from "stripe";
import type { SenderExample } from "../../src/rules/senders/sender.ts";

export interface ToSign {
  body: string;
  secret: string;
  /** Time of the request. */
  nowMs: number;
  url: string;
}

export interface SignedCall {
  headers: Record<string, string>;
  /** The body that is sent, if the sender writes the signature into it. */
  body?: string;
  search?: string;
}

interface Signer {
  /** The secret that an operator pastes, by default 32 letters and digits. */
  secret?: string;
  /** Another valid secret, if the default one with a changed letter is invalid. */
  otherSecret?: string;
  /** The sender does not sign the body, so a changed body verifies. */
  unsigned?: true;
  /** The sender signs a timestamp, so an old request is rejected. */
  timed?: true;
  sign(call: ToSign): SignedCall | Promise<SignedCall>;
}

const SECRET = "Qk7bXFQsq4OKAPhAIVqsHMpkNhzCwRnS";

type Encoding = "hex" | "base64" | "base64url";

function hmac(hash: string, key: string, text: string, encoding: Encoding = "hex"): string {
  return createHmac(hash, key).update(text).digest(encoding);
}

const seconds = (nowMs: number) => String(Math.floor(nowMs / 1000));

/** Sends the HMAC of the body in one header, with the prefix `before`. */
function bodyHmac(header: string, hash: string, encoding: Encoding, before = ""): Signer {
  return { sign: ({ body, secret }) => ({ headers: { [header]: before + hmac(hash, secret, body, encoding) } }) };
}

interface TimedParts {
  between?: string;
  separator?: string;
  encoding?: Encoding;
  /** The time is in milliseconds. */
  exact?: true;
}

/** Sends `t=…,v1=…` in one header, signed over the time, `between` and the body. */
function timedParts(header: string, [time, signature]: [string, string], how: TimedParts = {}): Signer {
  const { between = ".", separator = ",", encoding = "hex", exact } = how;
  return {
    timed: true,
    sign({ body, secret, nowMs }) {
      const at = exact ? String(nowMs) : seconds(nowMs);
      return { headers: { [header]: `${time}=${at}${separator}${signature}=${hmac("sha256", secret, at + between + body, encoding)}` } };
    },
  };
}

/** Sends the secret itself in a header. */
function token(header: string): Signer {
  return { unsigned: true, sign: ({ secret }) => ({ headers: { [header]: secret } }) };
}

const SENDGRID = generateKeyPairSync("ec", { namedCurve: "P-256" });
const OTHER = generateKeyPairSync("ec", { namedCurve: "P-256" });
const spki = (pair: typeof SENDGRID) => pair.publicKey.export({ format: "der", type: "spki" }).toString("base64");
const ED25519 = generateKeyPairSync("ed25519");
const rawKey = (pair: typeof ED25519) => pair.publicKey.export({ format: "der", type: "spki" }).subarray(-32).toString("base64");
const ANOTHER = generateKeyPairSync("ed25519");
const iso = (ms: number, end: string) => new Date(ms).toISOString().replace(/\.\d+Z$/, end);
const POLAR = "polar_whs_Qk7bXFQsq4OKAPhAIVqsHMpkNhzCwRnS";

/** Signs with the reference library of Standard Webhooks, under the header names that a sender uses. */
function hooksLibrary(family: "webhook" | "svix"): Signer {
  return {
    secret: `whsec_${SECRET}`,
    timed: true,
    sign: ({ body, secret, nowMs }) => ({
      headers: {
        [`${family}-id`]: "msg_2b7c9d1e",
        [`${family}-timestamp`]: seconds(nowMs),
        [`${family}-signature`]: new Webhook(secret).sign("msg_2b7c9d1e", new Date(nowMs), body),
      },
    }),
  };
}

export const SIGNERS: Readonly<Record<string, Signer>> = {
  adyen: {
    secret: "44782DEF547AAA06C910C43932B1EB0C71FC68D9D0C057550C48EC2ACF6BA056",
    otherSecret: "54782DEF547AAA06C910C43932B1EB0C71FC68D9D0C057550C48EC2ACF6BA056",
    unsigned: true,
    sign({ body, secret }) {
      const event = JSON.parse(body);
      const item = event.notificationItems[0].NotificationRequestItem;
      const { pspReference, originalReference = "", merchantAccountCode, merchantReference, amount, eventCode, success } = item;
      const signed = [pspReference, originalReference, merchantAccountCode, merchantReference, amount.value, amount.currency, eventCode, success];
      item.additionalData.hmacSignature = createHmac("sha256", Buffer.from(secret, "hex")).update(signed.join(":")).digest("base64");
      return { headers: {}, body: JSON.stringify(event) };
    },
  },
  attio: bodyHmac("Attio-Signature", "sha256", "hex"),
  bitbucket: bodyHmac("X-Hub-Signature", "sha256", "hex", "sha256="),
  box: {
    timed: true,
    sign({ body, secret, nowMs }) {
      const at = iso(nowMs - 8 * 3_600_000, "-08:00");
      return { headers: { "BOX-DELIVERY-TIMESTAMP": at, "BOX-SIGNATURE-PRIMARY": hmac("sha256", secret, body + at, "base64") } };
    },
  },
  buildkite: timedParts("X-Buildkite-Signature", ["timestamp", "signature"]),
  "cal-com": bodyHmac("X-Cal-Signature-256", "sha256", "hex"),
  calendly: timedParts("Calendly-Webhook-Signature", ["t", "v1"]),
  chargebee: { ...token("Authorization"), secret: `Basic ${btoa("relay:Qk7bXFQsq4OKAPhAIVqs")}`, otherSecret: `Basic ${btoa("relay:other")}` },
  "checkout-com": bodyHmac("Cko-Signature", "sha256", "hex"),
  circleci: bodyHmac("circleci-signature", "sha256", "hex", "v1="),
  clerk: hooksLibrary("svix"),
  "coinbase-commerce": bodyHmac("X-CC-Webhook-Signature", "sha256", "hex"),
  "customer-io": {
    timed: true,
    sign: ({ body, secret, nowMs }) => ({
      headers: { "X-CIO-Timestamp": seconds(nowMs), "X-CIO-Signature": hmac("sha256", secret, `v0:${seconds(nowMs)}:${body}`) },
    }),
  },
  discord: {
    secret: rawKey(ED25519),
    otherSecret: rawKey(ANOTHER),
    timed: true,
    sign({ body, secret, nowMs }) {
      const pair = secret === rawKey(ED25519) ? ED25519 : ANOTHER;
      const signature = signByKey(null, Buffer.from(seconds(nowMs) + body), pair.privateKey).toString("hex");
      return { headers: { "X-Signature-Timestamp": seconds(nowMs), "X-Signature-Ed25519": signature } };
    },
  },
  docusign: bodyHmac("X-DocuSign-Signature-1", "sha256", "base64"),
  easypost: bodyHmac("X-Hmac-Signature", "sha256", "hex", "hmac-sha256-hex="),
  elevenlabs: timedParts("ElevenLabs-Signature", ["t", "v0"]),
  facebook: bodyHmac("X-Hub-Signature-256", "sha256", "hex", "sha256="),
  flutterwave: token("verif-hash"),
  gitea: bodyHmac("X-Gitea-Signature", "sha256", "hex"),
  github: { sign: async ({ body, secret }) => ({ headers: { "X-Hub-Signature-256": await signGithub(secret, body) } }) },
  gitlab: token("X-Gitlab-Token"),
  gocardless: bodyHmac("Webhook-Signature", "sha256", "hex"),
  gumroad: { unsigned: true, sign: ({ secret }) => ({ headers: {}, search: `?token=${secret}` }) },
  heroku: bodyHmac("Heroku-Webhook-Hmac-SHA256", "sha256", "base64"),
  hubspot: {
    timed: true,
    sign: ({ body, secret, nowMs, url }) => ({
      headers: {
        "X-HubSpot-Request-Timestamp": String(nowMs),
        "X-HubSpot-Signature-v3": hmac("sha256", secret, `POST${url}${body}${nowMs}`, "base64"),
      },
    }),
  },
  "hugging-face": token("X-Webhook-Secret"),
  intercom: bodyHmac("X-Hub-Signature", "sha1", "hex", "sha1="),
  jira: bodyHmac("X-Hub-Signature", "sha256", "hex", "sha256="),
  "lemon-squeezy": bodyHmac("X-Signature", "sha256", "hex"),
  line: bodyHmac("x-line-signature", "sha256", "base64"),
  linear: bodyHmac("Linear-Signature", "sha256", "hex"),
  mailgun: {
    unsigned: true,
    timed: true,
    sign({ body, secret, nowMs }) {
      const token = "86d45e896f37828902249604eb3476905faa1d11f13ba82023";
      const signature = { timestamp: seconds(nowMs), token, signature: hmac("sha256", secret, seconds(nowMs) + token) };
      return { headers: {}, body: JSON.stringify({ ...JSON.parse(body), signature }) };
    },
  },
  mux: timedParts("Mux-Signature", ["t", "v1"]),
  openai: hooksLibrary("webhook"),
  paddle: timedParts("Paddle-Signature", ["ts", "h1"], { between: ":", separator: ";" }),
  pagerduty: bodyHmac("X-PagerDuty-Signature", "sha256", "hex", "v1=0000,v1="),
  paystack: bodyHmac("x-paystack-signature", "sha512", "hex"),
  persona: timedParts("Persona-Signature", ["t", "v1"]),
  polar: {
    secret: `whsec_${btoa(POLAR)}`,
    otherSecret: `whsec_${btoa("polar_whs_other")}`,
    timed: true,
    sign({ body, secret, nowMs }) {
      const key = atob(secret.slice("whsec_".length));
      const id = `msg_${hmac("sha256", "", body).slice(0, 20)}`;
      const signed = hmac("sha256", key, `${id}.${seconds(nowMs)}.${body}`, "base64");
      return { headers: { "webhook-id": id, "webhook-timestamp": seconds(nowMs), "webhook-signature": `v1,${signed}` } };
    },
  },
  postmark: token("X-Webhook-Token"),
  razorpay: bodyHmac("X-Razorpay-Signature", "sha256", "hex"),
  render: hooksLibrary("webhook"),
  replicate: hooksLibrary("webhook"),
  resend: hooksLibrary("svix"),
  revenuecat: token("Authorization"),
  sanity: timedParts("sanity-webhook-signature", ["t", "v1"], { encoding: "base64url", exact: true }),
  sendgrid: {
    secret: spki(SENDGRID),
    otherSecret: spki(OTHER),
    timed: true,
    sign({ body, secret, nowMs }) {
      const pair = secret === spki(SENDGRID) ? SENDGRID : OTHER;
      const signature = signByKey("sha256", Buffer.from(seconds(nowMs) + body), pair.privateKey).toString("base64");
      return {
        headers: { "X-Twilio-Email-Event-Webhook-Signature": signature, "X-Twilio-Email-Event-Webhook-Timestamp": seconds(nowMs) },
      };
    },
  },
  sentry: bodyHmac("Sentry-Hook-Signature", "sha256", "hex"),
  shopify: bodyHmac("X-Shopify-Hmac-Sha256", "sha256", "base64"),
  slack: {
    timed: true,
    sign({ body, secret, nowMs }) {
      const signature = `v0=${hmac("sha256", secret, `v0:${seconds(nowMs)}:${body}`)}`;
      return { headers: { "X-Slack-Request-Timestamp": seconds(nowMs), "X-Slack-Signature": signature } };
    },
  },
  square: { sign: ({ body, secret, url }) => ({ headers: { "x-square-hmacsha256-signature": hmac("sha256", secret, url + body, "base64") } }) },
  "standard-webhooks": hooksLibrary("webhook"),
  stripe: {
    timed: true,
    sign: async ({ body, secret, nowMs }) => ({
      headers: {
        "Stripe-Signature": await new Stripe("sk_test_none").webhooks.generateTestHeaderStringAsync({
          payload: body,
          secret,
          timestamp: Math.floor(nowMs / 1000),
        }),
      },
    }),
  },
  supabase: token("x-webhook-token"),
  tally: bodyHmac("Tally-Signature", "sha256", "base64"),
  telegram: token("X-Telegram-Bot-Api-Secret-Token"),
  telnyx: {
    secret: rawKey(ED25519),
    otherSecret: rawKey(ANOTHER),
    timed: true,
    sign({ body, secret, nowMs }) {
      const pair = secret === rawKey(ED25519) ? ED25519 : ANOTHER;
      const signature = signByKey(null, Buffer.from(`${seconds(nowMs)}|${body}`), pair.privateKey).toString("base64");
      return { headers: { "telnyx-timestamp": seconds(nowMs), "telnyx-signature-ed25519": signature } };
    },
  },
  twilio: {
    sign({ body, secret, url }) {
      const fields = [...new URLSearchParams(body)].sort(([one], [other]) => (one < other ? -1 : 1));
      return { headers: { "X-Twilio-Signature": hmac("sha1", secret, url + fields.flat().join(""), "base64") } };
    },
  },
  twitch: {
    timed: true,
    sign({ body, secret, nowMs }) {
      const [id, at] = ["befa7b53-d79d-478f-86b9-120f112b044e", iso(nowMs, ".000634234Z")];
      return {
        headers: {
          "Twitch-Eventsub-Message-Id": id,
          "Twitch-Eventsub-Message-Timestamp": at,
          "Twitch-Eventsub-Message-Signature": `sha256=${hmac("sha256", secret, id + at + body)}`,
        },
      };
    },
  },
  typeform: bodyHmac("Typeform-Signature", "sha256", "base64", "sha256="),
  vercel: bodyHmac("x-vercel-signature", "sha1", "hex"),
  webflow: {
    timed: true,
    sign: ({ body, secret, nowMs }) => ({
      headers: { "x-webflow-timestamp": String(nowMs), "x-webflow-signature": hmac("sha256", secret, `${nowMs}:${body}`) },
    }),
  },
  whatsapp: bodyHmac("X-Hub-Signature-256", "sha256", "hex", "sha256="),
  woocommerce: bodyHmac("X-WC-Webhook-Signature", "sha256", "base64"),
  workos: timedParts("WorkOS-Signature", ["t", "v1"], { separator: ", ", exact: true }),
  zendesk: {
    timed: true,
    sign({ body, secret, nowMs }) {
      const at = iso(nowMs, "Z");
      return {
        headers: { "X-Zendesk-Webhook-Signature-Timestamp": at, "X-Zendesk-Webhook-Signature": hmac("sha256", secret, at + body, "base64") },
      };
    },
  },
  zoom: {
    timed: true,
    sign: ({ body, secret, nowMs }) => ({
      headers: { "x-zm-request-timestamp": seconds(nowMs), "x-zm-signature": `v0=${hmac("sha256", secret, `v0:${seconds(nowMs)}:${body}`)}` },
    }),
  },
};

export function secretOf(signer: Signer): string {
  return signer.secret ?? SECRET;
}

export function bodyOf(example: SenderExample): { body: string; contentType: string } {
  return "json" in example
    ? { body: JSON.stringify(example.json), contentType: "application/json" }
    : { body: new URLSearchParams(example.form).toString(), contentType: "application/x-www-form-urlencoded" };
}
