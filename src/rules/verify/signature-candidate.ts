/**
 * Finds text that could be a signature, a timestamp or a token in any header of a rejected request. It reads texts only; signature-diagnosis.ts tries
 * them. Limits bound the number and the bytes, because anyone can send the request.
 */
import { MAX_TIMESTAMP_DIGITS } from "../../base/limit.ts";
import { decodeText, type Encoding, findNearestName } from "../../base/text.ts";
import { trimHttpSpace } from "./signature-proof.ts";

export type HeaderList = readonly (readonly [name: string, value: string])[];

const MAX_HEADERS = 60;
const MAX_VALUE_CHARS = 1_000;
const MAX_PIECES = 20;
const MAX_SIGNATURES_READ = 16;
const MAX_TIMESTAMPS_READ = 4;
const MAX_NEAR_NAMES = 3;
/** Headers come from strangers, so a sentence shows only names of plain letters, digits, hyphens and underscores. */
const PLAIN_NAME = /^[a-z0-9_-]{1,60}$/;

/** The place where a text was found: a header, a part of one (`v1` in `t=…,v1=…`), an entry of its list, or a field of the body. */
export interface SignaturePlace {
  header: string | null;
  field: string | null;
  /** The name of the part. */
  key: string | null;
  /** The separator of the parts. null: there are no several parts. */
  separator: "," | ";" | null;
  /** The kind of prefix before the text, which no recipe can remove: `v1,` in a list, or a word such as `Bearer`. */
  prefix: "version" | "word" | null;
}

interface HeaderPiece {
  place: SignaturePlace;
  text: string;
}

export interface SignatureCandidate {
  place: SignaturePlace;
  text: string;
  encoding: Encoding;
  bytes: Buffer;
}

export interface TimestampCandidate {
  place: SignaturePlace;
  /** The received digits. */
  digits: string;
  /** Milliseconds since the epoch, where the text is an ISO time. */
  atMs?: number;
}

const PART_NAME = /^[A-Za-z0-9_.-]{1,64}$/;

/** Returns the headers that are searched. */
export function boundHeaders(headers: HeaderList): HeaderList {
  return headers.filter(([, value]) => value.length <= MAX_VALUE_CHARS).slice(0, MAX_HEADERS);
}

/** Compares header names, which have no case. */
export function isSameHeader(one: string, other: string | null | undefined): boolean {
  return one.toLowerCase() === other?.toLowerCase();
}

export function placeOf(header: string | null, rest: Partial<SignaturePlace> = {}): SignaturePlace {
  return { header, field: null, key: null, separator: null, prefix: null, ...rest };
}

/** Returns the complete value and every way to split it. */
function splitHeader(header: string, raw: string): HeaderPiece[] {
  const value = trimHttpSpace(raw);
  const pieces: HeaderPiece[] = [{ place: placeOf(header), text: value }];
  for (const separator of [",", ";"] as const) {
    const parts = value.split(separator, MAX_PIECES);
    if (separator === ";" && parts.length === 1) continue;
    for (const part of parts) {
      const named = trimHttpSpace(part);
      const equals = named.indexOf("=");
      const key = named.slice(0, equals);
      if (equals <= 0 || equals === named.length - 1 || !PART_NAME.test(key)) continue;
      const between = parts.length === 1 ? null : separator;
      pieces.push({ place: placeOf(header, { key, separator: between }), text: named.slice(equals + 1) });
    }
  }
  for (const entry of value.split(" ", MAX_PIECES)) {
    const version = /^v\d+,/.exec(entry)?.[0];
    if (version !== undefined)
      pieces.push({ place: placeOf(header, { prefix: "version" }), text: entry.slice(version.length) });
    else if (entry !== value && entry !== "")
      pieces.push({ place: placeOf(header, { prefix: "word" }), text: entry });
  }
  return pieces.slice(0, 2 * MAX_PIECES);
}

const ENCODINGS: readonly Encoding[] = ["hex", "base64", "base64url"];

/** Decodes a text in the first encoding that gives an accepted number of bytes. The relay's own encoding is tried first. */
function decodeSignature(
  { place, text }: HeaderPiece,
  own: Encoding,
  fits: (bytes: number) => boolean,
): SignatureCandidate[] {
  for (const encoding of [own, ...ENCODINGS]) {
    const bytes = decodeText(text, encoding);
    if (bytes !== null && fits(bytes.length)) return [{ place, text, encoding, bytes }];
  }
  return [];
}

/**
 * Lists what could be a signature with an accepted number of bytes, in the headers and in the recipe's body field. The relay's own place
 * comes first.
 */
export function findSignatures(
  headers: HeaderList,
  field: HeaderPiece | null,
  own: { encoding: Encoding; header: string | null; fits: (bytes: number) => boolean },
): SignatureCandidate[] {
  const isOwn = (name: string): boolean => isSameHeader(name, own.header);
  const ordered = [
    ...headers.filter(([name]) => isOwn(name)),
    ...headers.filter(([name]) => !isOwn(name) && isNamedLikeProof(name)),
    ...headers.filter(([name]) => !isOwn(name) && !isNamedLikeProof(name)),
  ];
  const pieces = [
    ...(field === null ? [] : [field]),
    ...ordered.flatMap(([name, value]) => splitHeader(name, value)),
  ];
  const seen = new Set<string>();
  return pieces
    .flatMap((piece) => decodeSignature(piece, own.encoding, own.fits))
    .filter(({ place, text }) => {
      const key = `${place.header} ${place.key} ${text}`;
      return !seen.has(key) && seen.add(key);
    })
    .slice(0, MAX_SIGNATURES_READ);
}

const TIME_NAME = /time|(^|-)ts$/i;
const TIME_KEY = /^(t|ts|time|timestamp)$/i;
/** Since 2001, seconds have ten digits. A shorter number is something else. */
const TIMESTAMP = new RegExp(`^[0-9]{1,${MAX_TIMESTAMP_DIGITS}}$`);
const LIKELY_TIMESTAMP = new RegExp(`^[0-9]{10,${MAX_TIMESTAMP_DIGITS}}$`);

/** Lists what could be a timestamp: a header or part that is named like one, or as the relay's own is. */
export function findTimestamps(headers: HeaderList, ownKey: string | null): TimestampCandidate[] {
  return headers
    .flatMap(([name, value]) => splitHeader(name, value))
    .filter(({ place: { header, key, prefix }, text }) => {
      if (prefix !== null) return false;
      if (key !== null && key === ownKey) return TIMESTAMP.test(text);
      const named = key === null ? TIME_NAME.test(header ?? "") : TIME_KEY.test(key);
      return named && LIKELY_TIMESTAMP.test(text);
    })
    .map(({ place, text }) => ({ place, digits: text }))
    .slice(0, MAX_TIMESTAMPS_READ);
}

/** Lists the texts that could be an unencoded secret: a header's value, or the text after a word such as `Bearer`. */
export function findTokens(headers: HeaderList): HeaderPiece[] {
  return headers.flatMap(([name, raw]) => {
    const value = trimHttpSpace(raw);
    const space = value.indexOf(" ");
    const pieces: HeaderPiece[] = [{ place: placeOf(name), text: value }];
    if (space > 0) pieces.push({ place: placeOf(name, { prefix: "word" }), text: value.slice(space + 1) });
    return pieces;
  });
}

const PROOF_NAME = /signature|hmac|digest|token|secret|(^|-)(sig|sign|auth|authorization)(-|$)/i;

function isNamedLikeProof(name: string): boolean {
  return PROOF_NAME.test(name);
}

/** Returns received headers that could replace the missing ones: those spelled most alike, and those named like a proof or a time. */
export function findNearNames(
  headers: HeaderList,
  wanted: { proof: readonly string[]; timestamp: readonly string[] },
): string[] {
  const names = headers.map(([name]) => name.toLowerCase()).filter((name) => PLAIN_NAME.test(name));
  const nearest = [...wanted.proof, ...wanted.timestamp].flatMap(
    (name) => findNearestName(name, names) ?? [],
  );
  const alike = names.filter((name) =>
    TIME_NAME.test(name) ? wanted.timestamp.length > 0 : wanted.proof.length > 0 && isNamedLikeProof(name),
  );
  return [...new Set([...nearest, ...alike])].slice(0, MAX_NEAR_NAMES);
}
