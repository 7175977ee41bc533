/**
 * The text of a secret: generated (256 random bits in characters that are safe in headers, queries and shells) or pasted by a user (a shared
 * secret or a public key). It checks the rules and returns the text to store, and never repeats a value. Source: the specification's
 * "Secrets"; recipes, "Encodings and keys".
 */
import { createHash, randomBytes } from "node:crypto";
import { isKeyText, type PublicKeyAlgorithm } from "../../base/key-text.ts";
import { MIN_MIXED_PASTED_SECRET_CHARS, MIN_PASTED_SECRET_CHARS } from "../../base/limit.ts";
import { Refusal } from "../../base/refusal.ts";
import { decodeText } from "../../base/text.ts";
import { readPublicKey } from "./public-key.ts";

const SECRET_BYTES = 32;

const RECEIVER_PREFIX = "rcv_";
/** The prefix of a Standard Webhooks secret. */
const STANDARD_PREFIX = "whsec_";

/**
 * Generates a receiver secret: `whsec_` and base64 for `hooks` (Standard Webhooks), hex for `adyen`, otherwise `rcv_`. `maxChars` is the longest that
 * the sender takes; only `rcv_` secrets can be shorter.
 */
export function mintReceiverSecret(schemeName: string, maxChars = Number.POSITIVE_INFINITY): string {
  const bytes = makeKey();
  if (schemeName === "adyen") return bytes.toString("hex");
  return schemeName === "hooks"
    ? `${STANDARD_PREFIX}${bytes.toString("base64")}`
    : `${RECEIVER_PREFIX}${bytes.toString("base64url")}`.slice(0, maxChars);
}

/** Generates a signing secret for `call_url` notices. Its form is that of Standard Webhooks, so it can sign with both headers. */
export function mintSigningSecret(): string {
  return `${STANDARD_PREFIX}${makeKey().toString("base64")}`;
}

/** Makes a random key. It does not end with a zero, which a pasted key loses because HMAC adds it anyway. */
function makeKey(): Buffer {
  const bytes = randomBytes(SECRET_BYTES);
  bytes[SECRET_BYTES - 1] ||= 1;
  return bytes;
}

/** The secret that signs notices in explanations and in the documentation. Every reader knows it, so it protects nothing. */
export const EXAMPLE_SIGNING_SECRET = "whsec_ZXhhbXBsZS1zZWNyZXQtcHJvdGVjdHMtbm90aGluZyE=";

/** The fields of `verify` that determine the kind of its secret. */
export interface SecretFields {
  scheme: string;
  algorithm?: string;
}

interface PastedSecret {
  kind: "pasted" | "public_key";
  /** The text to seal: the secret, or the SPKI DER of a public key in base64. */
  stored: string;
}

const MAX_PASTED_SECRET_CHARS = 4096;
const NOT_IN_A_SECRET = /[^\x20-\x7e]/u;

/** Reads a pasted secret or public key for a scheme. Throws `invalid_input` and names the violated rule. */
export function readPastedSecret(fields: SecretFields, value: string): PastedSecret {
  const algorithm = publicKeyAlgorithm(fields);
  if (algorithm !== null) {
    return { kind: "public_key", stored: readPublicKey(algorithm, value).toString("base64") };
  }
  const secret = value.trim();
  // This check comes first, so that a PEM block is rejected as a key and not for its line breaks.
  if (isKeyedByText(fields) && isKeyText(secret))
    throw reject(fields.scheme === "signature" ? KEY_AS_SECRET : KEY_AS_OTHER_SECRET);
  checkSecret(secret);
  return { kind: "pasted", stored: READ_BY_FORM[fields.scheme]?.(secret) ?? secret };
}

/** Reports whether the HMAC key is the secret's text or the bytes that the text encodes in hex. */
function isKeyedByText({ scheme }: SecretFields): boolean {
  return scheme !== "shared_token" && scheme !== "hooks";
}

/** Readers of schemes whose secrets have a special form. */
const READ_BY_FORM: Readonly<Record<string, (secret: string) => string>> = {
  hooks: readHooksSecret,
  adyen: readHexSecret,
};

/** Reports whether a stored text can be the secret of such a `verify`, even if it was pasted under other rules. */
export function isUsableSecret(fields: SecretFields, text: string): boolean {
  if (publicKeyAlgorithm(fields) === null && READ_BY_FORM[fields.scheme] === undefined)
    return !isKeyedByText(fields) || !isKeyText(text);
  try {
    readPastedSecret(fields, text);
    return true;
  } catch {
    return false;
  }
}

const KEY_AS_SECRET =
  "The value is a key, which an HMAC recipe cannot use as its secret: paste the sender's shared secret, or set algorithm to ed25519 or ecdsa-p256-sha256.";
const KEY_AS_OTHER_SECRET =
  "The value is a key, which this scheme cannot use as its secret: paste the shared secret that the sender shows.";

function publicKeyAlgorithm(fields: SecretFields): PublicKeyAlgorithm | null {
  if (fields.scheme === "telnyx") return "ed25519";
  if (fields.scheme !== "signature") return null;
  const { algorithm } = fields;
  return algorithm === "ed25519" || algorithm === "ecdsa-p256-sha256" ? algorithm : null;
}

function checkSecret(secret: string): void {
  if (secret === "") throw reject("The secret is empty: paste the secret that the sender shows.");
  const [odd] = NOT_IN_A_SECRET.exec(secret) ?? [];
  if (odd !== undefined) {
    throw reject(
      `The secret contains ${nameCharacter(odd)}: paste it exactly as the sender shows it, on one line.`,
    );
  }
  if (secret.length > MAX_PASTED_SECRET_CHARS) {
    throw reject(`The secret is longer than ${MAX_PASTED_SECRET_CHARS} characters: paste only the secret.`);
  }
  if (!isLongEnough(secret)) {
    throw reject(
      `The secret is too short: use at least ${MIN_PASTED_SECRET_CHARS} characters, or ${MIN_MIXED_PASTED_SECRET_CHARS} that mix upper-case, lower-case and digits.`,
    );
  }
  if (isRepeatedPattern(secret)) throw reject(REPEATED);
}

/** Names a character that no secret may hold. */
function nameCharacter(character: string): string {
  if (character === "\t") return "a tab";
  if (character === "\n" || character === "\r") return "a line break";
  const code = character.codePointAt(0) ?? 0;
  const name = `U+${code.toString(16).toUpperCase().padStart(4, "0")}`;
  return code < 0x80 ? `the control character ${name}` : `the character ${name}, which is not plain ASCII`;
}

const REPEATED = "The secret is a repeated pattern, which is easy to guess: use a random one.";

/** Normalizes the padding, so that two spellings of one HMAC key do not count as two secrets. */
function readHooksSecret(secret: string): string {
  if (!secret.startsWith(STANDARD_PREFIX)) {
    throw reject(
      `The secret does not start with ${STANDARD_PREFIX}, as a Standard Webhooks secret does: paste the complete signing secret of the sender.`,
    );
  }
  const key = secret.slice(STANDARD_PREFIX.length);
  const bytes = decodeText(key, "base64");
  if (key === "" || bytes === null) {
    throw reject(
      `The secret is not base64 after ${STANDARD_PREFIX}, so no signature can match: paste the complete signing secret of the sender.`,
    );
  }
  if (isRepeatedPattern(key)) throw reject(REPEATED);
  return `${STANDARD_PREFIX}${shortenHmacKey(bytes).toString("base64")}`;
}

/** Normalizes case and trailing zeros (which HMAC adds anyway), so that two spellings of one key do not count as two secrets. */
function readHexSecret(secret: string): string {
  const bytes = decodeText(secret, "hex");
  if (bytes === null) {
    throw reject(
      "The secret is not hex, as an HMAC key of Adyen is: paste the complete key that the Customer Area shows when you create it.",
    );
  }
  return shortenHmacKey(bytes).toString("hex");
}

const HMAC_BLOCK_BYTES = 64;

/** Returns the shortest equivalent key: HMAC-SHA256 hashes a key longer than a block and pads a shorter one with zeros. */
function shortenHmacKey(key: Buffer): Buffer {
  const used = key.length > HMAC_BLOCK_BYTES ? createHash("sha256").update(key).digest() : key;
  return used.subarray(0, used.findLastIndex((byte) => byte !== 0) + 1);
}

function isLongEnough(secret: string): boolean {
  if (secret.length >= MIN_PASTED_SECRET_CHARS) return true;
  const mixed = /[A-Z]/.test(secret) && /[a-z]/.test(secret) && /[0-9]/.test(secret);
  return mixed && secret.length >= MIN_MIXED_PASTED_SECRET_CHARS;
}

/**
 * Reports whether the text repeats a shorter one at least twice, the last time possibly cut. The smallest period follows from the longest
 * border (Knuth, Morris, Pratt), in linear time.
 */
function isRepeatedPattern(text: string): boolean {
  const borders = new Uint32Array(text.length + 1);
  for (let at = 1, border = 0; at < text.length; at++) {
    while (border > 0 && text[at] !== text[border]) border = borders[border - 1] ?? 0;
    if (text[at] === text[border]) border++;
    borders[at] = border;
  }
  const period = text.length - (borders[text.length - 1] ?? 0);
  return text.length > 1 && period * 2 <= text.length;
}

function reject(message: string): Refusal {
  return new Refusal("invalid_input", message);
}
