// Verifies a notice that Relay posts to your server. Works in Node, Bun and Deno.
//
// `body` is the raw body: in Express, `express.raw({ type: "application/json" })` gives it as `request.body`.
// `header` is the header `X-Service-Signature`, and `secret` is the relay's signing secret.
import { Buffer } from "node:buffer";
import { createHmac, timingSafeEqual } from "node:crypto";

const TOLERANCE_SECONDS = 300;

export function isFromRelay(body, header, secret, nowMs = Date.now()) {
  const match = /^t=([0-9]{1,13})((?:,v1=[0-9a-f]{64}){1,8})$/.exec(header ?? "");
  // Anyone can sign with an empty secret, such as that of a variable that is not set.
  if (match === null || !secret) return false;
  const [, sentAt, signatures] = match;
  if (Math.abs(nowMs / 1000 - Number(sentAt)) > TOLERANCE_SECONDS) return false;
  const expected = createHmac("sha256", secret).update(`${sentAt}.`).update(body).digest();
  // During the overlap of a rotation, a notice has a signature of each secret.
  return signatures
    .split(",v1=")
    .slice(1)
    .some((one) => timingSafeEqual(expected, Buffer.from(one, "hex")));
}
