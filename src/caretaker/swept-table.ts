/**
 * The tables whose texts may hold the address of somebody who was erased, beside the events, and how a row of them is read and written over.
 * A new table or column that may hold one is a line here. It walks nothing by itself.
 */
import { type Open, STEP_ROWS } from "../event/expunge.ts";
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
  /** Which rows are the person's (?3) own; none when absent. */
  own?: string;
  graceMs?: number;
}

const HOLDER = "person_id = ?3";

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
    own: "(target = 'person:' || ?3 OR EXISTS (SELECT 1 FROM event WHERE event.id = audit.event_id AND person_id = ?3))",
  },
  {
    name: "credit",
    key: "seq",
    at: "created_at",
    columns: ["reason", "once_key"],
    unique: "once_key",
    own: HOLDER,
  },
  { name: "access_grant", key: "id", at: "granted_at", columns: ["reason"], own: HOLDER },
  {
    name: "purchase",
    key: "id",
    at: "created_at",
    columns: ["ref", "data"],
    unique: "ref",
    own: HOLDER,
  },
  { name: "subscription", key: "id", at: "started_at", columns: ["processor_customer_id"], own: HOLDER },
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
  { name, key, at, columns, where = "1" }: SweptTable,
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
  { name, key, columns, unique, own, graceMs = GRACE_MS }: SweptTable,
  row: SweptRow,
  sought: readonly Open[],
): Promise<void> {
  for (const { text, erasedAt } of sought) {
    if (row.at > erasedAt + graceMs) continue;
    for (const column of columns) {
      const stored = row.texts[column] ?? "";
      if (!text.holdsAddress(stored)) continue;
      const isOwn =
        own !== undefined &&
        (await tx.get(
          `SELECT 1 FROM ${name} WHERE environment_id = ?1 AND ${key} = ?2 AND ${own}`,
          environmentId,
          row.key,
          text.personId,
        )) !== null;
      const redacted = text.redactStored(stored, { unique: column === unique, own: isOwn });
      row.texts[column] = redacted;
      const sql = `UPDATE ${name} SET "${column}" = ?3 WHERE environment_id = ?1 AND ${key} = ?2`;
      await tx.run(sql, environmentId, row.key, redacted);
    }
  }
}
