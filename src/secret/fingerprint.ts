/**
 * Fingerprints: what may be shown and logged of a secret or key, enough to tell two apart and nothing more. A secret's is keyed by the
 * master key, so that nobody without it tests guesses against one; equal secrets show equal ones wherever they stand, which is how an owner
 * sees that two places hold the same. A public key is no secret: its own is the plain one that every other tool shows.
 */
import { createHash } from "node:crypto";
import type { PastedSecret } from "./paste.ts";
import type { Sealer } from "./seal.ts";

/** What a fingerprint of an earlier version begins with: a plain hash, against which guesses can be tested. */
export const UNKEYED_FINGERPRINT = "sha256:";

/** Of a public key: `SHA256:` and the base64 of the SHA-256 of its SPKI DER, as OpenSSH writes one. */
function fingerprintPublicKey(spki: Uint8Array): string {
  return `SHA256:${createHash("sha256").update(spki).digest("base64").replace(/=+$/, "")}`;
}

/** Of a secret or public key as it is stored. */
export function fingerprintStored(
  sealer: Sealer,
  kind: PastedSecret["kind"] | "minted",
  stored: string,
): string {
  return kind === "public_key"
    ? fingerprintPublicKey(Buffer.from(stored, "base64"))
    : sealer.fingerprint(stored);
}
