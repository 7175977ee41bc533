/**
 * Tries the known secrets on what a rejected request offers: each signature with each text that its sender may have signed. It does the same work
 * whether or not something matches, so its time reveals nothing. A work limit bounds that time.
 */
import { timingSafeEqual } from "node:crypto";
import { decodeText } from "../../base/text.ts";
import type { SignatureCandidate } from "./signature-candidate.ts";
import {
  HASHES,
  isCurveLength,
  isHmacLength,
  type KnownSecret,
  type RejectedRequest,
  type SignatureEvidence,
} from "./signature-evidence.ts";
import type { SignatureFit } from "./signature-fit.ts";
import { computeHmac, preparePublicKey, type SignedText } from "./signature-proof.ts";
import { MAX_REWRITTEN_BYTES, type SignedTextGuess } from "./signed-text-guess.ts";
import type { KeyForm, SigningMethod } from "./signing-method.ts";

interface SignatureTrial {
  /** The signatures that a secret verifies. */
  fits: SignatureFit[];
  /** True if some text of the request could be a signature. */
  hasProof: boolean;
  /** The cost in microseconds of work, with the highest cost of reading such a request. */
  spentUs: number;
}

/** The work limit for one request, and for one run without a pause. */
const MAX_TRIAL_US = 20_000;
const MAX_RUN_US = 2_000;
/** Measured costs of searching the headers, of rewriting a body, and of only reading it. */
const HEADER_US_PER_KB = 200;
const REWRITE_US_PER_KB = 150;
const BODY_US_PER_KB = 15;
/** The fixed cost of one HMAC: its keyed state and the comparisons. */
const HMAC_US = 4;
const HASH_US_PER_KB = 2;
const CURVE_US = 150;
const MIN_KEY_BYTES = 12;
/** A larger body is not parsed for the fields that a recipe names. */
const MAX_PARSED_BYTES = 64 * 1024;

/** Tries each known secret on the signatures and texts. `pause` lets other work run between two runs. */
export async function tryKnownSecrets(
  evidence: SignatureEvidence,
  pause: () => Promise<void>,
): Promise<SignatureTrial> {
  const { method, request } = evidence;
  const budget = new WorkBudget(pause);
  const end = (fits: SignatureFit[], hasProof: boolean): SignatureTrial => {
    return { fits, hasProof, spentUs: budget.spentUs + readingUs(request) };
  };
  const { signatureField, timestampField, tokenField } = method.fields;
  const readsFields = (signatureField ?? timestampField ?? tokenField) !== undefined;
  if (readsFields && request.received.body.byteLength > MAX_PARSED_BYTES) return end([], true);
  const guesses = evidence.guessTexts();
  // Other secrets are tried only on the relay's own signed payload, which bounds the work.
  const ownGuesses = guesses.filter(({ payload }) => payload === method.payload);
  const macs = evidence.findSignatures(isHmacLength);
  const hasPublicKey = request.secrets.some(({ isPublicKey }) => isPublicKey);
  const signed = hasPublicKey ? evidence.findSignatures(isCurveLength) : [];
  const fits: SignatureFit[] = [];
  for (const secret of request.secrets) {
    const texts = secret.label === null ? guesses : ownGuesses;
    if (secret.isPublicKey) fits.push(...(await tryPublicKey(secret, method, texts, signed, budget)));
    else fits.push(...(await tryHmac(secret, texts, macs, budget)));
  }
  return end(fits, (hasPublicKey ? signed : macs).length > 0);
}

async function tryHmac(
  { text, label }: KnownSecret,
  guesses: readonly SignedTextGuess[],
  signatures: readonly SignatureCandidate[],
  budget: WorkBudget,
): Promise<SignatureFit[]> {
  const fits: SignatureFit[] = [];
  const hashes = new Set(signatures.flatMap(({ bytes }) => HASHES.get(bytes.length) ?? []));
  for (const { keyForm, key } of listKeys(text)) {
    for (const guess of guesses) {
      for (const hash of hashes) {
        if (!(await budget.take(HMAC_US, guess.text))) return fits;
        const mac = computeHmac(hash, key, guess.text);
        for (const signature of signatures) {
          if (signature.bytes.length !== mac.length || !timingSafeEqual(signature.bytes, mac)) continue;
          fits.push({ signature, guess, algorithm: `hmac-${hash}`, label, keyForm });
        }
      }
    }
  }
  return fits;
}

async function tryPublicKey(
  { text, label }: KnownSecret,
  { algorithm }: SigningMethod,
  guesses: readonly SignedTextGuess[],
  signatures: readonly SignatureCandidate[],
  budget: WorkBudget,
): Promise<SignatureFit[]> {
  const fits: SignatureFit[] = [];
  if (algorithm !== "ed25519" && algorithm !== "ecdsa-p256-sha256") return fits;
  for (const signature of signatures) {
    const check = preparePublicKey(algorithm, text, signature.encoding);
    if (check === null) continue;
    for (const guess of guesses) {
      if (!(await budget.take(CURVE_US, guess.text))) return fits;
      if (check.matches(() => guess.text, [signature.text]))
        fits.push({ signature, guess, algorithm, label, keyForm: "text" });
    }
  }
  return fits;
}

/** Lists every way in which a secret's text can be a key. */
function listKeys(text: string): { keyForm: KeyForm; key: string | Uint8Array }[] {
  const keys: { keyForm: KeyForm; key: string | Uint8Array }[] = [{ keyForm: "text", key: text }];
  const add = (keyForm: KeyForm, key: string | Uint8Array | null): void => {
    if (key !== null && key.length >= MIN_KEY_BYTES) keys.push({ keyForm, key });
  };
  add("unquoted", /^(["'])(?<inner>.*)\1$/.exec(text)?.groups?.inner ?? null);
  if (text.startsWith("whsec_")) {
    const rest = text.slice("whsec_".length);
    add("whsec", decodeText(rest, "base64"));
    add("after_prefix", rest);
  } else {
    add("base64", decodeText(text, "base64"));
    add("prefixed", `whsec_${text}`);
    add("hex", decodeText(text, "hex"));
  }
  return keys;
}

/** Returns the highest cost of reading a request of this size, in microseconds. */
function readingUs({ headers, received }: RejectedRequest): number {
  const headerChars = headers.reduce((sum, [name, value]) => sum + name.length + value.length, 0);
  const perKb = received.body.byteLength <= MAX_REWRITTEN_BYTES ? REWRITE_US_PER_KB : BODY_US_PER_KB;
  return (headerChars * HEADER_US_PER_KB + received.body.byteLength * perKb) / 1024;
}

/** Counts work against the limit, and pauses between two runs. */
class WorkBudget {
  spentUs = 0;
  #runUs = 0;
  readonly #pause: () => Promise<void>;

  constructor(pause: () => Promise<void>) {
    this.#pause = pause;
  }

  /** Spends the work of hashing a text. Returns false where the limit does not allow it. */
  async take(fixedUs: number, { head, tail }: SignedText): Promise<boolean> {
    const us = fixedUs + ((head.length + tail.byteLength) / 1024) * HASH_US_PER_KB;
    if (this.spentUs + us > MAX_TRIAL_US) return false;
    this.spentUs += us;
    this.#runUs += us;
    if (this.#runUs > MAX_RUN_US) {
      this.#runUs = 0;
      await this.#pause();
    }
    return true;
  }
}
