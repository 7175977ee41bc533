/**
 * Every verification scheme, one line each, and a definition's `verify` bound to its own. Everything that lists schemes (checks, the JSON
 * Schema, the dashboard, the docs) reads this.
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
import { checkHandshake, findHandshake, handshakeShape, type NamedHandshake } from "./handshake.ts";
import { hooks } from "./hooks.ts";
import { namedSchemes } from "./named-sender.ts";
import { processor } from "./processor.ts";
import { sharedToken } from "./shared-token.ts";
import { signature } from "./signature.ts";

const ALL: readonly Scheme[] = [signature, processor, hooks, sharedToken, ...namedSchemes, adyen];

/** Each may name what its sender asks the URL, beside its own fields. */
export const SCHEMES: readonly Scheme[] = ALL.map((scheme) => {
  const { properties } = scheme.shape as TObject;
  const shape = Type.Object({ ...properties, handshake: handshakeShape }, { additionalProperties: false });
  return { ...scheme, shape };
});

/** The earlier name of `signature`: refused at save, and answered 401 `scheme_renamed` where it is still stored. */
export const RENAMED_SCHEME = "hmac_sha256_header";

const BY_NAME: ReadonlyMap<string, Scheme> = new Map(SCHEMES.map((scheme) => [scheme.name, scheme]));

export function findScheme(name: string): Scheme | null {
  return BY_NAME.get(name) ?? null;
}

/** A definition's `verify`, bound to the scheme it names. */
export interface BoundScheme {
  name: string;
  bodies: BodyKinds;
  /** What its sender asks the URL; null: it names nothing. */
  handshake: NamedHandshake | null;
  check(): Problem[];
  secretNeed(): SecretNeed;
  signsEvent(): boolean;
  /** null: the sender signs the body whole, or nothing of it. */
  signedPaths: readonly string[] | null;
  /** `secret` is the stored text. */
  prepare(secret: string): Verifier;
  sign(key: string, draft: Draft): SignedDraft;
}

/**
 * The scheme that `verify` names with its fields, which were checked to fit its shape; null: there is none of that name. A definition that somebody
 * wrote by SQL may have no `verify`.
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
