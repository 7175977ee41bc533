/**
 * Strict hex, base64 and base64url: each in its own alphabet only, hex in either case, padding whole or absent, no stray bits in
 * the last character. It never guesses an encoding and never skips a character, which Node's own decoders do. And whether what a text stands
 * for is a key that anyone may read, which no HMAC may be keyed with.
 * Source: RFC 4648; recipes, "Encodings and keys"; the specification's "Secrets" ("On an HMAC recipe a PEM or DER key is refused").
 */
import { createPrivateKey, createPublicKey, X509Certificate } from "node:crypto";

export type Encoding = "hex" | "base64" | "base64url";

const ALPHABET: Readonly<Record<Encoding, RegExp>> = {
  hex: /^[0-9a-fA-F]*$/,
  base64: /^[A-Za-z0-9+/]*={0,2}$/,
  base64url: /^[A-Za-z0-9_-]*={0,2}$/,
};

/** Bytes that a text of this many characters, padding included, can stand for at most. */
function longestDecodedBytes(chars: number, encoding: Encoding): number {
  return encoding === "hex" ? chars >>> 1 : Math.floor((chars * 3) / 4);
}

/**
 * Decodes into the beginning of `target` and gives the number of bytes written; -1 where the text is not well formed or does
 * not fit. What `target` holds after a -1 means nothing.
 */
export function decodeInto(text: string, encoding: Encoding, target: Buffer): number {
  if (encoding === "hex") return decodeHexInto(text, target);
  const padding = text.endsWith("==") ? 2 : text.endsWith("=") ? 1 : 0;
  if (padding > 0 && text.length % 4 !== 0) return -1;
  const bytes = Math.floor(((text.length - padding) * 3) / 4);
  if (bytes > target.length || !ALPHABET[encoding].test(text)) return -1;
  if (target.write(text, 0, bytes, encoding) !== bytes) return -1;
  const canonical = target.toString(encoding, 0, bytes);
  const bare = padding === 0 ? text : text.slice(0, -padding);
  return canonical.startsWith(bare) && canonical.length - bare.length <= 2 ? bytes : -1;
}

function decodeHexInto(text: string, target: Buffer): number {
  if (text.length % 2 !== 0 || text.length / 2 > target.length || !ALPHABET.hex.test(text)) return -1;
  return target.write(text, "hex");
}

/** The bytes a text stands for, or null where it is not well formed. */
export function decodeText(text: string, encoding: Encoding): Buffer | null {
  const target = Buffer.alloc(longestDecodedBytes(text.length, encoding));
  const bytes = decodeInto(text, encoding, target);
  return bytes < 0 ? null : target.subarray(0, bytes);
}

const PEM_BLOCK = /-----BEGIN [A-Z0-9 ]+-----/;
const DER_SEQUENCE = 0x30;

/** Whether the text is a public key, a private key or a certificate, as PEM or as DER in hex or base64. */
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

/** What a DER structure holds: an SPKI or PKCS#1 public key, a PKCS#8, SEC1 or PKCS#1 private key, a certificate; else null. */
export function derKind(der: Buffer): DerKind | null {
  // Private first: createPublicKey takes a private key too, and gives its public half.
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
