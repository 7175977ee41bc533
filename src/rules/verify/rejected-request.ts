/** A refused call and the secrets at hand, and what its relay would look at in it: parts, timestamps, the signed text. It verifies nothing. */
import { scalarText } from "../../base/json.ts";
import { parsePath } from "../../platform/template/template.ts";
import { readAdyenItem } from "./adyen.ts";
import type { ReceivedCall, VerifyFields } from "./contract.ts";
import {
  boundHeaders,
  type CarriedSignature,
  type CarriedTimestamp,
  findSignatures,
  findTimestamps,
  type HeaderList,
  type Place,
  placeOf,
} from "./found-signature.ts";
import { checkFieldCount, joinFormParams, readBodyField } from "./received-request.ts";
import { type Way, wayOf } from "./recipe-hint.ts";
import type { HmacHash, SignedText } from "./signature-proof.ts";
import { guessSignedTexts, MAX_REWRITTEN_BYTES } from "./signed-payload-guess.ts";

/** A secret that may have been used. */
export interface SecretAtHand {
  text: string;
  isPublicKey: boolean;
  /** What it is called, completing "it verifies with …"; null: it is the one that the relay verifies with. */
  called: string | null;
}

export interface RefusedCall {
  verify: VerifyFields;
  call: ReceivedCall;
  headers: HeaderList;
  secrets: readonly SecretAtHand[];
}

/** The hash whose HMAC has so many bytes. */
export const HASHES: ReadonlyMap<number, HmacHash> = new Map([
  [20, "sha1"],
  [32, "sha256"],
  [64, "sha512"],
]);

/** Where the relay would find what proves the call, and what it would check; null: its scheme signs nothing. */
export function readProof(refused: RefusedCall): {
  signatures: readonly CarriedSignature[];
  timestamps: readonly CarriedTimestamp[];
  signed: { payload: string; text: SignedText } | null;
} {
  const bounded = { ...refused, headers: boundHeaders(refused.headers) };
  const way = wayOf(refused.verify);
  const own = new Set(way.headers.map((name) => name.toLowerCase()));
  const fits = (bytes: number) => HASHES.has(bytes) || (bytes >= 64 && bytes <= 72);
  const { header = null, signatureField, signatureKey } = way.fields;
  const text = signatureField === undefined ? null : readText(bounded.call, signatureField);
  const field = text === null ? null : { place: placeOf(null, { field: signatureField ?? "" }), text };
  const found = findSignatures(bounded.headers, field, { encoding: way.encoding, header, fits });
  const guessing = makeGuessing(bounded, way);
  const guess = guessSignedTexts(guessing).find(
    ({ payload, url, body }) => payload === way.payload && url === null && body === null,
  );
  const isToken = way.scheme === "shared_token";
  return {
    signatures: found.filter(({ place }) => {
      if (place.header === null) return true;
      return own.has(place.header.toLowerCase()) && (signatureKey ?? place.key) === place.key;
    }),
    timestamps: guess?.timestamp == null ? [] : [guess.timestamp],
    signed: isToken || guess === undefined ? null : { payload: guess.payload, text: guess.text },
  };
}

/** What signed texts are guessed from. */
export function makeGuessing({ call, headers }: RefusedCall, way: Way) {
  const { tokenField } = way.fields;
  const readsBody = tokenField !== undefined || call.body.byteLength <= MAX_REWRITTEN_BYTES;
  const isForm = call.isForm() && checkFieldCount(call.body) === null;
  const parsed = readsBody || isForm ? call.parsed() : null;
  const form = parsed?.ok ? parsed.form : null;
  const token = tokenField === undefined ? null : readText(call, tokenField);
  const item = way.scheme === "adyen" ? readAdyenItem(call.parsed()) : null;
  return {
    own: way.payload,
    item: item === null || typeof item === "string" ? null : item.text,
    headers,
    timestamps: listTimestamps(call, headers, way),
    body: call.body,
    params: form === null ? null : joinFormParams(form),
    token: token === null ? null : Buffer.from(token),
    json: parsed?.ok && parsed.form === null ? parsed.value : undefined,
    receiverUrl: call.receiverUrl,
    search: call.search,
  };
}

/** The relay's own timestamp first, whatever its digits; then what else could be one. */
function listTimestamps(call: ReceivedCall, headers: HeaderList, { fields }: Way): CarriedTimestamp[] {
  const { timestampField, timestampHeader } = fields;
  const own: CarriedTimestamp[] = [];
  const add = (place: Place, digits: string | null): void => {
    if (digits !== null && /^\d{1,13}$/.test(digits)) own.push({ place, digits });
  };
  if (timestampField !== undefined)
    add(placeOf(null, { field: timestampField }), readText(call, timestampField));
  if (timestampHeader !== undefined) add(placeOf(timestampHeader), call.header(timestampHeader));
  const all = [...own, ...findTimestamps(headers, fields.timestampKey ?? null)];
  const keyOf = ({ place: at, digits: text }: CarriedTimestamp) =>
    `${at.header?.toLowerCase()} ${at.field} ${at.key} ${text}`;
  return [...new Map(all.map((one) => [keyOf(one), one])).values()];
}

export function readText(call: ReceivedCall, field: string): string | null {
  const path = parsePath(field);
  return path === null ? null : scalarText(readBodyField(call.parsed(), path));
}
