/** Writes a full table of keys (a frozen table) to the disk as a run, one part with each of the groups that follow. */

import type { SqliteConnection } from "../sqlite/connection.ts";
import { type DedupeSegment, encodeNumbers, pieceId, pieceOf, SegmentFilter } from "./segment.ts";

/** The average number of keys in a piece. Two pieces fit into a page of the file. */
const PIECE_KEYS = 112;
/** The number of groups over which the write of a frozen table is spread, so that no group takes long. */
const FREEZE_STEPS = 64;

/** Places of a frozen table that one group sorts, so that no group takes long. */
const SORT_PLACES = 32_768;

/** A hash table of keys that no longer changes. Each place holds a key and its number, which is 0 in an empty place. */
interface FrozenKeys {
  readonly size: number;
  readonly greatestValue: number;
  readonly keys: Float64Array;
  readonly values: Float64Array;
}

/** A frozen table and the state of its write. */
export interface Freeze<Table extends FrozenKeys = FrozenKeys> extends Omit<DedupeSegment, "filter"> {
  /** 0 until the first part is written. */
  run: number;
  table: Table;
  order: PieceOrder;
  filter: SegmentFilter;
  /** The last row of the log whose keys it holds. */
  untilId: number;
  /** The number of written parts that are durable. */
  done: number;
}

export function makeFreeze<Table extends FrozenKeys>(table: Table, untilId: number): Freeze<Table> {
  const pieces = 2 ** Math.ceil(Math.log2(Math.max(FREEZE_STEPS, table.size / PIECE_KEYS)));
  const filter = new SegmentFilter(table.size);
  const order = new PieceOrder(table, pieces);
  return { run: 0, newest: table.greatestValue, pieces, order, filter, table, untilId, done: 0 };
}

/**
 * Sorts the next part of the frozen keys. When all are sorted, it writes the next part instead, and the same part again after a rollback. Returns
 * `whole` when the run is complete. Returns `again` if pieces are missing, because a process that started meanwhile deleted them as left over from a
 * crash. The run must then start over.
 */
export async function writeFreezeStep(
  connection: SqliteConnection,
  freeze: Freeze,
): Promise<"sorted" | "part" | "whole" | "again"> {
  if (!freeze.order.step()) return "sorted";
  if (freeze.run === 0) freeze.run = newRun();
  const perStep = freeze.pieces / FREEZE_STEPS;
  const first = freeze.done * perStep;
  const pairs = freeze.order.pairsOf(first, first + perStep);
  freeze.filter.addEach(pairs);
  const sql = "INSERT INTO dedupe_page (id, keys) VALUES (?1, ?2)";
  let from = 0;
  for (let piece = first; piece < first + perStep; piece++) {
    const to = from + 2 * freeze.order.countOf(piece);
    await connection.run(sql, pieceId(freeze.run, piece), encodeNumbers(pairs.subarray(from, to)));
    from = to;
  }
  if (freeze.done < FREEZE_STEPS - 1) return "part";
  return (await keepRun(connection, freeze)) ? "whole" : "again";
}

/** Finds the places of each piece's keys in a frozen table by a counting sort. Its two passes over the table run in steps. */
class PieceOrder {
  readonly #table: FrozenKeys;
  readonly #pieces: number;
  /** In the first pass, the number of each piece's keys. In the second pass, the index behind the last known place of each piece. */
  readonly #ends: Uint32Array;
  readonly #places: Uint32Array;
  /** The number of places visited in both passes together. */
  #seen = 0;

  constructor(table: FrozenKeys, pieces: number) {
    this.#table = table;
    this.#pieces = pieces;
    this.#ends = new Uint32Array(pieces);
    this.#places = new Uint32Array(table.size);
  }

  /** Runs one step. Returns whether the sort is complete. A rollback need not undo it, because the table does not change. */
  step(): boolean {
    const { keys, values } = this.#table;
    for (let left = SORT_PLACES; left > 0 && this.#seen < 2 * keys.length; ) {
      const from = this.#seen % keys.length;
      const to = Math.min(keys.length, from + left);
      if (this.#seen < keys.length) countKeys(keys, values, from, to, this.#ends, this.#pieces);
      else placeKeys(keys, values, from, to, this.#ends, this.#pieces, this.#places);
      this.#seen += to - from;
      left -= to - from;
      if (this.#seen === keys.length) beginPieces(this.#ends);
    }
    return this.#seen === 2 * keys.length;
  }

  countOf(piece: number): number {
    return this.#endOf(piece) - this.#endOf(piece - 1);
  }

  /** Returns the keys and numbers, alternating, of the pieces from `first` to before `last`, in order. */
  pairsOf(first: number, last: number): Float64Array {
    const { keys, values } = this.#table;
    return takePairs(keys, values, this.#places.subarray(this.#endOf(first - 1), this.#endOf(last - 1)));
  }

  #endOf(piece: number): number {
    return this.#ends[piece] ?? 0;
  }
}

// These loops use only typed arrays, so that the runtime compiles them soon after a start.

function countKeys(
  keys: Float64Array,
  values: Float64Array,
  from: number,
  to: number,
  counts: Uint32Array,
  pieces: number,
): void {
  for (let at = from; at < to; at++) {
    if (values[at] === 0) continue;
    const piece = pieceOf(keys[at] ?? 0, pieces);
    counts[piece] = (counts[piece] ?? 0) + 1;
  }
}

/** Replaces each piece's count by the index at which the piece begins. */
function beginPieces(counts: Uint32Array): void {
  let before = 0;
  for (let piece = 0; piece < counts.length; piece++) {
    const count = counts[piece] ?? 0;
    counts[piece] = before;
    before += count;
  }
}

function placeKeys(
  keys: Float64Array,
  values: Float64Array,
  from: number,
  to: number,
  ends: Uint32Array,
  pieces: number,
  places: Uint32Array,
): void {
  for (let at = from; at < to; at++) {
    if (values[at] === 0) continue;
    const piece = pieceOf(keys[at] ?? 0, pieces);
    const end = ends[piece] ?? 0;
    places[end] = at;
    ends[piece] = end + 1;
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

/** Returns a random number that no earlier run had. A process that started meanwhile may still delete pieces of an earlier number. */
function newRun(): number {
  return 1 + (crypto.getRandomValues(new Uint32Array(1))[0] ?? 0);
}

/** Records the run as complete if all its pieces exist. Returns whether they do. */
async function keepRun(
  connection: SqliteConnection,
  { run, newest, pieces, filter }: Freeze,
): Promise<boolean> {
  const counted = "SELECT count(*) AS count FROM dedupe_page WHERE id >= ?1 AND id < ?2";
  const row = await connection.get<{ count: number }>(counted, pieceId(run, 0), pieceId(run + 1, 0));
  if (row?.count !== pieces) return false;
  const sql =
    "INSERT INTO dedupe_segment (segment, newest, pages, filter) VALUES ($run, $newest, $pieces, $filter)";
  await connection.run(sql, { run, newest, pieces, filter: filter.bytes });
  return true;
}
