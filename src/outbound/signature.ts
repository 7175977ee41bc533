/**
 * The signature of an outbound notice: HMAC-SHA256 of `<timestamp>.<raw body>`. The key is the signing secret's text as UTF-8 bytes,
 * whole, its prefix included. Source: the specification's "Outbound", rule 1.
 */
import { createHmac } from "node:crypto";

/** The value of `X-Service-Signature`: `t=<unix_seconds>,v1=<hex>`. `nowMs` is milliseconds since the epoch. */
export function signNotice(secret: string, body: string, nowMs: number): string {
  const seconds = Math.floor(nowMs / 1000);
  const digest = createHmac("sha256", secret).update(`${seconds}.${body}`).digest("hex");
  return `t=${seconds},v1=${digest}`;
}
