/**
 * Parses a sender's public key as users paste it (hex, base64 or a PEM block) into the stored form, or says what is wrong. It never creates or
 * repeats a key. Source: the specification's "Secrets"; recipes, "Encodings and keys".
 */
import { createPublicKey, ECDH, type KeyObject } from "node:crypto";
import { derKind, type PublicKeyAlgorithm } from "../../base/key-text.ts";
import { Refusal } from "../../base/refusal.ts";
import { decodeText } from "../../base/text.ts";

const KEY_WORDS: Readonly<Record<PublicKeyAlgorithm, string>> = {
  ed25519: "an Ed25519 public key",
  "ecdsa-p256-sha256": "a P-256 public key",
};
const PLACE_WORDS = "in hex, base64 or a PEM block";

/** The bytes before the point in an SPKI (RFC 8410, RFC 5480). */
const ED25519_SPKI_HEAD = Buffer.from("302a300506032b6570032100", "hex");
const P256_SPKI_HEAD = Buffer.from("3059301306072a8648ce3d020106082a8648ce3d030107034200", "hex");
const X25519_OID = Buffer.from("06032b656e", "hex");
const ED25519_BYTES = 32;
const P256_POINT_BYTES = 65;
const P256_COMPRESSED_BYTES = 33;
const DER_SEQUENCE = 0x30;
const LONGEST_TEXT = 20_000;

const PEM = /^-----BEGIN ([A-Z0-9 ]+)-----([A-Za-z0-9+/=\s]*)-----END ([A-Z0-9 ]+)-----$/;

/** Returns the SPKI DER of a pasted public key. Throws `invalid_input` and names the violated rule. */
export function readPublicKey(algorithm: PublicKeyAlgorithm, pasted: string): Buffer {
  const text = pasted.trim();
  if (text === "") throw reject(`The public key is empty: paste ${KEY_WORDS[algorithm]} ${PLACE_WORDS}.`);
  if (text.length > LONGEST_TEXT) throw rejectNonKey(algorithm);
  const key = text.includes("-----BEGIN") ? readPem(algorithm, text) : readBare(algorithm, text);
  const spki = key.export({ format: "der", type: "spki" });
  if (algorithm === "ed25519" && !isUsableEd25519Point(spki.subarray(ED25519_SPKI_HEAD.length))) {
    throw reject(
      "The value is not a usable Ed25519 public key, because its point is not on the curve or has a small order: paste the key that the sender shows.",
    );
  }
  return spki;
}

function readPem(algorithm: PublicKeyAlgorithm, text: string): KeyObject {
  const [, label, base64, endLabel] = PEM.exec(text) ?? [];
  if (/-----BEGIN [A-Z0-9 ]*PRIVATE KEY-----/.test(text)) throw rejectPrivateKey(algorithm);
  if (/-----BEGIN [A-Z0-9 ]*CERTIFICATE/.test(text)) throw rejectCertificate(algorithm);
  if (label?.startsWith("RSA ")) throw rejectOtherKind(algorithm, "an RSA key");
  const der = decodeText((base64 ?? "").replace(/\s+/g, ""), "base64");
  if (label !== "PUBLIC KEY" || endLabel !== label || der === null || der.length === 0) {
    throw rejectNonKey(algorithm);
  }
  return readDer(algorithm, der);
}

/** Tries hex first, because a text of hex digits is never meant as base64. */
function readBare(algorithm: PublicKeyAlgorithm, text: string): KeyObject {
  const bare = text.replace(/[\r\n]+/g, "");
  const bytes = decodeText(bare, "hex") ?? decodeText(bare, "base64");
  if (bytes === null) throw rejectNonKey(algorithm);
  const point = readPoint(algorithm, bytes);
  return point ?? readDer(algorithm, bytes);
}

function readPoint(algorithm: PublicKeyAlgorithm, bytes: Buffer): KeyObject | null {
  if (bytes.length === ED25519_BYTES) {
    if (algorithm !== "ed25519") throw rejectOtherKind(algorithm, "32 bytes, as an Ed25519 key");
    return open(algorithm, Buffer.concat([ED25519_SPKI_HEAD, bytes]));
  }
  const first = bytes[0];
  const isPoint =
    (bytes.length === P256_POINT_BYTES && first === 4) ||
    (bytes.length === P256_COMPRESSED_BYTES && (first === 2 || first === 3));
  if (!isPoint) return null;
  if (algorithm !== "ecdsa-p256-sha256") throw rejectOtherKind(algorithm, "a P-256 point");
  return open(algorithm, Buffer.concat([P256_SPKI_HEAD, uncompress(bytes)]));
}

function uncompress(point: Buffer): Buffer {
  try {
    return ECDH.convertKey(point, "prime256v1", undefined, undefined, "uncompressed") as Buffer;
  } catch {
    throw reject("The value is a point that is not on the P-256 curve: paste the key the sender shows.");
  }
}

function readDer(algorithm: PublicKeyAlgorithm, der: Buffer): KeyObject {
  if (der[0] !== DER_SEQUENCE) throw rejectNonKey(algorithm);
  const kind = derKind(der);
  if (kind === "private") throw rejectPrivateKey(algorithm);
  if (kind === "certificate") throw rejectCertificate(algorithm);
  if (kind === null && der.includes(X25519_OID)) throw rejectOtherKind(algorithm, "an X25519 key");
  return open(algorithm, der);
}

function open(algorithm: PublicKeyAlgorithm, der: Buffer): KeyObject {
  const key = createKey(der);
  if (key === null) {
    throw isP256Spki(der)
      ? reject("The value is a point that is not on the P-256 curve: paste the key the sender shows.")
      : rejectNonKey(algorithm);
  }
  const found = kindOf(key);
  if (found !== algorithm) throw rejectOtherKind(algorithm, found);
  if (derLength(der) !== der.length) throw rejectNonKey(algorithm);
  return key;
}

/** Expects no private key, because createPublicKey would accept one. */
function createKey(der: Buffer): KeyObject | null {
  for (const type of ["spki", "pkcs1"] as const) {
    try {
      return createPublicKey({ key: der, format: "der", type });
    } catch {}
  }
  return null;
}

function kindOf(key: KeyObject): string {
  const type = key.asymmetricKeyType;
  if (type === "ed25519") return "ed25519";
  if (type === "ec") {
    const curve = key.asymmetricKeyDetails?.namedCurve;
    return curve === "prime256v1" ? "ecdsa-p256-sha256" : `a key on the curve ${curve ?? "of another kind"}`;
  }
  if (type === "x25519") return "an X25519 key";
  return type === "rsa" || type === "rsa-pss" ? "an RSA key" : "a key of another kind";
}

function isP256Spki(der: Buffer): boolean {
  const head = der.subarray(0, P256_SPKI_HEAD.length);
  return der.length === P256_SPKI_HEAD.length + P256_POINT_BYTES && head.equals(P256_SPKI_HEAD);
}

/** Returns the length of a DER SEQUENCE as its header states it; further bytes are not part of the key. */
function derLength(der: Buffer): number {
  const first = der[1] ?? 0;
  if (first < 0x80) return 2 + first;
  const count = first & 0x7f;
  return count === 0 || count > 4 || der.length < 2 + count ? -1 : 2 + count + der.readUIntBE(2, count);
}

const P = 2n ** 255n - 19n;
const Y_OF_ORDER_8 = 0x05fc536d880238b13933c6d305acdfd5f098eff289f4c345b027b2c28f95e826n;
/** The y coordinates of the eight points of small order, under which signatures can be forged. */
const SMALL_ORDER_Y: ReadonlySet<bigint> = new Set([0n, 1n, P - 1n, Y_OF_ORDER_8, P - Y_OF_ORDER_8]);

/** Reports whether 32 bytes are a point on the curve in canonical form and not of small order. The platform does not check this. RFC 8032, 5.1. */
function isUsableEd25519Point(bytes: Uint8Array): boolean {
  const y = BigInt(`0x${Buffer.from(bytes).reverse().toString("hex")}`) & (2n ** 255n - 1n);
  if (y >= P || SMALL_ORDER_Y.has(y)) return false;
  // A point exists if (y² − 1) / (d·y² + 1) is a square, with d = −121665/121666. Euler's criterion tests this for the product as well.
  return power((y * y - 1n) * (121666n - 121665n * y * y) * 121666n, (P - 1n) / 2n) === 1n;
}

/** Raises to a power modulo P. */
function power(base: bigint, exponent: bigint): bigint {
  let result = 1n;
  let square = ((base % P) + P) % P;
  for (let rest = exponent; rest > 0n; rest >>= 1n) {
    if (rest & 1n) result = (result * square) % P;
    square = (square * square) % P;
  }
  return result;
}

function reject(message: string): Refusal {
  return new Refusal("invalid_input", message);
}

function rejectNonKey(algorithm: PublicKeyAlgorithm): Refusal {
  return reject(`The value is not a key: paste ${KEY_WORDS[algorithm]} ${PLACE_WORDS}.`);
}

function rejectPrivateKey(algorithm: PublicKeyAlgorithm): Refusal {
  return reject(
    `The value is a private key, which only the sender may hold: paste ${KEY_WORDS[algorithm]}, and replace the private key at the sender.`,
  );
}

function rejectCertificate(algorithm: PublicKeyAlgorithm): Refusal {
  return reject(`The value is a certificate, not a bare key: paste ${KEY_WORDS[algorithm]} ${PLACE_WORDS}.`);
}

function rejectOtherKind(algorithm: PublicKeyAlgorithm, found: string): Refusal {
  const words = KEY_WORDS[found as PublicKeyAlgorithm] ?? found;
  return reject(`The value is ${words}, but ${algorithm} needs ${KEY_WORDS[algorithm]}: paste that one.`);
}
