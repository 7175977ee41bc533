/**
 * Lists the tables, in addition to the events, whose texts may contain an erased person's address. It also defines how a row is read and
 * overwritten. Add a line for each new table or column that may contain one.
 */

import { isJsonObject, type Json, type JsonObject, parseJson, writeJson } from "../../base/json.ts";
import { spaceOf } from "../../rules/relay/customer-space.ts";
import { findRelay, relayOf } from "../../rules/relay/relay.ts";
import { withSourceScheme } from "../../rules/relay/source.ts";
import type { PiiMatcher } from "../../shop/people/pii-match.ts";
import { type LookedAt, reach } from "../../store/index-scan.ts";
import type { Reader, Writer } from "../../store/port.ts";
import { findEventSeq, readExpunged } from "../event/event.ts";
import { type Open, readSweptEvent, STEP_ROWS } from "../event/expunge.ts";

/** Work in progress may still write for a minute. A record is written at once. */
const GRACE_MS = 60_000;

/** A table whose texts may contain an address. */
export interface SweptTable {
  name: string;
  key: "seq" | "id" | "slot";
  at: string;
  columns: readonly string[];
  /** A column whose texts must stay different. */
  unique?: string;
  /** Selects the rows; another line or the person's erasure covers the others. */
  where?: string;
  /** True if the column `person_id` says which person the row belongs to. */
  ofPerson?: true;
  /** Replaces a text in the person's own rows, which may identify them by more than the address. */
  blank?: Readonly<Record<string, (stored: string) => string | null>>;
  /** Reports whether a row is the person's in another way. It is absent if none is. */
  own?: (
    tx: Reader,
    row: { environmentId: number; key: string | number; personId: string },
  ) => Promise<boolean>;
  /** Removes what the text says of the person in addition to the address. */
  bare?: (stored: string, text: PiiMatcher) => string;
  /** Removes the person's customer ids from a text that a relay wrote. */
  dropCustomers?: (
    tx: Reader,
    row: { environmentId: number; key: string | number; stored: string },
    text: PiiMatcher,
  ) => Promise<string>;
  graceMs?: number;
}

/** Replaces a text that may identify the person. */
const ERASED = "erased";

function asItIs(stored: string): string {
  return stored;
}

/** Removes the subjects of mails to the person from a run's actions. */
function dropSubjects(stored: string, text: PiiMatcher): string {
  if (!stored.startsWith("[")) return stored;
  const results = parseJson(stored) as Json[];
  return writeJson(results.map((result) => dropSubject(result, text)));
}

function dropSubject(result: Json, text: PiiMatcher): Json {
  if (!isJsonObject(result) || !isJsonObject(result.after ?? null)) return result;
  const { subject, ...after } = result.after as JsonObject;
  return subject === undefined || !text.isAddress(after.to) ? result : { ...result, after };
}

/** Removes what the app gave with a receipt, and keeps what a refund needs. */
function dropGiven(stored: string): string {
  const { given, ...data } = parseJson(stored) as JsonObject;
  return given === undefined ? stored : writeJson(data);
}

/** Reports whether the audit row is about the person, or about a run of their event. */
const ownAudit: SweptTable["own"] = async (tx, { environmentId, key, personId }) => {
  const row = await tx.get<{ target: string; eventId: string | null }>(
    "SELECT target, event_id AS eventId FROM audit WHERE environment_id = ?1 AND seq = ?2",
    environmentId,
    key,
  );
  if (row === null) return false;
  if (row.target === `person:${personId}`) return true;
  const seq = row.eventId === null ? null : await findEventSeq(tx, environmentId, row.eventId);
  if (seq === null) return false;
  return (await tx.get("SELECT 1 FROM event WHERE seq = ?1 AND person_id = ?2", seq, personId)) !== null;
};

/**
 * Removes the customer ids from a record that a relay wrote: ids of the relay's space, and of any space if its relay was deleted or is no receiver.
 * An id without a letter goes only while the event that wrote the record is stored and is the person's.
 */
const dropCustomers: SweptTable["dropCustomers"] = async (tx, { environmentId, key, stored }, text) => {
  const row = await tx.get<{ writtenBy: string; eventId: string | null }>(
    "SELECT written_by AS writtenBy, event_id AS eventId FROM record WHERE environment_id = ?1 AND seq = ?2",
    environmentId,
    key,
  );
  const name = row === null ? null : relayOf(row.writtenBy);
  if (row === null || name === null) return stored;
  const definition = (await findRelay(tx, environmentId, name))?.definition ?? null;
  const space =
    definition?.trigger.kind === "receiver"
      ? spaceOf(await withSourceScheme(tx, environmentId, definition))
      : null;
  const isTheirs = row.eventId !== null && (await isAboutPerson(tx, environmentId, row.eventId, text));
  return writeJson(text.redactCustomers(parseJson(stored), { space, isTheirs }));
};

/** Reports whether the event is the person's, or was about an erased person. The events are swept before. */
async function isAboutPerson(
  tx: Reader,
  environmentId: number,
  eventId: string,
  { personId }: PiiMatcher,
): Promise<boolean> {
  const seq = await findEventSeq(tx, environmentId, eventId);
  const event = seq === null ? null : await readSweptEvent(tx, seq);
  if (event === null) return false;
  return event.personId === null
    ? readExpunged(parseJson(event.payload)) === "person_erased"
    : event.personId === personId;
}

/** Alerts come before the mails that are made from them. */
export const TABLES: readonly SweptTable[] = [
  { name: "alert", key: "id", at: "at", columns: ["message"] },
  { name: "problem", key: "id", at: "raised_at", columns: ["message"] },
  // A mail has the date of the attempt that made it. The next mail to this address is for a new person, who must
  // get it.
  {
    name: "email",
    key: "seq",
    at: "created_at",
    columns: ["recipient", "subject", "text", "message"],
    where: "person_id IS NULL AND kind <> 'alert'",
    graceMs: 0,
  },
  {
    name: "email",
    key: "seq",
    at: "created_at",
    columns: ["subject", "text", "message"],
    where: "(person_id IS NOT NULL OR kind = 'alert')",
  },
  {
    name: "audit",
    key: "seq",
    at: "at",
    columns: ["target", "before", "after"],
    own: ownAudit,
    bare: dropSubjects,
  },
  {
    name: "credit",
    key: "seq",
    at: "created_at",
    columns: ["reason", "once_key"],
    unique: "once_key",
    ofPerson: true,
    blank: { reason: () => ERASED },
  },
  {
    name: "access_grant",
    key: "id",
    at: "granted_at",
    columns: ["reason"],
    ofPerson: true,
    blank: { reason: () => ERASED },
  },
  {
    name: "purchase",
    key: "id",
    at: "created_at",
    columns: ["ref", "data"],
    unique: "ref",
    ofPerson: true,
    blank: { data: dropGiven },
  },
  {
    name: "subscription",
    key: "id",
    at: "started_at",
    columns: ["processor_customer_id"],
    ofPerson: true,
    blank: { processor_customer_id: () => null },
  },
  { name: "plan_cancellation", key: "seq", at: "created_at", columns: ["ref"], ofPerson: true },
  { name: "recent_request", key: "slot", at: "at", columns: ["cause"] },
  {
    name: "record",
    key: "seq",
    at: "created_at",
    columns: ["data"],
    where: "owner_id IS NULL",
    dropCustomers,
    graceMs: 0,
  },
  {
    name: "person",
    key: "id",
    at: "created_at",
    columns: ["attributes"],
    where: "status <> 'erased'",
    graceMs: 0,
  },
  // The cases of the person were deleted. Others can name the address.
  { name: "relay_case", key: "id", at: "updated_at", columns: ["body", "expected"], graceMs: 0 },
  { name: "file", key: "id", at: "created_at", columns: ["name"], graceMs: 0 },
];

interface SweptRow {
  key: string | number;
  at: number;
  /** The person that the row belongs to; null where it belongs to no person, or where the table has no such column. */
  personId: string | null;
  texts: Record<string, string | null>;
}

/** Reads the next rows after `after`, as many as one step can take. */
export async function readRows(
  tx: Reader,
  environmentId: number,
  { name, key, at, columns, ofPerson, where = "TRUE" }: SweptTable,
  after: string | number,
): Promise<SweptRow[]> {
  const bytes = columns.map((column) => `coalesce(octet_length(${column}), 0)`).join(" + ");
  const heads = await tx.all<LookedAt>(
    `SELECT ${key} AS key, ${bytes} AS cost FROM ${name}
     WHERE environment_id = ?1 AND ${key} > ?2 AND ${where} ORDER BY ${key} LIMIT ?3`,
    environmentId,
    after,
    STEP_ROWS,
  );
  const { floor: last } = reach(heads, STEP_ROWS);
  if (last === null) return [];
  const rows = await tx.all<
    Record<string, string | null> & {
      sweptKey: string | number;
      sweptAt: number;
      sweptPerson?: string | null;
    }
  >(
    `SELECT ${key} AS sweptKey, ${at} AS sweptAt, ${ofPerson === true ? "person_id AS sweptPerson, " : ""}${columns.join(", ")} FROM ${name}
     WHERE environment_id = ?1 AND ${key} > ?2 AND ${key} <= ?3 AND ${where} ORDER BY ${key}`,
    environmentId,
    after,
    last,
  );
  return rows.map(
    ({ sweptKey, sweptAt, sweptPerson = null, ...texts }) =>
      ({ key: sweptKey, at: sweptAt, personId: sweptPerson, texts }) as SweptRow,
  );
}

/**
 * Overwrites the address in each text of the row, and in the person's own rows everything else that may identify them. In other rows it overwrites
 * only what was written before the erasure, because the address may be a new person's since. The person's own rows are overwritten whatever their
 * date, because a clock may have been wrong.
 */
export async function redactRow(
  tx: Writer,
  environmentId: number,
  { name, key, columns, unique, own, bare, dropCustomers: drop, blank = {}, graceMs = GRACE_MS }: SweptTable,
  row: SweptRow,
  targets: readonly Open[],
): Promise<void> {
  for (const { text, erasedAt } of targets) {
    const isLater = row.at > erasedAt + graceMs;
    const isTheirs = row.personId === text.personId;
    if (isLater && !isTheirs && own === undefined) continue;
    for (const column of columns) {
      const before = row.texts[column] ?? null;
      if (before === null) continue;
      let after: string | null = isTheirs ? (blank[column] ?? asItIs)(before) : before;
      if (after !== null && text.holdsAddress(after)) {
        const isOwn =
          isTheirs || (await own?.(tx, { environmentId, key: row.key, personId: text.personId })) === true;
        if (isOwn || !(isLater || text.isShared))
          after = text.redactStored(bare?.(after, text) ?? after, { unique: column === unique, own: isOwn });
      }
      if (after !== null && drop !== undefined && !isLater && text.holdsCustomer(after))
        after = await drop(tx, { environmentId, key: row.key, stored: after }, text);
      if (after === before) continue;
      row.texts[column] = after;
      const sql = `UPDATE ${name} SET "${column}" = ?3 WHERE environment_id = ?1 AND ${key} = ?2`;
      await tx.post(sql, environmentId, row.key, after);
    }
  }
}
