/** Writes a full table of keys to the disk as a segment: each of the next groups sorts or writes one part, so that no group takes long. */

import type { SqliteConnection } from "../sqlite/connection.ts";
import { type DedupeSegment, encodeNumbers, pageId, pageOf, SegmentFilter } from "./segment.ts";

/** The average number of keys in a page. Two of them fit into a page of the database file. */
const PAGE_KEYS = 112;
/** The number of groups over which the write of a table is spread. */
const FLUSH_STEPS = 64;

/** Places of the table that one group sorts. */
const SORT_PLACES = 32_768;

/** A hash table of keys that no longer changes. Each place holds a key and its number, which is 0 in an empty place. */
interface FullTable {
  readonly size: number;
  readonly greatestValue: number;
  readonly keys: Float64Array;
  readonly values: Float64Array;
}

/** The result of one step: it sorted or wrote a part, completed the segment, or found that it must be written again. */
export type FlushStep = "sorted" | "written" | "complete" | "restart";

/** A full table and the state of its write. */
export interface Flush<Table extends FullTable = FullTable> extends Omit<DedupeSegment, "filter"> {
  /** 0 until the first part is written. */
  id: number;
  table: Table;
  order: PageOrder;
  filter: SegmentFilter;
  /** The last row of the log whose keys it holds. */
  untilId: number;
  /** The number of written parts that are durable. */
  done: number;
}

export function makeFlush<Table extends FullTable>(table: Table, untilId: number): Flush<Table> {
  const pages = 2 ** Math.ceil(Math.log2(Math.max(FLUSH_STEPS, table.size / PAGE_KEYS)));
  const filter = new SegmentFilter(table.size);
  const order = new PageOrder(table, pages);
  return { id: 0, newest: table.greatestValue, pages, order, filter, table, untilId, done: 0 };
}

/**
 * Sorts the next part of the keys. When all are sorted, it writes the next part instead, and the same part again after a rollback. The result is
 * `complete` after the last part. It is `restart` if pages are missing, because a process that started meanwhile deleted them as left over from a
 * crash. The segment must then be written again.
 */
export async function writeFlushStep(connection: SqliteConnection, flush: Flush): Promise<FlushStep> {
  if (!flush.order.step()) return "sorted";
  if (flush.id === 0) flush.id = makeSegmentId();
  const perStep = flush.pages / FLUSH_STEPS;
  const first = flush.done * perStep;
  const pairs = flush.order.pairsOf(first, first + perStep);
  flush.filter.addEach(pairs);
  const sql = "INSERT INTO dedupe_page (id, keys) VALUES (?1, ?2)";
  let from = 0;
  for (let page = first; page < first + perStep; page++) {
    const to = from + 2 * flush.order.countOf(page);
    await connection.run(sql, pageId(flush.id, page), encodeNumbers(pairs.subarray(from, to)));
    from = to;
  }
  if (flush.done < FLUSH_STEPS - 1) return "written";
  return (await recordSegment(connection, flush)) ? "complete" : "restart";
}

/** Finds the places of each page's keys in a full table by a counting sort. Its two passes over the table run in steps. */
class PageOrder {
  readonly #table: FullTable;
  readonly #pages: number;
  /** In the first pass, the number of each page's keys. In the second pass, the index behind the last known place of each page. */
  readonly #ends: Uint32Array;
  readonly #places: Uint32Array;
  /** The number of places visited in both passes together. */
  #seen = 0;

  constructor(table: FullTable, pages: number) {
    this.#table = table;
    this.#pages = pages;
    this.#ends = new Uint32Array(pages);
    this.#places = new Uint32Array(table.size);
  }

  /** Runs one step. Returns whether the sort is complete. A rollback need not undo it, because the table does not change. */
  step(): boolean {
    const { keys, values } = this.#table;
    for (let left = SORT_PLACES; left > 0 && this.#seen < 2 * keys.length; ) {
      const from = this.#seen % keys.length;
      const to = Math.min(keys.length, from + left);
      if (this.#seen < keys.length) countKeys(keys, values, from, to, this.#ends, this.#pages);
      else placeKeys(keys, values, from, to, this.#ends, this.#pages, this.#places);
      this.#seen += to - from;
      left -= to - from;
      if (this.#seen === keys.length) beginPages(this.#ends);
    }
    return this.#seen === 2 * keys.length;
  }

  countOf(page: number): number {
    return this.#endOf(page) - this.#endOf(page - 1);
  }

  /** Returns the keys and numbers, alternating, of the pages from `first` to before `last`, in order. */
  pairsOf(first: number, last: number): Float64Array {
    const { keys, values } = this.#table;
    return takePairs(keys, values, this.#places.subarray(this.#endOf(first - 1), this.#endOf(last - 1)));
  }

  #endOf(page: number): number {
    return this.#ends[page] ?? 0;
  }
}

// These loops use only typed arrays, so that the runtime compiles them soon after a start.

function countKeys(
  keys: Float64Array,
  values: Float64Array,
  from: number,
  to: number,
  counts: Uint32Array,
  pages: number,
): void {
  for (let at = from; at < to; at++) {
    if (values[at] === 0) continue;
    const page = pageOf(keys[at] ?? 0, pages);
    counts[page] = (counts[page] ?? 0) + 1;
  }
}

/** Replaces each page's count by the index at which the page begins. */
function beginPages(counts: Uint32Array): void {
  let before = 0;
  for (let page = 0; page < counts.length; page++) {
    const count = counts[page] ?? 0;
    counts[page] = before;
    before += count;
  }
}

function placeKeys(
  keys: Float64Array,
  values: Float64Array,
  from: number,
  to: number,
  ends: Uint32Array,
  pages: number,
  places: Uint32Array,
): void {
  for (let at = from; at < to; at++) {
    if (values[at] === 0) continue;
    const page = pageOf(keys[at] ?? 0, pages);
    const end = ends[page] ?? 0;
    places[end] = at;
    ends[page] = end + 1;
  }
}

function takePairs(keys: Float64Array, values: Float64Array, places: Uint32Array): Float64Array {
  const pairs = new Float64Array(2 * places.length);
  for (let at = 0; at < places.length; at++) {
    const place = places[at] ?? 0;
    pairs[2 * at] = keys[place] ?? 0;
    pairs[2 * at + 1] = values[place] ?? 0;
  }
  return pairs;
}

/** Returns a random number that no earlier segment had. A process that started meanwhile may still delete pages of an earlier number. */
function makeSegmentId(): number {
  return 1 + (crypto.getRandomValues(new Uint32Array(1))[0] ?? 0);
}

/** Records the segment as complete if all its pages exist. Returns whether they do. */
async function recordSegment(
  connection: SqliteConnection,
  { id, newest, pages, filter }: Flush,
): Promise<boolean> {
  const counted = "SELECT count(*) AS count FROM dedupe_page WHERE id >= ?1 AND id < ?2";
  const row = await connection.get<{ count: number }>(counted, pageId(id, 0), pageId(id + 1, 0));
  if (row?.count !== pages) return false;
  const sql =
    "INSERT INTO dedupe_segment (segment, newest, pages, filter) VALUES ($id, $newest, $pages, $filter)";
  await connection.run(sql, { id, newest, pages, filter: filter.bytes });
  return true;
}
