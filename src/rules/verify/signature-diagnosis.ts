/**
 * Diagnoses why a request did not verify. It tries the request's signatures with the known secrets and the texts that senders usually
 * sign, and reports only a change that a matching signature or token proves. No secret, value or body is in the result.
 * It does the same work whether or not something matches, so its time reveals nothing. A work limit bounds that time.
 */
import { timingSafeEqual } from "node:crypto";
import { MAX_TOLERANCE_SECONDS } from "../../base/limit.ts";
import { decodeText, joinWords } from "../../base/text.ts";
import { namesPlaceholder } from "./recipe.ts";
import {
  findNearNames,
  findTokens,
  isSameHeader,
  type SignatureCandidate,
  type SignaturePlace,
} from "./signature-candidate.ts";
import {
  HASHES,
  isCurveLength,
  isHmacLength,
  type KnownSecret,
  type RejectedRequest,
  SignatureEvidence,
} from "./signature-evidence.ts";
import { listChanges, listTokenChanges, type SignatureFit } from "./signature-fit.ts";
import {
  computeHmac,
  FIRST_MILLISECOND_DIGITS,
  isSameText,
  preparePublicKey,
  type SignedText,
} from "./signature-proof.ts";
import { MAX_REWRITTEN_BYTES, type SignedTextGuess } from "./signed-text-guess.ts";
import { type KeyForm, type SigningMethod, signingMethodOf } from "./signing-method.ts";

interface SignatureDiagnosis {
  /** The changes with which the request verifies, one phrase each. Empty: it was rejected only for its time. null: nothing matches. */
  changes: readonly string[] | null;
  /** The age of the timestamp in seconds where only that caused the rejection. Negative: it lies in the future. */
  secondsOld: number | null;
  /** The cost of the trial in microseconds of work. */
  spentUs: number;
  /** True if some text of the request could be a signature. */
  hasProof: boolean;
  /** Received headers whose names are similar to the missing ones. */
  similarHeaders: readonly string[];
  /** True if the request lacks a header that the relay reads. */
  lacksHeader: boolean;
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
const MAX_QUERY_FIELDS = 20;
/** A larger body is not parsed for the fields that a recipe names. */
const MAX_PARSED_BYTES = 64 * 1024;

/** Tries the known secrets. `pause` lets other work run between two runs. */
export async function diagnoseSignature(
  rejected: RejectedRequest,
  pause: () => Promise<void>,
): Promise<SignatureDiagnosis> {
  const evidence = new SignatureEvidence(rejected);
  const { request, method } = evidence;
  const budget = new WorkBudget(pause);
  const tokens = findTokenChanges(request);
  const { fits, hasProof } = await findFits(evidence, budget);
  const all = [...fits.flatMap((fit) => describeFit(method, fit, request) ?? []), ...tokens];
  const [best = null] = all.toSorted((one, other) => one.changes.length - other.changes.length);
  return {
    changes: best?.changes ?? null,
    secondsOld: best?.secondsOld ?? null,
    spentUs: budget.spentUs + readingUs(request),
    hasProof,
    ...findMissingHeaders(request, method),
  };
}

/** Formats a diagnosis so that it continues the cause of the rejection. "": nothing was found. */
export function formatDiagnosis(
  { changes, secondsOld, similarHeaders, lacksHeader, hasProof }: SignatureDiagnosis,
  unmatched: boolean,
): string {
  if (changes !== null && changes.length > 0) return `; it verifies with ${joinWords(changes)}`;
  if (changes !== null && secondsOld !== null) {
    const off = `; everything else verifies, so the sender's clock or this server's clock is off by ${Math.abs(secondsOld)} seconds`;
    return secondsOld > 0
      ? `${off}, or the request was signed that long ago and was delayed or sent again`
      : off;
  }
  if (changes !== null) return "; everything else verifies";
  if (lacksHeader) {
    if (similarHeaders.length === 0) return "";
    const names = similarHeaders.map((name) => `\`${name}\``);
    return `; the request has ${names.length === 1 ? "a header" : "headers"} with a similar name: ${joinWords(names)}`;
  }
  return hasProof || !unmatched ? "" : "; the received value does not have the form of a signature";
}

function findMissingHeaders(
  { headers }: RejectedRequest,
  method: SigningMethod,
): Pick<SignatureDiagnosis, "similarHeaders" | "lacksHeader"> {
  const isReceived = (name: string): boolean => headers.some(([one]) => isSameHeader(one, name));
  const missing = {
    proof: method.headers.some(isReceived) ? [] : method.headers,
    timestamp: method.requiredHeaders.filter((name) => !isReceived(name)),
  };
  const own = [...method.headers, ...method.requiredHeaders];
  const others = headers.filter(([name]) => !own.some((one) => isSameHeader(one, name)));
  return {
    similarHeaders: findNearNames(others, missing),
    lacksHeader: missing.proof.length + missing.timestamp.length > 0,
  };
}

type FitDescription = Pick<SignatureDiagnosis, "secondsOld"> & { changes: readonly string[] };

/** Lists every change, so that a request with them is not rejected for another reason. null: no phrase can name them. */
function describeFit(
  method: SigningMethod,
  fit: SignatureFit,
  { call }: RejectedRequest,
): FitDescription | null {
  const changes = listChanges(method, fit);
  if (changes === null) return null;
  const { payload, url } = fit.guess;
  const secondsOld = findSecondsOld(method, fit.guess, call.nowMs);
  const isAppended = namesPlaceholder(payload, "url") && url === null && call.search !== "";
  const more = [
    ...(secondsOld === null ? [] : [`a timestamp that is not ${Math.abs(secondsOld)} seconds off`]),
    ...(isAppended ? ["nothing appended to the receiver URL"] : []),
  ];
  if (changes.length === 0 && more.length < 2) return { changes, secondsOld };
  return { changes: [...changes, ...more], secondsOld: null };
}

/** Returns the age of the timestamp in seconds where it exceeds the tolerance. Negative: it lies in the future. */
function findSecondsOld(
  { fields }: SigningMethod,
  { timestamp, scheme }: SignedTextGuess,
  nowMs: number,
): number | null {
  if (timestamp === null) return null;
  const { toleranceSeconds = MAX_TOLERANCE_SECONDS } =
    scheme === null ? fields : signingMethodOf({ scheme }).fields;
  const isInMs = timestamp.atMs !== undefined || timestamp.digits.length >= FIRST_MILLISECOND_DIGITS;
  const unitMs = isInMs ? 1 : 1000;
  const oldMs = (Math.floor(nowMs / unitMs) - (timestamp.atMs ?? Number(timestamp.digits))) * unitMs;
  const seconds = Math.sign(oldMs) * Math.ceil(Math.abs(oldMs) / 1000);
  return Math.abs(seconds) > toleranceSeconds ? seconds : null;
}

/** Returns the highest cost of reading a request of this size, in microseconds. */
function readingUs({ headers, call }: RejectedRequest): number {
  const headerChars = headers.reduce((sum, [name, value]) => sum + name.length + value.length, 0);
  const perKb = call.body.byteLength <= MAX_REWRITTEN_BYTES ? REWRITE_US_PER_KB : BODY_US_PER_KB;
  return (headerChars * HEADER_US_PER_KB + call.body.byteLength * perKb) / 1024;
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

/** Finds a secret itself in the request: the relay's secret in another place, or another secret in the right place. */
function findTokenChanges({ verify, call, headers, secrets }: RejectedRequest): FitDescription[] {
  const query = [...new URLSearchParams(call.search)].slice(0, MAX_QUERY_FIELDS);
  const texts: { place: SignaturePlace | null; query: string | null; text: string }[] = [
    ...findTokens(headers).map(({ place, text }) => ({ place, query: null, text })),
    ...query.map(([name, text]) => ({ place: null, query: name, text })),
  ];
  return secrets.flatMap(({ text: secret, label, isPublicKey }) => {
    if (isPublicKey) return [];
    const bare = /^[A-Za-z]+ (?<rest>\S.*)$/.exec(secret)?.groups?.rest ?? null;
    return texts.flatMap(({ text, ...place }) => {
      const matches = [
        ...(isSameText(text, secret) ? [false] : []),
        ...(bare !== null && isSameText(text, bare) ? [true] : []),
      ];
      return matches.map((withoutWord) => ({
        changes: listTokenChanges(verify, { ...place, label, withoutWord }),
        secondsOld: null,
      }));
    });
  });
}

async function findFits(
  evidence: SignatureEvidence,
  budget: WorkBudget,
): Promise<{ fits: SignatureFit[]; hasProof: boolean }> {
  const { method, request } = evidence;
  const { signatureField, timestampField, tokenField } = method.fields;
  const readsFields = (signatureField ?? timestampField ?? tokenField) !== undefined;
  if (readsFields && request.call.body.byteLength > MAX_PARSED_BYTES) return { fits: [], hasProof: true };
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
  return { fits, hasProof: (hasPublicKey ? signed : macs).length > 0 };
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
