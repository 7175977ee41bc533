/**
 * Finds the rows of a table since or until a moment by binary search over `seq`, so that no index on time is needed. `created_at` rises with `seq`,
 * except for small steps, up to the number in `event_time_step`. A larger clock rollback is recorded with the row that follows it, and the times
 * rise between two rollbacks.
 */

import { yieldToEventLoop } from "./index-scan.ts";
import type { Reader, Store, Writer } from "./port.ts";

/** With more pieces than this, no row is excluded. */
const MAX_PIECES = 64;
/** The most moments that are searched concurrently, to share round trips to a remote database. */
const MOMENTS_AT_ONCE = 4;

/** The table that this file searches. `clock_rollback` holds the number of its first row after each clock rollback. */
type Timed = "event";

/** Deletes the rollbacks of deleted rows. */
export async function forgetClockBack(tx: Writer, table: Timed): Promise<void> {
  await tx.run(
    `DELETE FROM clock_rollback WHERE seq <= (SELECT coalesce(min(seq), ?1) FROM ${table})`,
    Number.MAX_SAFE_INTEGER,
  );
}

/** Returns a seq that no row since `sinceMs` is below. */
export async function firstSeqSince(tx: Reader, table: Timed, sinceMs: number): Promise<number> {
  const order = await readOrder(tx, table);
  return await findFirst(tx, table, order, sinceMs - order.stepMs);
}

/** Returns the seq of the first row since `ms`, or of one close to it if the clock made a small step back then. */
export async function firstSeqAbout(tx: Reader, table: Timed, ms: number): Promise<number> {
  return await findFirst(tx, table, await readOrder(tx, table), ms);
}

async function findFirst(tx: Reader, table: Timed, { pieces }: TimeOrder, ms: number): Promise<number> {
  if (pieces === null) return 0;
  for (const [from, to] of pieces) {
    const seq = await findFrom(tx, table, from, to, ms);
    if (seq < to) return seq;
  }
  return Number.MAX_SAFE_INTEGER;
}

/** Returns `firstSeqAbout` of each moment. Yields to the event loop between batches. */
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

/** Returns a seq that every row before `untilMs` is below. */
export async function endSeqUntil(tx: Reader, table: Timed, untilMs: number): Promise<number> {
  const { pieces, stepMs } = await readOrder(tx, table);
  if (pieces === null) return Number.MAX_SAFE_INTEGER;
  for (const [from, to] of pieces.toReversed()) {
    const seq = await findFrom(tx, table, from, to, untilMs + stepMs);
    if (seq > from) return seq;
  }
  return 0;
}

/** The order of times by number. */
interface TimeOrder {
  /** The ranges in which times rise, from the first seq to before the second. Null if there are too many. */
  pieces: [from: number, to: number][] | null;
  /** The largest step back of the time within a piece, in milliseconds. */
  stepMs: number;
}

async function readOrder(tx: Reader, table: Timed): Promise<TimeOrder> {
  const rows = await tx.all<{ seq: number }>(
    `SELECT seq FROM clock_rollback ORDER BY seq LIMIT ${MAX_PIECES}`,
  );
  const known = await tx.get<{ first: number | null; last: number | null; stepMs: number }>(
    `SELECT (SELECT min(seq) FROM ${table}) AS first, (SELECT max(seq) FROM ${table}) AS last, ms AS stepMs FROM event_time_step`,
  );
  if (known === null) throw new Error("The view event_time_step has no row.");
  const { first, last, stepMs } = known;
  if (rows.length === MAX_PIECES) return { pieces: null, stepMs };
  const starts = [...new Set([first ?? 0, ...rows.map(({ seq }) => seq)])].sort((a, b) => a - b);
  return { pieces: starts.map((from, at) => [from, starts[at + 1] ?? (last ?? 0) + 1]), stepMs };
}

/** Returns the first seq of the range whose row, or the next existing row, is from `ms` or later. Returns `to` if there is none. */
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
