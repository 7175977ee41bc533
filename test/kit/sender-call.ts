/** A sender in the tests: signs drafts by a scheme, and turns a signed draft into the request that a receiver gets. */
import { generateKeyPairSync } from "node:crypto";
import type { ReceivedRequest, SignedDraft, Verdict } from "../../src/rules/verify/contract.ts";
import { receiveRequest } from "../../src/rules/verify/received-request.ts";
import type { SignatureFields } from "../../src/rules/verify/recipe.ts";
import { signature } from "../../src/rules/verify/signature.ts";

export const NOW_MS = 1_768_478_400_000;
export const NOW_SECONDS = String(NOW_MS / 1000);
export const RECEIVER_URL = "https://relay.example.test/hooks/app_test/orders";
export const SECRET = "Qk7bXFQsq4OKAPhAIVqsHMpkNhzCwRnS";
export const JSON_TYPE = "application/json";
export const FORM_TYPE = "application/x-www-form-urlencoded";
export const EVENT = '{"id":"evt_1","type":"order.paid","amount":4200}';

export interface CallChange {
  headers?: Record<string, string> | [string, string][];
  body?: string | Uint8Array;
  search?: string;
  receiverUrl?: string;
  nowMs?: number;
}

export function bytes(text: string): Uint8Array {
  return new TextEncoder().encode(text);
}

/** Builds a request without a sender. */
export function makeCall(change: CallChange = {}): ReceivedRequest {
  const body = change.body ?? EVENT;
  return receiveRequest({
    headers: new Headers(change.headers ?? {}),
    body: typeof body === "string" ? bytes(body) : body,
    search: change.search ?? "",
    receiverUrl: change.receiverUrl ?? RECEIVER_URL,
    nowMs: change.nowMs ?? NOW_MS,
  });
}

/** Builds the request of a signed draft, with some parts changed on the way. */
export function deliver(draft: SignedDraft, change: CallChange = {}): ReceivedRequest {
  return makeCall({
    body: draft.body,
    search: draft.search,
    ...change,
    headers: { ...draft.headers, ...(change.headers as Record<string, string> | undefined) },
  });
}

export function recipe(fields: Omit<SignatureFields, "scheme">): SignatureFields {
  return { scheme: "signature", ...fields };
}

/** Signs an event by a recipe, at the kit's time and URL. */
export function signEvent(fields: SignatureFields, key: string, body: string = EVENT, contentType: string = JSON_TYPE): SignedDraft {
  return signature.sign(fields, key, {
    body: bytes(body),
    contentType,
    receiverUrl: RECEIVER_URL,
    nowMs: NOW_MS,
  });
}

/** Returns `verified`, or the code of the rejection. */
export function outcome(verdict: Verdict): string {
  return verdict.verified ? "verified" : verdict.code;
}

interface SenderKeys {
  /** The key that the sender signs with, as PEM. */
  privateKey: string;
  /** The public key that the relay stores, as DER in base64. */
  stored: string;
}

export function makeKeys(algorithm: "ed25519" | "ecdsa-p256-sha256"): SenderKeys {
  const pair = algorithm === "ed25519" ? generateKeyPairSync("ed25519") : generateKeyPairSync("ec", { namedCurve: "prime256v1" });
  return {
    privateKey: pair.privateKey.export({ format: "pem", type: "pkcs8" }) as string,
    stored: pair.publicKey.export({ format: "der", type: "spki" }).toString("base64"),
  };
}
