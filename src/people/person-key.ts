/**
 * Who an event is about: the map's `person_email`, `person_id` or `person_token` turned into a person. Only an address creates
 * anyone; an id and a token are looked up and nothing else. Source: the specification's "Map names with meaning".
 */
import type { Writer } from "../store/port.ts";
import { parseEmailAddress } from "./email-address.ts";
import { findPerson, findPersonByEmail, type PersonRow } from "./person.ts";
import { isErasedAddress, isErasedPerson, isErasedToken } from "./person-erase.ts";
import { invitePerson } from "./person-invite.ts";
import { findPersonByToken } from "./person-token.ts";

export type PersonKey = "person_email" | "person_id" | "person_token";

interface PersonKeyLookup {
  environmentId: number;
  key: PersonKey;
  /** The mapped value as text; null: the path named nothing. */
  value: string | null;
  /** Who creates a person by address: `relay:<name>`. */
  createdBy: string;
  nowMs: number;
  invitesPerDay: number;
  event: Arrival;
  /** Of an address, as erased ones are kept. */
  digestAddress: (email: string) => Uint8Array;
}

/** When the event that names a person arrived. */
export interface Arrival {
  seq: number;
  /** Milliseconds since the epoch. */
  createdAt: number;
}

/**
 * The person, suspended ones too; null: nobody (`person_not_found`); `erased`: someone who was erased since the event arrived, and is not
 * made anew. Throws the refusal `invite_capped`, having written nothing.
 */
export async function resolvePersonKey(
  tx: Writer,
  lookup: PersonKeyLookup,
): Promise<PersonRow | "erased" | null> {
  const { environmentId } = lookup;
  const value = lookup.value?.trim() ?? "";
  if (value === "") return null;
  switch (lookup.key) {
    case "person_id": {
      const person = await findPerson(tx, environmentId, value);
      return person === null && (await isErasedPerson(tx, environmentId, value)) ? "erased" : person;
    }
    case "person_token": {
      const person = await findPersonByToken(tx, environmentId, value);
      return person === null && (await isErasedToken(tx, environmentId, value)) ? "erased" : person;
    }
    case "person_email":
      if (parseEmailAddress(value) === null) return null;
      return await resolveAddress(tx, lookup, value);
  }
}

/** Who was there when the event arrived and still is, was not erased in between; about anyone else the erasures are asked. */
async function resolveAddress(
  tx: Writer,
  lookup: PersonKeyLookup,
  email: string,
): Promise<PersonRow | "erased"> {
  const { environmentId, event } = lookup;
  const person = await findPersonByEmail(tx, environmentId, email);
  if (person !== null && person.createdAt <= event.createdAt) return person;
  if (await isErasedAddress(tx, environmentId, lookup.digestAddress(email), event.seq)) return "erased";
  return person ?? (await invitePerson(tx, { ...lookup, email })).person;
}
