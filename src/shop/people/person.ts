/**
 * People of an app: their addresses, finding, listing, changing. An erased person is nobody here: every finder passes over the tombstone.
 * Creating is person-invite.ts, erasing person-erase.ts; this file never creates and never deletes.
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

/** A tombstone, `erased` and without an address, is never read as such a row. */
export const PERSON = defineTable({
  name: "person",
  key: ["id"],
  columns: {
    id: text(),
    environmentId: integer(),
    email: text(),
    /** `toEmailKey` of it. */
    emailKey: text(),
    status: text<PersonStatus>(),
    attributes: json<JsonObject>(),
    /** In words: `relay:<name>`, `key:<id>`, `owner:<email>`. */
    createdBy: text(),
    createdAt: integer(),
    updatedAt: integer(),
  },
});
export type PersonRow = RowOf<typeof PERSON>;

/** A person as the API shows one. */
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

/** The person as a sentence names them. */
export async function formatPerson(tx: Reader, environmentId: number, personId: string): Promise<string> {
  const person = await findPerson(tx, environmentId, personId);
  return person?.email ?? `a person who was erased (${personId})`;
}

/** Compared without regard to letters' case. One of an earlier version may stand under their domain in punycode. */
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

/** The address that a caller meant. A `+` in a query arrives as a space, and no address contains a space. */
export function readSentAddress(text: string): string {
  return text.trim().replaceAll(" ", "+");
}

/** Somebody else here with the address in the other spelling of its domain: only two of an earlier version stand so. null: nobody. */
export async function findNamesake(
  tx: Reader,
  { id, environmentId, email }: Pick<PersonRow, "id" | "environmentId" | "email">,
): Promise<PersonRow | null> {
  const punycode = toPunycodeKey(email);
  if (punycode === null) return null;
  const rest = `WHERE environment_id = $environmentId AND email_key IN ($letters, $punycode) AND id <> $id`;
  return await PERSON.get(tx, rest, { environmentId, letters: toEmailKey(email), punycode, id });
}

/** Refuses with `not_found`. */
export async function requirePerson(tx: Reader, environmentId: number, personId: string): Promise<PersonRow> {
  const person = await findPerson(tx, environmentId, personId);
  if (person === null)
    throw new Refusal("not_found", "No person with this id exists here: relay people list shows who does.");
  return person;
}

/** By address, id, or a token that the app filed for them. */
async function findPersonNamed(tx: Reader, environmentId: number, name: string): Promise<PersonRow | null> {
  const person = name.includes("@")
    ? await findPersonByEmail(tx, environmentId, readSentAddress(name))
    : await findPerson(tx, environmentId, name);
  if (person !== null) return person;
  const sql =
    "SELECT person_id AS id FROM person_token WHERE environment_id = $environmentId AND token = $name";
  const filed = await tx.get<{ id: string }>(sql, { environmentId, name });
  return filed === null ? null : await findPerson(tx, environmentId, filed.id);
}

/** As `findPersonNamed`. Refuses with `not_found`. */
export async function requirePersonNamed(
  tx: Reader,
  environmentId: number,
  name: string,
): Promise<PersonRow> {
  const person = await findPersonNamed(tx, environmentId, name);
  if (person !== null) return person;
  throw rejectUnknownPerson(name);
}

/**
 * The id of the person that a filter names, if it names one. Refuses with `invalid_input`: somebody unknown is a mistake to be told, not
 * nobody's empty list.
 */
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

/**
 * The id of the person that a filter names by address, id or token, where the list also shows what stays of somebody erased. Refuses with
 * `invalid_input`, as `readPersonFilter`.
 */
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
    `No person ${showText(name)} exists in this environment: relay people list shows who does.`,
  );
}

/** Refuses with `not_found`, and with `person_suspended` for a suspended person. */
export async function requireActingPerson(
  tx: Reader,
  environmentId: number,
  personId: string,
): Promise<PersonRow> {
  const person = await requirePerson(tx, environmentId, personId);
  if (person.status === "suspended") {
    throw new Refusal(
      "person_suspended",
      `The person is suspended: make them active again first, in the dashboard or with relay people activate ${personId}.`,
    );
  }
  return person;
}

interface PersonChange {
  status?: "active" | "suspended" | undefined;
  /** Names given are set, a name given null is removed, others stay. */
  attributes?: Json | undefined;
}

/** Suspends, activates, changes attributes; answers the row before and after. Refuses with `not_found` and `invalid_input`. */
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

/** As `updatePerson`, by API, dashboard or command; audited, with the names alone of attributes that change. Answers the row after. */
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

/** An invited person signed in for the first time. Anyone else stays as they are. */
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
      `\`attributes\` would take more than ${MAX_ATTRIBUTES_BYTES} bytes: keep larger things in a record.`,
    );
  }
  return attributes;
}

function breaksValue(value: Json, depth: number): string | null {
  if (typeof value === "string") return breaksPlainText(value);
  if (typeof value === "number" && !Number.isFinite(value)) return "holds a number too large to keep";
  if (typeof value !== "object" || value === null) return null;
  if (depth >= MAX_JSON_DEPTH) return `is nested more than ${MAX_JSON_DEPTH} levels deep`;
  for (const [name, inner] of Object.entries(value)) {
    const broken = breaksPlainText(name) ?? breaksValue(inner, depth + 1);
    if (broken !== null) return broken;
  }
  return null;
}

/** Printable ASCII atoms and dots, or letters beyond ASCII (RFC 6531); none of `"(),:;<>@[\]` and no white space. */
const LOCAL = /^[A-Za-z0-9!#$%&'*+/=?^_`{|}~.\p{L}\p{M}\p{N}-]+$/u;
/** Of a domain in lower case. */
const INTERNATIONAL = /[^\p{ASCII}]|(?:^|\.)xn--/u;
const LABEL = /^[\p{L}\p{M}\p{N}](?:[\p{L}\p{M}\p{N}-]{0,61}[\p{L}\p{M}\p{N}])?$/u;

/**
 * The address with outer spaces trimmed, or null when it is not one: one @, bounded lengths, no white space, no control characters, none of
 * the characters that mean something in a mail header. Deliberately narrower than RFC 5322 (no quoted local parts, no comments, no address
 * literals); no mail server is asked.
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

/** What two spellings of one address share: letters' case, composition and a domain in punycode do not tell people apart. */
export function toEmailKey(address: string): string {
  const key = address.normalize("NFC").toLowerCase();
  return isInternational(key) ? (withDomain(key, domainToUnicode) ?? key) : key;
}

/** The address with its domain in punycode, where that is another spelling; null: there is none. */
export function toPunycodeKey(address: string): string | null {
  const key = address.normalize("NFC").toLowerCase();
  return isInternational(key) ? withDomain(key, domainToASCII) : null;
}

/** Only such a domain has two spellings. */
function isInternational(key: string): boolean {
  return INTERNATIONAL.test(key.slice(key.lastIndexOf("@") + 1));
}

/** null: it is no domain. */
function withDomain(key: string, spell: (domain: string) => string): string | null {
  const at = key.lastIndexOf("@");
  const domain = at === -1 ? "" : spell(key.slice(at + 1));
  return domain === "" ? null : `${key.slice(0, at + 1)}${domain}`;
}
