/**
 * Who an event is about: the map's `person_email`, `person_id` or `person_token` turned into a person. Only an address creates
 * anyone; an id and a token are looked up and nothing else. Source: the specification's "Map names with meaning".
 */
import type { Writer } from "../store/port.ts";
import { parseEmailAddress } from "./email-address.ts";
import { findPerson, type PersonRow } from "./person.ts";
import { invitePerson } from "./person-invite.ts";
import { findPersonByToken } from "./person-token.ts";

export type PersonKey = "person_email" | "person_id" | "person_token";

export interface PersonKeyLookup {
  environmentId: number;
  key: PersonKey;
  /** The mapped value as text; null: the path named nothing. */
  value: string | null;
  /** Who creates a person by address: `relay:<name>`. */
  createdBy: string;
  nowMs: number;
  invitesPerDay: number;
}

/** The person, suspended ones too; null: nobody (`person_not_found`). Throws the refusal `invite_capped`, having written nothing. */
export async function resolvePersonKey(tx: Writer, lookup: PersonKeyLookup): Promise<PersonRow | null> {
  const value = lookup.value?.trim() ?? "";
  if (value === "") return null;
  switch (lookup.key) {
    case "person_id":
      return findPerson(tx, lookup.environmentId, value);
    case "person_token":
      return findPersonByToken(tx, lookup.environmentId, value);
    case "person_email":
      if (parseEmailAddress(value) === null) return null;
      return (await invitePerson(tx, { ...lookup, email: value })).person;
  }
}
