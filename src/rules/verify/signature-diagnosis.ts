/**
 * Why a call did not verify, found by trying: the signatures it carries against the texts that senders sign and the secrets that are at
 * hand. What it tells is proved by a signature or a token that fits, and by nothing less. Nothing here makes a call verify, and no secret,
 * value or body is in what it tells. It stops at no fit, so that its work says nothing, and at a bound of work.
 */
import { timingSafeEqual } from "node:crypto";
import { MAX_TOLERANCE_SECONDS } from "../../base/limit.ts";
import { decodeText } from "../../base/text.ts";
import {
  boundHeaders,
  type CarriedSignature,
  findNearNames,
  findSignatures,
  findTokens,
  type Place,
  placeOf,
} from "./found-signature.ts";
import { namesPlaceholder } from "./recipe.ts";
import { type Fit, listChanges, listTokenChanges, type Reading, type Way, wayOf } from "./recipe-hint.ts";
import { HASHES, makeGuessing, type RefusedCall, readText, type SecretAtHand } from "./rejected-request.ts";
import { computeHmac, preparePublicKey } from "./signature-proof.ts";
import { type Guess, guessSignedTexts, MAX_REWRITTEN_BYTES } from "./signed-payload-guess.ts";

export interface Difference {
  /** What has to be otherwise for the call to verify, one phrase each; none: nothing but what it was refused for. null: nothing fits. */
  changes: readonly string[] | null;
  /** How old the call's timestamp is where that alone is what it was refused for, in seconds; below 0: it lies ahead. */
  secondsOld: number | null;
  /** What trying took, in microseconds of work. */
  spentUs: number;
  /** Whether the call carries anything that could be a signature. */
  carriesProof: boolean;
  /** Headers that came and are named like the ones that were looked for and did not come. */
  near: readonly string[];
  /** Whether a header that was looked for did not come. */
  lacks: boolean;
}

/** All that is done for one call, and in one stretch of the loop. */
const MAX_TRIAL_US = 20_000;
const MAX_STRETCH_US = 2_000;
/** Reading headers for what could be a proof, and a body that is written anew, or read and no more. */
const HEADER_US_PER_KB = 200;
const REWRITE_US_PER_KB = 150;
const BODY_US_PER_KB = 15;
/** Beside the bytes of a text: its keyed state and the comparisons. */
const HMAC_US = 4;
const HASH_US_PER_KB = 2;
const CURVE_US = 150;
const MIN_KEY_BYTES = 12;
const MAX_QUERY_FIELDS = 20;
/** A larger body is not read for the fields that a recipe names. */
const MAX_READ_BYTES = 64 * 1024;

/** Tries; `turn` lets others have the loop. */
export async function findDifference(refused: RefusedCall, turn: () => Promise<void>): Promise<Difference> {
  const bounded = { ...refused, headers: boundHeaders(refused.headers) };
  const { headers, verify } = bounded;
  const way = wayOf(verify);
  const names = new Set(headers.map(([name]) => name.toLowerCase()));
  const isHere = (name: string): boolean => names.has(name.toLowerCase());
  const missing = {
    proof: way.headers.some(isHere) ? [] : way.headers,
    timestamp: way.beside.filter((one) => !isHere(one)),
  };
  const effort = new Effort(turn);
  const tokens = findTokenFits(bounded);
  const { fits, carriesProof } = await findFits(bounded, way, effort);
  const told = [...fits.flatMap((fit) => tellFit(way, fit, bounded) ?? []), ...tokens];
  const [fewest = null] = told.toSorted((one, other) => one.changes.length - other.changes.length);
  const others = headers.filter(
    ([name]) => ![...way.headers, ...way.beside].some((own) => isSameName(own, name)),
  );
  const near = findNearNames(others, missing);
  const { changes = null, secondsOld = null } = fewest ?? {};
  const spentUs = effort.spentUs + readingUs(bounded);
  return {
    changes,
    secondsOld,
    spentUs,
    carriesProof,
    near,
    lacks: missing.proof.length + missing.timestamp.length > 0,
  };
}

function isSameName(one: string, other: string): boolean {
  return one.toLowerCase() === other.toLowerCase();
}

type Told = { changes: readonly string[]; secondsOld: number | null };

/** What has to be otherwise, what is refused beside it included, so that nothing is said to verify that would be refused again. */
function tellFit(way: Way, fit: Fit, { call }: RefusedCall): Told | null {
  const changes = listChanges(way, fit);
  if (changes === null) return null;
  const { payload, url } = fit.guess;
  const secondsOld = findSecondsOld(way, fit, call.nowMs);
  const appended = namesPlaceholder(payload, "url") && url === null && call.search !== "";
  const beside = [
    ...(secondsOld === null ? [] : [`a timestamp that is not ${Math.abs(secondsOld)} seconds off`]),
    ...(appended ? ["nothing appended to the receiver URL"] : []),
  ];
  if (changes.length === 0 && beside.length < 2) return { changes, secondsOld };
  return { changes: [...changes, ...beside], secondsOld: null };
}

/** How old the timestamp is, or how far ahead (below 0), where that is more than is allowed. */
function findSecondsOld(
  { fields }: Way,
  { guess: { timestamp, scheme } }: Fit,
  nowMs: number,
): number | null {
  if (timestamp === null) return null;
  const own = (scheme === null ? fields : wayOf({ scheme }).fields).toleranceSeconds;
  const unitMs = timestamp.atMs !== undefined || timestamp.digits.length >= 12 ? 1 : 1000;
  const oldMs = (Math.floor(nowMs / unitMs) - (timestamp.atMs ?? Number(timestamp.digits))) * unitMs;
  const seconds = Math.sign(oldMs) * Math.ceil(Math.abs(oldMs) / 1000);
  return Math.abs(seconds) > (own ?? MAX_TOLERANCE_SECONDS) ? seconds : null;
}

/** What it takes to read a call, whatever is found in it. */
function readingUs({ headers, call }: RefusedCall): number {
  const headerChars = headers.reduce((sum, [name, value]) => sum + name.length + value.length, 0);
  const perKb = call.body.byteLength <= MAX_REWRITTEN_BYTES ? REWRITE_US_PER_KB : BODY_US_PER_KB;
  return (headerChars * HEADER_US_PER_KB + call.body.byteLength * perKb) / 1024;
}

/** Counts work; past the bound nothing more is done. */
class Effort {
  spentUs = 0;
  #stretchUs = 0;
  readonly #turn: () => Promise<void>;

  constructor(turn: () => Promise<void>) {
    this.#turn = turn;
  }

  /** Whether so much more may be done. */
  async take(us: number): Promise<boolean> {
    if (this.spentUs + us > MAX_TRIAL_US) return false;
    this.spentUs += us;
    this.#stretchUs += us;
    if (this.#stretchUs > MAX_STRETCH_US) {
      this.#stretchUs = 0;
      await this.#turn();
    }
    return true;
  }
}

/** The secret itself, sent in another place than the relay looks, or another secret in the right one. */
function findTokenFits({ verify, call, headers, secrets }: RefusedCall): Told[] {
  const query = [...new URLSearchParams(call.search)].slice(0, MAX_QUERY_FIELDS);
  const carried: { place: Place | null; query: string | null; text: string }[] = [
    ...findTokens(headers).map(({ place, text }) => ({ place, query: null, text })),
    ...query.map(([name, text]) => ({ place: null, query: name, text })),
  ];
  const found: string[][] = [];
  for (const { text: secret, called, isPublicKey } of secrets) {
    if (isPublicKey) continue;
    const bare = /^[A-Za-z]+ (?<rest>\S.*)$/.exec(secret)?.groups?.rest ?? null;
    for (const { text, ...at } of carried) {
      if (isSame(text, secret)) found.push(listTokenChanges(verify, { ...at, called, withoutWord: false }));
      if (bare !== null && isSame(text, bare))
        found.push(listTokenChanges(verify, { ...at, called, withoutWord: true }));
    }
  }
  return found.map((changes) => ({ changes, secondsOld: null }));
}

/** Neither is timed by a stranger: their lengths are compared first. */
function isSame(one: string, other: string): boolean {
  if (one.length !== other.length) return false;
  const [left, right] = [Buffer.from(one), Buffer.from(other)];
  return left.length === right.length && timingSafeEqual(left, right);
}

async function findFits(refused: RefusedCall, way: Way, effort: Effort) {
  const { headers, secrets, call } = refused;
  const { signatureField, timestampField, tokenField } = way.fields;
  const readsFields = (signatureField ?? timestampField ?? tokenField) !== undefined;
  if (readsFields && call.body.byteLength > MAX_READ_BYTES) return { fits: [], carriesProof: true };
  const guesses = guessSignedTexts(makeGuessing(refused, way));
  const { header = null } = way.fields;
  const text = signatureField === undefined ? null : readText(call, signatureField);
  const field = text === null ? null : { place: placeOf(null, { field: signatureField ?? "" }), text };
  const own = { encoding: way.encoding, header };
  const macs = findSignatures(headers, field, { ...own, fits: (bytes) => HASHES.has(bytes) });
  const keyed = secrets.some(({ isPublicKey }) => isPublicKey);
  const isCurve = (bytes: number): boolean => bytes >= 64 && bytes <= 72;
  const signed = keyed ? findSignatures(headers, field, { ...own, fits: isCurve }) : [];
  const fits: Fit[] = [];
  for (const secret of secrets) {
    // A secret that is not the relay's own is tried on what the relay's own signed text would be.
    const texts = secret.called === null ? guesses : guesses.filter(({ payload }) => payload === way.payload);
    if (secret.isPublicKey) fits.push(...(await tryPublicKey(secret, way, texts, signed, effort)));
    else fits.push(...(await tryHmac(secret, texts, macs, effort)));
  }
  return { fits, carriesProof: keyed ? signed.length > 0 : macs.length > 0 };
}

async function tryHmac(
  { text, called }: SecretAtHand,
  guesses: readonly Guess[],
  signatures: readonly CarriedSignature[],
  effort: Effort,
): Promise<Fit[]> {
  const fits: Fit[] = [];
  const hashes = new Set(signatures.flatMap(({ bytes }) => HASHES.get(bytes.length) ?? []));
  for (const { reading, key } of readKeys(text)) {
    for (const guess of guesses) {
      for (const hash of hashes) {
        const kb = (guess.text.head.length + guess.text.tail.byteLength) / 1024;
        if (!(await effort.take(HMAC_US + kb * HASH_US_PER_KB))) return fits;
        const mac = computeHmac(hash, key, guess.text);
        for (const signature of signatures) {
          if (signature.bytes.length !== mac.length || !timingSafeEqual(signature.bytes, mac)) continue;
          fits.push({ signature, guess, algorithm: `hmac-${hash}`, called, reading });
        }
      }
    }
  }
  return fits;
}

async function tryPublicKey(
  { text, called }: SecretAtHand,
  { algorithm }: Way,
  guesses: readonly Guess[],
  signatures: readonly CarriedSignature[],
  effort: Effort,
): Promise<Fit[]> {
  const fits: Fit[] = [];
  if (algorithm !== "ed25519" && algorithm !== "ecdsa-p256-sha256") return fits;
  for (const signature of signatures) {
    const check = preparePublicKey(algorithm, text, signature.encoding);
    if (check === null) continue;
    for (const guess of guesses) {
      const kb = (guess.text.head.length + guess.text.tail.byteLength) / 1024;
      if (!(await effort.take(CURVE_US + kb * HASH_US_PER_KB))) return fits;
      if (check.matches(() => guess.text, [signature.text]))
        fits.push({ signature, guess, algorithm, called, reading: "text" });
    }
  }
  return fits;
}

/** Every way in which a secret's text can be a key. */
function readKeys(text: string): { reading: Reading; key: string | Uint8Array }[] {
  const keys: { reading: Reading; key: string | Uint8Array }[] = [{ reading: "text", key: text }];
  const add = (reading: Reading, key: string | Uint8Array | null): void => {
    if (key !== null && key.length >= MIN_KEY_BYTES) keys.push({ reading, key });
  };
  const quoted = /^(["'])(?<inner>.*)\1$/.exec(text)?.groups?.inner ?? null;
  add("unquoted", quoted);
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
