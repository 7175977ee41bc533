/**
 * The signatures of a notice: `X-Service-Signature` on each, and the three headers of Standard Webhooks where the action asks for them. One secret
 * signs both. Sources: the specification's "Outbound", rule 1; Standard Webhooks 1.0.
 */
import { createHmac } from "node:crypto";

const STANDARD_PREFIX = "whsec_";

/** A notice to sign. */
export interface UnsignedNotice {
  /** The exact bytes that are signed and sent. */
  body: string;
  signingSecret: string;
  /** The secret before it, during the overlap of a rotation. It makes a second signature of each kind that its form allows. */
  previousSecret?: string;
  /** The `webhook-id`. Absent: the notice has no Standard Webhooks headers. With it, `signingSecret` must have the form `whsec_` and base64. */
  webhookId?: string;
}

/** Signs the notice at this time. Returns its signature headers. Throws for a `webhookId` with a secret of another form. */
export function makeSignatureHeaders(
  { body, signingSecret, previousSecret, webhookId }: UnsignedNotice,
  nowMs: number,
): Record<string, string> {
  const secrets = [signingSecret, ...(previousSecret === undefined ? [] : [previousSecret])];
  const own = { "X-Service-Signature": signNotice(secrets, body, nowMs) };
  if (webhookId === undefined) return own;
  const keys = secrets.map(readStandardKey);
  if (keys[0] === null) throw new Error("The signing secret is no Standard Webhooks secret.");
  const seconds = Math.floor(nowMs / 1000);
  const sign = (key: Buffer): string =>
    `v1,${createHmac("sha256", key).update(`${webhookId}.${seconds}.${body}`).digest("base64")}`;
  return {
    ...own,
    "webhook-id": webhookId,
    "webhook-timestamp": String(seconds),
    "webhook-signature": keys.flatMap((key) => (key === null ? [] : sign(key))).join(" "),
  };
}

/** Removes the value of each signature, because a reader could replay the request with it. */
export function hideSignatures(headers: Readonly<Record<string, string>>): Record<string, string> {
  const hide = ([name, value]: [string, string]): [string, string] => {
    if (name === "X-Service-Signature") return [name, value.replace(/v1=.*/, "v1=(not kept)")];
    return [name, name === "webhook-signature" ? "v1,(not kept)" : value];
  };
  return Object.fromEntries(Object.entries(headers).map(hide));
}

/**
 * Returns the value of `X-Service-Signature`, `t=<unix_seconds>,v1=<hex>`: HMAC-SHA256 of `<timestamp>.<raw body>`, keyed by the complete text
 * of the signing secret (with its prefix) as UTF-8. Several secrets make several parts `v1=<hex>`.
 */
export function signNotice(secrets: string | readonly string[], body: string, nowMs: number): string {
  const seconds = Math.floor(nowMs / 1000);
  const sign = (secret: string): string =>
    `v1=${createHmac("sha256", secret).update(`${seconds}.${body}`).digest("hex")}`;
  return [`t=${seconds}`, ...[secrets].flat().map(sign)].join(",");
}

/**
 * Reads the Standard Webhooks key of a signing secret. null: the secret is not `whsec_` and padded base64. Some libraries decode no other spelling, so
 * none is accepted.
 */
export function readStandardKey(secret: string): Buffer | null {
  if (!secret.startsWith(STANDARD_PREFIX)) return null;
  const text = secret.slice(STANDARD_PREFIX.length);
  const key = Buffer.from(text, "base64");
  return key.length > 0 && key.toString("base64") === text ? key : null;
}
