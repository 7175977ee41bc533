/**
 * Defines the contract of a verification scheme. Each scheme has one file, and one line in registry.ts. Verification is a pure function of the
 * request, the definition's fields and the secret: it reads no relay, database or clock.
 */
import type { TSchema } from "typebox";
import type { Json } from "../../base/json.ts";
import type { Problem } from "../../base/refusal.ts";

/** A received request, as the schemes read it. */
export interface ReceivedRequest {
  /** Returns a header's value; names have no case. Values of a repeated header are joined with ", ". */
  header(name: string): string | null;
  /** The received bytes, before any parsing. */
  body: Uint8Array;
  /** Reports whether the body is a form and not JSON. Does not parse it. */
  isForm(): boolean;
  /** Parses the body once, at the first use: JSON, or a form's fields. A repeated field is a list. */
  parsed(): ParsedBody;
  /** Reports work in microseconds before it is done for an unverified request. Throws where a limit forbids the work. */
  charge(microseconds: number): void;
  /** The part of the URL after the path, "?" included; "" if there is none. */
  search: string;
  /** The relay's receiver URL, byte for byte as its page shows it. */
  receiverUrl: string;
  nowMs: number;
  /** Accepts a timestamp of any age, for a delivery of the past that is checked now. A timestamp in the future stays invalid. */
  isOld?: boolean;
}

/** The kinds of body that a scheme's senders send. */
export type BodyKinds = "json" | "json_or_form";

export type ParsedBody =
  /** `text`: the JSON text without a byte order mark. */
  | { ok: true; value: Json; form: null; text: string }
  /** `form`: the decoded pairs in the order received. */
  | { ok: true; value: Json; form: readonly (readonly [name: string, value: string])[] }
  | { ok: false; message: string };

export type Verdict =
  | {
      verified: true;
      /** The signed text of a recipe that accepts each signature once ({params}, {token}), else null. */
      onceText: Uint8Array | null;
      /** The time when the timestamp leaves the accepted window, in ms since the epoch. null: there is no timestamp. */
      expiresAtMs: number | null;
      /** The sender's own id of the event, for deduplication when the map has no event_id. */
      senderEventId: string | null;
      /** True if that id is made of signed values and is in no header. */
      idOfValues?: true;
      /** True if the previous secret verified the request, while both secrets are valid. */
      byPrevious?: boolean;
    }
  | {
      verified: false;
      code: "bad_signature" | "too_many_signatures" | "invalid_json";
      /** The reason in words for the owner, such as "header x-signature is missing". Holds no secret and no body. */
      cause: string;
      /** True if there was a signature or token that did not match. */
      unmatched?: boolean;
    };

export type Verified = Extract<Verdict, { verified: true }>;

/** A verifier with its secret prepared. It is made once for each saved relay and used for every request. */
export interface Verifier {
  verify(received: ReceivedRequest): Verdict;
}

/** The scheme's name and its own fields, as a definition has them. */
export interface VerifyFields {
  scheme: string;
  [field: string]: Json;
}

/** The kind of secret that a scheme needs. */
export type SecretNeed =
  /** A shared secret, generated here or pasted. */
  | "shared"
  /** The sender's public key, which can only be pasted. */
  | "public_key"
  /** The environment's own payment-processor secret. */
  | "processor"
  /** None: another relay verifies the requests. */
  | "source";

/** A body to sign as the sender does. */
export interface Draft {
  body: Uint8Array;
  contentType: string;
  receiverUrl: string;
  nowMs: number;
}

/** A signed request for `relay send` and the tests. */
export interface SignedDraft {
  headers: Record<string, string>;
  body: Uint8Array;
  search: string;
}

export interface Scheme<Fields = unknown> {
  name: string;
  title: string;
  /** TypeBox object schema: `scheme` included as a literal, additionalProperties false, every property with ShapeWords. */
  shape: TSchema;
  /** Checks rules beyond the shape, for fields that fit the shape. `field` is relative to `verify`. */
  check(fields: Fields): Problem[];
  secretNeed(fields: Fields): SecretNeed;
  /** Nothing signs the content-type header, so a scheme whose senders send only JSON reads nothing else. */
  bodies: BodyKinds;
  /** Reports whether the sender signs the event itself. If not, the unsigned-event rule applies. */
  signsEvent(fields: Fields): boolean;
  /** The paths of every body value that the sender signs. Absent: it signs the complete body, or none of it. */
  signedPaths?: readonly string[];
  /** `secret` is the stored text: a shared secret, or a public key as SPKI DER in base64. */
  prepare(fields: Fields, secret: string): Verifier;
  /** Signs a body as the sender does. `key` is the secret, or the private key (PEM) for public-key recipes. */
  sign(fields: Fields, key: string, draft: Draft): SignedDraft;
  examples: readonly Fields[];
}

/** Rejects a request. The cause is for the owner and must hold no secret and no body. */
export function badSignature(cause: string): Verdict {
  return { verified: false, code: "bad_signature", cause };
}

/** Rejects a request whose signature or token did not match. */
export function unmatchedSignature(cause: string): Verdict {
  return { verified: false, code: "bad_signature", cause, unmatched: true };
}

/** Makes a verifier that rejects every request, for a secret that cannot verify anything. */
export function rejectEveryRequest(cause: string): Verifier {
  const verdict = badSignature(cause);
  return { verify: () => verdict };
}
