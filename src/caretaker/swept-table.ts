/**
 * The tables whose texts may hold the address of somebody who was erased, beside the events, and how a row of them is read and written over.
 * A new table or column that may hold one is a line here. It walks nothing by itself.
 */
import { findEventSeq } from "../event/event.ts";
import { type Open, STEP_ROWS } from "../event/expunge.ts";
import { isJsonObject, type Json, type JsonObject, parseJson, writeJson } from "../ground/json.ts";
import type { SoughtText } from "../people/sought-text.ts";
import type { Reader, Writer } from "../store/port.ts";
import { type LookedAt, reach } from "../store/walk.ts";

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
  /** Which rows are the person's own; none when absent. */
  own?: (
    tx: Reader,
    row: { environmentId: number; key: string | number; personId: string },
  ) => Promise<boolean>;
  /** The text without what it says of them beside the address. */
  bare?: (stored: string, text: SoughtText) => string;
  graceMs?: number;
}

/** A run's actions without the subjects of mails to them, whose own rows are blanked too. */
function dropSubjects(stored: string, text: SoughtText): string {
  if (!stored.startsWith("[")) return stored;
  const results = parseJson(stored) as Json[];
  return writeJson(results.map((result) => dropSubject(result, text)));
}

function dropSubject(result: Json, text: SoughtText): Json {
  if (!isJsonObject(result) || !isJsonObject(result.after ?? null)) return result;
  const { subject, ...after } = result.after as JsonObject;
  return subject === undefined || !text.isAddress(after.to) ? result : { ...result, after };
}

function holds(name: string, key: string): NonNullable<SweptTable["own"]> {
  const sql = `SELECT 1 FROM ${name} WHERE environment_id = $environmentId AND ${key} = $key AND person_id = $personId`;
  return async (tx, row) => (await tx.get(sql, row)) !== null;
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
    own: holds("credit", "seq"),
  },
  {
    name: "access_grant",
    key: "id",
    at: "granted_at",
    columns: ["reason"],
    own: holds("access_grant", "id"),
  },
  {
    name: "purchase",
    key: "id",
    at: "created_at",
    columns: ["ref", "data"],
    unique: "ref",
    own: holds("purchase", "id"),
  },
  {
    name: "subscription",
    key: "id",
    at: "started_at",
    columns: ["processor_customer_id", "ended_ref"],
    own: holds("subscription", "id"),
  },
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
  texts: Record<string, string | null>;
}

/** The next rows after `after`, as many as one step may read. */
export async function readRows(
  tx: Reader,
  environmentId: number,
  { name, key, at, columns, where = "TRUE" }: SweptTable,
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
  const rows = await tx.all<Record<string, string | null> & { sweptKey: string | number; sweptAt: number }>(
    `SELECT ${key} AS sweptKey, ${at} AS sweptAt, ${columns.join(", ")} FROM ${name}
     WHERE environment_id = ?1 AND ${key} > ?2 AND ${key} <= ?3 AND ${where} ORDER BY ${key}`,
    environmentId,
    after,
    last,
  );
  return rows.map(({ sweptKey, sweptAt, ...texts }) => ({ key: sweptKey, at: sweptAt, texts }) as SweptRow);
}

/** Writes the address over in each of the row's texts that holds it. */
export async function redactRow(
  tx: Writer,
  environmentId: number,
  { name, key, columns, unique, own, bare, graceMs = GRACE_MS }: SweptTable,
  row: SweptRow,
  sought: readonly Open[],
): Promise<void> {
  for (const { text, erasedAt } of sought) {
    if (row.at > erasedAt + graceMs) continue;
    for (const column of columns) {
      const stored = row.texts[column] ?? "";
      if (!text.holdsAddress(stored)) continue;
      const isOwn = (await own?.(tx, { environmentId, key: row.key, personId: text.personId })) === true;
      const bared = bare?.(stored, text) ?? stored;
      const redacted = text.redactStored(bared, { unique: column === unique, own: isOwn });
      row.texts[column] = redacted;
      const sql = `UPDATE ${name} SET "${column}" = ?3 WHERE environment_id = ?1 AND ${key} = ?2`;
      await tx.post(sql, environmentId, row.key, redacted);
    }
  }
}
