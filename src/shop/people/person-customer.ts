/**
 * The ids by which providers know people. A pair of a space and a customer id names one person of the environment. An event whose map has the
 * person and the customer id writes the pair, and a later event without the person finds them by it. The newest arrival decides whom a pair names,
 * in whatever order events run. Source: sources, "Customers by the provider's ID".
 */
import { type Static, Type } from "typebox";
import { MAX_CUSTOMER_ID_CHARS } from "../../base/limit.ts";
import { Refusal } from "../../base/refusal.ts";
import { show, textOrNull, time } from "../../base/schema.ts";
import { breaksOneLine } from "../../base/text.ts";
import { type Change, writeAudit } from "../../platform/audit/audit.ts";
import type { Reader, Writer } from "../../store/port.ts";
import { defineTable, integer, orNull, type RowOf, text } from "../../store/table.ts";
import { findNewestArrival } from "./access-order.ts";
import { PERSON, type PersonRow, requirePerson } from "./person.ts";
import { isErasedPerson } from "./person-erase.ts";

const PERSON_CUSTOMER = defineTable({
  name: "person_customer",
  key: ["environmentId", "space", "customerId"],
  columns: {
    environmentId: integer(),
    space: text(),
    customerId: text(),
    personId: text(),
    /** The number of the newest event that named the person; by hand: of the newest event at that time. */
    arrival: integer(),
    /** The id of that event; null: linked by hand. */
    eventId: orNull(text()),
    /** The time since which the pair names this person. */
    createdAt: integer(),
  },
});
type PersonCustomer = RowOf<typeof PERSON_CUSTOMER>;

/** A customer as a provider names them. */
interface CustomerName {
  environmentId: number;
  space: string;
  customerId: string;
}

/** Reports whether a provider's id of a customer can be stored: 1 to `MAX_CUSTOMER_ID_CHARS` characters on one line. */
export function isCustomerId(value: string): boolean {
  return value !== "" && value.length <= MAX_CUSTOMER_ID_CHARS && breaksOneLine(value) === null;
}

/** Finds the person that a customer id names, including suspended ones; null: the pair is unknown, or its person was erased. */
export async function findPersonByCustomer(tx: Reader, name: CustomerName): Promise<PersonRow | null> {
  if (!isCustomerId(name.customerId)) return null;
  const rest = `WHERE id = (SELECT person_id FROM person_customer
      WHERE environment_id = $environmentId AND space = $space AND customer_id = $customerId)
    AND environment_id = $environmentId AND status <> 'erased'`;
  return await PERSON.get(tx, rest, { ...name });
}

/** Reports whether the environment has a pair of this space. */
export async function hasCustomers(tx: Reader, environmentId: number, space: string): Promise<boolean> {
  const sql = "SELECT 1 FROM person_customer WHERE environment_id = ?1 AND space = ?2 LIMIT 1";
  return (await tx.get(sql, environmentId, space)) !== null;
}

interface Remembered extends CustomerName {
  personId: string;
  /** The event that names both. null: a person links them by hand. */
  eventId: string | null;
  /** The number of the event, or of the newest event. */
  arrival: number;
  /** The formatted actor. */
  by: string;
  nowMs: number;
}

/** The state of the pair before. `moved`: the pair names the new person now. `kept`: it still names the other one, because of a later arrival. */
type RememberOutcome = { outcome: "new" | "same" } | { outcome: "moved" | "kept"; personId: string };

/**
 * Stores that the pair names the person. A pair of another person moves, audited at both people, unless a later event or a person by hand linked
 * it. The same event moves its own pair, because a corrected map may name another person.
 */
export async function rememberCustomer(tx: Writer, remembered: Remembered): Promise<RememberOutcome> {
  const { environmentId, space, customerId, personId, arrival, eventId, nowMs } = remembered;
  const key = { environmentId, space, customerId };
  // Another process can store, move or delete the pair after it was read here.
  for (;;) {
    const known = await PERSON_CUSTOMER.find(tx, key);
    if (known === null) {
      const row = { ...key, personId, arrival, eventId, createdAt: nowMs };
      if ((await PERSON_CUSTOMER.insert(tx, row, "ON CONFLICT DO NOTHING")) === 1) return { outcome: "new" };
      continue;
    }
    const isSame = known.personId === personId;
    if (!replaces(remembered, known))
      return isSame ? { outcome: "same" } : { outcome: "kept", personId: known.personId };
    if (isSame && known.arrival === arrival && known.eventId === eventId) return { outcome: "same" };
    const createdAt = isSame ? known.createdAt : nowMs;
    if ((await replaceKnown(tx, known, { personId, arrival, eventId, createdAt })) === 0) continue;
    if (isSame) return { outcome: "same" };
    // The rows of an erased person are deleted in steps, and this one was not deleted yet.
    if (await isErasedPerson(tx, environmentId, known.personId)) return { outcome: "new" };
    await auditMove(tx, remembered, known.personId);
    return { outcome: "moved", personId: known.personId };
  }
}

/** A link by hand counts as later than the newest event, so that event does not move the pair back. */
function replaces(
  { arrival, eventId }: Pick<Remembered, "arrival" | "eventId">,
  known: PersonCustomer,
): boolean {
  return eventId === null || arrival > known.arrival || (arrival === known.arrival && known.eventId !== null);
}

/** Changes the row if it is unchanged since it was read. Returns how many rows changed. */
function replaceKnown(
  tx: Writer,
  known: PersonCustomer,
  row: Pick<PersonCustomer, "personId" | "arrival" | "eventId" | "createdAt">,
): Promise<number> {
  const sql = `UPDATE person_customer SET person_id = $personId, arrival = $arrival, event_id = $eventId, created_at = $createdAt
    WHERE environment_id = $environmentId AND space = $space AND customer_id = $customerId
      AND person_id = $wasPersonId AND arrival = $wasArrival`;
  const { environmentId, space, customerId } = known;
  const was = { wasPersonId: known.personId, wasArrival: known.arrival };
  return tx.run(sql, { environmentId, space, customerId, ...row, ...was });
}

/** The audit has no customer id, only the event that has it. Only rows of runs name their event in its column. */
async function auditMove(tx: Writer, moved: Remembered, from: string): Promise<void> {
  const { environmentId, nowMs, by, space, personId, eventId } = moved;
  const entry = { environmentId, nowMs, by, action: "person.customer_moved" } as const;
  const after = { space, event: eventId };
  await writeAudit(tx, { ...entry, target: `person:${from}`, after: { to: personId, ...after } });
  await writeAudit(tx, { ...entry, target: `person:${personId}`, after: { from, ...after } });
}

/** A customer id of a person. */
export const customerView = Type.Object({
  space: Type.String(),
  id: Type.String(),
  /** The newest event that named the person and the id; null: linked by hand. */
  eventId: textOrNull,
  /** The time since which the id names this person. */
  createdAt: time,
});
type CustomerView = Static<typeof customerView>;

function viewCustomer({ customerId: id, ...row }: PersonCustomer): CustomerView {
  return show(customerView, { ...row, id });
}

/** Lists the customer ids of a person, newest first. */
export async function listCustomers(
  tx: Reader,
  environmentId: number,
  personId: string,
): Promise<CustomerView[]> {
  const rest = `WHERE person_id = $personId AND environment_id = $environmentId
    ORDER BY created_at DESC, space, customer_id`;
  return (await PERSON_CUSTOMER.all(tx, rest, { environmentId, personId })).map(viewCustomer);
}

interface ManualCustomer {
  personId: string;
  space: string;
  id: string;
  /** Returns the fingerprint of an id for the audit. */
  fingerprint(id: string): string;
}

/**
 * Links a customer id to a person through the API, the dashboard or a command, audited. An id of another person moves. `linked` is false if the
 * person had it; `movedFrom` is the id of the other person, or null. The caller checks the space. Throws `invalid_input` and `not_found`.
 */
export async function linkCustomerManually(
  tx: Writer,
  change: Change,
  { personId, space, id: written, fingerprint }: ManualCustomer,
): Promise<{ customer: CustomerView; linked: boolean; movedFrom: string | null }> {
  const { environmentId, by, nowMs } = change;
  // An event's id is trimmed too.
  const id = written.trim();
  if (!isCustomerId(id))
    throw new Refusal(
      "invalid_input",
      `\`id\` is not valid: use 1 to ${MAX_CUSTOMER_ID_CHARS} characters on one line, exactly as the provider shows it.`,
    );
  await requirePerson(tx, environmentId, personId);
  const key = { environmentId, space, customerId: id };
  const had = await PERSON_CUSTOMER.find(tx, key);
  const arrival = await findNewestArrival(tx);
  const link = { ...key, personId, arrival, eventId: null, by, nowMs };
  const { outcome, ...other } = await rememberCustomer(tx, link);
  const movedFrom = outcome === "moved" && "personId" in other ? other.personId : null;
  const linked = had?.personId !== personId;
  if (linked) {
    const after = { space, customer: fingerprint(id) };
    await writeAudit(tx, {
      ...change,
      action: "person.customer_linked",
      target: `person:${personId}`,
      after,
    });
  }
  const row = await PERSON_CUSTOMER.require(tx, key, "The customer ID was removed by another process.");
  return { customer: viewCustomer(row), linked, movedFrom };
}

/** Removes a customer id from a person, audited. Throws `not_found`. */
export async function unlinkCustomerManually(
  tx: Writer,
  change: Change,
  { personId, space, id: written, fingerprint }: ManualCustomer,
): Promise<void> {
  const { environmentId } = change;
  const id = written.trim();
  const sql = `DELETE FROM person_customer
    WHERE environment_id = $environmentId AND space = $space AND customer_id = $id AND person_id = $personId`;
  if ((await tx.run(sql, { environmentId, space, id, personId })) === 0)
    throw new Refusal(
      "not_found",
      "The customer ID does not belong to this person in this space, so it cannot be removed: relay people show lists the person's customer IDs.",
    );
  const before = { space, customer: fingerprint(id) };
  await writeAudit(tx, {
    ...change,
    action: "person.customer_unlinked",
    target: `person:${personId}`,
    before,
  });
}
