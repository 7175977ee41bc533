/**
 * The tables whose texts may hold the address of somebody who was erased, beside the events, and how a row of them is read and written over.
 * A new table or column that may hold one is a line here. It walks nothing by itself.
 */

import { isJsonObject, type Json, type JsonObject, parseJson, writeJson } from "../../base/json.ts";
import type { PiiMatcher } from "../../shop/people/pii-match.ts";
import { type LookedAt, reach } from "../../store/index-scan.ts";
import type { Reader, Writer } from "../../store/port.ts";
import { findEventSeq } from "../event/event.ts";
import { type Open, STEP_ROWS } from "../event/expunge.ts";

/** What was under way may still write its end for a minute; a record is written at once. */
const GRACE_MS = 60_000;

/** A table whose texts may hold an address, beside the events. */
export interface SweptTable {
  name: string;
  key: "seq" | "id" | "slot";
  at: string;
  columns: readonly string[];
  /** A column whose texts stay different. */
  unique?: string;
  /** Which rows; the others are other people's own, or another line's. */
  where?: string;
  /** Its column `person_id` says whose a row is. */
  ofPerson?: true;
  /** What is written in the place of a text in the person's own rows, which may name them in other words than the address. */
  blank?: Readonly<Record<string, (stored: string) => string | null>>;
  /** Which rows are the person's own besides; none when absent. */
  own?: (
    tx: Reader,
    row: { environmentId: number; key: string | number; personId: string },
  ) => Promise<boolean>;
  /** The text without what it says of them beside the address. */
  bare?: (stored: string, text: PiiMatcher) => string;
  graceMs?: number;
}

/** What stands in the place of a text that may say who they were. */
const ERASED = "erased";

function asItIs(stored: string): string {
  return stored;
}

/** A run's actions without the subjects of mails to them, whose own rows are blanked too. */
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

/** What the app gave with a receipt, while what the sale gave stays for a refund. */
function dropGiven(stored: string): string {
  const { given, ...data } = parseJson(stored) as JsonObject;
  return given === undefined ? stored : writeJson(data);
}

/** The person's, or of a run of an event that is. */
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

/** Alerts stand before the mails that are made from them. */
export const TABLES: readonly SweptTable[] = [
  { name: "alert", key: "id", at: "at", columns: ["message"] },
  { name: "problem", key: "id", at: "raised_at", columns: ["message"] },
  // A mail is dated by the attempt that made it; the next mail to the same address is somebody new's, who is to get it.
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
  { name: "recent_call", key: "slot", at: "at", columns: ["cause"] },
  {
    name: "record",
    key: "seq",
    at: "created_at",
    columns: ["data"],
    where: "owner_id IS NULL",
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
  { name: "file", key: "id", at: "created_at", columns: ["name"], graceMs: 0 },
];

interface SweptRow {
  key: string | number;
  at: number;
  /** Whose it is; null: nobody's, or the table does not say. */
  personId: string | null;
  texts: Record<string, string | null>;
}

/** The next rows after `after`, as many as one step may read. */
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
 * Writes the address over in each of the row's texts that holds it, and in their own rows what else may name them. Of others' rows only in those
 * of before the erasure, as the address may be somebody new's since; a row of their own is nobody's else whatever it is dated, also by a clock that
 * stood ahead then.
 */
export async function redactRow(
  tx: Writer,
  environmentId: number,
  { name, key, columns, unique, own, bare, blank = {}, graceMs = GRACE_MS }: SweptTable,
  row: SweptRow,
  sought: readonly Open[],
): Promise<void> {
  for (const { text, erasedAt } of sought) {
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
      if (after === before) continue;
      row.texts[column] = after;
      const sql = `UPDATE ${name} SET "${column}" = ?3 WHERE environment_id = ?1 AND ${key} = ?2`;
      await tx.post(sql, environmentId, row.key, after);
    }
  }
}
