/**
 * Evaluates one line of an export of events that a provider did not deliver: an event's body, or a delivery with its headers. It is verified once,
 * then mapped and matched as a request by each relay that it is offered to, except for the age of its signature. A line that does not verify is
 * unsigned. A line that cannot be distinguished from an earlier event is rejected. Stores nothing.
 */

import type { RefusalCode } from "../../base/code/refusal-code.ts";
import { isJsonObject, type Json, type JsonObject, measureJson } from "../../base/json.ts";
import {
  DAY_MS,
  EVENT_RETENTION_MS,
  MAX_RECEIVER_BODY_BYTES,
  MAX_TOLERANCE_SECONDS,
} from "../../base/limit.ts";
import { isHandshake } from "../../rules/relay/live-receiver.ts";
import type { ReceiverRelay } from "../../rules/relay/live-relay.ts";
import type { Verdict, Verified } from "../../rules/verify/contract.ts";
import { ReceivedBody, receiveRequest } from "../../rules/verify/received-request.ts";
import type { EventWay } from "../event/event.ts";
import { type DedupeKey, keyOfBody, keyOfEventId } from "../event/insert.ts";
import { type ReadableBody, type Reading, readRequest } from "./reading.ts";
import { formatMismatch } from "./request.ts";
import { type SignatureUse, signatureUse } from "./signature-memory.ts";

/** The most bytes of a line. A delivery's line has an escaped body, and its headers take space too. */
const MAX_IMPORT_LINE_BYTES = 2 * MAX_RECEIVER_BODY_BYTES + 64 * 1024;
/** The most JSON values of a line that is longer than a body. A delivery has few values, and many would be slow to read. */
const MAX_DELIVERY_VALUES = 1_000;

type Refused = { outcome: "refused"; code: RefusalCode; message: string };
type Ignored = { outcome: "ignored"; message: string };

/** A line that relays can read. */
export interface OpenLine {
  outcome: "open";
  body: Uint8Array;
  parsed: ReadableBody;
  verdict: Verdict | null;
  /** The use of a signature that counts once; null for other signatures. */
  oneTimeUse: SignatureUse | null;
  /** True if its sender's signature verified. */
  verified: boolean;
  /** True if nothing proves its content: it did not verify, or the sender never signs the event itself. */
  unsigned: boolean;
  /** True if the line gave the headers. */
  hasHeaders: boolean;
}

/** An event that a relay takes. Any of its `keys` finds a duplicate, and the first one is stored. */
export interface ImportedEvent {
  outcome: "fits";
  reading: Reading;
  keys: readonly [DedupeKey, ...DedupeKey[]];
}

/** Opens the line with the verifier of the relay, which must not be null. Followers have their source's. */
export function openLine(
  relay: ReceiverRelay,
  line: Uint8Array,
  nowMs: number,
): OpenLine | Refused | Ignored {
  const delivery = readLine(line);
  if ("outcome" in delivery) return delivery;
  const { headers, search, body, hasHeaders } = delivery;
  const { receiver } = relay;
  const receivedBody = new ReceivedBody(body, headers.get("content-type"), () => undefined);
  const { url: receiverUrl, bodies: kinds } = receiver;
  const received = receiveRequest({
    headers,
    body: receivedBody,
    kinds,
    search,
    receiverUrl,
    nowMs,
    isOld: true,
  });
  const verdict = receiver.verifier?.verify(received) ?? null;
  const verified = verdict?.verified === true;
  if (verified && isTooOld(verdict.expiresAtMs, nowMs)) {
    const message =
      "it was signed 30 days ago or more, so it is unknown whether it was received then, and it could run twice: if it never ran, do its work by hand.";
    return reject("event_too_old", message);
  }
  const parsed = received.parsed();
  if (!parsed.ok) return reject("invalid_json", parsed.message);
  if (isHandshake(receiver, received))
    return { outcome: "ignored", message: "it is its sender's handshake, which makes no event" };
  const unsigned = !verified || receiver.unsigned;
  // A single-use signature is remembered as long as events are. At this age it cannot be received again, but it
  // can be imported again.
  const oneTimeUse = verified ? signatureUse(relay, keptLong(verdict, nowMs), body) : null;
  return { outcome: "open", body, parsed, verdict, oneTimeUse, verified, unsigned, hasHeaders };
}

/** Evaluates an open line as one of the relays that it is offered to. */
export function evaluateLine(
  relay: ReceiverRelay,
  line: OpenLine,
  nowMs: number,
  way: EventWay,
): ImportedEvent | Refused | Ignored {
  const { body, parsed, verdict, unsigned, hasHeaders } = line;
  const reading = readRequest(relay, parsed, verdict?.verified === true ? verdict.senderEventId : null);
  if (reading.mismatch !== null) return { outcome: "ignored", message: formatMismatch(reading.mismatch) };
  if (unsigned && relay.rejectsUnsigned) return reject("unsigned_event", formatUnsigned(verdict, hasHeaders));
  const isOwn = !unsigned || way === "test";
  const keys = keysOf(relay, reading.eventId, isOwn ? body : null, nowMs);
  return keys === null ? reject("event_id_missing", NO_EVENT_ID) : { outcome: "fits", reading, keys };
}

function keptLong(verified: Verified, nowMs: number): Verified {
  return { ...verified, expiresAtMs: verified.expiresAtMs === null ? null : nowMs + EVENT_RETENTION_MS };
}

const NO_EVENT_ID =
  "it has no event id, so a received event could run twice: map event_id in the relay, or give the complete delivery with the headers that its sender signed.";

function reject(code: RefusalCode, message: string): Refused {
  return { outcome: "refused", code, message };
}

/** Deduplication keys live as long as events. The clocks of sender and receiver may differ by the tolerance. */
function isTooOld(expiresAtMs: number | null, nowMs: number): boolean {
  const windowMs = 2 * MAX_TOLERANCE_SECONDS * 1_000;
  return expiresAtMs !== null && expiresAtMs <= nowMs - EVENT_RETENTION_MS + windowMs;
}

function formatUnsigned(verdict: Verdict | null, hasHeaders: boolean): string {
  const cause = verdict !== null && !verdict.verified && hasHeaders ? ` (${verdict.cause})` : "";
  return `its sender's signature does not prove it${cause}, and this relay needs signed events to act on people: let the provider send it again, or give the complete delivery, as {"headers":{…},"body":"…"}.`;
}

/**
 * Lists the deduplication keys. `signedBody` is null where the bytes may not be the sender's own. Returns null where nothing identifies the event.
 */
function keysOf(
  { environmentId, name }: ReceiverRelay,
  eventId: string | null,
  signedBody: Uint8Array | null,
  nowMs: number,
): ImportedEvent["keys"] | null {
  if (eventId !== null) return [keyOfEventId(environmentId, name, eventId)];
  if (signedBody === null) return null;
  // A body's key includes the day of its arrival, so each day is tried of which events still exist.
  const earlier: DedupeKey[] = [];
  for (let ago = DAY_MS; ago <= EVENT_RETENTION_MS + DAY_MS; ago += DAY_MS)
    earlier.push(keyOfBody(environmentId, name, signedBody, nowMs - ago));
  return [keyOfBody(environmentId, name, signedBody, nowMs), ...earlier];
}

interface Delivery {
  headers: Headers;
  search: string;
  body: Uint8Array;
  /** True if the line gave the headers. */
  hasHeaders: boolean;
}

const KB = MAX_RECEIVER_BODY_BYTES / 1024;

function readLine(line: Uint8Array): Delivery | Refused {
  const most = { depth: 3, values: MAX_DELIVERY_VALUES };
  const isLong = line.byteLength > MAX_RECEIVER_BODY_BYTES;
  const measured = isLong && line.byteLength <= MAX_IMPORT_LINE_BYTES ? measureJson(line, most) : null;
  if (isLong && (measured === null || measured.values > most.values || measured.depth > most.depth))
    return reject("body_too_large", `it is larger than ${KB} KB, the most that a receiver takes.`);
  // Only the bytes decide: no content type makes the line a form.
  const read = new ReceivedBody(line, null, () => undefined).parsed("json");
  if (!read.ok || typeof read.value !== "object" || read.value === null) {
    const why = read.ok
      ? "no JSON object"
      : "not JSON in UTF-8, too deep, or holds a number of too many digits";
    return reject("invalid_json", `it is ${why}: write one event a line, as jq -c '.data[]' does of a list.`);
  }
  const given = findDelivery(read.value);
  if (given === null && isLong)
    return reject("body_too_large", `it is larger than ${KB} KB, the most that a receiver takes.`);
  if (given === null) return { headers: new Headers(), search: "", body: line, hasHeaders: false };
  const body = Buffer.from(given.body);
  if (body.byteLength > MAX_RECEIVER_BODY_BYTES)
    return reject("body_too_large", `its body is larger than ${KB} KB, the most that a receiver takes.`);
  const headers = readHeaders(given.headers);
  if (headers !== null) return { headers, search: given.search, body, hasHeaders: true };
  return reject(
    "invalid_input",
    "its headers cannot be read: give each name with its text, or with a list of texts.",
  );
}

/** Reads `{ headers, body }` with an optional `search`, the query of the request. An object with only these fields counts as a delivery. */
function findDelivery(value: Json): { headers: JsonObject; body: string; search: string } | null {
  if (!isJsonObject(value)) return null;
  const { headers = null, body = null, search = "", ...more } = value;
  if (!isJsonObject(headers) || typeof body !== "string" || typeof search !== "string") return null;
  return Object.keys(more).length === 0 ? { headers, body, search } : null;
}

function readHeaders(given: JsonObject): Headers | null {
  const headers = new Headers();
  try {
    for (const [name, value = null] of Object.entries(given)) {
      for (const one of Array.isArray(value) ? value : [value]) {
        if (typeof one !== "string") return null;
        headers.append(name, one);
      }
    }
    return headers;
  } catch {
    return null;
  }
}
