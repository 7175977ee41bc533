/**
 * Collects the proof that a rejected request offers, read the way its relay reads it: signatures, timestamps and signed texts. The diagnosis tries
 * the evidence, and the simulation shows it.
 */
import { scalarText } from "../../base/json.ts";
import { parsePath } from "../../platform/template/template.ts";
import { readAdyenItem } from "./adyen.ts";
import type { ReceivedRequest, VerifyFields } from "./contract.ts";
import { checkFieldCount, joinFormParams, readBodyField } from "./received-request.ts";
import {
  boundHeaders,
  findSignatures,
  findTimestamps,
  type HeaderList,
  placeOf,
  type SignatureCandidate,
  type SignaturePlace,
  type TimestampCandidate,
} from "./signature-candidate.ts";
import type { HmacHash, SignedText } from "./signature-proof.ts";
import { guessSignedTexts, MAX_REWRITTEN_BYTES, type SignedTextGuess } from "./signed-text-guess.ts";
import { type SigningMethod, signingMethodOf } from "./signing-method.ts";

/** A secret that the sender may have used. */
export interface KnownSecret {
  text: string;
  isPublicKey: boolean;
  /** Completes "it verifies with …". null: the secret that the relay verifies with. */
  label: string | null;
}

export interface RejectedRequest {
  verify: VerifyFields;
  received: ReceivedRequest;
  headers: HeaderList;
  secrets: readonly KnownSecret[];
}

/** The hash of an HMAC, by the number of its bytes. */
export const HASHES: ReadonlyMap<number, HmacHash> = new Map([
  [20, "sha1"],
  [32, "sha256"],
  [64, "sha512"],
]);

export const isHmacLength = (bytes: number): boolean => HASHES.has(bytes);
export const isCurveLength = (bytes: number): boolean => bytes >= 64 && bytes <= 72;

export class SignatureEvidence {
  readonly request: RejectedRequest;
  readonly method: SigningMethod;

  /** Ignores headers that are too many or too long. */
  constructor(request: RejectedRequest) {
    this.request = { ...request, headers: boundHeaders(request.headers) };
    this.method = signingMethodOf(request.verify);
  }

  /** Lists what could be a signature with an accepted number of bytes. The relay's own place comes first. */
  findSignatures(fits: (bytes: number) => boolean): SignatureCandidate[] {
    const { encoding, fields } = this.method;
    const { header = null, signatureField } = fields;
    const text = signatureField === undefined ? null : this.#readText(signatureField);
    const field = text === null ? null : { place: placeOf(null, { field: signatureField ?? "" }), text };
    return findSignatures(this.request.headers, field, { encoding, header, fits });
  }

  /** Lists the texts that the sender may have signed. The relay's own signed text comes first. */
  guessTexts(): SignedTextGuess[] {
    const { received, headers } = this.request;
    const { scheme, payload, fields } = this.method;
    const { tokenField } = fields;
    const readsBody = tokenField !== undefined || received.body.byteLength <= MAX_REWRITTEN_BYTES;
    const isForm = received.isForm() && checkFieldCount(received.body) === null;
    const parsed = readsBody || isForm ? received.parsed() : null;
    const form = parsed?.ok ? parsed.form : null;
    const token = tokenField === undefined ? null : this.#readText(tokenField);
    const item = scheme === "adyen" ? readAdyenItem(received.parsed()) : null;
    return guessSignedTexts({
      own: payload,
      item: item === null || typeof item === "string" ? null : item.text,
      headers,
      timestamps: this.#listTimestamps(),
      body: received.body,
      params: form === null ? null : joinFormParams(form),
      token: token === null ? null : Buffer.from(token),
      json: parsed?.ok && parsed.form === null ? parsed.value : undefined,
      receiverUrl: received.receiverUrl,
      search: received.search,
    });
  }

  /** Finds the parts that the relay itself reads. `signed` is null where its scheme signs nothing. */
  readOwnParts(): {
    signatures: readonly SignatureCandidate[];
    timestamps: readonly TimestampCandidate[];
    signed: { payload: string; text: SignedText } | null;
  } {
    const { headers, fields, payload, scheme } = this.method;
    const own = new Set(headers.map((name) => name.toLowerCase()));
    const guess = this.guessTexts().find(
      (one) => one.payload === payload && one.url === null && one.body === null,
    );
    return {
      signatures: this.findSignatures((bytes) => isHmacLength(bytes) || isCurveLength(bytes)).filter(
        ({ place: { header, key } }) =>
          header === null || (own.has(header.toLowerCase()) && (fields.signatureKey ?? key) === key),
      ),
      timestamps: guess?.timestamp == null ? [] : [guess.timestamp],
      signed:
        scheme === "shared_token" || guess === undefined
          ? null
          : { payload: guess.payload, text: guess.text },
    };
  }

  /** Lists the relay's own timestamp first, then what else could be one. */
  #listTimestamps(): TimestampCandidate[] {
    const { received, headers } = this.request;
    const { timestampField, timestampHeader, timestampKey = null } = this.method.fields;
    const own: TimestampCandidate[] = [];
    const add = (place: SignaturePlace, digits: string | null): void => {
      if (digits !== null && /^\d{1,13}$/.test(digits)) own.push({ place, digits });
    };
    if (timestampField !== undefined)
      add(placeOf(null, { field: timestampField }), this.#readText(timestampField));
    if (timestampHeader !== undefined) add(placeOf(timestampHeader), received.header(timestampHeader));
    const all = [...own, ...findTimestamps(headers, timestampKey)];
    const keyOf = ({ place: { header, field, key }, digits }: TimestampCandidate) =>
      `${header?.toLowerCase()} ${field} ${key} ${digits}`;
    return [...new Map(all.map((one) => [keyOf(one), one])).values()];
  }

  #readText(field: string): string | null {
    const path = parsePath(field);
    return path === null ? null : scalarText(readBodyField(this.request.received.parsed(), path));
  }
}
