/**
 * The scheme `hooks`: a Standard Webhooks sender. It signs id, timestamp and body with HMAC-SHA256, keyed with the base64 after `whsec_`.
 * Its header lists `v1,<base64>` entries separated by spaces. Three families of header names are known and never mixed. Source: the
 * specification's "Verification schemes"; decisions, section 1; Standard Webhooks 1.0.
 */
import { randomUUID } from "node:crypto";
import { Type } from "typebox";
import { MAX_SIGNATURES, MAX_TOLERANCE_SECONDS } from "../../base/limit.ts";
import { decodeText } from "../../base/text.ts";
import {
  badSignature,
  type Draft,
  type ReceivedRequest,
  rejectEveryRequest,
  type Scheme,
  unmatchedSignature,
  type Verdict,
  type Verifier,
} from "./contract.ts";
import { computeHmac, prepareHmac, readTimestamp, type SignatureCheck } from "./signature-proof.ts";

interface HooksFields {
  scheme: "hooks";
}

const FAMILIES = ["hooks", "webhook", "svix"].map((family) => ({
  id: `${family}-id`,
  timestamp: `${family}-timestamp`,
  signature: `${family}-signature`,
}));
/** The signed text as sentences show it. No recipe can name the id of the message. */
export const HOOKS_PAYLOAD = "{id}.{timestamp}.{body}";
const SECRET_PREFIX = "whsec_";
const VERSION_PREFIX = "v1,";

/** Reads the key of a secret. null: the text after `whsec_` is empty or not base64. */
function readKey(secret: string): Buffer | null {
  if (!secret.startsWith(SECRET_PREFIX)) return null;
  const key = decodeText(secret.slice(SECRET_PREFIX.length), "base64");
  return key === null || key.length === 0 ? null : key;
}

function prepare(_fields: HooksFields, secret: string): Verifier {
  const key = readKey(secret);
  if (key === null) return rejectEveryRequest("the relay has no secret of the form whsec_ and base64");
  const check = prepareHmac("sha256", key, "base64");
  return { verify: (received) => verifyRequest(received, check) };
}

interface Family {
  id: string;
  timestamp: string;
  signature: string;
}

/** Finds the first family whose three headers are all present. */
export function findFamily(received: ReceivedRequest): Family | null {
  for (const names of FAMILIES) {
    const id = received.header(names.id);
    if (id === null || id === "") continue;
    const timestamp = received.header(names.timestamp);
    const signature = received.header(names.signature);
    if (timestamp !== null && timestamp !== "" && signature !== null && signature !== "") {
      return { id, timestamp, signature };
    }
  }
  return null;
}

/** Names the missing headers of the first family that has any. */
function formatMissing(received: ReceivedRequest): string {
  for (const names of FAMILIES) {
    const all = Object.values(names);
    const missing = all.filter((name) => (received.header(name) ?? "") === "");
    if (missing.length < all.length)
      return `of the headers ${all.join(", ")} ${missing.join(" and ")} ${missing.length === 1 ? "is" : "are"} missing`;
  }
  return "one of the headers hooks-id, hooks-timestamp and hooks-signature is missing";
}

function verifyRequest(received: ReceivedRequest, check: SignatureCheck): Verdict {
  const found = findFamily(received);
  if (found === null) return badSignature(formatMissing(received));
  const entries = found.signature.split(" ").filter((entry) => entry !== "");
  if (entries.length > MAX_SIGNATURES) {
    return {
      verified: false,
      code: "too_many_signatures",
      cause: `header hooks-signature lists ${entries.length} signatures`,
    };
  }
  const timestamp = readTimestamp(found.timestamp, received, MAX_TOLERANCE_SECONDS);
  if (typeof timestamp === "string") return badSignature(timestamp);
  const signatures = entries
    .filter((entry) => entry.startsWith(VERSION_PREFIX))
    .map((entry) => entry.slice(VERSION_PREFIX.length));
  const makeText = () => ({ head: `${found.id}.${timestamp.digits}.`, tail: received.body });
  received.charge(check.costUs(received.body.byteLength, signatures.length));
  if (!check.matches(makeText, signatures))
    return unmatchedSignature("the signature does not match; the secret differs from the sender's");
  return { verified: true, onceText: null, expiresAtMs: timestamp.expiresAtMs, senderEventId: found.id };
}

function sign(_fields: HooksFields, key: string, draft: Draft) {
  const id = `msg_${randomUUID().replaceAll("-", "")}`;
  const seconds = String(Math.floor(draft.nowMs / 1000));
  const text = { head: `${id}.${seconds}.`, tail: draft.body };
  const mac = computeHmac("sha256", readKey(key) ?? key, text).toString("base64");
  const headers = {
    "content-type": draft.contentType,
    "hooks-id": id,
    "hooks-timestamp": seconds,
    "hooks-signature": `${VERSION_PREFIX}${mac}`,
  };
  return { headers, body: draft.body, search: "" };
}

export const hooks: Scheme<HooksFields> = {
  name: "hooks",
  title: "A Standard Webhooks sender",
  shape: Type.Object(
    {
      scheme: Type.Literal("hooks", {
        description: "A Standard Webhooks style sender, whose secret starts with whsec_.",
        expects: '"hooks"',
      }),
    },
    { additionalProperties: false },
  ),
  check: () => [],
  secretNeed: () => "shared",
  bodies: "json",
  signsEvent: () => true,
  prepare,
  sign,
  examples: [{ scheme: "hooks" }],
};
