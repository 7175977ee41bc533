/** A table of keys that takes no more and is on its way to the disk: written as a run, a part of it behind each of the groups that follow. */

import type { SqliteConnection } from "../sqlite/connection.ts";
import { type DedupeSegment, encodeNumbers, pieceId, pieceOf, SegmentFilter } from "./segment.ts";

/** Keys in a piece, on average: two pieces stand in a page of the file. */
const PIECE_KEYS = 112;
/** Groups over which a frozen table is written, so that none of them waits long. */
const FREEZE_STEPS = 64;

/** Places of a frozen table that a group looks at for the sort, so that none of them waits long. */
const SORT_PLACES = 32_768;

/** Keys in memory that take no more: a place each, with the number it was kept for, which is 0 where no key stands. */
interface FrozenKeys {
  readonly size: number;
  readonly greatestValue: number;
  readonly keys: Float64Array;
  readonly values: Float64Array;
}

/** A table that takes no more keys and is on its way to the disk. */
export interface Freeze<Table extends FrozenKeys = FrozenKeys> extends Omit<DedupeSegment, "filter"> {
  /** 0 until its first step. */
  run: number;
  table: Table;
  order: PieceOrder;
  filter: SegmentFilter;
  /** The last row of the log whose keys it holds. */
  untilId: number;
  /** Steps that are durable. */
  done: number;
}

export function makeFreeze<Table extends FrozenKeys>(table: Table, untilId: number): Freeze<Table> {
  const pieces = 2 ** Math.ceil(Math.log2(Math.max(FREEZE_STEPS, table.size / PIECE_KEYS)));
  const filter = new SegmentFilter(table.size);
  const order = new PieceOrder(table, pieces);
  return { run: 0, newest: table.greatestValue, pieces, order, filter, table, untilId, done: 0 };
}

/**
 * Sorts the next part of the frozen keys; once all are sorted, writes the next part of them, which is written again, whole, if it is undone.
 * `whole`: it was the last, and the run counts; `again`: a process that began beside this one took it for one that a crash cut off, and it is
 * to be begun anew.
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
  const sql = "INSERT INTO key_piece (id, keys) VALUES (?1, ?2)";
  let from = 0;
  for (let piece = first; piece < first + perStep; piece++) {
    const to = from + 2 * freeze.order.countOf(piece);
    await connection.run(sql, pieceId(freeze.run, piece), encodeNumbers(pairs.subarray(from, to)));
    from = to;
  }
  if (freeze.done < FREEZE_STEPS - 1) return "part";
  return (await keepRun(connection, freeze)) ? "whole" : "again";
}

/** In which places of a frozen table the keys of each piece stand: a counting sort, whose two passes over the table are taken in steps. */
class PieceOrder {
  readonly #table: FrozenKeys;
  readonly #pieces: number;
  /** Of the first pass: each piece's keys; of the second: up to where its places are known, which at last is where they end. */
  readonly #ends: Uint32Array;
  readonly #places: Uint32Array;
  /** Places that were looked at, of both passes. */
  #seen = 0;

  constructor(table: FrozenKeys, pieces: number) {
    this.#table = table;
    this.#pieces = pieces;
    this.#ends = new Uint32Array(pieces);
    this.#places = new Uint32Array(table.size);
  }

  /** Answers whether all is sorted, of which an undone transaction undoes nothing: the table stays as it is. */
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

  /** The keys of the pieces from `first` and before `last`, piece by piece, and their numbers, by turns. */
  pairsOf(first: number, last: number): Float64Array {
    const { keys, values } = this.#table;
    return takePairs(keys, values, this.#places.subarray(this.#endOf(first - 1), this.#endOf(last - 1)));
  }

  #endOf(piece: number): number {
    return this.#ends[piece] ?? 0;
  }
}

// Loops over plain arrays, so that they are compiled soon after a start.

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

/** Turns each piece's count into where it begins. */
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

/** A number that no run has had: a process that began meanwhile may have deleted what another had written of its own. */
function newRun(): number {
  return 1 + (crypto.getRandomValues(new Uint32Array(1))[0] ?? 0);
}

/** The run counts from here on, if every piece of it is there. */
async function keepRun(
  connection: SqliteConnection,
  { run, newest, pieces, filter }: Freeze,
): Promise<boolean> {
  const counted = "SELECT count(*) AS count FROM key_piece WHERE id >= ?1 AND id < ?2";
  const row = await connection.get<{ count: number }>(counted, pieceId(run, 0), pieceId(run + 1, 0));
  if (row?.count !== pieces) return false;
  const sql = "INSERT INTO key_run (run, newest, pieces, filter) VALUES ($run, $newest, $pieces, $filter)";
  await connection.run(sql, { run, newest, pieces, filter: filter.bytes });
  return true;
}
