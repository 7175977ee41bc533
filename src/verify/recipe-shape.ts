/**
 * The fields of a signature recipe: how a sender signs, written down. It decides what may be written in each field; the rules that
 * hold between fields are in recipe-check.ts. Source: the specification's "Signature recipe fields"; recipes, "Fields".
 */
import { Type } from "typebox";
import type { Encoding } from "../ground/encoding.ts";
import { MAX_TOLERANCE_SECONDS } from "../ground/limit.ts";
import type { HmacHash } from "./hmac.ts";
import type { PublicKeyAlgorithm } from "./public-key.ts";

type HmacAlgorithm = `hmac-${HmacHash}`;
export type Algorithm = HmacAlgorithm | PublicKeyAlgorithm;
type Separator = "," | ";";

export interface SignatureFields {
  scheme: "signature";
  algorithm?: Algorithm;
  header?: string;
  signatureKey?: string;
  separator?: Separator;
  signatureField?: string;
  timestampHeader?: string;
  timestampKey?: string;
  timestampField?: string;
  toleranceSeconds?: number;
  signedPayload?: string;
  tokenField?: string;
  encoding?: Encoding;
}

export const DEFAULT_ALGORITHM: Algorithm = "hmac-sha256";
export const DEFAULT_ENCODING: Encoding = "hex";
export const DEFAULT_SEPARATOR: Separator = ",";

/** What the sender signs where the recipe does not say: the body, after the timestamp where one is named. */
export function signedPayloadOf(fields: SignatureFields): string {
  return fields.signedPayload ?? (namesTimestamp(fields) ? "{timestamp}.{body}" : "{body}");
}

export function namesTimestamp(fields: SignatureFields): boolean {
  return timestampSources(fields).length > 0;
}

/** The names of the fields set that say where the timestamp is. */
export function timestampSources(
  fields: SignatureFields,
): ("timestampHeader" | "timestampKey" | "timestampField")[] {
  const sources = ["timestampHeader", "timestampKey", "timestampField"] as const;
  return sources.filter((source) => fields[source] !== undefined);
}

/** Characters of an HTTP field name (RFC 9110, token). */
const HEADER_NAME = "^[A-Za-z0-9!#$%&'*+.^_`|~-]{1,100}$";
/** Visible ASCII without = , and ; so that a name can be told apart in a header. */
const PART_NAME = "^[!-+\\-.-:<>-~]{1,64}$";
const PATH_EXPECTS = "a dotted path into the body, such as signature.timestamp";

export function headerNameShape(description: string) {
  return Type.String({
    pattern: HEADER_NAME,
    description,
    expects: "a header name, such as X-Signature",
  });
}

function partNameShape(description: string) {
  return Type.String({
    pattern: PART_NAME,
    description,
    expects: "the text before = in the header, such as v1, without = , ; or spaces",
  });
}

function bodyPathShape(description: string) {
  return Type.String({ minLength: 1, maxLength: 500, description, expects: PATH_EXPECTS });
}

export const signatureShape = Type.Object(
  {
    scheme: Type.Literal("signature", {
      description: "A signature recipe: how the sender signs, field by field.",
      expects: '"signature"',
    }),
    algorithm: Type.Optional(
      Type.Enum(["hmac-sha256", "hmac-sha1", "hmac-sha512", "ed25519", "ecdsa-p256-sha256"], {
        description: "How the sender signs; hmac-sha256 when absent.",
        expects: "hmac-sha256, hmac-sha1, hmac-sha512, ed25519 or ecdsa-p256-sha256",
      }),
    ),
    header: Type.Optional(headerNameShape("The header that holds the signature.")),
    signatureKey: Type.Optional(
      partNameShape("The name of the signature's part where the header has several, such as v1 in t=…,v1=…."),
    ),
    separator: Type.Optional(
      Type.Enum([",", ";"], {
        description: "What stands between the header's parts; , when absent.",
        expects: '"," or ";"',
      }),
    ),
    signatureField: Type.Optional(bodyPathShape("The body field that holds the signature.")),
    timestampHeader: Type.Optional(headerNameShape("The header that holds the timestamp.")),
    timestampKey: Type.Optional(partNameShape("The name of the timestamp's part in the signature header.")),
    timestampField: Type.Optional(bodyPathShape("The body field that holds the timestamp.")),
    toleranceSeconds: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: MAX_TOLERANCE_SECONDS,
        description: `How far the timestamp may be from now, either way; ${MAX_TOLERANCE_SECONDS} when absent.`,
        expects: `an integer from 1 to ${MAX_TOLERANCE_SECONDS}`,
      }),
    ),
    signedPayload: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: 200,
        description:
          "The signed text, of {timestamp}, {url} and one of {body}, {params}, {token}; when absent {body}, or {timestamp}.{body} where a timestamp is named.",
        expects: "a text of at most 200 characters, such as {timestamp}.{body}",
      }),
    ),
    tokenField: Type.Optional(bodyPathShape("The body field that {token} stands for.")),
    encoding: Type.Optional(
      Type.Enum(["hex", "base64", "base64url"], {
        description: "How the signature is written; hex when absent.",
        expects: "hex, base64 or base64url",
      }),
    ),
  },
  { additionalProperties: false },
);
