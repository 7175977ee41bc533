/**
 * Trimming a table that only ever grows at its end, without an index on time: its oldest rows are looked at in their order until all that
 * come are young. Rows dated ahead by a wrong clock do not end the walk. It decides nothing about how long a row is kept.
 */
import type { Writer } from "../store/port.ts";

const BATCH_SIZE = 250;

export interface WalkedTable {
  name: "audit" | "email";
  /** The column that says when, milliseconds since the epoch. */
  at: string;
  /** SQL over a row: how long it is kept, in milliseconds. */
  keptMs: string;
  /** The shortest any row is kept: behind a row younger than this, nothing has expired. */
  shortestKeptMs: number;
}

interface WalkedRow {
  seq: number;
  at: number;
  expired: number;
}

/** Deletes what has expired among the next rows after `seq`; answers where to go on, or null at the end of the walk. */
export async function trimAfter(
  tx: Writer,
  table: WalkedTable,
  seq: number,
  nowMs: number,
): Promise<number | null> {
  const rows = await tx.all<WalkedRow>(
    `SELECT seq, ${table.at} AS at, ${table.at} + ${table.keptMs} < ?2 AS expired FROM ${table.name} WHERE seq > ?1 ORDER BY seq LIMIT ?3`,
    seq,
    nowMs,
    BATCH_SIZE,
  );
  for (const row of rows)
    if (row.expired === 1) await tx.run(`DELETE FROM ${table.name} WHERE seq = ?1`, row.seq);
  const oldOrAhead = rows.some((row) => row.at + table.shortestKeptMs < nowMs || row.at > nowMs);
  return rows.length === BATCH_SIZE && oldOrAhead ? (rows.at(-1)?.seq ?? null) : null;
}
