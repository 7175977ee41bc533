/**
 * The proof of a request in every scheme: a signature over a text, by HMAC or by a public key, and a timestamp within its window.
 * Signatures are compared in constant time, and no candidate makes a check throw. Source: RFC 2104, RFC 8032, RFC 3279; recipes,
 * "Encodings and keys" and "Timestamps".
 */
import { createPublicKey, type KeyObject, timingSafeEqual, verify } from "node:crypto";
import type { Json } from "../../base/json.ts";
import type { PublicKeyAlgorithm } from "../../base/key-text.ts";
import { MAX_TIMESTAMP_DIGITS } from "../../base/limit.ts";
import { decodeInto, decodeText, type Encoding } from "../../base/text.ts";
import type { ReceivedRequest } from "./contract.ts";

/** The text that a signature covers, in the pieces of which every scheme makes it. */
export interface SignedText {
  /** The beginning as text: literals, the timestamp's digits, the receiver URL. */
  head: string;
  /** The bytes after it: the body, the form's parameters or the token. */
  tail: Uint8Array;
  /** The text that some senders sign after the body: the timestamp. */
  end?: string;
}

export interface SignatureCheck {
  /**
   * Reports whether one of at most 8 encoded candidates is a signature over the text. Calls `makeText` only for a candidate that can be a signature.
   * Throws nothing itself.
   */
  matches(makeText: () => SignedText, candidates: readonly string[]): boolean;
  /** Returns the highest cost in microseconds of checking so many bytes against so many candidates. */
  costUs(bytes: number, candidates: number): number;
}

/** Joins the pieces of the text. */
export function joinSignedText({ head, tail, end = "" }: SignedText): Buffer {
  return Buffer.concat([Buffer.from(head), tail, Buffer.from(end)]);
}

export type HmacHash = "sha1" | "sha256" | "sha512";

const HMAC_BYTES: Readonly<Record<HmacHash, number>> = { sha1: 20, sha256: 32, sha512: 64 };

/** The cost of the slowest hash, in microseconds. */
const HASH_US_PER_KB = 2;

/** Returns the HMAC of the text. */
export function computeHmac(hash: HmacHash, key: string | Uint8Array, text: SignedText): Buffer {
  return addText(new Bun.CryptoHasher(hash, key), text).digest();
}

/**
 * Makes a check of HMAC signatures; `key` must not be empty. It keys the hash once and copies that state for each request, which halves
 * the cost.
 */
export function prepareHmac(hash: HmacHash, key: string | Uint8Array, encoding: Encoding): SignatureCheck {
  const keyed = new Bun.CryptoHasher(hash, key);
  const bytes = HMAC_BYTES[hash];
  const given = Buffer.alloc(bytes);
  return {
    matches(makeText, candidates) {
      let expected: Buffer | null = null;
      let matched = false;
      for (const candidate of candidates) {
        if (candidate.length > bytes * 2 || decodeInto(candidate, encoding, given) !== bytes) continue;
        expected ??= addText(keyed.copy(), makeText()).digest();
        matched = timingSafeEqual(given, expected) || matched;
      }
      return matched;
    },
    costUs: (signed) => (signed / 1024) * HASH_US_PER_KB,
  };
}

function addText(hasher: Bun.CryptoHasher, text: SignedText): Bun.CryptoHasher {
  if (text.head !== "") hasher.update(text.head);
  hasher.update(text.tail);
  return text.end === undefined ? hasher : hasher.update(text.end);
}

const ED25519_BYTES = 64;
const P1363_BYTES = 64;
/** A SEQUENCE of two INTEGERs of at most 33 bytes each. */
const LONGEST_DER_BYTES = 72;

/** The cost of one check on the curve, or of the two that 64 bytes under ECDSA get. */
const CURVE_US = 120;

/**
 * Makes a check of public-key signatures. Ed25519 takes 64 bytes with a canonical S. ECDSA takes DER with high or low S, and exactly 64
 * bytes as r‖s. null: the stored text is no SPKI DER key in base64 for this algorithm.
 */
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

/** A timestamp with so many digits is in milliseconds, one with fewer in seconds. */
export const FIRST_MILLISECOND_DIGITS = 12;
const ZERO = 0x30;
const NINE = 0x39;

interface Timestamp {
  /** The digits that were received and signed. */
  digits: string;
  /** The time when the timestamp leaves the window, in ms since the epoch. */
  expiresAtMs: number;
}

/**
 * Reads and checks a timestamp of 1 to 13 ASCII digits; 12 or 13 digits are milliseconds. `raw` is the text of a header or a part, or a
 * body field, where a non-negative integer counts as its digits. The digits are signed as received. Seconds are compared as whole
 * seconds, as senders' libraries do. With `isOld`, no age is too old. A string is the cause of a rejection.
 */
export function readTimestamp(
  raw: Json | undefined,
  { nowMs, isOld = false }: Pick<ReceivedRequest, "nowMs" | "isOld">,
  toleranceSeconds: number,
): Timestamp | string {
  const digits = timestampDigits(raw);
  if (digits === null) return "the timestamp is missing or is not 1 to 13 digits";
  const inMs = digits.length >= FIRST_MILLISECOND_DIGITS;
  const unit = inMs ? 1 : 1000;
  const at = Number(digits);
  const now = Math.floor(nowMs / unit);
  const tolerance = inMs ? toleranceSeconds * 1000 : toleranceSeconds;
  const isFar = isOld ? at - now > tolerance : Math.abs(now - at) > tolerance;
  if (isFar) return formatDistance((now - at) * unit, toleranceSeconds);
  return { digits, expiresAtMs: (at + tolerance + 1) * unit };
}

const ISO_TIME = /^(\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2})(?:\.(\d{1,9}))?(Z|[+-](?:0\d|1\d|2[0-3]):[0-5]\d)$/;

/** Parses an ISO 8601 time with a zone and up to nanoseconds. Returns ms since the epoch; null for another text. */
export function readIsoTime(text: string): number | null {
  const parts = ISO_TIME.exec(text);
  if (parts === null) return null;
  const [, moment = "", fraction = "", zone = ""] = parts;
  const atMs = Date.parse(`${moment}.${fraction.slice(0, 3).padEnd(3, "0")}${zone}`);
  return Number.isNaN(atMs) ? null : atMs;
}

/** Reads and checks a timestamp in ISO 8601, which is signed as received. A string is the cause of a rejection. */
export function readIsoTimestamp(
  raw: string,
  { nowMs, isOld = false }: Pick<ReceivedRequest, "nowMs" | "isOld">,
  toleranceSeconds: number,
): Timestamp | string {
  const digits = trimHttpSpace(raw);
  const atMs = readIsoTime(digits);
  if (atMs === null) return "the timestamp is not an ISO 8601 time with a zone, such as 2026-01-15T12:00:00Z";
  const toleranceMs = toleranceSeconds * 1000;
  const isFar = isOld ? atMs - nowMs > toleranceMs : Math.abs(nowMs - atMs) > toleranceMs;
  if (isFar) return formatDistance(nowMs - atMs, toleranceSeconds);
  return { digits, expiresAtMs: atMs + toleranceMs + 1 };
}

/**
 * Formats how far off a timestamp is, so that the owner can distinguish a slow queue from a wrong clock. Rounds up, so that the number is
 * never within the tolerance.
 */
function formatDistance(oldMs: number, toleranceSeconds: number): string {
  const seconds = Math.ceil(Math.abs(oldMs) / 1000);
  return `the timestamp is ${seconds} seconds ${oldMs > 0 ? "old" : "ahead"}, and at most ${toleranceSeconds} are allowed`;
}

function timestampDigits(raw: Json | undefined): string | null {
  if (typeof raw === "string") {
    const text = trimHttpSpace(raw);
    return isDigits(text) ? text : null;
  }
  if (typeof raw !== "number" || !Number.isSafeInteger(raw) || raw < 0) return null;
  const digits = String(raw);
  return digits.length <= MAX_TIMESTAMP_DIGITS ? digits : null;
}

function isDigits(text: string): boolean {
  if (text.length === 0 || text.length > MAX_TIMESTAMP_DIGITS) return false;
  for (let at = 0; at < text.length; at++) {
    const char = text.charCodeAt(at);
    if (char < ZERO || char > NINE) return false;
  }
  return true;
}

/** Compares secret texts. The time reveals only whether their lengths differ. */
export function isSameText(one: string, other: string): boolean {
  if (one.length !== other.length) return false;
  const [left, right] = [Buffer.from(one), Buffer.from(other)];
  return left.length === right.length && timingSafeEqual(left, right);
}

/** Removes spaces and tabs at both ends, which HTTP allows around a field's value (RFC 9110, OWS). */
export function trimHttpSpace(text: string): string {
  let start = 0;
  let end = text.length;
  while (start < end && isHttpSpace(text.charCodeAt(start))) start++;
  while (end > start && isHttpSpace(text.charCodeAt(end - 1))) end--;
  return start === 0 && end === text.length ? text : text.slice(start, end);
}

function isHttpSpace(char: number): boolean {
  return char === 0x20 || char === 0x09;
}
