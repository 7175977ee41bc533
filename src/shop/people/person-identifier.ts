/**
 * Identifiers of a person other than their id: the address, id or store account token that an event's map names (`person_email`, `person_id`,
 * `person_token`), and the tokens that the app registered with an app store. Only an address creates a person. A token names one person and
 * never moves by itself. Source: the specification's "Map names with meaning".
 */
import { type Static, Type } from "typebox";
import { MAX_ACCOUNT_TOKEN_CHARS } from "../../base/limit.ts";
import { Refusal } from "../../base/refusal.ts";
import { show, time } from "../../base/schema.ts";
import type { PersonKey } from "../../base/shape.ts";
import { breaksOneLine } from "../../base/text.ts";
import { type Change, writeAudit } from "../../platform/audit/audit.ts";
import type { Reader, Writer } from "../../store/port.ts";
import { defineTable, integer, type RowOf, text } from "../../store/table.ts";
import { findPersonByFormerAddress, hadAddressAt } from "./former-address.ts";
import {
  findPerson,
  findPersonByEmail,
  PERSON,
  type PersonRow,
  parseEmailAddress,
  requirePerson,
} from "./person.ts";
import { isErasedAddress, isErasedPerson, isErasedToken } from "./person-erase.ts";
import { invitePerson } from "./person-invite.ts";

interface PersonKeyLookup {
  environmentId: number;
  key: PersonKey;
  /** The mapped value as text; null: the path resolved to nothing. */
  value: string | null;
  /** The formatted actor that creates a person: `relay:<name>`. */
  createdBy: string;
  nowMs: number;
  invitesPerDay: number;
  event: Arrival;
  /** Digests an address as erased ones are stored. */
  digestAddress: (email: string) => Uint8Array;
}

/** The arrival of the event that names a person. */
export interface Arrival {
  seq: number;
  /** Milliseconds since the epoch. */
  createdAt: number;
}

/**
 * Resolves a person, including suspended ones. Returns null if there is none (`person_not_found`), and `erased` for a person who was erased
 * after the event arrived; they are not created again. Throws `invite_capped` before it writes anything.
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

/** Resolves an address. A person who had it when the event arrived was not erased since; otherwise the erasures are checked. */
async function resolveAddress(
  tx: Writer,
  lookup: PersonKeyLookup,
  email: string,
): Promise<PersonRow | "erased"> {
  const { environmentId, event } = lookup;
  const named = await findPersonByAddress(tx, environmentId, email, event.createdAt);
  if (named?.hadAddress === true) return named.person;
  if (await isErasedAddress(tx, environmentId, lookup.digestAddress(email), event.seq)) return "erased";
  return named?.person ?? (await invitePerson(tx, { ...lookup, email })).person;
}

/**
 * Finds the person that an event means by an address: the person who has it now, if they had it when the event arrived; else the person who had it
 * then; else the person who has it now. Erasures are not checked. `hadAddress`: the person had it when the event arrived.
 */
export async function findPersonByAddress(
  tx: Reader,
  environmentId: number,
  email: string,
  arrivedAt: number,
): Promise<{ person: PersonRow; hadAddress: boolean } | null> {
  const current = await findPersonByEmail(tx, environmentId, email);
  if (current !== null && (await hadAddressAt(tx, current, email, arrivedAt)))
    return { person: current, hadAddress: true };
  const former = await findPersonByFormerAddress(tx, environmentId, email, arrivedAt);
  if (former !== null)
    return { person: former, hadAddress: await hadAddressAt(tx, former, email, arrivedAt) };
  return current === null ? null : { person: current, hadAddress: false };
}

const PERSON_TOKEN = defineTable({
  name: "person_token",
  key: ["environmentId", "token"],
  columns: { environmentId: integer(), token: text(), personId: text(), createdAt: integer() },
});

export const tokenView = Type.Object({ token: Type.String(), createdAt: time });
type TokenView = Static<typeof tokenView>;

function viewToken(row: RowOf<typeof PERSON_TOKEN>): TokenView {
  return show(tokenView, row);
}

export function findPersonByToken(
  tx: Reader,
  environmentId: number,
  token: string,
): Promise<PersonRow | null> {
  const rest = `WHERE id = (SELECT person_id FROM person_token WHERE environment_id = $environmentId AND token = $token)
    AND environment_id = $environmentId AND status <> 'erased'`;
  return PERSON.get(tx, rest, { environmentId, token });
}

interface TokenFiling {
  environmentId: number;
  personId: string;
  token: string;
}

/** Files a token for a person; filing it again for the same person changes nothing. Throws `invalid_input`, `not_found`, `token_taken`. */
export async function fileToken(tx: Writer, filing: TokenFiling & { nowMs: number }): Promise<TokenView> {
  const { environmentId, personId, token, nowMs } = filing;
  if (token === "" || token.length > MAX_ACCOUNT_TOKEN_CHARS || breaksOneLine(token) !== null) {
    throw new Refusal(
      "invalid_input",
      `\`token\` is not valid: use 1 to ${MAX_ACCOUNT_TOKEN_CHARS} characters on one line, exactly as the store returns it.`,
    );
  }
  await requirePerson(tx, environmentId, personId);
  const filed = await PERSON_TOKEN.find(tx, { environmentId, token });
  if (filed === null) {
    const row = { environmentId, token, personId, createdAt: nowMs };
    await PERSON_TOKEN.insert(tx, row);
    return viewToken(row);
  }
  if (filed.personId === personId) return viewToken(filed);
  throw new Refusal(
    "token_taken",
    "`token` belongs to another person, and a token names only one person: remove it from that person first, with relay people remove-token.",
  );
}

interface ManualToken {
  personId: string;
  token: string;
  /** Returns the token's fingerprint for the audit. */
  fingerprint(token: string): string;
}

/** Files a token through the API, the dashboard or a command; audited if it is new. */
export async function fileTokenManually(
  tx: Writer,
  change: Change,
  { personId, token, fingerprint }: ManualToken,
): Promise<{ token: TokenView; filed: boolean }> {
  const { environmentId, nowMs } = change;
  const earlier = await findPersonByToken(tx, environmentId, token);
  const filed = await fileToken(tx, { environmentId, personId, token, nowMs });
  if (earlier !== null) return { token: filed, filed: false };
  const after = { token: fingerprint(token) };
  await writeAudit(tx, { ...change, action: "person.token_filed", target: `person:${personId}`, after });
  return { token: filed, filed: true };
}

/** Removes a token through the API, the dashboard or a command; audited. */
export async function removeTokenManually(
  tx: Writer,
  change: Change,
  { personId, token, fingerprint }: ManualToken,
): Promise<void> {
  await removeToken(tx, { environmentId: change.environmentId, personId, token });
  const before = { token: fingerprint(token) };
  await writeAudit(tx, { ...change, action: "person.token_removed", target: `person:${personId}`, before });
}

/** Removes a person's token. Throws `not_found`. */
export async function removeToken(
  tx: Writer,
  { environmentId, personId, token }: TokenFiling,
): Promise<void> {
  const sql = `DELETE FROM person_token
    WHERE environment_id = $environmentId AND token = $token AND person_id = $personId`;
  const removed = await tx.run(sql, { environmentId, personId, token });
  if (removed === 0)
    throw new Refusal(
      "not_found",
      "`token` does not belong to this person, so it cannot be removed: relay people show lists the person's tokens.",
    );
}

export async function listTokens(tx: Reader, environmentId: number, personId: string): Promise<TokenView[]> {
  const rest = `WHERE person_id = $personId AND environment_id = $environmentId
    ORDER BY created_at DESC, token`;
  return (await PERSON_TOKEN.all(tx, rest, { environmentId, personId })).map(viewToken);
}
