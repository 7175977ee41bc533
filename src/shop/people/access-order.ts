/**
 * Access follows the order in which events arrived, even if they ran in another order. A grant keeps the arrival number of its event. A grant by
 * receipt or by hand keeps the number of the newest event at that time, so it lies between that event and the next. `revoke_access` ends what the
 * person got before its event arrived, and records the revocation. A grant whose event arrived before a recorded revocation ends at once. In normal
 * order this equals the specification's "ends every live grant". Source: decisions section 3, "Order, corrections and refunds", "access goes by
 * arrival, as plans do".
 */
import { readNumberedId } from "../../base/id.ts";
import type { Reader, Writer } from "../../store/port.ts";
import { defineTable, integer, type RowOf, text } from "../../store/table.ts";

/** One row for each event and entitlement. Retention deletes a row once no earlier event is left. */
const ACCESS_REVOCATION = defineTable({
  name: "access_revocation",
  key: ["personId", "entitlement", "arrival"],
  columns: {
    personId: text(),
    /** The granted key: `access:<slug>`, a plan's name, a product's key. */
    entitlement: text(),
    /** The number of the event. */
    arrival: integer(),
    environmentId: integer(),
    eventId: text(),
    /** The formatted actor: `relay:<name>`. */
    revokedBy: text(),
  },
});
type AccessRevocation = RowOf<typeof ACCESS_REVOCATION>;

/** The event that revokes. `arrivedAtMs` serves grants of earlier versions, which have no number. */
export interface RevokingEvent {
  id: string;
  arrival: number;
  arrivedAtMs: number;
}

/** The properties of a grant that place it before or after an event. */
interface GrantArrival {
  /** null: an earlier version granted it. */
  arrival: number | null;
  /** null: granted by a receipt or by hand. */
  eventId: string | null;
  grantedAt: number;
}

/** Reports whether a grant came before the event. An earlier action of the same event also came before it. */
export function isGrantedBefore(
  { arrival, eventId, grantedAt }: GrantArrival,
  event: RevokingEvent,
): boolean {
  const number = arrival ?? (eventId === null ? null : (readNumberedId("evt", eventId)?.seq ?? null));
  if (number === null) return grantedAt < event.arrivedAtMs;
  return eventId === null ? number < event.arrival : number <= event.arrival;
}

/**
 * Finds a number that no event of the environment is above yet, and that each later event will be above. A manual change gets it as its arrival. On
 * PostgreSQL, later events of the transaction may have numbers below the newest event of another environment, so the change uses up a number.
 */
export async function findNewestArrival(tx: Writer): Promise<number> {
  const drawn = await tx.numbers?.next();
  if (drawn !== undefined) return drawn - 1;
  const row = await tx.get<{ seq: number }>(NEWEST, 0);
  return row?.seq ?? 0;
}

/** The newest event may be deleted, so event_last remembers its number. */
const NEWEST =
  "SELECT max(event_last.seq, coalesce((SELECT max(seq) FROM event), ?1)) AS seq FROM event_last";

/** Formats why a grant ended at once, and how to grant it by hand. */
export function formatEndedByLaterEvent(entitlement: string, endedByEvent: string, personId: string): string {
  return `The grant of ${entitlement} was recorded and ended immediately, because this event arrived before ${endedByEvent}, which revoked it: access follows the order of arrival. To give it anyway, use the dashboard or relay people grant ${personId} ${entitlement}.`;
}

/** Records the event's revocation; a second one of the same event changes nothing. */
export async function recordRevocation(tx: Writer, mark: AccessRevocation): Promise<void> {
  await ACCESS_REVOCATION.insert(tx, mark, "ON CONFLICT DO NOTHING");
}

/** Finds the first revocation after this arrival, which ends a grant of that arrival. */
export function findRevocationAfter(
  tx: Reader,
  { personId, entitlement, arrival }: Pick<AccessRevocation, "personId" | "entitlement" | "arrival">,
): Promise<AccessRevocation | null> {
  const rest =
    "WHERE person_id = $personId AND entitlement = $entitlement AND arrival > $arrival ORDER BY arrival LIMIT 1";
  return ACCESS_REVOCATION.get(tx, rest, { personId, entitlement, arrival });
}

/** Rows that one step of retention deletes. */
const STEP_ROWS = 250;

/** Deletes revocations that no remaining event precedes. Returns whether there may be more. */
export async function deleteSpentRevocations(tx: Writer): Promise<boolean> {
  const sql = `DELETE FROM access_revocation WHERE (person_id, entitlement, arrival) IN (SELECT person_id, entitlement, arrival FROM access_revocation
    WHERE arrival < coalesce((SELECT min(seq) FROM event), ?1) ORDER BY arrival LIMIT ?2)`;
  return (await tx.run(sql, Number.MAX_SAFE_INTEGER, STEP_ROWS)) === STEP_ROWS;
}
