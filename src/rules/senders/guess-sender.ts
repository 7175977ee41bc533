/**
 * Guesses which known sender sent a request. Three things count: the header of its signature, other headers that have its name, and the fields of
 * the body. It verifies nothing.
 */
import { scalarText } from "../../base/json.ts";
import { joinWords } from "../../base/text.ts";
import { parsePath } from "../../platform/template/template.ts";
import { ADYEN_SIGNATURE } from "../verify/adyen.ts";
import type { ReceivedRequest } from "../verify/contract.ts";
import { findFamily } from "../verify/hooks.ts";
import { readBodyField } from "../verify/received-request.ts";
import { tokenPlacesOf } from "../verify/shared-token.ts";
import { signingMethodOf } from "../verify/signing-method.ts";
import { SENDERS } from "./registry.ts";
import type { Sender } from "./sender.ts";

interface SenderGuess {
  sender: Sender;
  /** One or two sentences for a person. */
  why: string;
}

/** The evidence of one sender in a request. */
interface SenderEvidence {
  sender: Sender;
  /** The header or field that holds its signature or token; null: the request has none of them. */
  proof: string | null;
  /** True if that header has the sender's own name and not only words such as signature. */
  isNamed: boolean;
  /** Another header that has the sender's name; null: there is none. */
  namedBy: string | null;
  /** The paths of its map that the body has. */
  found: readonly string[];
  /** True if the body has its fields and one of its event types. */
  isShaped: boolean;
  score: number;
}

/** Senders whose signatures say only that they follow the standard. */
const STANDARD = "standard-webhooks";
/** Words of headers that many senders use. */
const GENERIC_WORD =
  /^(x|hub|webhooks?|hooks?|svix|sign|signature|hmac|hash|sha\d+|\d+|ed25519|token|secret|auth|authorization|timestamp|key|id)$/;
/** The part of a sender's paths that its events have. Events of one sender differ. */
const MOST_PATHS = 0.75;
/** A body without a signature needs so many of the sender's fields. */
const MIN_UNSIGNED_PATHS = 3;

/** Guesses the sender. null: the request is of no known sender, or of two equally. */
export function guessSender(call: ReceivedRequest, headers: readonly string[]): SenderGuess | null {
  const all = SENDERS.map((sender) => readEvidence(sender, call, headers));
  const isSigned = all.some(({ proof, isNamed }) => proof !== null && isNamed) || hasProofHeader(headers);
  const [best, next] = all
    .filter((one) => isLikely(one, isSigned))
    .sort((one, other) => rankOf(other) - rankOf(one));
  if (best !== undefined && (next === undefined || rankOf(best) > rankOf(next)))
    return { sender: best.sender, why: describe(best) };
  const standard = all.find(({ sender }) => sender.name === STANDARD);
  if (standard === undefined || standard.proof === null) return null;
  return { sender: standard.sender, why: describeStandard(call) };
}

/** Lists the senders whose signature header the request has, without regard to who sent it. */
export function listSendersOfProof(call: ReceivedRequest): Sender[] {
  return SENDERS.filter((sender) => findProof(sender, call) !== null);
}

const PROOF_WORD = /signature|hmac|digest|(^|-)(sig|sign)(-|$)/;

function hasProofHeader(headers: readonly string[]): boolean {
  return headers.some((name) => PROOF_WORD.test(name));
}

function isLikely(
  { sender, proof, isNamed, namedBy, isShaped, found }: SenderEvidence,
  isSigned: boolean,
): boolean {
  if (sender.name === STANDARD) return false;
  if (proof !== null) return isNamed || namedBy !== null || isShaped;
  if (isSigned) return false;
  return namedBy !== null || (isShaped && found.length >= MIN_UNSIGNED_PATHS);
}

/** Orders the evidence: the own header first, then another header, then the fields. */
function rankOf({ proof, isNamed, namedBy, isShaped, found, score, sender }: SenderEvidence): number {
  const part = found.length / Math.max(1, Object.keys(sender.map).length);
  return (
    (proof === null ? 0 : 8_000) +
    (isNamed ? 4_000 : 0) +
    (namedBy === null ? 0 : 2_000) +
    (isShaped ? 1_000 : 0) +
    score * 10 +
    part
  );
}

function readEvidence(sender: Sender, call: ReceivedRequest, headers: readonly string[]): SenderEvidence {
  const proof = findProof(sender, call);
  const body = call.parsed();
  const paths = Object.values(sender.map);
  const read = (text: string | undefined): string | null => {
    const path = text === undefined ? null : parsePath(text);
    return path === null ? null : scalarText(readBodyField(body, path));
  };
  const found = paths.filter((path) => read(path) !== null);
  const type = read(sender.map.event_type);
  const isKnownType = sender.eventTypes.some((one) => one.type === type);
  const isTyped = sender.map.event_type !== undefined;
  const isShaped = isTyped
    ? isKnownType && found.length >= paths.length * MOST_PATHS
    : paths.length >= MIN_UNSIGNED_PATHS && found.length === paths.length;
  return {
    sender,
    proof,
    isNamed: proof !== null && hasOwnWord(proof),
    namedBy: findNamingHeader(sender, call, headers),
    found,
    isShaped,
    score: found.length + (isKnownType ? 2 : 0),
  };
}

/** Finds the header, query parameter or field that holds the sender's signature or token. */
function findProof({ verify }: Sender, call: ReceivedRequest): string | null {
  if (verify.scheme === "hooks") return findFamily(call) === null ? null : "webhook-signature";
  if (verify.scheme === "shared_token") {
    const { header, query } = tokenPlacesOf(verify);
    if (call.header(header) !== null && (verify.header !== undefined || verify.query === undefined))
      return header.toLowerCase();
    return new URLSearchParams(call.search).has(query) ? "token" : null;
  }
  const { headers, requiredHeaders, fields } = signingMethodOf(verify);
  const field = verify.scheme === "adyen" ? ADYEN_SIGNATURE : fields.signatureField;
  if (field !== undefined) {
    const path = parsePath(field);
    const text = path === null ? null : scalarText(readBodyField(call.parsed(), path));
    return text === null || text === "" ? null : "signature";
  }
  const { signatureKey } = fields;
  const holds = (name: string): boolean => {
    const value = call.header(name);
    return value !== null && (signatureKey === undefined || value.includes(`${signatureKey}=`));
  };
  const found = headers.find(holds);
  if (found === undefined || !requiredHeaders.every((name) => call.header(name) !== null)) return null;
  return found.toLowerCase();
}

function hasOwnWord(header: string): boolean {
  return header.split("-").some((word) => !GENERIC_WORD.test(word));
}

/** Finds a header that has the sender's name: user-agent by its value, another header by the words of its name, such as x-github-event. */
function findNamingHeader(
  { name }: Sender,
  call: ReceivedRequest,
  headers: readonly string[],
): string | null {
  const words = name.split("-");
  // A capital letter also begins a word, as in GitHubHook; the name of Line is not in Linear.
  const inAgent = new RegExp(`(?<![A-Za-z0-9])(?:${spell(words)})(?![a-z])`);
  if (inAgent.test(call.header("user-agent") ?? "")) return "user-agent";
  const inName = new RegExp(`(^|-)${words.join("-")}-`);
  return headers.find((one) => inName.test(one)) ?? null;
}

/** Writes a pattern of a name in any case, with any character between its words. */
function spell(words: readonly string[]): string {
  const letters = (word: string) => [...word].map((one) => `[${one}${one.toUpperCase()}]`).join("");
  return words.map(letters).join("[^A-Za-z0-9]?");
}

function describe({ sender, proof, isNamed, namedBy, found }: SenderEvidence): string {
  const { title } = sender;
  if (proof !== null && isNamed) return `The header ${proof} is ${title}'s.`;
  if (namedBy === "user-agent") return `The header user-agent names ${title}.`;
  if (namedBy !== null) return `The header ${namedBy} is ${title}'s.`;
  const fields = joinWords(found.slice(0, 3));
  return `The body has fields of ${title}'s events: ${fields}.`;
}

function describeStandard(call: ReceivedRequest): string {
  const family = ["webhook", "svix", "hooks"].find((one) => call.header(`${one}-id`) !== null) ?? "webhook";
  return `The headers ${family}-id, ${family}-timestamp and ${family}-signature are those of Standard Webhooks, which many senders use.`;
}
