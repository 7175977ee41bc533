/**
 * The scheme `adyen`: Adyen's standard webhook. Its one notification item holds its own signature, an HMAC-SHA256 over eight of the
 * item's values joined by colons; the key is written in hex. The signature covers no time and nothing else of the body, so a relay may
 * decide only by those eight values. Source: Adyen, "Verify HMAC signatures".
 */
import { randomBytes } from "node:crypto";
import { Type } from "typebox";
import { isJsonObject, type Json, type JsonObject, scalarText, writeJson } from "../../base/json.ts";
import { Refusal } from "../../base/refusal.ts";
import { decodeText } from "../../base/text.ts";
import {
  badSignature,
  type Draft,
  type ParsedBody,
  type ReceivedRequest,
  rejectEveryRequest,
  type Scheme,
  type SignedDraft,
  unmatchedSignature,
  type Verdict,
  type Verifier,
} from "./contract.ts";
import { receiveRequest } from "./received-request.ts";
import { computeHmac, prepareHmac, type SignatureCheck } from "./signature-proof.ts";

interface AdyenFields {
  scheme: "adyen";
}

const ITEM = "notificationItems.0.NotificationRequestItem";
const MERCHANT_REFERENCE = "merchantReference";
/** The signed names, in the order of the signed text. */
const SIGNED_NAMES = [
  "pspReference",
  "originalReference",
  "merchantAccountCode",
  MERCHANT_REFERENCE,
  "amount.value",
  "amount.currency",
  "eventCode",
  "success",
];

export const ADYEN_SIGNATURE = `${ITEM}.additionalData.hmacSignature`;
/** The signed text as sentences show it. */
export const ADYEN_PAYLOAD = SIGNED_NAMES.map((name) => `{${name}}`).join(":");

interface SignedItem {
  text: Uint8Array;
  signature: string | null;
  /** Identifies the notification. null: the item does not say what happened to which payment. */
  id: string | null;
}

/** Reads the signed text of the body's one item. A string is the cause where there is none. */
export function readAdyenItem(parsed: ParsedBody): SignedItem | string {
  const body = parsed.ok && isJsonObject(parsed.value) ? parsed.value : {};
  const { notificationItems: items } = body;
  if (!Array.isArray(items))
    return "the body has no notificationItems, which Adyen's standard webhook contains";
  if (items.length !== 1)
    return `the body has ${items.length} notification items, and a request must have one event`;
  const item = isJsonObject(items[0]) ? items[0].NotificationRequestItem : undefined;
  if (item === undefined || !isJsonObject(item))
    return "the notification item has no NotificationRequestItem";
  const values: string[] = [];
  for (const name of SIGNED_NAMES) {
    const value = readValue(item, name);
    if (value === null) return `${name} of the notification item is not a text or a number`;
    // With colons in more than one value, other values could make the same signed text.
    if (name !== MERCHANT_REFERENCE && value.includes(":"))
      return `${name} of the notification item contains a colon, so its signature is ambiguous`;
    values.push(value);
  }
  const [reference = "", , , , , , code = "", success = ""] = values;
  const { additionalData } = item;
  const signature = isJsonObject(additionalData ?? null)
    ? (additionalData as JsonObject).hmacSignature
    : null;
  return {
    text: Buffer.from(values.join(":")),
    signature: typeof signature === "string" && signature !== "" ? signature : null,
    id: reference === "" || code === "" ? null : `${reference}:${code}:${success}`,
  };
}

/** Returns the value as text; "" for a missing one, as Adyen signs it. null: it is an object or a list. */
function readValue(item: JsonObject, name: string): string | null {
  let value: Json | undefined = item;
  for (const part of name.split(".")) {
    if (value === undefined || value === null) return "";
    if (!isJsonObject(value)) return null;
    value = Object.hasOwn(value, part) ? value[part] : undefined;
  }
  return value === undefined || value === null ? "" : scalarText(value);
}

function prepare(_fields: AdyenFields, secret: string): Verifier {
  const key = decodeText(secret, "hex");
  if (key === null || key.length === 0) return rejectEveryRequest("the relay has no HMAC key in hex");
  const check = prepareHmac("sha256", key, "base64");
  return { verify: (received) => verifyRequest(received, check) };
}

function verifyRequest(received: ReceivedRequest, check: SignatureCheck): Verdict {
  const parsed = received.parsed();
  if (!parsed.ok) return { verified: false, code: "invalid_json", cause: parsed.message };
  const item = readAdyenItem(parsed);
  if (typeof item === "string") return badSignature(item);
  const { text, signature, id } = item;
  if (signature === null)
    return badSignature(
      "the notification item has no additionalData.hmacSignature: is an HMAC key made for this webhook in Adyen's Customer Area?",
    );
  if (id === null) return badSignature("the notification item has no pspReference or no eventCode");
  received.charge(check.costUs(text.byteLength, 1));
  if (!check.matches(() => ({ head: "", tail: text }), [signature]))
    return unmatchedSignature(
      "the signature does not match; the HMAC key differs from the sender's, or a signed value was changed",
    );
  return { verified: true, onceText: null, expiresAtMs: null, senderEventId: id, idOfValues: true };
}

/** Signs the body's one item. Adds the fields that identify the notification where the body lacks them. */
function sign(_fields: AdyenFields, key: string, { body, contentType, ...rest }: Draft): SignedDraft {
  const headers = { "content-type": contentType };
  const received = receiveRequest({
    ...rest,
    headers: new Headers(headers),
    body,
    kinds: "json",
    search: "",
  });
  const parsed = received.parsed();
  const value = parsed.ok && isJsonObject(parsed.value) ? parsed.value : null;
  const { notificationItems: items = [{}] } = value ?? {};
  const first = Array.isArray(items) && items.length === 1 ? items[0] : null;
  const given = isJsonObject(first ?? null) ? ((first as JsonObject).NotificationRequestItem ?? {}) : null;
  if (value === null || given === null || !isJsonObject(given)) throw unfit("with one notification item");
  const item: JsonObject = { ...makeItem(), ...given };
  const signed = readAdyenItem({ ok: true, value: withItem(value, item), form: null, text: "" });
  if (typeof signed === "string")
    throw unfit(`in which ${signed}`.replace("in which the body", "whose body"));
  const mac = computeHmac("sha256", decodeText(key, "hex") ?? key, { head: "", tail: signed.text });
  const data = isJsonObject(item.additionalData ?? null) ? (item.additionalData as JsonObject) : {};
  item.additionalData = { ...data, hmacSignature: mac.toString("base64") };
  return { headers, body: Buffer.from(writeJson(withItem(value, item))), search: "" };
}

function makeItem(): JsonObject {
  return {
    pspReference: `TEST${randomBytes(6).toString("hex").toUpperCase()}`,
    eventCode: "AUTHORISATION",
    success: "true",
  };
}

function withItem(body: JsonObject, item: JsonObject): JsonObject {
  return { ...body, notificationItems: [{ NotificationRequestItem: item }] };
}

function unfit(why: string): Refusal {
  return new Refusal("invalid_input", `body is not a notification of Adyen's standard webhook ${why}.`);
}

export const adyen: Scheme<AdyenFields> = {
  name: "adyen",
  title: "Adyen's standard webhook",
  shape: Type.Object(
    {
      scheme: Type.Literal("adyen", {
        description:
          "Adyen's standard webhook, whose HMAC key is hex; it signs only eight values of the item.",
        expects: '"adyen"',
      }),
    },
    { additionalProperties: false },
  ),
  check: () => [],
  secretNeed: () => "shared",
  bodies: "json",
  signsEvent: () => true,
  signedPaths: SIGNED_NAMES.map((name) => `${ITEM}.${name}`),
  prepare,
  sign,
  examples: [{ scheme: "adyen" }],
};
