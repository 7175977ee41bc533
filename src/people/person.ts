/**
 * People of an app: finding, listing, changing. An erased person is nobody here: every finder passes over the tombstone.
 * Creating is person-invite.ts, erasing person-erase.ts; this file never creates and never deletes.
 */
import { toIso } from "../ground/clock.ts";
import { isJsonObject, type Json, type JsonObject, parseJson, writeJson } from "../ground/json.ts";
import { MAX_ATTRIBUTES_BYTES, MAX_JSON_DEPTH } from "../ground/limit.ts";
import type { Page, PageRequest } from "../ground/page.ts";
import { Refusal } from "../ground/refusal.ts";
import { breaksPlainText, utf8Bytes } from "../ground/text.ts";
import type { Reader, Writer } from "../store/port.ts";
import { equals, walkPage } from "../store/walk.ts";
import { toEmailKey } from "./email-address.ts";

export type PersonStatus = "invited" | "active" | "suspended";

export interface PersonRow {
  id: string;
  email: string;
  status: PersonStatus;
  /** JSON object text. */
  attributes: string;
  createdBy: string;
  createdAt: number;
  updatedAt: number;
}

interface PersonView {
  id: string;
  email: string;
  status: PersonStatus;
  attributes: JsonObject;
  createdBy: string;
  createdAt: string;
  updatedAt: string;
}

export const PERSON_COLUMNS =
  "id, email, status, attributes, created_by AS createdBy, created_at AS createdAt, updated_at AS updatedAt";

/** A person as the API shows one. */
export function viewPerson(row: PersonRow): PersonView {
  const attributes = parseJson(row.attributes);
  return {
    id: row.id,
    email: row.email,
    status: row.status,
    attributes: isJsonObject(attributes) ? attributes : {},
    createdBy: row.createdBy,
    createdAt: toIso(row.createdAt),
    updatedAt: toIso(row.updatedAt),
  };
}

export function findPerson(tx: Reader, environmentId: number, personId: string): Promise<PersonRow | null> {
  return tx.get<PersonRow>(
    `SELECT ${PERSON_COLUMNS} FROM person WHERE id = ?1 AND environment_id = ?2 AND status <> 'erased'`,
    personId,
    environmentId,
  );
}

/** Compared without regard to letters' case. */
export function findPersonByEmail(
  tx: Reader,
  environmentId: number,
  email: string,
): Promise<PersonRow | null> {
  return tx.get<PersonRow>(
    `SELECT ${PERSON_COLUMNS} FROM person WHERE environment_id = ?1 AND email_key = ?2`,
    environmentId,
    toEmailKey(email.trim()),
  );
}

/** Refuses with `not_found`. */
export async function requirePerson(tx: Reader, environmentId: number, personId: string): Promise<PersonRow> {
  const person = await findPerson(tx, environmentId, personId);
  if (person === null)
    throw new Refusal("not_found", "No person with this id exists here; the list of persons shows who does.");
  return person;
}

/** Refuses with `not_found`, and with `person_suspended` for a suspended person. */
export async function requireActingPerson(
  tx: Reader,
  environmentId: number,
  personId: string,
): Promise<PersonRow> {
  const person = await requirePerson(tx, environmentId, personId);
  if (person.status === "suspended") {
    throw new Refusal("person_suspended", "The person is suspended; make the person active again first.");
  }
  return person;
}

interface PersonFilter {
  /** Part of the address, in any case, or the beginning of an id. */
  q?: string | undefined;
  status?: PersonStatus | undefined;
}

/** Newest first. */
export async function listPersons(
  tx: Reader,
  environmentId: number,
  request: PageRequest,
  filter: PersonFilter = {},
): Promise<Page<PersonView>> {
  const q = toEmailKey(filter.q?.trim() ?? "");
  const sought = { sql: "(instr(email_key, ?) > 0 OR substr(id, 1, length(?)) = ?)", values: [q, q, q] };
  return await walkPage<PersonRow, PersonView>(
    tx,
    {
      from: "person INDEXED BY person_by_environment",
      columns: PERSON_COLUMNS,
      key: "id",
      led: [equals("environment_id", environmentId)],
      fits: [
        { sql: "status <> 'erased'", values: [] },
        q === "" ? undefined : sought,
        equals("status", filter.status),
      ],
      after: request.after,
      limit: request.limit,
    },
    viewPerson,
  );
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
  if (status === before.status && attributes === before.attributes) return { before, after: before };
  await tx.run(
    "UPDATE person SET status = ?1, attributes = ?2, updated_at = ?3 WHERE id = ?4",
    status,
    attributes,
    at.nowMs,
    before.id,
  );
  return { before, after: { ...before, status, attributes, updatedAt: at.nowMs } };
}

/** An invited person signed in for the first time. Anyone else stays as they are. */
export async function markSignedIn(
  tx: Writer,
  at: { environmentId: number; personId: string; nowMs: number },
): Promise<void> {
  await tx.run(
    "UPDATE person SET status = 'active', updated_at = ?3 WHERE id = ?1 AND environment_id = ?2 AND status = 'invited'",
    at.personId,
    at.environmentId,
    at.nowMs,
  );
}

function mergeAttributes(stored: string, change: Json): string {
  if (!isJsonObject(change)) {
    throw new Refusal(
      "invalid_input",
      "`attributes` is not an object: send the names to set and their values.",
    );
  }
  const before = parseJson(stored);
  const merged = new Map(Object.entries(isJsonObject(before) ? before : {}));
  for (const [name, value] of Object.entries(change)) {
    const broken = breaksPlainText(name) ?? breaksValue(value, 1);
    if (broken !== null) {
      throw new Refusal("invalid_input", `\`attributes.${name}\` ${broken}: correct or remove it.`);
    }
    if (value === null) merged.delete(name);
    else merged.set(name, value);
  }
  const text = writeJson(Object.fromEntries(merged));
  if (utf8Bytes(text) > MAX_ATTRIBUTES_BYTES) {
    throw new Refusal(
      "invalid_input",
      `\`attributes\` would take more than ${MAX_ATTRIBUTES_BYTES} bytes: keep larger things in a record.`,
    );
  }
  return text;
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
