/** Describes how a relay's sender signs, for every scheme, in the fields of a recipe. Handshakes and the diagnosis read it. */
import type { Encoding } from "../../base/text.ts";
import { ADYEN_PAYLOAD, ADYEN_SIGNATURE } from "./adyen.ts";
import type { VerifyFields } from "./contract.ts";
import { HOOKS_PAYLOAD } from "./hooks.ts";
import { findNamedSender, type NamedSender } from "./named-sender.ts";
import { PROCESSOR_HEADERS, processorRecipe } from "./processor.ts";
import {
  type Algorithm,
  DEFAULT_ALGORITHM,
  DEFAULT_ENCODING,
  type SignatureFields,
  signedPayloadOf,
} from "./recipe.ts";
import { tokenPlacesOf } from "./shared-token.ts";

/** The fields of a recipe that say where and how a sender signs. */
export type RecipeFields = Omit<SignatureFields, "scheme">;

/** The kind of conversion from a secret's text to a key. */
export type KeyForm = "text" | "whsec" | "after_prefix" | "base64" | "hex" | "unquoted" | "prefixed";

export interface SigningMethod {
  scheme: string;
  /** Headers that can hold the signature or the token. Sentences name the first one. */
  headers: readonly string[];
  /** Other headers that the sender must send. */
  requiredHeaders: readonly string[];
  fields: RecipeFields;
  algorithm: Algorithm;
  encoding: Encoding;
  payload: string;
  keyForm: KeyForm;
}

/** The signing method of a definition's `verify`. */
export function signingMethodOf(verify: VerifyFields): SigningMethod {
  switch (verify.scheme) {
    case "processor":
      return {
        ...recipeMethod("processor", processorRecipe(PROCESSOR_HEADERS[0])),
        headers: PROCESSOR_HEADERS,
      };
    case "hooks":
      return {
        ...recipeMethod("hooks", { header: "webhook-signature", encoding: "base64" }),
        headers: ["webhook-signature", "hooks-signature", "svix-signature"],
        payload: HOOKS_PAYLOAD,
        keyForm: "whsec",
      };
    case "shared_token":
      return recipeMethod("shared_token", { header: tokenPlacesOf(verify).header });
    case "adyen":
      return {
        ...recipeMethod("adyen", { signatureField: ADYEN_SIGNATURE, encoding: "base64" }),
        payload: ADYEN_PAYLOAD,
        keyForm: "hex",
      };
    default: {
      const sender = findNamedSender(verify.scheme);
      return sender === null ? recipeMethod("signature", verify as RecipeFields) : namedMethod(sender);
    }
  }
}

function namedMethod({
  name,
  signatures,
  signatureKey,
  timestamp,
  id,
  ...sender
}: NamedSender): SigningMethod {
  const { algorithm, encoding, toleranceSeconds, payload } = sender;
  const [header] = signatures;
  const key = signatureKey === undefined ? {} : { signatureKey };
  const fields = { algorithm, encoding, header, ...key, timestampHeader: timestamp, toleranceSeconds };
  const requiredHeaders = [timestamp, ...(id === undefined ? [] : [id])];
  return { ...recipeMethod(name, fields), headers: signatures, requiredHeaders, payload };
}

function recipeMethod(scheme: string, recipe: RecipeFields): SigningMethod {
  const { algorithm = DEFAULT_ALGORITHM, encoding = DEFAULT_ENCODING, header, timestampHeader } = recipe;
  const payload = signedPayloadOf({ ...recipe, scheme: "signature" });
  return {
    scheme,
    headers: header === undefined ? [] : [header],
    requiredHeaders: timestampHeader === undefined ? [] : [timestampHeader],
    fields: { ...recipe, algorithm, encoding, signedPayload: payload },
    algorithm,
    encoding,
    payload,
    keyForm: "text",
  };
}
