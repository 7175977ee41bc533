/**
 * People of an app: addresses, finding, changing. No finder returns an erased person. Creation is in person-invite.ts, erasure in
 * person-erase.ts.
 */
import { domainToASCII, domainToUnicode } from "node:url";
import { type Static, Type } from "typebox";
import { isId } from "../../base/id.ts";
import { isJsonObject, type Json, type JsonObject, writeJson } from "../../base/json.ts";
import {
  MAX_ATTRIBUTES_BYTES,
  MAX_EMAIL_CHARS,
  MAX_EMAIL_LOCAL_CHARS,
  MAX_JSON_DEPTH,
} from "../../base/limit.ts";
import { Refusal } from "../../base/refusal.ts";
import { oneOf, show, time } from "../../base/schema.ts";
import { showText } from "../../base/shape.ts";
import { breaksPlainText, utf8Bytes } from "../../base/text.ts";
import { type Change, writeAudit } from "../../platform/audit/audit.ts";
import type { Reader, Store, Writer } from "../../store/port.ts";
import { defineTable, integer, json, type RowOf, text } from "../../store/table.ts";

export const personStatus = oneOf(["invited", "active", "suspended"]);
export type PersonStatus = Static<typeof personStatus>;

/** Rows of an erased person have no address and are never read as this type. */
export const PERSON = defineTable({
  name: "person",
  key: ["id"],
  columns: {
    id: text(),
    environmentId: integer(),
    email: text(),
    /** `toEmailKey` of the address. */
    emailKey: text(),
    status: text<PersonStatus>(),
    attributes: json<JsonObject>(),
    /** The formatted actor: `relay:<name>`, `key:<id>`, `owner:<email>`. */
    createdBy: text(),
    createdAt: integer(),
    updatedAt: integer(),
  },
});
export type PersonRow = RowOf<typeof PERSON>;

/** A person as the API shows it. */
export const personView = Type.Object({
  id: Type.String(),
  email: Type.String(),
  status: personStatus,
  attributes: Type.Unsafe<JsonObject>({}),
  createdBy: Type.String(),
  createdAt: time,
  updatedAt: time,
});
export type PersonView = Static<typeof personView>;

export function viewPerson(row: PersonRow): PersonView {
  return show(personView, row);
}

export function findPerson(tx: Reader, environmentId: number, personId: string): Promise<PersonRow | null> {
  const rest = "WHERE id = $personId AND environment_id = $environmentId AND status <> 'erased'";
  return PERSON.get(tx, rest, { environmentId, personId });
}

/** Formats a person for a sentence. */
export async function formatPerson(tx: Reader, environmentId: number, personId: string): Promise<string> {
  const person = await findPerson(tx, environmentId, personId);
  return person?.email ?? `a person who was erased (${personId})`;
}

/** Finds a person by address, ignoring case. People of earlier versions may be stored under their domain in punycode. */
export async function findPersonByEmail(
  tx: Reader,
  environmentId: number,
  email: string,
): Promise<PersonRow | null> {
  const rest = "WHERE environment_id = $environmentId AND email_key = $emailKey";
  const found = await PERSON.get(tx, rest, { environmentId, emailKey: toEmailKey(email.trim()) });
  const punycode = found === null ? toPunycodeKey(email.trim()) : null;
  return punycode === null ? found : await PERSON.get(tx, rest, { environmentId, emailKey: punycode });
}

/** Reads an address from a query, where a `+` arrives as a space; no address contains a space. */
export function readSentAddress(text: string): string {
  return text.trim().replaceAll(" ", "+");
}

/** Finds another person with the same address but another spelling of its domain. Only earlier versions could create both. */
export async function findNamesake(
  tx: Reader,
  { id, environmentId, email }: Pick<PersonRow, "id" | "environmentId" | "email">,
): Promise<PersonRow | null> {
  const punycode = toPunycodeKey(email);
  if (punycode === null) return null;
  const rest = `WHERE environment_id = $environmentId AND email_key IN ($letters, $punycode) AND id <> $id`;
  return await PERSON.get(tx, rest, { environmentId, letters: toEmailKey(email), punycode, id });
}

/** Finds a person. Throws `not_found`. */
export async function requirePerson(tx: Reader, environmentId: number, personId: string): Promise<PersonRow> {
  const person = await findPerson(tx, environmentId, personId);
  if (person === null)
    throw new Refusal(
      "not_found",
      "No person with this id exists in this environment: relay people list shows the existing people.",
    );
  return person;
}

/** Finds a person by a provider's customer id, in the space of any relay of the environment. */
export async function findPersonByAnyCustomer(
  tx: Reader,
  environmentId: number,
  customerId: string,
): Promise<PersonRow | null> {
  const rest = `WHERE id = (SELECT person_id FROM person_customer WHERE environment_id = $environmentId AND customer_id = $customerId
      AND space IN (SELECT name FROM relay WHERE environment_id = $environmentId) ORDER BY space LIMIT 1)
    AND environment_id = $environmentId AND status <> 'erased'`;
  return await PERSON.get(tx, rest, { environmentId, customerId });
}

/** Finds a person by address, id, token or customer id. */
async function findPersonNamed(tx: Reader, environmentId: number, name: string): Promise<PersonRow | null> {
  const person = name.includes("@")
    ? await findPersonByEmail(tx, environmentId, readSentAddress(name))
    : await findPerson(tx, environmentId, name);
  if (person !== null) return person;
  const sql =
    "SELECT person_id AS id FROM person_token WHERE environment_id = $environmentId AND token = $name";
  const filed = await tx.get<{ id: string }>(sql, { environmentId, name });
  return filed === null
    ? await findPersonByAnyCustomer(tx, environmentId, name)
    : await findPerson(tx, environmentId, filed.id);
}

/** Finds a person as `findPersonNamed` does. Throws `not_found`. */
export async function requirePersonNamed(
  tx: Reader,
  environmentId: number,
  name: string,
): Promise<PersonRow> {
  const person = await findPersonNamed(tx, environmentId, name);
  if (person !== null) return person;
  throw rejectUnknownPerson(name);
}

/** Resolves the person of a filter to an id. Throws `invalid_input` for an unknown person, because an empty list would hide the mistake. */
export async function readPersonFilter(
  store: Store,
  environmentId: number,
  name: string | undefined,
): Promise<string | undefined> {
  if (name === undefined) return undefined;
  const person = await store.read((tx) => findPersonNamed(tx, environmentId, name));
  if (person !== null) return person.id;
  throw new Refusal("invalid_input", `person is not valid: ${rejectUnknownPerson(name).message}`);
}

/** Resolves the person of a filter to an id, for lists that also show data of erased people: accepts a tombstone's id. Throws `invalid_input`. */
export async function readPersonId(
  tx: Reader,
  environmentId: number,
  field: string,
  name: string | undefined,
): Promise<string | undefined> {
  if (name === undefined) return undefined;
  const person = await findPersonNamed(tx, environmentId, name);
  if (person !== null) return person.id;
  const erased = "SELECT 1 FROM person WHERE id = ?1 AND environment_id = ?2";
  if (isId("per", name) && (await tx.get(erased, name, environmentId)) !== null) return name;
  throw new Refusal("invalid_input", `${field} is not valid: ${rejectUnknownPerson(name).message}`);
}

export function rejectUnknownPerson(name: string): Refusal {
  return new Refusal(
    "not_found",
    `No person ${showText(name)} exists in this environment: relay people list shows the existing people. If this person paid, look for a rejected request with relay requests list.`,
  );
}

/** Finds a person who is not suspended. Throws `not_found` and `person_suspended`. */
export async function requireActingPerson(
  tx: Reader,
  environmentId: number,
  personId: string,
): Promise<PersonRow> {
  const person = await requirePerson(tx, environmentId, personId);
  if (person.status === "suspended") {
    throw new Refusal(
      "person_suspended",
      `The person is suspended: make them active again first, with relay people activate ${personId}.`,
    );
  }
  return person;
}

interface PersonChange {
  status?: "active" | "suspended" | undefined;
  /** Given names are set, null removes a name, and other names stay. */
  attributes?: Json | undefined;
}

/** Suspends or activates a person, or changes attributes. Returns the row before and after. Throws `not_found` and `invalid_input`. */
export async function updatePerson(
  tx: Writer,
  at: { environmentId: number; personId: string; nowMs: number },
  change: PersonChange,
): Promise<{ before: PersonRow; after: PersonRow }> {
  const before = await requirePerson(tx, at.environmentId, at.personId);
  const attributes =
    change.attributes === undefined
      ? before.attributes
      : mergeAttributes(before.attributes, change.attributes);
  const status = change.status ?? before.status;
  if (status === before.status && writeJson(attributes) === writeJson(before.attributes)) {
    return { before, after: before };
  }
  const changes = { status, attributes, updatedAt: at.nowMs };
  await PERSON.change(tx, { id: before.id }, changes);
  return { before, after: { ...before, ...changes } };
}

/**
 * Changes a person through the API, the dashboard or a command; audited with the names of the changed attributes, without their values.
 * Returns the row after.
 */
export async function changePersonManually(
  tx: Writer,
  change: Change,
  personId: string,
  given: Pick<PersonChange, "status"> & { attributes?: Record<string, Json> | undefined },
): Promise<PersonRow> {
  const { environmentId, by, nowMs } = change;
  const { before, after } = await updatePerson(tx, { environmentId, personId, nowMs }, given);
  if (before === after) return after;
  const names = Object.keys(given.attributes ?? {});
  await writeAudit(tx, {
    ...{ environmentId, by, nowMs },
    action: "person.changed",
    target: `person:${personId}`,
    before: { status: before.status },
    after: { status: after.status, ...(names.length === 0 ? {} : { attributesChanged: names }) },
  });
  return after;
}

/** Marks an invited person as active at their first sign-in. Other statuses stay. */
export async function markSignedIn(
  tx: Writer,
  at: { environmentId: number; personId: string; nowMs: number },
): Promise<void> {
  const sql = `UPDATE person SET status = 'active', updated_at = $nowMs
    WHERE id = $personId AND environment_id = $environmentId AND status = 'invited'`;
  await tx.run(sql, at);
}

function mergeAttributes(stored: JsonObject, change: Json): JsonObject {
  if (!isJsonObject(change)) {
    throw new Refusal(
      "invalid_input",
      "`attributes` is not an object: send the names to set and their values.",
    );
  }
  const merged = new Map(Object.entries(stored));
  for (const [name, value] of Object.entries(change)) {
    const broken = breaksPlainText(name) ?? breaksValue(value, 1);
    if (broken !== null) {
      throw new Refusal("invalid_input", `\`attributes.${name}\` ${broken}: correct or remove it.`);
    }
    if (value === null) merged.delete(name);
    else merged.set(name, value);
  }
  const attributes = Object.fromEntries(merged);
  if (utf8Bytes(writeJson(attributes)) > MAX_ATTRIBUTES_BYTES) {
    throw new Refusal(
      "invalid_input",
      `\`attributes\` would take more than ${MAX_ATTRIBUTES_BYTES} bytes: store larger values in a record.`,
    );
  }
  return attributes;
}

function breaksValue(value: Json, depth: number): string | null {
  if (typeof value === "string") return breaksPlainText(value);
  if (typeof value === "number" && !Number.isFinite(value))
    return "contains a number that is too large to store";
  if (typeof value !== "object" || value === null) return null;
  if (depth >= MAX_JSON_DEPTH) return `is nested more than ${MAX_JSON_DEPTH} levels deep`;
  for (const [name, inner] of Object.entries(value)) {
    const broken = breaksPlainText(name) ?? breaksValue(inner, depth + 1);
    if (broken !== null) return broken;
  }
  return null;
}

/** Printable ASCII atoms and dots, or letters beyond ASCII (RFC 6531), without `"(),:;<>@[\]` and white space. */
const LOCAL = /^[A-Za-z0-9!#$%&'*+/=?^_`{|}~.\p{L}\p{M}\p{N}-]+$/u;
/** Matches a lower-case domain that is not plain ASCII or is in punycode. */
const INTERNATIONAL = /[^\p{ASCII}]|(?:^|\.)xn--/u;
const LABEL = /^[\p{L}\p{M}\p{N}](?:[\p{L}\p{M}\p{N}-]{0,61}[\p{L}\p{M}\p{N}])?$/u;

/**
 * Parses an address: trims it, and returns null unless it has one @, bounded lengths, and no white space, control characters or characters
 * with a meaning in a mail header. Deliberately narrower than RFC 5322 (no quoted local parts, comments or address literals). Asks no mail
 * server.
 */
export function parseEmailAddress(text: string): string | null {
  const address = text.trim();
  if (address.length > MAX_EMAIL_CHARS || Buffer.byteLength(address) > MAX_EMAIL_CHARS) return null;
  const [local, domain, ...more] = address.split("@");
  if (local === undefined || domain === undefined || more.length > 0) return null;
  if (Buffer.byteLength(local) > MAX_EMAIL_LOCAL_CHARS || !LOCAL.test(local)) return null;
  if (local.startsWith(".") || local.endsWith(".") || local.includes("..")) return null;
  const labels = domain.split(".");
  return labels.length >= 2 && labels.every((label) => LABEL.test(label)) ? address : null;
}

/** Returns the key by which addresses are compared: case, Unicode composition and punycode do not matter. */
export function toEmailKey(address: string): string {
  const key = address.normalize("NFC").toLowerCase();
  return isInternational(key) ? (withDomain(key, domainToUnicode) ?? key) : key;
}

/** Returns the address with its domain in punycode; null if there is no such spelling. */
export function toPunycodeKey(address: string): string | null {
  const key = address.normalize("NFC").toLowerCase();
  return isInternational(key) ? withDomain(key, domainToASCII) : null;
}

/** Reports whether the domain has a second spelling. */
function isInternational(key: string): boolean {
  return INTERNATIONAL.test(key.slice(key.lastIndexOf("@") + 1));
}

/** Replaces the spelling of the domain; null if it is not a domain. */
function withDomain(key: string, spell: (domain: string) => string): string | null {
  const at = key.lastIndexOf("@");
  const domain = at === -1 ? "" : spell(key.slice(at + 1));
  return domain === "" ? null : `${key.slice(0, at + 1)}${domain}`;
}
