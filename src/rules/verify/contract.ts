/**
 * What a verification scheme is: one file a scheme, one line in registry.ts. Verification is a pure function of the call, the
 * definition's fields and the secret; it never reads a relay, a database or a clock.
 */
import type { TSchema } from "typebox";
import type { Json } from "../../base/json.ts";
import type { Problem } from "../../base/refusal.ts";

/** A received call, as the schemes see it. */
export interface ReceivedCall {
  /** A header's value without regard to case; one that came twice is joined with ", ". */
  header(name: string): string | null;
  /** The bytes received, before any parsing. */
  body: Uint8Array;
  /** Whether the body is a form and no JSON, told without parsing it. */
  isForm(): boolean;
  /** The body parsed once, lazily: JSON, or a form's fields (a repeated name is a list). */
  parsed(): ParsedBody;
  /** Tells of work, in microseconds of it, before it is done for a call that has not verified; throws where it may not be done. */
  charge(microseconds: number): void;
  /** What followed the path, "?" included; "" when nothing was appended. */
  search: string;
  /** The stored receiver URL of the relay, byte for byte as its page shows it. */
  receiverUrl: string;
  nowMs: number;
  /** Whether a timestamp may be as old as it likes: the delivery is an old one that is looked at now. One of the future never is good. */
  isOld?: boolean;
}

/** Which bodies a scheme's senders send. */
export type BodyKinds = "json" | "json_or_form";

export type ParsedBody =
  /** `text`: what the value was read from, without a byte order mark. */
  | { ok: true; value: Json; form: null; text: string }
  /** `form`: the decoded pairs in the order received. */
  | { ok: true; value: Json; form: readonly (readonly [name: string, value: string])[] }
  | { ok: false; message: string };

export type Verdict =
  | {
      verified: true;
      /** The signed text of a recipe that accepts each signature once ({params}, {token}); else null. */
      onceText: Uint8Array | null;
      /** When the call's timestamp leaves the window, in ms since the epoch; null where it carries none. */
      expiresAtMs: number | null;
      /** The sender's own id (scheme hooks: of a header), for dedupe when the map names no event_id. */
      senderEventId: string | null;
      /** Where that id stands in no header: it is made of what the sender signs. */
      idOfValues?: true;
      /** By the secret before the present one, while both verify. */
      byPrevious?: boolean;
    }
  | {
      verified: false;
      code: "bad_signature" | "too_many_signatures" | "invalid_json";
      /** Why, in words for the owner's eyes (never a secret, never a body): "header x-signature is missing". */
      cause: string;
      /** A proof was where it is looked for, and did not match. */
      unmatched?: boolean;
    };

export type Verified = Extract<Verdict, { verified: true }>;

/** A verifier with its secret prepared; made once per saved relay, used for every call. */
export interface Verifier {
  verify(call: ReceivedCall): Verdict;
}

/** `scheme` and the scheme's own fields, as a definition says them. */
export interface VerifyFields {
  scheme: string;
  [field: string]: Json;
}

/** What a scheme's secret is. */
export type SecretNeed =
  /** A shared secret: minted here or pasted. */
  | "shared"
  /** The sender's public key: pasted only. */
  | "public_key"
  /** The environment's own payment-processor secret. */
  | "processor";

/** A body to be signed as the sender does. */
export interface Draft {
  body: Uint8Array;
  contentType: string;
  receiverUrl: string;
  nowMs: number;
}

/** What `relay send` and the tests need to make a call that verifies. */
export interface SignedDraft {
  headers: Record<string, string>;
  body: Uint8Array;
  search: string;
}

export interface Scheme<Fields = unknown> {
  name: string;
  title: string;
  /** TypeBox object schema, `scheme` included as a literal, additionalProperties false, every property with ShapeWords. */
  shape: TSchema;
  /** Rules beyond the shape; `field` relative to `verify`. Only called on a value that fits the shape. */
  check(fields: Fields): Problem[];
  secretNeed(fields: Fields): SecretNeed;
  /** No header is signed, so a scheme whose senders send JSON alone reads nothing else. */
  bodies: BodyKinds;
  /** Whether the sender signs the event itself; false falls under the unsigned-event rule. */
  signsEvent(fields: Fields): boolean;
  /** The paths of all that the sender signs of the body; absent: it signs the body whole, or nothing of it. */
  signedPaths?: readonly string[];
  /** `secret` is the stored text: a secret as pasted or minted, or a public key in the stored (SPKI base64) form. */
  prepare(fields: Fields, secret: string): Verifier;
  /** Signs a body the way the sender does. `key` is the secret, or the private key (PEM) for public-key recipes. */
  sign(fields: Fields, key: string, draft: Draft): SignedDraft;
  examples: readonly Fields[];
}

/** A cause is for the owner: never a secret, never a body. */
export function badSignature(cause: string): Verdict {
  return { verified: false, code: "bad_signature", cause };
}

/** As `badSignature`, where a proof was there and is not the secret's. */
export function unmatchedSignature(cause: string): Verdict {
  return { verified: false, code: "bad_signature", cause, unmatched: true };
}

/** A verifier that refuses every call, for a secret that cannot verify anything. */
export function rejectEveryRequest(cause: string): Verifier {
  const verdict = badSignature(cause);
  return { verify: () => verdict };
}
