/**
 * Secrets the service makes: 256 random bits each, in characters that survive headers, queries and shells. It never makes a public
 * key, and never keeps what it made. Source: the specification's "Secrets".
 */
import { randomBytes } from "node:crypto";

const SECRET_BYTES = 32;

/** A receiver secret for a scheme; for `hooks` in the Standard Webhooks form, `whsec_` and base64. */
export function mintReceiverSecret(schemeName: string): string {
  const bytes = randomBytes(SECRET_BYTES);
  return schemeName === "hooks" ? `whsec_${bytes.toString("base64")}` : `rcv_${bytes.toString("base64url")}`;
}

/** A signing secret for `call_url` notices. */
export function mintSigningSecret(): string {
  return `sgn_${randomBytes(SECRET_BYTES).toString("base64url")}`;
}
