/**
 * Senders whose signature no recipe can describe: a special character between the parts, a timestamp after the body, or an ISO time. Each
 * is a scheme without fields. All of them sign the complete body and the time of sending. Source: Telnyx, "Webhook signing"; HubSpot,
 * "Validating requests" (v3); Zendesk, "Verifying webhooks"; Box, "Signature verification"; Twitch, "Verifying the event message".
 */
import { randomUUID, sign as signWithKey } from "node:crypto";
import { Type } from "typebox";
import { toIso } from "../../base/clock.ts";
import type { PublicKeyAlgorithm } from "../../base/key-text.ts";
import { MAX_TOLERANCE_SECONDS, MINUTE_MS } from "../../base/limit.ts";
import type { Encoding } from "../../base/text.ts";
import {
  type BodyKinds,
  badSignature,
  type Draft,
  type ReceivedRequest,
  rejectEveryRequest,
  type Scheme,
  type SignedDraft,
  unmatchedSignature,
  type Verdict,
  type Verifier,
} from "./contract.ts";
import {
  computeHmac,
  joinSignedText,
  prepareHmac,
  preparePublicKey,
  readIsoTimestamp,
  readTimestamp,
  type SignatureCheck,
  type SignedText,
  trimHttpSpace,
} from "./signature-proof.ts";

/** The signing method of a sender, as data. */
export interface NamedSender {
  name: string;
  title: string;
  description: string;
  algorithm: "hmac-sha256" | Extract<PublicKeyAlgorithm, "ed25519">;
  encoding: Encoding;
  /** Headers that can hold a signature. One matching signature is enough. */
  signatures: readonly [string, ...string[]];
  /** The text before the signature, as in `sha256=…`. */
  signatureKey?: string;
  /** The header of the time of sending, and its format. */
  timestamp: string;
  time: "seconds" | "milliseconds" | "iso";
  toleranceSeconds: number;
  /** The header of the message's id, where the sender signs it. */
  id?: string;
  bodies: BodyKinds;
  /** The signed text as sentences show it, and the function that makes it. */
  payload: string;
  makeText(parts: SignedParts): SignedText;
}

interface SignedParts {
  id: string;
  time: string;
  url: string;
  body: Uint8Array;
}

const TEN_MINUTES = (10 * MINUTE_MS) / 1000;

export const NAMED_SENDERS: readonly NamedSender[] = [
  {
    name: "telnyx",
    title: "Telnyx",
    description: "Telnyx's own signature: Ed25519 over timestamp and body, checked with its public key.",
    algorithm: "ed25519",
    encoding: "base64",
    signatures: ["telnyx-signature-ed25519"],
    timestamp: "telnyx-timestamp",
    time: "seconds",
    toleranceSeconds: MAX_TOLERANCE_SECONDS,
    bodies: "json",
    payload: "{timestamp}|{body}",
    makeText: ({ time, body }) => ({ head: `${time}|`, tail: body }),
  },
  {
    name: "hubspot",
    title: "HubSpot",
    description:
      "HubSpot's signature v3, with the app's client secret, over the receiver URL that the relay's page shows.",
    algorithm: "hmac-sha256",
    encoding: "base64",
    signatures: ["x-hubspot-signature-v3"],
    timestamp: "x-hubspot-request-timestamp",
    time: "milliseconds",
    toleranceSeconds: MAX_TOLERANCE_SECONDS,
    bodies: "json",
    payload: "POST{url}{body}{timestamp}",
    makeText: ({ time, url, body }) => ({ head: `POST${decodeForHubspot(url)}`, tail: body, end: time }),
  },
  {
    name: "zendesk",
    title: "Zendesk",
    description: "Zendesk's webhook signature, with the webhook's own signing secret.",
    algorithm: "hmac-sha256",
    encoding: "base64",
    signatures: ["x-zendesk-webhook-signature"],
    timestamp: "x-zendesk-webhook-signature-timestamp",
    time: "iso",
    toleranceSeconds: MAX_TOLERANCE_SECONDS,
    bodies: "json_or_form",
    payload: "{isoTimestamp}{body}",
    makeText: ({ time, body }) => ({ head: time, tail: body }),
  },
  {
    name: "box",
    title: "Box",
    description: "Box's webhook signature; the secret is the app's primary or its secondary signature key.",
    algorithm: "hmac-sha256",
    encoding: "base64",
    signatures: ["box-signature-primary", "box-signature-secondary"],
    timestamp: "box-delivery-timestamp",
    time: "iso",
    toleranceSeconds: TEN_MINUTES,
    bodies: "json",
    payload: "{body}{isoTimestamp}",
    makeText: ({ time, body }) => ({ head: "", tail: body, end: time }),
  },
  {
    name: "twitch",
    title: "Twitch EventSub",
    description: "Twitch's EventSub signature, with the secret of the subscription.",
    algorithm: "hmac-sha256",
    encoding: "hex",
    signatures: ["twitch-eventsub-message-signature"],
    signatureKey: "sha256",
    timestamp: "twitch-eventsub-message-timestamp",
    time: "iso",
    toleranceSeconds: TEN_MINUTES,
    id: "twitch-eventsub-message-id",
    bodies: "json",
    payload: "{id}{isoTimestamp}{body}",
    makeText: ({ id, time, body }) => ({ head: `${id}${time}`, tail: body }),
  },
];

const BY_NAME: ReadonlyMap<string, NamedSender> = new Map(NAMED_SENDERS.map((one) => [one.name, one]));

export function findNamedSender(scheme: string): NamedSender | null {
  return BY_NAME.get(scheme) ?? null;
}

/** The characters that HubSpot decodes in a URL before it signs the URL. */
const HUBSPOT_DECODES = /%(?:3A|2F|3F|40|21|24|27|28|29|2A|2C|3B)/gi;

function decodeForHubspot(url: string): string {
  return url.replace(HUBSPOT_DECODES, (encoded) =>
    String.fromCharCode(Number.parseInt(encoded.slice(1), 16)),
  );
}

function prepare(sender: NamedSender, secret: string): Verifier {
  if (secret === "") return rejectEveryRequest("the relay has no secret");
  const { algorithm, encoding } = sender;
  const check =
    algorithm === "ed25519"
      ? preparePublicKey(algorithm, secret, encoding)
      : prepareHmac("sha256", secret, encoding);
  if (check === null) return rejectEveryRequest(`the relay has no ${algorithm} public key`);
  return { verify: (received) => verifyRequest(sender, received, check) };
}

function verifyRequest(sender: NamedSender, received: ReceivedRequest, check: SignatureCheck): Verdict {
  const signatures = readSignatures(sender, received);
  if (typeof signatures === "string") return badSignature(signatures);
  const id = sender.id === undefined ? "" : (received.header(sender.id) ?? "");
  if (sender.id !== undefined && id === "") return badSignature(`header ${sender.id} is missing`);
  const raw = received.header(sender.timestamp);
  if (raw === null) return badSignature(`header ${sender.timestamp} is missing`);
  const timestamp = readTime(sender, raw, received);
  if (typeof timestamp === "string") return badSignature(timestamp);
  if (signsUrl(sender) && received.search !== "")
    return badSignature("the request URL has text after the receiver URL, and the sender signs the URL");
  const parts = { id, time: timestamp.digits, url: received.receiverUrl, body: received.body };
  received.charge(check.costUs(received.body.byteLength, signatures.length));
  if (!check.matches(() => sender.makeText(parts), signatures))
    return unmatchedSignature("the signature does not match; the secret differs from the sender's");
  return {
    verified: true,
    onceText: null,
    expiresAtMs: timestamp.expiresAtMs,
    senderEventId: id === "" ? null : id,
  };
}

/** Returns the received signatures. A string is the cause where there is none. */
function readSignatures(
  { signatures, signatureKey }: NamedSender,
  received: ReceivedRequest,
): string[] | string {
  const values = signatures.map((name) => received.header(name)).filter((value) => value !== null);
  if (values.length === 0)
    return signatures.length === 1
      ? `header ${signatures[0]} is missing`
      : `headers ${signatures.join(" and ")} are both missing`;
  if (signatureKey === undefined) return values.map(trimHttpSpace);
  const begin = `${signatureKey}=`;
  const keyed = values.map(trimHttpSpace).filter((value) => value.startsWith(begin));
  return keyed.length === 0
    ? `header ${signatures[0]} does not begin with ${begin}`
    : keyed.map((value) => value.slice(begin.length));
}

const MILLISECONDS = /^\d{13}$/;

function readTime({ time, toleranceSeconds }: NamedSender, raw: string, received: ReceivedRequest) {
  if (time === "iso") return readIsoTimestamp(raw, received, toleranceSeconds);
  // Nothing separates the body from these digits, so their number must be fixed.
  if (time === "milliseconds" && !MILLISECONDS.test(trimHttpSpace(raw)))
    return "the timestamp is not the 13 digits of milliseconds";
  return readTimestamp(raw, received, toleranceSeconds);
}

export function signsUrl({ payload }: NamedSender): boolean {
  return payload.includes("{url}");
}

function sign(
  sender: NamedSender,
  key: string,
  { body, contentType, receiverUrl, nowMs }: Draft,
): SignedDraft {
  const time = writeTime(sender, nowMs);
  const id = randomUUID();
  const text = sender.makeText({ id, time, url: receiverUrl, body });
  const made =
    sender.algorithm === "ed25519"
      ? signWithKey(null, joinSignedText(text), key)
      : computeHmac("sha256", key, text);
  const written = made.toString(sender.encoding);
  return {
    headers: {
      "content-type": contentType,
      [sender.signatures[0]]:
        sender.signatureKey === undefined ? written : `${sender.signatureKey}=${written}`,
      [sender.timestamp]: time,
      ...(sender.id === undefined ? {} : { [sender.id]: id }),
    },
    body,
    search: "",
  };
}

function writeTime({ time }: NamedSender, nowMs: number): string {
  if (time === "iso") return toIso(nowMs);
  return String(time === "seconds" ? Math.floor(nowMs / 1000) : nowMs);
}

interface NamedFields {
  scheme: string;
}

export const namedSchemes: readonly Scheme<NamedFields>[] = NAMED_SENDERS.map((sender) => ({
  name: sender.name,
  title: sender.title,
  shape: Type.Object(
    {
      scheme: Type.Literal(sender.name, { description: sender.description, expects: `"${sender.name}"` }),
    },
    { additionalProperties: false },
  ),
  check: () => [],
  secretNeed: () => (sender.algorithm === "ed25519" ? "public_key" : "shared"),
  bodies: sender.bodies,
  signsEvent: () => true,
  prepare: (_fields, secret) => prepare(sender, secret),
  sign: (_fields, key, draft) => sign(sender, key, draft),
  examples: [{ scheme: sender.name }],
}));
