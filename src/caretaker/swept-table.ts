/**
 * The tables whose texts may hold the address of somebody who was erased, beside the events, and how a row of them is read and written over.
 * A new table or column that may hold one is a line here. It walks nothing by itself.
 */
import { lastOfStep, type Open, STEP_ROWS } from "../event/event-sweep.ts";
import type { Reader, Writer } from "../store/port.ts";

/** What was under way may still write its end for a minute; a record is written at once. */
const GRACE_MS = 60_000;

/** A table whose texts may hold an address, beside the events; `unique`: a column whose texts stay different. */
export interface SweptTable {
  name: string;
  key: "seq" | "id" | "slot";
  at: string;
  columns: readonly string[];
  unique?: string;
  /** Further rows are others' own. */
  where?: string;
  graceMs?: number;
}

export const TABLES: readonly SweptTable[] = [
  {
    name: "email",
    key: "seq",
    at: "created_at",
    columns: ["recipient", "subject", "text", "message"],
    where: "person_id IS NULL",
  },
  { name: "audit", key: "seq", at: "at", columns: ["target", "before", "after"] },
  { name: "credit", key: "seq", at: "created_at", columns: ["reason", "once_key"], unique: "once_key" },
  { name: "access_grant", key: "id", at: "granted_at", columns: ["reason"] },
  { name: "purchase", key: "id", at: "created_at", columns: ["ref", "data"], unique: "ref" },
  { name: "alert", key: "id", at: "at", columns: ["message"] },
  { name: "problem", key: "id", at: "raised_at", columns: ["message"] },
  { name: "recent_call", key: "slot", at: "at", columns: ["cause"] },
  {
    name: "record",
    key: "seq",
    at: "created_at",
    columns: ["data"],
    where: "owner_id IS NULL",
    graceMs: 0,
  },
];

export interface SweptRow {
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
  const heads = await tx.all<{ key: string | number; bytes: number }>(
    `SELECT ${key} AS key, ${bytes} AS bytes FROM ${name}
     WHERE environment_id = ?1 AND ${key} > ?2 AND ${where} ORDER BY ${key} LIMIT ?3`,
    environmentId,
    after,
    STEP_ROWS,
  );
  const last = lastOfStep(heads);
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
  { name, key, columns, unique, graceMs = GRACE_MS }: SweptTable,
  row: SweptRow,
  sought: readonly Open[],
): Promise<void> {
  for (const { text, erasedAt } of sought) {
    if (row.at > erasedAt + graceMs) continue;
    for (const column of columns) {
      const stored = row.texts[column] ?? "";
      if (!text.holdsAddress(stored)) continue;
      const redacted = text.redactStored(stored, column === unique);
      row.texts[column] = redacted;
      const sql = `UPDATE ${name} SET "${column}" = ?3 WHERE environment_id = ?1 AND ${key} = ?2`;
      await tx.run(sql, environmentId, row.key, redacted);
    }
  }
}
