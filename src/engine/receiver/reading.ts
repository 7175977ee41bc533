/**
 * Reads a request as the relay that verified it and each relay that follows it: the mapped names, whether `when` accepts it, and the payload to
 * store. Requests and imports share it, so that both give each relay the same event.
 */
import { type JsonObject, writeJson } from "../../base/json.ts";
import { Refusal } from "../../base/refusal.ts";
import { findMismatch, readEventId, readMap, type WhenMismatch } from "../../rules/relay/live-receiver.ts";
import type { ReceiverRelay } from "../../rules/relay/live-relay.ts";
import type { ParsedBody } from "../../rules/verify/contract.ts";
import { makeReceiverPayload, type StoredPayload } from "../event/insert.ts";
import { formatMissingEventId } from "./request.ts";

/** A body that could be parsed. */
export type ReadableBody = Extract<ParsedBody, { ok: true }>;

/** A reading of a request by a relay. */
export interface Reading {
  relay: ReceiverRelay;
  /** Empty for a request that `when` ignores. */
  mapped: JsonObject;
  /** The reason why `when` ignores the request; null if it matches. */
  mismatch: WhenMismatch | null;
  /** The sender's own id; null if the body deduplicates. */
  eventId: string | null;
}

/** Reads the request as one relay. `senderEventId`: the id that the sender signs in a header. */
export function readRequest(
  relay: ReceiverRelay,
  parsed: ReadableBody,
  senderEventId: string | null,
): Reading {
  const mismatch = findMismatch(relay.receiver.gate, parsed);
  if (mismatch !== null) return { relay, mapped: {}, mismatch, eventId: null };
  const mapped = readMap(relay.receiver.map, parsed);
  return { relay, mapped, mismatch, eventId: readEventId(mapped) ?? senderEventId };
}

/** Makes the payload of the relay's event, with its warnings. */
export function makeEventPayload({ relay, mapped, eventId }: Reading, parsed: ReadableBody): StoredPayload {
  const made = makeReceiverPayload(textOf(parsed), mapped);
  const unnamed = formatMissingEventId(relay, mapped, eventId);
  return unnamed === null ? made : { ...made, warnings: [unnamed, ...made.warnings] };
}

/** Refuses a request of which a follower's event could not be stored, so that the sender repeats it for all relays. */
export function requireReadable(followers: readonly ReceiverRelay[]): void {
  const unreadable = followers.find(({ receiver }) => receiver.closed === "unreadable");
  if (unreadable === undefined) return;
  throw new Refusal(
    "not_recorded",
    `The relay ${unreadable.name}, which follows this receiver, cannot be opened, so nothing is stored. The log of the server says why.`,
  );
}

/** Returns the event's text for the row: JSON as received, or a form's fields as JSON. */
export function textOf(parsed: ReadableBody): string {
  return parsed.form === null ? parsed.text : writeJson(parsed.value);
}
