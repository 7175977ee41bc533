/** The verdicts that refuse a call, and the verifier that refuses every one. A cause is for the owner: never a secret, never a body. */
import type { Verdict, Verifier } from "./contract.ts";

export function badSignature(cause: string): Verdict {
  return { verified: false, code: "bad_signature", cause };
}

/** A verifier that refuses every call, for a secret that cannot verify anything. */
export function refuseEveryCall(cause: string): Verifier {
  const verdict = badSignature(cause);
  return { verify: () => verdict };
}
