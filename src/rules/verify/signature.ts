/**
 * The scheme `signature`: a sender's signature described by a recipe. It joins the recipe's shape, rules, verifier and signer. The key is
 * a shared secret or the sender's public key, depending on the algorithm. Source: the specification's "Verification schemes".
 */
import { Type } from "typebox";
import { isKeyText } from "../../base/key-text.ts";
import { MAX_TOLERANCE_SECONDS } from "../../base/limit.ts";
import { rejectEveryRequest, type Scheme, type SecretNeed, type Verifier } from "./contract.ts";
import {
  checkRecipe,
  DEFAULT_ALGORITHM,
  DEFAULT_ENCODING,
  namesPlaceholder,
  type SignatureFields,
  signedPayloadOf,
} from "./recipe.ts";
import { signByRecipe } from "./recipe-sign.ts";
import { prepareRecipe } from "./recipe-verifier.ts";
import { type HmacHash, prepareHmac, preparePublicKey } from "./signature-proof.ts";

/** Characters of an HTTP field name (RFC 9110, token). */
const HEADER_NAME = "^[A-Za-z0-9!#$%&'*+.^_`|~-]{1,100}$";
/** Visible ASCII without = , and ; so that a header can be split unambiguously. */
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

const shape = Type.Object(
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
    header: Type.Optional(headerNameShape("The header that contains the signature.")),
    signatureKey: Type.Optional(
      partNameShape(
        "The name of the signature's part if the header has several parts, such as v1 in t=…,v1=….",
      ),
    ),
    separator: Type.Optional(
      Type.Enum([",", ";"], {
        description: "The separator between the header's parts; , when absent.",
        expects: '"," or ";"',
      }),
    ),
    signatureField: Type.Optional(bodyPathShape("The body field that contains the signature.")),
    timestampHeader: Type.Optional(headerNameShape("The header that contains the timestamp.")),
    timestampKey: Type.Optional(partNameShape("The name of the timestamp's part in the signature header.")),
    timestampField: Type.Optional(bodyPathShape("The body field that contains the timestamp.")),
    toleranceSeconds: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: MAX_TOLERANCE_SECONDS,
        description: `The maximum difference between the timestamp and now, in seconds; ${MAX_TOLERANCE_SECONDS} when absent.`,
        expects: `an integer from 1 to ${MAX_TOLERANCE_SECONDS}`,
      }),
    ),
    signedPayload: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: 200,
        description:
          "The signed text: {timestamp}, {url} and one of {body}, {params}, {token}. When absent: {body}, or {timestamp}.{body} if the recipe names a timestamp.",
        expects: "a text of at most 200 characters, such as {timestamp}.{body}",
      }),
    ),
    tokenField: Type.Optional(bodyPathShape("The body field that replaces {token}.")),
    encoding: Type.Optional(
      Type.Enum(["hex", "base64", "base64url"], {
        description: "How the signature is written; hex when absent.",
        expects: "hex, base64 or base64url",
      }),
    ),
  },
  { additionalProperties: false },
);

function secretNeed(fields: SignatureFields): SecretNeed {
  const algorithm = fields.algorithm ?? DEFAULT_ALGORITHM;
  return algorithm === "ed25519" || algorithm === "ecdsa-p256-sha256" ? "public_key" : "shared";
}

function prepare(fields: SignatureFields, secret: string): Verifier {
  const algorithm = fields.algorithm ?? DEFAULT_ALGORITHM;
  const encoding = fields.encoding ?? DEFAULT_ENCODING;
  if (algorithm === "ed25519" || algorithm === "ecdsa-p256-sha256") {
    const check = preparePublicKey(algorithm, secret, encoding);
    return check === null
      ? rejectEveryRequest(`the relay has no ${algorithm} public key`)
      : prepareRecipe(fields, check);
  }
  if (secret === "") return rejectEveryRequest("the relay has no secret");
  if (isKeyText(secret))
    return rejectEveryRequest("the relay has a public key, but its recipe needs a shared secret");
  return prepareRecipe(fields, prepareHmac(algorithm.slice("hmac-".length) as HmacHash, secret, encoding));
}

export const signature: Scheme<SignatureFields> = {
  name: "signature",
  title: "A signature recipe",
  shape,
  check: checkRecipe,
  secretNeed,
  bodies: "json_or_form",
  signsEvent: (fields) => !namesPlaceholder(signedPayloadOf(fields), "token"),
  prepare,
  sign: signByRecipe,
  examples: [
    {
      scheme: "signature",
      algorithm: "hmac-sha256",
      header: "X-Signature",
      signatureKey: "v1",
      separator: ",",
      timestampKey: "t",
      signedPayload: "{timestamp}.{body}",
      encoding: "hex",
    },
    { scheme: "signature", header: "X-Hub-Signature-256", signatureKey: "sha256", signedPayload: "{body}" },
    { scheme: "signature", header: "X-Shop-Hmac-Sha256", signedPayload: "{body}", encoding: "base64" },
    {
      scheme: "signature",
      header: "X-Chat-Signature",
      signatureKey: "v0",
      timestampHeader: "X-Chat-Request-Timestamp",
      signedPayload: "v0:{timestamp}:{body}",
    },
    {
      scheme: "signature",
      algorithm: "hmac-sha1",
      header: "X-Phone-Signature",
      signedPayload: "{url}{params}",
      encoding: "base64",
    },
    {
      scheme: "signature",
      signatureField: "signature.signature",
      timestampField: "signature.timestamp",
      tokenField: "signature.token",
      signedPayload: "{timestamp}{token}",
    },
    {
      scheme: "signature",
      algorithm: "ed25519",
      header: "X-Signature-Ed25519",
      timestampHeader: "X-Signature-Timestamp",
      signedPayload: "{timestamp}{body}",
    },
    {
      scheme: "signature",
      algorithm: "ecdsa-p256-sha256",
      header: "X-Mail-Signature",
      timestampHeader: "X-Mail-Timestamp",
      signedPayload: "{timestamp}{body}",
      encoding: "base64",
    },
  ],
};
