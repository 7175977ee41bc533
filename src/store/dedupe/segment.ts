/**
 * Reads and deletes segments (runs) of the deduplication log. A run holds keys that left the log, sorted into pieces by their first bits. It is
 * written once and never changes. Its Bloom filter in memory tells which keys it cannot contain.
 */
import { numberOfHash } from "../../base/id.ts";
import type { SqliteConnection } from "../sqlite/connection.ts";

/** The largest number of pieces in a run. */
const MAX_PIECES = 2 ** 20;
/** Pieces of a run that one step deletes. */
const STEP_PIECES = 200;

const BITS_A_KEY = 16;
const BITS_OF_A_KEY = 8;
const BLOCK_BITS = 512;
const LAST_BIT = BLOCK_BITS - 1;

export interface DedupeSegment {
  run: number;
  /** The greatest number that is stored with any of its keys. */
  newest: number;
  pieces: number;
  /** Null until its filter is read. Until then, any key may be in the run. */
  filter: FilterPlace | null;
}

/** Lists the complete runs, without their filters. */
export async function listRuns(connection: SqliteConnection): Promise<DedupeSegment[]> {
  const sql = "SELECT segment AS run, newest, pages AS pieces FROM dedupe_segment ORDER BY segment";
  const rows = await connection.all<Omit<DedupeSegment, "filter">>(sql);
  return rows.map((row) => ({ ...row, filter: null }));
}

/** Lists incomplete runs. They have pieces but no row in dedupe_segment, because a crash interrupted them. */
export async function listCutOff(connection: SqliteConnection): Promise<number[]> {
  const counting = new Set((await listRuns(connection)).map(({ run }) => run));
  const found: number[] = [];
  const sql = "SELECT min(id) AS id FROM dedupe_page WHERE id >= ?1";
  for (let run = 1; ; run++) {
    const id = (await connection.get<{ id: number | null }>(sql, pieceId(run, 0)))?.id ?? null;
    if (id === null) return found;
    run = Math.floor(id / MAX_PIECES);
    if (!counting.has(run)) found.push(run);
  }
}

/** Reads the run's filter into `filters`. Returns false if the run was deleted. */
export async function readFilter(
  connection: SqliteConnection,
  run: DedupeSegment,
  filters: SegmentFilters,
): Promise<boolean> {
  const sql = "SELECT filter FROM dedupe_segment WHERE segment = ?1";
  const row = await connection.get<{ filter: Uint8Array }>(sql, run.run);
  if (row === null) return false;
  const { buffer, byteOffset, length } = row.filter.byteOffset % 4 === 0 ? row.filter : row.filter.slice();
  run.filter = filters.add(new Uint32Array(buffer, byteOffset, length >>> 2), length % 4 > 0);
  return true;
}

/** Returns the numbers that the run stores for the key. */
export async function findInRun(
  connection: SqliteConnection,
  { run, pieces }: DedupeSegment,
  key: number,
): Promise<number[]> {
  const id = pieceId(run, pieceOf(key, pieces));
  const row = await connection.get<{ keys: Uint8Array }>("SELECT keys FROM dedupe_page WHERE id = ?1", id);
  const found: number[] = [];
  const pairs = row === null ? new Float64Array() : decodeNumbers(row.keys);
  for (let at = 0; at < pairs.length; at += 2) if (pairs[at] === key) found.push(pairs[at + 1] ?? 0);
  return found;
}

/** Deletes one step's pieces of a run. Returns whether more may be left. */
export async function deleteRun(connection: SqliteConnection, run: number): Promise<boolean> {
  const sql = `DELETE FROM dedupe_page WHERE id IN (SELECT id FROM dedupe_page WHERE id >= ?1 AND id < ?2 LIMIT ${STEP_PIECES})`;
  if ((await connection.run(sql, pieceId(run, 0), pieceId(run + 1, 0))) === STEP_PIECES) return true;
  await connection.run("DELETE FROM dedupe_segment WHERE segment = ?1", run);
  return false;
}

export function pieceId(run: number, piece: number): number {
  return run * MAX_PIECES + piece;
}

/** Chooses the piece by the key's first bits, so that all pieces of a run have about the same size. */
export function pieceOf(key: number, pieces: number): number {
  return Math.floor((key / 2 ** 52) * pieces);
}

/**
 * Adjacent slots in which an earlier version stored one key: one row each, addressed by 63 bits of the hash. They exist until their events are
 * deleted.
 */
const SLOT_PROBES = 4n;
const SLOT_MASK = 0x7fff_ffff_ffff_fff0n;

export async function hasSlots(connection: SqliteConnection): Promise<boolean> {
  return (await connection.get("SELECT 1 FROM dedupe LIMIT 1")) !== null;
}

export async function findInSlots(connection: SqliteConnection, hash: Uint8Array): Promise<number[]> {
  const first = firstSlot(hash);
  const sql = "SELECT event_seq AS value FROM dedupe WHERE slot BETWEEN ?1 AND ?2";
  const rows = await connection.all<{ value: number }>(sql, first, first + SLOT_PROBES - 1n);
  return rows.map(({ value }) => value);
}

export async function deleteSlot(
  connection: SqliteConnection,
  hash: Uint8Array,
  value: number,
): Promise<void> {
  const first = firstSlot(hash);
  const sql = "DELETE FROM dedupe WHERE slot BETWEEN ?1 AND ?2 AND event_seq = ?3";
  await connection.run(sql, first, first + SLOT_PROBES - 1n, value);
}

function firstSlot({ buffer, byteOffset }: Uint8Array): bigint {
  return new DataView(buffer, byteOffset, 8).getBigUint64(0) & SLOT_MASK;
}

/**
 * A Bloom filter for the keys of one run. It has 16 bits for each key and sets eight of them, all in one block of 512 bits. About one absent key in
 * 2,300 passes it. Source: Putze, Sanders, Singler, "Cache-, hash- and space-efficient Bloom filters" (2007).
 */
export class SegmentFilter {
  readonly words: Uint32Array;

  /** Creates an empty filter for `count` keys. */
  constructor(count: number) {
    const blocks = 2 ** Math.ceil(Math.log2(Math.max(1, (count * BITS_A_KEY) / BLOCK_BITS)));
    this.words = new Uint32Array((blocks * BLOCK_BITS) / 32);
  }

  /** The words and one more byte. The extra byte marks the filters since version 0.12, whose bits leap (see `bitOf`). */
  get bytes(): Uint8Array {
    return Buffer.concat([new Uint8Array(this.words.buffer), Uint8Array.of(0)]);
  }

  /** Adds the keys of `pairs`, in which keys and numbers alternate. */
  addEach(pairs: Float64Array): void {
    addKeys(pairs, this.words);
  }
}

/** Sets the bits of the keys. A key is an integer of 52 bits, and its last bits choose its block. */
function addKeys(pairs: Float64Array, words: Uint32Array): void {
  const lastBlock = (words.length * 32) / BLOCK_BITS - 1;
  for (let at = 0; at < pairs.length; at += 2) {
    const key = pairs[at] ?? 0;
    const block = (key & lastBlock) * BLOCK_BITS;
    const stride = strideOf(key);
    for (let turn = 0; turn < BITS_OF_A_KEY; turn++) {
      const bit = block + bitOf(key, stride, turn);
      words[bit >>> 5] = (words[bit >>> 5] ?? 0) | (1 << (bit & 31));
    }
  }
}

/**
 * Returns the position of a key's bit number `turn` in its block. Bits 23 to 31 of the key give the start and bits 32 to 39 an odd step. The
 * remaining bits make the steps grow.
 */
function bitOf(key: number, stride: number, turn: number): number {
  const step = ((stride & NO_LEAP) << 1) | 1;
  return ((key >>> 23) + turn * step + (LEAPS[turn] ?? 0) * (stride >>> 8)) & LAST_BIT;
}

const LEAPS = Int32Array.of(0, 0, 1, 4, 10, 20, 35, 56);
const NO_LEAP = 0xff;

function strideOf(key: number): number {
  return Math.floor(key / 2 ** 32);
}

/** The place of a run's filter: one bit in each byte of a group. */
interface FilterPlace {
  group: FilterGroup;
  mask: number;
}

/**
 * Interleaves the filters of all runs: each byte of a group holds the same bit of eight filters. A lookup of an absent key in forty runs then reads
 * about eighteen bytes. Separate filters would cost forty cache misses (measured: 4 µs of an event's 58).
 */
export class SegmentFilters {
  #groups: FilterGroup[] = [];
  /** The number of filters in all groups. */
  #count = 0;

  add(words: Uint32Array, leaps: boolean): FilterPlace {
    const { length } = words;
    const isRoom = (one: FilterGroup) => one.taken < ALL_TAKEN && one.words === length && one.leaps === leaps;
    const group = this.#groups.find(isRoom) ?? new FilterGroup(length, leaps);
    if (group.taken === 0) this.#groups.push(group);
    this.#count += 1;
    return { group, mask: group.add(words) };
  }

  /** Removes a run and its filter. Returns the other runs. */
  without(gone: DedupeSegment, runs: readonly DedupeSegment[]): DedupeSegment[] {
    if (gone.filter !== null) {
      gone.filter.group.remove(gone.filter.mask);
      this.#count -= 1;
      this.#groups = this.#groups.filter(({ taken }) => taken > 0);
    }
    return runs.filter((run) => run !== gone);
  }

  /** Returns whether any of `runs` runs may hold the key. A run whose filter is not read yet may hold any key. */
  mayHold(key: number, runs: number): boolean {
    if (this.#count < runs) return true;
    const [low, stride] = [key | 0, strideOf(key)];
    for (const group of this.#groups) if (group.suspects(low, stride) !== 0) return true;
    return false;
  }
}

export function mayBeIn({ filter }: DedupeSegment, key: number): boolean {
  return filter === null || (filter.group.suspects(key | 0, strideOf(key)) & filter.mask) !== 0;
}

const ALL_TAKEN = 0xff;
/** Maps four bits to the lowest bits of four bytes. */
const SPREAD = Uint32Array.from({ length: 16 }, (_, bits) =>
  [0, 1, 2, 3].reduce((all, at) => all | (((bits >>> at) & 1) << (8 * at)), 0),
);

/**
 * Writes a filter's words into bit `place` of a group's bytes, four bytes at a time. It is one loop over typed arrays, so that the runtime compiles
 * it soon after a start.
 */
function layBits(words: Uint32Array, place: number, quads: Uint32Array): void {
  for (let at = 0; at < quads.length; at++) {
    const bits = ((words[at >>> 3] ?? 0) >>> (4 * (at & 7))) & 15;
    quads[at] = (quads[at] ?? 0) | ((SPREAD[bits] ?? 0) << place);
  }
}

class FilterGroup {
  /** The number of words in each of its filters. */
  readonly words: number;
  readonly leaps: boolean;
  /** A mask of the bits that belong to a run. */
  taken = 0;
  readonly #bytes: Uint8Array;
  readonly #lastBlock: number;

  constructor(words: number, leaps: boolean) {
    this.words = words;
    this.leaps = leaps;
    this.#bytes = new Uint8Array(words * 32);
    this.#lastBlock = (words * 32) / BLOCK_BITS - 1;
  }

  /** Adds a filter and returns the mask of its bit. */
  add(words: Uint32Array): number {
    const place = 31 - Math.clz32(~this.taken & (this.taken + 1));
    layBits(words, place, new Uint32Array(this.#bytes.buffer));
    this.taken |= 1 << place;
    return 1 << place;
  }

  remove(mask: number): void {
    this.taken &= ~mask;
    for (let at = 0; at < this.#bytes.length; at++) this.#bytes[at] = (this.#bytes[at] ?? 0) & ~mask;
  }

  /**
   * Returns a mask of the runs that may hold the key. `low` is the key's low 32 bits as an integer. It computes the same bits as `bitOf` but reads
   * the first four at once, so that the processor waits for their cache lines together. Few runs pass these four.
   */
  suspects(low: number, stride: number): number {
    const bytes = this.#bytes;
    const block = (low & this.#lastBlock) * BLOCK_BITS;
    const from = low >>> 23;
    const step = ((stride & NO_LEAP) << 1) | 1;
    const leap = this.leaps ? stride >>> 8 : 0;
    let left =
      this.taken &
      (bytes[block + (from & LAST_BIT)] ?? 0) &
      (bytes[block + ((from + step) & LAST_BIT)] ?? 0) &
      (bytes[block + ((from + 2 * step + leap) & LAST_BIT)] ?? 0) &
      (bytes[block + ((from + 3 * step + 4 * leap) & LAST_BIT)] ?? 0);
    for (let turn = 4; turn < BITS_OF_A_KEY && left !== 0; turn++)
      left &= bytes[block + ((from + turn * step + (LEAPS[turn] ?? 0) * leap) & LAST_BIT)] ?? 0;
    return left;
  }
}

/** Encodes numbers in the machine's byte order, which is little-endian on every machine that Bun runs on. */
export function encodeNumbers(numbers: Float64Array): Uint8Array {
  return new Uint8Array(numbers.buffer, numbers.byteOffset, numbers.byteLength);
}

export function decodeNumbers(bytes: Uint8Array): Float64Array {
  const { buffer, byteOffset, byteLength } = bytes.byteOffset % 8 === 0 ? bytes : bytes.slice();
  return new Float64Array(buffer, byteOffset, byteLength / 8);
}

/** Encodes these keys as a row of the log, for a new database. */
export function writeKeyRow(kept: readonly { hash: Uint8Array; value: number }[]): Uint8Array {
  return encodeNumbers(Float64Array.from(kept.flatMap(({ hash, value }) => [numberOfHash(hash), value])));
}
