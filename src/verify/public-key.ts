/**
 * Ed25519 and ECDSA P-256 signatures against a sender's public key. Ed25519 takes 64 bytes with a canonical S only; ECDSA takes DER,
 * high-S and low-S both, and exactly 64 bytes as r‖s. It never throws on a candidate.
 * Source: RFC 8032, RFC 3279; recipes, "Encodings and keys".
 */
import { createPublicKey, type KeyObject, verify } from "node:crypto";
import { decodeInto, decodeText, type Encoding } from "../ground/encoding.ts";
import { HASH_US_PER_KB } from "./hmac.ts";
import { joinSignedText, type SignatureCheck } from "./signed-text.ts";

export type PublicKeyAlgorithm = "ed25519" | "ecdsa-p256-sha256";

const ED25519_BYTES = 64;
const P1363_BYTES = 64;
/** SEQUENCE of two INTEGERs of at most 33 bytes each. */
const LONGEST_DER_BYTES = 72;

/** One check on the curve, or the two that 64 bytes under ECDSA get. */
const CURVE_US = 120;

/** A check of public-key signatures, or null where the stored text is not a key for this algorithm (SPKI DER in base64). */
export function preparePublicKey(
  algorithm: PublicKeyAlgorithm,
  storedKey: string,
  encoding: Encoding,
): SignatureCheck | null {
  const key = openStoredKey(algorithm, storedKey);
  if (key === null) return null;
  const checkBytes = algorithm === "ed25519" ? isEd25519Signature : isEcdsaSignature;
  const scratch = Buffer.alloc(LONGEST_DER_BYTES);
  return {
    matches(makeText, candidates) {
      let signed: Buffer | null = null;
      for (const candidate of candidates) {
        if (candidate.length > LONGEST_DER_BYTES * 2) continue;
        const bytes = decodeInto(candidate, encoding, scratch);
        if (bytes <= 0) continue;
        signed ??= joinSignedText(makeText());
        if (checkBytes(signed, key, scratch.subarray(0, bytes))) return true;
      }
      return false;
    },
    costUs: (signed, candidates) => candidates * (CURVE_US + (signed / 1024) * HASH_US_PER_KB),
  };
}

function openStoredKey(algorithm: PublicKeyAlgorithm, storedKey: string): KeyObject | null {
  const der = decodeText(storedKey, "base64");
  if (der === null) return null;
  try {
    const key = createPublicKey({ key: der, format: "der", type: "spki" });
    return isKeyFor(algorithm, key) ? key : null;
  } catch {
    return null;
  }
}

function isKeyFor(algorithm: PublicKeyAlgorithm, key: KeyObject): boolean {
  if (algorithm === "ed25519") return key.asymmetricKeyType === "ed25519";
  return key.asymmetricKeyType === "ec" && key.asymmetricKeyDetails?.namedCurve === "prime256v1";
}

function isEd25519Signature(signed: Buffer, key: KeyObject, signature: Buffer): boolean {
  return signature.length === ED25519_BYTES && tryVerify(() => verify(null, signed, key, signature));
}

function isEcdsaSignature(signed: Buffer, key: KeyObject, signature: Buffer): boolean {
  if (tryVerify(() => verify("sha256", signed, { key, dsaEncoding: "der" }, signature))) return true;
  if (signature.length !== P1363_BYTES) return false;
  return tryVerify(() => verify("sha256", signed, { key, dsaEncoding: "ieee-p1363" }, signature));
}

function tryVerify(work: () => boolean): boolean {
  try {
    return work();
  } catch {
    return false;
  }
}
