/**
 * Guesses how the sender of a request proves it, where the sender is not known: from the names of headers and the forms of their values. A signature
 * reveals its algorithm by its length, but not what it signs, so only a secret can confirm the recipe.
 */
import type { ReceivedRequest, VerifyFields } from "../verify/contract.ts";
import type { SignatureFields } from "../verify/recipe.ts";
import {
  boundHeaders,
  findSignatures,
  findTimestamps,
  type HeaderList,
  type SignatureCandidate,
  type TimestampCandidate,
} from "../verify/signature-candidate.ts";
import { isCurveLength, isHmacLength } from "../verify/signature-evidence.ts";
import { listSendersOfProof } from "./guess-sender.ts";

export interface RecipeGuess {
  verify: VerifyFields;
  /** One or two sentences for a person. */
  why: string;
}

const SIGNATURE_NAME = /signature|hmac|digest|(^|-)(sig|sign|hash)(-|\d|$)/;
const TOKEN_NAME = /token|secret|api-?key|(^|-)(auth|authorization|key|password)(-|$)/;
/** Headers that are never the proof of a webhook. */
const OTHER_NAMES = new Set([
  "cookie",
  "content-digest",
  "digest",
  "repr-digest",
  "idempotency-key",
  "sec-websocket-key",
]);
const TOKEN_PARAMETER = /^(token|secret|key|api_?key|auth|password|access_token|webhook_token)$/i;
const JSON_WEB_TOKEN = /^(Bearer )?eyJ[\w-]+\.[\w-]+\.[\w-]*$/;
/** A recipe can name a header of at most 100 characters, and a query parameter of these characters. */
const HEADER = /^[a-z0-9!#$%&'*+.^_`|~-]{1,100}$/;
const PARAMETER = /^[A-Za-z0-9._~-]{1,100}$/;

/** Guesses the recipe of an unknown sender. */
export function guessRecipe(call: ReceivedRequest, all: HeaderList): RecipeGuess {
  const headers = boundHeaders(all).filter(([name]) => HEADER.test(name) && !OTHER_NAMES.has(name));
  const times = findTimestamps(headers, null);
  const [best] = listSignatures(headers).sort((one, other) => rankOf(one) - rankOf(other));
  if (best !== undefined) return guessKnownRecipe(call, best, times) ?? describeSignature(best, times);
  return guessToken(call, headers);
}

function listSignatures(headers: HeaderList): SignatureCandidate[] {
  const named = headers.filter(([name]) => SIGNATURE_NAME.test(name));
  const fits = (bytes: number): boolean => isHmacLength(bytes) || isCurveLength(bytes);
  return findSignatures(named, null, { encoding: "hex", header: null, fits }).filter(
    ({ place }) => place.prefix === null,
  );
}

/** A newer hash and a newer version come first: sha256 before sha1, v1 before v0. */
function rankOf({ bytes, place: { key } }: SignatureCandidate): number {
  const byBytes = bytes.length === 20 ? 10 : 0;
  return byBytes + (key === "v0" ? 2 : key === "v1" || key === null ? 0 : 1);
}

/** Returns the recipe of known senders that sign in the same place and form. null: none does, or their recipes differ. */
function guessKnownRecipe(
  call: ReceivedRequest,
  { place, bytes, encoding }: SignatureCandidate,
  times: readonly TimestampCandidate[],
): RecipeGuess | null {
  const fitting = listSendersOfProof(call).filter(({ verify }) => {
    const recipe = verify as SignatureFields;
    const { header, signatureKey = null, timestampHeader, timestampKey } = recipe;
    const isTimed = timestampHeader !== undefined || timestampKey !== undefined;
    return (
      recipe.scheme === "signature" &&
      header?.toLowerCase() === place.header?.toLowerCase() &&
      signatureKey === place.key &&
      (recipe.encoding ?? "hex") === encoding &&
      lengthOf(recipe.algorithm).includes(bytes.length) &&
      isTimed === times.length > 0
    );
  });
  const [first] = fitting;
  if (first === undefined) return null;
  const { handshake: _, ...verify } = first.verify;
  const titles = fitting.map(({ title }) => title).slice(0, 3);
  const who = titles.length === 1 ? `${titles[0]} signs` : `${titles.join(", ")} sign`;
  return {
    verify,
    why: `The header ${place.header} has a signature in the form in which ${who}, so this sender may sign the same text.`,
  };
}

function lengthOf(algorithm = "hmac-sha256"): readonly number[] {
  if (algorithm === "ed25519") return [64];
  if (algorithm === "ecdsa-p256-sha256") return [64, 70, 71, 72];
  return [{ "hmac-sha1": 20, "hmac-sha256": 32, "hmac-sha512": 64 }[algorithm] ?? 0];
}

function describeSignature(
  { place, bytes, encoding }: SignatureCandidate,
  times: readonly TimestampCandidate[],
): RecipeGuess {
  const header = place.header ?? "";
  const { key } = place;
  const algorithm = algorithmOf(bytes.length, `${header} ${key ?? ""}`);
  const time = times.find((one) => one.place.key === null || one.place.header === header) ?? null;
  const isKeyed = key !== null;
  const timePart = time?.place.header === header && time.place.key !== null ? time.place.key : null;
  const timeHeader = time !== null && time.place.key === null ? (time.place.header ?? null) : null;
  const timed =
    timePart !== null
      ? { timestampKey: timePart }
      : timeHeader === null
        ? {}
        : { timestampHeader: timeHeader };
  const isTimed = timePart !== null || timeHeader !== null;
  const signedPayload = isTimed ? timedPayload(key, algorithm) : "{body}";
  const verify: SignatureFields = {
    scheme: "signature",
    ...(algorithm === "hmac-sha256" ? {} : { algorithm }),
    header,
    ...(isKeyed ? { signatureKey: key } : {}),
    ...(isKeyed && place.separator !== null ? { separator: place.separator } : {}),
    ...timed,
    signedPayload,
    encoding,
  };
  const where = isKeyed ? `The part ${key} of the header ${header}` : `The header ${header}`;
  const form = `${where} has ${bytes.length} bytes in ${encoding}, the length of ${ALGORITHM_WORDS[algorithm]}.`;
  const stamp = isTimed
    ? ` ${timePart !== null ? `The part ${timePart}` : `The header ${timeHeader}`} has the time.`
    : "";
  return {
    verify: { ...verify },
    why: `${form}${stamp} The signed text ${signedPayload} is only the usual one.`,
  };
}

const ALGORITHM_WORDS = {
  "hmac-sha1": "an HMAC with SHA-1",
  "hmac-sha256": "an HMAC with SHA-256",
  "hmac-sha512": "an HMAC with SHA-512",
  ed25519: "an Ed25519 signature",
  "ecdsa-p256-sha256": "an ECDSA signature",
} as const;

function algorithmOf(bytes: number, names: string): keyof typeof ALGORITHM_WORDS {
  if (bytes === 20) return "hmac-sha1";
  if (bytes === 32) return "hmac-sha256";
  if (bytes === 64) return /ed25519|eddsa/i.test(names) ? "ed25519" : "hmac-sha512";
  return "ecdsa-p256-sha256";
}

/** Slack's form names its version in the text, and senders with a public key write nothing between time and body. */
function timedPayload(key: string | null, algorithm: string): string {
  if (!algorithm.startsWith("hmac-")) return "{timestamp}{body}";
  return key === "v0" ? "v0:{timestamp}:{body}" : "{timestamp}.{body}";
}

/** Reports whether the request has only a body, as a pasted payload does. */
function isBare({ search }: ReceivedRequest, headers: HeaderList): boolean {
  return search === "" && headers.every(([name]) => name === "content-type");
}

function guessToken(call: ReceivedRequest, headers: HeaderList): RecipeGuess {
  const found = headers.find(([name]) => TOKEN_NAME.test(name));
  const odd = headers.find(
    ([name, value]) => JSON_WEB_TOKEN.test(value) || (found === undefined && SIGNATURE_NAME.test(name)),
  );
  if (odd !== undefined) {
    const [header, value] = odd;
    const form = JSON_WEB_TOKEN.test(value) ? "a JSON Web Token" : "a signature in another form";
    return {
      verify: { scheme: "shared_token" },
      why: `The header ${header} has ${form}. Relay checks HMAC with SHA-1, SHA-256 or SHA-512, Ed25519, and ECDSA on P-256: let the sender use one of them, or a token in the header x-webhook-token.`,
    };
  }
  if (found !== undefined) {
    const [header] = found;
    return {
      verify: { scheme: "shared_token", header },
      why: `The header ${header} has the name of a token, and no header has the form of a signature.`,
    };
  }
  const names = [...new URLSearchParams(call.search).keys()];
  const query = names.find((name) => TOKEN_PARAMETER.test(name) && PARAMETER.test(name));
  if (query !== undefined)
    return {
      verify: { scheme: "shared_token", query },
      why: `The query parameter ${query} has the name of a token, and no header has the form of a signature.`,
    };
  return {
    verify: { scheme: "shared_token" },
    why: isBare(call, headers)
      ? "Only the body is known, so the signature is not. Give the headers too, or capture a request."
      : "The request has no signature and no token. Let the sender send a token in the header x-webhook-token, or append ?token=… to the URL.",
  };
}
