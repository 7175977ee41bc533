/**
 * Signs a sender's example as the sender does: by its own library where one is here, else by a few lines written from its documentation's words.
 * Nothing of this is the product's code.
 */
import { createHmac } from "node:crypto";
import { sign as signGithub } from "@octokit/webhooks-methods";
import { Webhook } from "standardwebhooks";
import Stripe from "stripe";
import type { SenderExample } from "../../src/sender/sender.ts";

export interface ToSign {
  body: string;
  secret: string;
  /** When it is sent. */
  nowMs: number;
  url: string;
}

export interface SignedCall {
  headers: Record<string, string>;
  /** What is sent where the sender writes into the body. */
  body?: string;
  search?: string;
}

interface Signer {
  /** What is pasted; the default is 32 letters and digits. */
  secret?: string;
  /** Another secret, where the default one with a letter changed is none. */
  otherSecret?: string;
  /** It signs no body, so that a changed one is not told from the real one. */
  unsigned?: true;
  /** A timestamp is signed, so that an old call is refused. */
  timed?: true;
  sign(call: ToSign): SignedCall | Promise<SignedCall>;
}

const SECRET = "Qk7bXFQsq4OKAPhAIVqsHMpkNhzCwRnS";

type Encoding = "hex" | "base64" | "base64url";

function hmac(hash: string, key: string, text: string, encoding: Encoding = "hex"): string {
  return createHmac(hash, key).update(text).digest(encoding);
}

const seconds = (nowMs: number) => String(Math.floor(nowMs / 1000));

/** One header that holds the HMAC of the body, behind `before`. */
function bodyHmac(header: string, hash: string, encoding: Encoding, before = ""): Signer {
  return { sign: ({ body, secret }) => ({ headers: { [header]: before + hmac(hash, secret, body, encoding) } }) };
}

/** `t=…,v1=…` over the seconds, `between` and the body. */
function timedParts(header: string, [time, signature]: [string, string], { between = ".", separator = "," } = {}): Signer {
  return {
    timed: true,
    sign: ({ body, secret, nowMs }) => ({
      headers: { [header]: `${time}=${seconds(nowMs)}${separator}${signature}=${hmac("sha256", secret, `${seconds(nowMs)}${between}${body}`)}` },
    }),
  };
}

/** The reference library of Standard Webhooks, under the names that a sender gives the headers. */
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
  github: { sign: async ({ body, secret }) => ({ headers: { "X-Hub-Signature-256": await signGithub(secret, body) } }) },
  mailgun: {
    unsigned: true,
    timed: true,
    sign({ body, secret, nowMs }) {
      const token = "86d45e896f37828902249604eb3476905faa1d11f13ba82023";
      const signature = { timestamp: seconds(nowMs), token, signature: hmac("sha256", secret, seconds(nowMs) + token) };
      return { headers: {}, body: JSON.stringify({ ...JSON.parse(body), signature }) };
    },
  },
  paddle: timedParts("Paddle-Signature", ["ts", "h1"], { between: ":", separator: ";" }),
  shopify: bodyHmac("X-Shopify-Hmac-Sha256", "sha256", "base64"),
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
  twilio: {
    sign({ body, secret, url }) {
      const fields = [...new URLSearchParams(body)].sort(([one], [other]) => (one < other ? -1 : 1));
      return { headers: { "X-Twilio-Signature": hmac("sha1", secret, url + fields.flat().join(""), "base64") } };
    },
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
