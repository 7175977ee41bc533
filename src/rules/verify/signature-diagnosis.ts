/**
 * Diagnoses why a request did not verify: the smallest change to the definition, the secret or the URL with which it verifies.
 * signature-trial.ts proves each change by a matching signature. No secret, value or body is in the result.
 */
import { MAX_TOLERANCE_SECONDS } from "../../base/limit.ts";
import { joinWords } from "../../base/text.ts";
import { namesPlaceholder } from "./recipe.ts";
import { findNearNames, findTokens, isSameHeader, type SignaturePlace } from "./signature-candidate.ts";
import { type RejectedRequest, SignatureEvidence } from "./signature-evidence.ts";
import { listChanges, listTokenChanges, type SignatureFit } from "./signature-fit.ts";
import { FIRST_MILLISECOND_DIGITS, isSameText } from "./signature-proof.ts";
import { tryKnownSecrets } from "./signature-trial.ts";
import type { SignedTextGuess } from "./signed-text-guess.ts";
import { type SigningMethod, signingMethodOf } from "./signing-method.ts";

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

const MAX_QUERY_FIELDS = 20;

/** Tries the known secrets. `pause` lets other work run between two runs. */
export async function diagnoseSignature(
  rejected: RejectedRequest,
  pause: () => Promise<void>,
): Promise<SignatureDiagnosis> {
  const evidence = new SignatureEvidence(rejected);
  const { request, method } = evidence;
  const tokens = findTokenChanges(request);
  const { fits, ...trial } = await tryKnownSecrets(evidence, pause);
  const all = [...fits.flatMap((fit) => describeFit(method, fit, request) ?? []), ...tokens];
  const [best = null] = all.toSorted((one, other) => one.changes.length - other.changes.length);
  return {
    changes: best?.changes ?? null,
    secondsOld: best?.secondsOld ?? null,
    ...trial,
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
  { received }: RejectedRequest,
): FitDescription | null {
  const changes = listChanges(method, fit);
  if (changes === null) return null;
  const { payload, url } = fit.guess;
  const secondsOld = findSecondsOld(method, fit.guess, received.nowMs);
  const isAppended = namesPlaceholder(payload, "url") && url === null && received.search !== "";
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

/** Finds a secret itself in the request: the relay's secret in another place, or another secret in the right place. */
function findTokenChanges({ verify, received, headers, secrets }: RejectedRequest): FitDescription[] {
  const query = [...new URLSearchParams(received.search)].slice(0, MAX_QUERY_FIELDS);
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
