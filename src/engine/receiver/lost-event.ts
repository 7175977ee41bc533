/** Reads which event a rejected request would have become, so that the ledger of rejected requests can say whether it arrived later. */
import { isHandshake, matchesWhen, readEventId, readMap } from "../../rules/relay/live-receiver.ts";
import type { ReceiverRelay } from "../../rules/relay/live-relay.ts";
import type { ReceivedRequest } from "../../rules/verify/contract.ts";
import { readUnverifiedEventId } from "../../rules/verify/unverified-event-id.ts";

/** The largest rejected body whose event id is read, because one turn of the event loop parses it whole. */
const MAX_READ_BYTES = 64 * 1024;

/**
 * Reads the event that an unverified request would have become, as ingest.ts does. `eventId` is null where nothing names it. Returns null for a
 * handshake and for a request that `when` ignores.
 */
export function readLostEvent(
  { receiver, definition: { trigger } }: ReceiverRelay,
  call: ReceivedRequest,
): { eventId: string | null } | null {
  if (call.body.byteLength > MAX_READ_BYTES) return { eventId: null };
  const parsed = call.parsed();
  if (!parsed.ok) return { eventId: null };
  if (isHandshake(receiver, call)) return null;
  const mapped = readMap(receiver.map, parsed);
  if (matchesWhen(receiver.when, mapped) !== null) return null;
  const own = trigger.kind === "receiver" ? readUnverifiedEventId(trigger.verify, call) : null;
  return { eventId: readEventId(mapped) ?? own };
}
