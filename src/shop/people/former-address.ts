/**
 * Changes of a person's address by hand. The person keeps the id and everything else. The former address stays stored, so that an event that names
 * it still finds the person, and an erasure removes it too. A sign-in never uses a former address, because its mailbox may be another person's now.
 */
import { type Static, Type } from "typebox";
import { Refusal } from "../../base/refusal.ts";
import { type Change, writeAudit } from "../../platform/audit/audit.ts";
import type { Reader, Writer } from "../../store/port.ts";
import { defineTable, integer, text } from "../../store/table.ts";
import {
  findPersonByEmail,
  PERSON,
  type PersonRow,
  parseEmailAddress,
  requirePerson,
  toEmailKey,
  toPunycodeKey,
} from "./person.ts";

const FORMER_ADDRESS = defineTable({
  name: "former_address",
  key: ["personId", "emailKey"],
  columns: {
    personId: text(),
    emailKey: text(),
    environmentId: integer(),
    email: text(),
    changedAt: integer(),
  },
});

export const addressChange = Type.Object({
  from: Type.String(),
  to: Type.String(),
  /** The change in sentences. */
  message: Type.String(),
});
type AddressChange = Static<typeof addressChange>;

/** The most former addresses of a person, which bounds an erasure. */
const MAX_FORMER = 20;

/** Changes a person's address, audited without the addresses. Throws `not_found` and `invalid_input`. */
export async function changeAddressManually(
  tx: Writer,
  change: Change,
  personId: string,
  address: string,
): Promise<{ plan: AddressChange; person: PersonRow; changed: boolean }> {
  const { environmentId, nowMs } = change;
  const person = await requirePerson(tx, environmentId, personId);
  const email = parseEmailAddress(address);
  if (email === null)
    throw new Refusal("invalid_input", "`email` is not an email address: use one such as name@example.com.");
  if (email === person.email) {
    const message = `The address is ${email} already, so nothing changes.`;
    return { plan: { from: email, to: email, message }, person, changed: false };
  }
  const other = await findPersonByEmail(tx, environmentId, email);
  if (other !== null && other.id !== person.id)
    throw new Refusal(
      "invalid_input",
      `${email} is the address of another person (${other.id}): merge the two people instead, with relay people merge.`,
    );
  await storeFormer(tx, person, nowMs);
  const changes = { email, emailKey: toEmailKey(email), updatedAt: nowMs };
  const own = { personId: person.id, emailKey: changes.emailKey };
  await FORMER_ADDRESS.delete(tx, own);
  await PERSON.change(tx, { id: person.id }, changes);
  // A code for the former mailbox must not sign in or create a person.
  await tx.run("DELETE FROM person_code WHERE environment_id = $environmentId AND email_key = $emailKey", {
    environmentId,
    emailKey: person.emailKey,
  });
  await writeAudit(tx, { ...change, action: "person.address_changed", target: `person:${person.id}` });
  const message = `Changes the address ${person.email} to ${email}. The id, the access and everything else stay. A payment that names ${person.email} still finds this person. Only ${email} can sign in.`;
  return {
    plan: { from: person.email, to: email, message },
    person: { ...person, ...changes },
    changed: true,
  };
}

async function storeFormer(
  tx: Writer,
  { id: personId, environmentId, email, emailKey }: PersonRow,
  changedAt: number,
): Promise<void> {
  if ((await listFormerAddresses(tx, personId)).length >= MAX_FORMER)
    throw new Refusal(
      "invalid_input",
      `This person had ${MAX_FORMER} other addresses before, which is the limit: invite a new person and merge them.`,
    );
  await FORMER_ADDRESS.insert(tx, { personId, environmentId, email, emailKey, changedAt });
}

/** Finds the person who had this former address at that time. If no person had it then, it finds the last one before. */
export function findPersonByFormerAddress(
  tx: Reader,
  environmentId: number,
  email: string,
  atMs: number,
): Promise<PersonRow | null> {
  const order = "changed_at > $atMs DESC, CASE WHEN changed_at > $atMs THEN changed_at ELSE -changed_at END";
  const rest = `WHERE id = (SELECT person_id FROM former_address INDEXED BY former_address_by_email
    WHERE environment_id = $environmentId AND email_key = $emailKey ORDER BY ${order} LIMIT 1) AND status <> 'erased'`;
  return PERSON.get(tx, rest, { environmentId, emailKey: toEmailKey(email.trim()), atMs });
}

/** Reports whether the person existed at that time and had this address then. */
export async function hadAddressAt(
  tx: Reader,
  person: PersonRow,
  email: string,
  atMs: number,
): Promise<boolean> {
  const { id, createdAt, updatedAt } = person;
  if (createdAt > atMs) return false;
  const rest = "WHERE person_id = $id AND changed_at > $atMs ORDER BY changed_at LIMIT 1";
  // Most people did not change since, so that most events need no second read.
  const next = updatedAt <= atMs ? null : await FORMER_ADDRESS.get(tx, rest, { id, atMs });
  return toEmailKey((next ?? person).email) === toEmailKey(email.trim());
}

/** Lists the addresses that a person had before, the oldest first, with the time of each change. */
export function listFormerAddresses(
  tx: Reader,
  personId: string,
): Promise<{ email: string; changedAt: number }[]> {
  return FORMER_ADDRESS.all(tx, "WHERE person_id = $personId ORDER BY changed_at, email_key", { personId });
}

/** Finds another person who had this address before, in either spelling of its domain: the one who had it last. */
export function findFormerHolder(
  tx: Reader,
  { id, environmentId }: Pick<PersonRow, "id" | "environmentId">,
  email: string,
): Promise<{ personId: string; changedAt: number } | null> {
  const rest = `INDEXED BY former_address_by_email WHERE environment_id = $environmentId AND email_key IN ($letters, $punycode)
    AND person_id <> $id ORDER BY changed_at DESC LIMIT 1`;
  const letters = toEmailKey(email);
  return FORMER_ADDRESS.get(tx, rest, {
    environmentId,
    letters,
    punycode: toPunycodeKey(email) ?? letters,
    id,
  });
}

/** Deletes the former addresses of an erased person. */
export async function deleteFormerAddresses(tx: Writer, personId: string): Promise<void> {
  await tx.run("DELETE FROM former_address WHERE person_id = ?1", personId);
}
