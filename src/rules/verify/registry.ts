/**
 * Lists every verification scheme, one line each, and binds a definition's `verify` to its scheme. The checks, the JSON Schema, the
 * dashboard and the docs all read this list.
 */
import { type TObject, Type } from "typebox";
import type { Problem } from "../../base/refusal.ts";
import { adyen } from "./adyen.ts";
import type {
  BodyKinds,
  Draft,
  Scheme,
  SecretNeed,
  SignedDraft,
  Verifier,
  VerifyFields,
} from "./contract.ts";
import { followedReceiver } from "./followed-receiver.ts";
import { checkHandshake, findHandshake, handshakeShape, type NamedHandshake } from "./handshake.ts";
import { hooks } from "./hooks.ts";
import { namedSchemes } from "./named-sender.ts";
import { processor } from "./processor.ts";
import { sharedToken } from "./shared-token.ts";
import { signature } from "./signature.ts";

const ALL: readonly Scheme[] = [signature, processor, hooks, sharedToken, ...namedSchemes, adyen];

/** Adds the field `handshake` to every scheme of a sender. */
export const SCHEMES: readonly Scheme[] = [
  ...ALL.map((scheme) => {
    const { properties } = scheme.shape as TObject;
    const shape = Type.Object({ ...properties, handshake: handshakeShape }, { additionalProperties: false });
    return { ...scheme, shape };
  }),
  // The source answers the handshake of its sender.
  followedReceiver as Scheme,
];

/** The earlier name of `signature`. A save rejects it, and a stored relay with it answers 401 `scheme_renamed`. */
export const RENAMED_SCHEME = "hmac_sha256_header";

const BY_NAME: ReadonlyMap<string, Scheme> = new Map(SCHEMES.map((scheme) => [scheme.name, scheme]));

export function findScheme(name: string): Scheme | null {
  return BY_NAME.get(name) ?? null;
}

/** A definition's `verify`, bound to the scheme that it names. */
export interface BoundScheme {
  name: string;
  bodies: BodyKinds;
  /** The question that the sender asks the URL. null: the definition names no handshake. */
  handshake: NamedHandshake | null;
  check(): Problem[];
  secretNeed(): SecretNeed;
  signsEvent(): boolean;
  /** null: the sender signs the complete body, or none of it. */
  signedPaths: readonly string[] | null;
  /** `secret` is the stored text. */
  prepare(secret: string): Verifier;
  sign(key: string, draft: Draft): SignedDraft;
}

/**
 * Binds `verify` to its scheme; its fields must fit the scheme's shape. null: no scheme has that name. A definition that was written by
 * SQL may have no `verify`.
 */
export function bindScheme(verify: VerifyFields | undefined): BoundScheme | null {
  const scheme = verify === undefined ? null : findScheme(verify.scheme);
  if (verify === undefined || scheme === null) return null;
  const handshake = verify.handshake === undefined ? null : findHandshake(verify);
  return {
    name: scheme.name,
    bodies: scheme.bodies,
    handshake,
    check: () => [...scheme.check(verify), ...(handshake === null ? [] : checkHandshake(handshake, verify))],
    secretNeed: () => scheme.secretNeed(verify),
    signsEvent: () => scheme.signsEvent(verify),
    signedPaths: scheme.signedPaths ?? null,
    prepare: (secret) => scheme.prepare(verify, secret),
    sign: (key, draft) => scheme.sign(verify, key, draft),
  };
}
