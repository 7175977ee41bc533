/**
 * Which rows of a table lie since or until a moment, found by halving, however many there are. Its rows have a number `seq` and a time
 * `created_at`, which rises with it but for small steps of the clock; where the clock was set back by more, whoever stores the row that follows notes it, and
 * the times rise again between two such rows. So no index on time is needed.
 */

import { yieldToEventLoop } from "./index-scan.ts";
import type { Reader, Store, Writer } from "./port.ts";

/** A smaller step back of the clock is none. */
export const CLOCK_STEP_MS = 2_000;
/** With more pieces than this nothing is said about a moment: every row may lie since or until it. */
const MAX_PIECES = 64;
/** Moments that are looked for side by side, so that a database in another process is asked for all of them at once. */
const MOMENTS_AT_ONCE = 4;

/** Tables whose rows are found by their time; `<name>_clock_back` holds the rows that a clock set back came before. */
type Timed = "event";

/** Forgets what was noted of rows that are gone. */
export async function forgetClockBack(tx: Writer, table: Timed): Promise<void> {
  await tx.run(
    `DELETE FROM ${table}_clock_back WHERE seq <= (SELECT coalesce(min(seq), ?1) FROM ${table})`,
    Number.MAX_SAFE_INTEGER,
  );
}

/** No row since `sinceMs` has a lower seq. */
export function firstSeqSince(tx: Reader, table: Timed, sinceMs: number): Promise<number> {
  return firstSeqAbout(tx, table, sinceMs - CLOCK_STEP_MS);
}

/** The first row since `ms`, where the clock made no small step back about then; else one close by. */
export async function firstSeqAbout(tx: Reader, table: Timed, ms: number): Promise<number> {
  const pieces = await listPieces(tx, table);
  if (pieces === null) return 0;
  for (const [from, to] of pieces) {
    const seq = await findFrom(tx, table, from, to, ms);
    if (seq < to) return seq;
  }
  return Number.MAX_SAFE_INTEGER;
}

/** The same of each of these moments, with the loop turned in between. */
export async function listFirstSeqs(
  store: Pick<Store, "read">,
  table: Timed,
  moments: readonly number[],
): Promise<number[]> {
  const seqs: number[] = [];
  for (let at = 0; at < moments.length; at += MOMENTS_AT_ONCE) {
    const some = moments.slice(at, at + MOMENTS_AT_ONCE);
    seqs.push(...(await store.read((tx) => Promise.all(some.map((ms) => firstSeqAbout(tx, table, ms))))));
    await yieldToEventLoop();
  }
  return seqs;
}

/** Every row before `untilMs` has a lower seq. */
export async function endSeqUntil(tx: Reader, table: Timed, untilMs: number): Promise<number> {
  const pieces = await listPieces(tx, table);
  if (pieces === null) return Number.MAX_SAFE_INTEGER;
  for (const [from, to] of pieces.toReversed()) {
    const seq = await findFrom(tx, table, from, to, untilMs + CLOCK_STEP_MS);
    if (seq > from) return seq;
  }
  return 0;
}

/** Where times rise: from the first seq to before the second. null: there are too many. */
async function listPieces(tx: Reader, table: Timed): Promise<[from: number, to: number][] | null> {
  const rows = await tx.all<{ seq: number }>(
    `SELECT seq FROM ${table}_clock_back ORDER BY seq LIMIT ${MAX_PIECES}`,
  );
  if (rows.length === MAX_PIECES) return null;
  const ends = await tx.get<{ first: number | null; last: number | null }>(
    `SELECT (SELECT min(seq) FROM ${table}) AS first, (SELECT max(seq) FROM ${table}) AS last`,
  );
  const starts = [...new Set([ends?.first ?? 0, ...rows.map(({ seq }) => seq)])].sort((a, b) => a - b);
  return starts.map((from, at) => [from, starts[at + 1] ?? (ends?.last ?? 0) + 1]);
}

/** The first seq in the piece whose row, or the next there is, is of `ms` or later; `to` where there is none. */
async function findFrom(tx: Reader, table: Timed, from: number, to: number, ms: number): Promise<number> {
  let [low, high] = [from, to];
  while (low < high) {
    const middle = Math.floor((low + high) / 2);
    const row = await tx.get<{ seq: number; at: number }>(
      `SELECT seq, created_at AS at FROM ${table} WHERE seq >= ?1 ORDER BY seq LIMIT 1`,
      middle,
    );
    if (row === null || row.seq >= high || row.at >= ms) high = middle;
    else low = row.seq + 1;
  }
  return low;
}
