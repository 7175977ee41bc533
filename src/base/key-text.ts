/**
 * Recognizes keys and certificates in a text. Source: the specification's "Secrets" ("On an HMAC recipe a PEM or DER key is refused").
 */
import { createPrivateKey, createPublicKey, X509Certificate } from "node:crypto";
import { decodeText } from "./text.ts";

/** The algorithms whose signatures are checked with the sender's public key. */
export type PublicKeyAlgorithm = "ed25519" | "ecdsa-p256-sha256";

const PEM_BLOCK = /-----BEGIN [A-Z0-9 ]+-----/;
const DER_SEQUENCE = 0x30;

/** Returns whether the text is a public key, a private key or a certificate, as PEM or as DER in hex or base64. */
export function isKeyText(text: string): boolean {
  if (PEM_BLOCK.test(text)) return true;
  const bare = text.replace(/\s+/g, "");
  for (const encoding of ["hex", "base64", "base64url"] as const) {
    const der = decodeText(bare, encoding);
    if (der !== null && der[0] === DER_SEQUENCE && derKind(der) !== null) return true;
  }
  return false;
}

type DerKind = "public" | "private" | "certificate";

/**
 * Returns what a DER structure holds: an SPKI or PKCS#1 public key, a PKCS#8, SEC1 or PKCS#1 private key, or a certificate. Otherwise returns null.
 */
export function derKind(der: Buffer): DerKind | null {
  // Checks for a private key first, because createPublicKey also accepts a private key and returns its public half.
  for (const type of ["pkcs8", "sec1", "pkcs1"] as const) {
    if (opens(() => createPrivateKey({ key: der, format: "der", type }))) return "private";
  }
  for (const type of ["spki", "pkcs1"] as const) {
    if (opens(() => createPublicKey({ key: der, format: "der", type }))) return "public";
  }
  return opens(() => new X509Certificate(der)) ? "certificate" : null;
}

function opens(open: () => unknown): boolean {
  try {
    open();
    return true;
  } catch {
    return false;
  }
}
