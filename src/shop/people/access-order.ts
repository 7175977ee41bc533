/**
 * Access follows the order of arrival, in whatever order events run. Every grant keeps the arrival number of its event; a purchase by receipt and a
 * grant by hand keep the number of the newest event at that moment, and so stand between it and the next. `revoke_access` of an event ends what the
 * person got before that event arrived, and leaves a mark: a grant whose event arrived before the mark is recorded and ended immediately. In
 * undisturbed order this is the specification's "ends every live grant".
 * Source: decisions section 3, "Order, corrections and refunds", "access goes by arrival, as plans do".
 */
import { readNumberedId } from "../../base/id.ts";
import type { Reader, Writer } from "../../store/port.ts";
import { defineTable, integer, type RowOf, text } from "../../store/table.ts";

/** One mark for each event and entitlement. The retention deletes a mark when no event is left that arrived before it. */
const ACCESS_REVOCATION = defineTable({
  name: "access_revocation",
  key: ["personId", "entitlement", "arrival"],
  columns: {
    personId: text(),
    /** As held: `access:<slug>`, a plan's name, a product's key. */
    entitlement: text(),
    /** The event's number. */
    arrival: integer(),
    environmentId: integer(),
    eventId: text(),
    /** In words: `relay:<name>`. */
    revokedBy: text(),
  },
});
type AccessRevocation = RowOf<typeof ACCESS_REVOCATION>;

/** The event whose action revokes. `arrivedAtMs`: when it arrived, for grants of earlier versions, which have no number. */
export interface RevokingEvent {
  id: string;
  arrival: number;
  arrivedAtMs: number;
}

/** What decides whether a grant came before an event. */
interface GrantArrival {
  /** null: an earlier version gave it. */
  arrival: number | null;
  /** null: a receipt or a person's hand gave it. */
  eventId: string | null;
  grantedAt: number;
}

/** Whether the person got the grant before the event arrived. An earlier action of the same event came before it too. */
export function isGrantedBefore(
  { arrival, eventId, grantedAt }: GrantArrival,
  event: RevokingEvent,
): boolean {
  const number = arrival ?? (eventId === null ? null : (readNumberedId("evt", eventId)?.seq ?? null));
  if (number === null) return grantedAt < event.arrivedAtMs;
  return eventId === null ? number < event.arrival : number <= event.arrival;
}

/** The number of the newest event there ever was; 0: none. What is done by hand now comes after that event and before the next. */
export async function findNewestArrival(tx: Reader): Promise<number> {
  const row = await tx.get<{ seq: number }>(NEWEST, 0);
  return row?.seq ?? 0;
}

/** The newest event may be deleted, and is remembered then. */
const NEWEST =
  "SELECT max(event_last.seq, coalesce((SELECT max(seq) FROM event), ?1)) AS seq FROM event_last";

/** Says why a grant ended as it began, and how to give it by hand. */
export function formatEndedByLaterEvent(entitlement: string, endedByEvent: string, personId: string): string {
  return `The grant of ${entitlement} was recorded and ended immediately, because this event arrived before ${endedByEvent}, which revoked it: access goes by the order of arrival. To give it anyway, use the dashboard or relay people grant ${personId} ${entitlement}.`;
}

/** Leaves the event's mark; a second one of the same event changes nothing. */
export async function recordRevocation(tx: Writer, mark: AccessRevocation): Promise<void> {
  await ACCESS_REVOCATION.insert(tx, mark, "ON CONFLICT DO NOTHING");
}

/** The first mark behind this arrival, which ends a grant of it; null: none. */
export function findRevocationAfter(
  tx: Reader,
  { personId, entitlement, arrival }: Pick<AccessRevocation, "personId" | "entitlement" | "arrival">,
): Promise<AccessRevocation | null> {
  const rest =
    "WHERE person_id = $personId AND entitlement = $entitlement AND arrival > $arrival ORDER BY arrival LIMIT 1";
  return ACCESS_REVOCATION.get(tx, rest, { personId, entitlement, arrival });
}

/** Rows that one step of the retention deletes. */
const STEP_ROWS = 250;

/** Deletes the oldest marks that no event is left to arrive before. Answers whether there may be more. */
export async function deleteSpentRevocations(tx: Writer): Promise<boolean> {
  const sql = `DELETE FROM access_revocation WHERE (person_id, entitlement, arrival) IN (SELECT person_id, entitlement, arrival FROM access_revocation
    WHERE arrival < coalesce((SELECT min(seq) FROM event), ?1) ORDER BY arrival LIMIT ?2)`;
  return (await tx.run(sql, Number.MAX_SAFE_INTEGER, STEP_ROWS)) === STEP_ROWS;
}
