/** Fingerprints: what may be shown and logged of a secret or key, enough to tell two apart and nothing more. */
import { createHash } from "node:crypto";

const SHOWN_SECRET_HEX = 16;

/** Of a public key: `SHA256:` and the base64 of the SHA-256 of its SPKI DER, as OpenSSH writes one. */
export function fingerprintPublicKey(spki: Uint8Array): string {
  return `SHA256:${createHash("sha256").update(spki).digest("base64").replace(/=+$/, "")}`;
}

/** Of a secret: the first 64 bits of a hash that is used for nothing else, in hex. */
export function fingerprintSecret(secret: string): string {
  const hash = createHash("sha256").update(`relay-service secret fingerprint\n${secret}`).digest("hex");
  return `sha256:${hash.slice(0, SHOWN_SECRET_HEX)}`;
}
