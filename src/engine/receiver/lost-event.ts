/** Reads which event a rejected request would have become, so that the ledger of rejected requests can say whether it arrived later. */
import { scalarText } from "../../base/json.ts";
import { isHandshake, matchesWhen, readEventId, readMap } from "../../rules/relay/live-receiver.ts";
import type { ReceiverRelay } from "../../rules/relay/live-relay.ts";
import type { ReceivedRequest } from "../../rules/verify/contract.ts";
import { readUnverifiedEventId } from "../../rules/verify/unverified-event-id.ts";
import { type ClaimedEvent, makeClaim } from "./request.ts";

/** The largest rejected body whose event id is read, because one turn of the event loop parses it whole. */
const MAX_READ_BYTES = 64 * 1024;

export interface LostEvent {
  /** Null where nothing names it. */
  eventId: string | null;
  /** The id and type for display; null where neither can be shown. */
  claimed: ClaimedEvent | null;
  /** True if `when` would have ignored the request, so that nothing was lost. */
  isIgnored: boolean;
}

const UNREAD: LostEvent = { eventId: null, claimed: null, isIgnored: false };

/** Reads the event that an unverified request would have become, as ingest.ts does. `followers` follow the relay. Returns null for a handshake. */
export function readLostEvent(
  { receiver, definition: { trigger } }: ReceiverRelay,
  followers: readonly ReceiverRelay[],
  received: ReceivedRequest,
): LostEvent | null {
  if (received.body.byteLength > MAX_READ_BYTES) return UNREAD;
  const parsed = received.parsed();
  if (!parsed.ok) return UNREAD;
  if (isHandshake(receiver, received)) return null;
  const mapped = readMap(receiver.map, parsed);
  const own = trigger.kind === "receiver" ? readUnverifiedEventId(trigger.verify, received) : null;
  const eventId = readEventId(mapped) ?? own;
  const isIgnored =
    matchesWhen(receiver.when, mapped) !== null &&
    followers.every((one) => matchesWhen(one.receiver.when, readMap(one.receiver.map, parsed)) !== null);
  return { eventId, claimed: makeClaim(eventId, scalarText(mapped.event_type)), isIgnored };
}
