/**
 * The scheme `signature`: a sender's way of signing written as a recipe. It joins the recipe's shape, rules, verifier and signer; the
 * key is a shared secret or the sender's public key, as the algorithm says. Source: the specification's "Verification schemes".
 */
import { isKeyText } from "../ground/encoding.ts";
import type { Scheme, SecretNeed, Verifier } from "./contract.ts";
import { type HmacHash, prepareHmac } from "./hmac.ts";
import { preparePublicKey } from "./public-key.ts";
import { checkRecipe } from "./recipe-check.ts";
import {
  DEFAULT_ALGORITHM,
  DEFAULT_ENCODING,
  type SignatureFields,
  signatureShape,
  signedPayloadOf,
} from "./recipe-shape.ts";
import { signByRecipe } from "./recipe-sign.ts";
import { prepareRecipe } from "./recipe-verifier.ts";
import { namesPlaceholder } from "./signed-payload.ts";
import { refuseEveryCall } from "./verdict.ts";

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
      ? refuseEveryCall(`the relay holds no ${algorithm} public key`)
      : prepareRecipe(fields, check);
  }
  if (secret === "") return refuseEveryCall("the relay holds no secret");
  if (isKeyText(secret))
    return refuseEveryCall("the relay holds a key where its recipe needs a shared secret");
  return prepareRecipe(fields, prepareHmac(algorithm.slice("hmac-".length) as HmacHash, secret, encoding));
}

export const signature: Scheme<SignatureFields> = {
  name: "signature",
  title: "A signature recipe",
  shape: signatureShape,
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
