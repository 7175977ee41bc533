/**
 * The scheme `processor`: the built-in payment processor's header `t=…,v1=…`, an HMAC-SHA256 over timestamp, dot and body with the
 * environment's own processor secret. The timestamp may be five minutes off. The recipe has two header names, which are never mixed.
 * Source: the specification's "Verification schemes"; decisions, section 1 (header aliases).
 */
import { Type } from "typebox";
import { badSignature, type Scheme, type Verifier } from "./contract.ts";
import type { SignatureFields } from "./recipe.ts";
import { signByRecipe } from "./recipe-sign.ts";
import { signature } from "./signature.ts";

interface ProcessorFields {
  scheme: "processor";
}

export const PROCESSOR_HEADERS = ["processor-signature", "stripe-signature"] as const;

export function processorRecipe(header: string): SignatureFields {
  return {
    scheme: "signature",
    algorithm: "hmac-sha256",
    header,
    signatureKey: "v1",
    separator: ",",
    timestampKey: "t",
    signedPayload: "{timestamp}.{body}",
    encoding: "hex",
  };
}

function prepare(_fields: ProcessorFields, secret: string): Verifier {
  const verifiers = PROCESSOR_HEADERS.map((header) => ({
    header,
    verifier: signature.prepare(processorRecipe(header), secret),
  }));
  const missing = badSignature(`header ${PROCESSOR_HEADERS.join(" or ")} is missing`);
  return {
    verify(received) {
      for (const { header, verifier } of verifiers) {
        if (received.header(header) !== null) return verifier.verify(received);
      }
      return missing;
    },
  };
}

export const processor: Scheme<ProcessorFields> = {
  name: "processor",
  title: "The payment processor",
  shape: Type.Object(
    {
      scheme: Type.Literal("processor", {
        description: "The built-in payment processor's own signature and secret.",
        expects: '"processor"',
      }),
    },
    { additionalProperties: false },
  ),
  check: () => [],
  secretNeed: () => "processor",
  bodies: "json",
  signsEvent: () => true,
  prepare,
  sign: (_fields, key, draft) => signByRecipe(processorRecipe(PROCESSOR_HEADERS[0]), key, draft),
  examples: [{ scheme: "processor" }],
};
