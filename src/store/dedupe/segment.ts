/**
 * Reads and deletes segments of the deduplication log. A segment holds keys that left the log, sorted into pages by their first bits. It is
 * written once and never changes. Its Bloom filter in memory tells which keys it cannot contain.
 */
import { numberOfHash } from "../../base/id.ts";
import type { SqliteConnection } from "../sqlite/connection.ts";

/** The largest number of pages in a segment. */
const MAX_PAGES = 2 ** 20;
/** Pages of a segment that one step deletes. */
const STEP_PAGES = 200;

const BITS_A_KEY = 16;
const BITS_OF_A_KEY = 8;
const BLOCK_BITS = 512;
const LAST_BIT = BLOCK_BITS - 1;

export interface DedupeSegment {
  id: number;
  /** The greatest number that is stored with any of its keys. */
  newest: number;
  pages: number;
  /** Null until its filter is read. Until then, any key may be in the segment. */
  filter: FilterPlace | null;
}

/** Lists the complete segments, without their filters. */
export async function listSegments(connection: SqliteConnection): Promise<DedupeSegment[]> {
  const sql = "SELECT segment AS id, newest, pages FROM dedupe_segment ORDER BY segment";
  const rows = await connection.all<Omit<DedupeSegment, "filter">>(sql);
  return rows.map((row) => ({ ...row, filter: null }));
}

/** Lists the numbers of incomplete segments. They have pages but no row in dedupe_segment, because a crash interrupted their write. */
export async function listIncomplete(connection: SqliteConnection): Promise<number[]> {
  const complete = new Set((await listSegments(connection)).map(({ id }) => id));
  const found: number[] = [];
  const sql = "SELECT min(id) AS id FROM dedupe_page WHERE id >= ?1";
  for (let segmentId = 1; ; segmentId++) {
    const firstPage = (await connection.get<{ id: number | null }>(sql, pageId(segmentId, 0)))?.id ?? null;
    if (firstPage === null) return found;
    segmentId = Math.floor(firstPage / MAX_PAGES);
    if (!complete.has(segmentId)) found.push(segmentId);
  }
}

/** Reads the segment's filter into `filters`. Returns false if the segment was deleted. */
export async function readFilter(
  connection: SqliteConnection,
  segment: DedupeSegment,
  filters: SegmentFilters,
): Promise<boolean> {
  const sql = "SELECT filter FROM dedupe_segment WHERE segment = ?1";
  const row = await connection.get<{ filter: Uint8Array }>(sql, segment.id);
  if (row === null) return false;
  const { buffer, byteOffset, length } = row.filter.byteOffset % 4 === 0 ? row.filter : row.filter.slice();
  segment.filter = filters.add(new Uint32Array(buffer, byteOffset, length >>> 2), length % 4 > 0);
  return true;
}

/** Returns the numbers that the segment stores for the key. */
export async function findInSegment(
  connection: SqliteConnection,
  { id: segmentId, pages }: DedupeSegment,
  key: number,
): Promise<number[]> {
  const id = pageId(segmentId, pageOf(key, pages));
  const row = await connection.get<{ keys: Uint8Array }>("SELECT keys FROM dedupe_page WHERE id = ?1", id);
  const found: number[] = [];
  const pairs = row === null ? new Float64Array() : decodeNumbers(row.keys);
  for (let at = 0; at < pairs.length; at += 2) if (pairs[at] === key) found.push(pairs[at + 1] ?? 0);
  return found;
}

/** Deletes one step's pages of a segment. Returns whether more may be left. */
export async function deleteSegment(connection: SqliteConnection, segmentId: number): Promise<boolean> {
  const sql = `DELETE FROM dedupe_page WHERE id IN (SELECT id FROM dedupe_page WHERE id >= ?1 AND id < ?2 LIMIT ${STEP_PAGES})`;
  if ((await connection.run(sql, pageId(segmentId, 0), pageId(segmentId + 1, 0))) === STEP_PAGES) return true;
  await connection.run("DELETE FROM dedupe_segment WHERE segment = ?1", segmentId);
  return false;
}

export function pageId(segmentId: number, page: number): number {
  return segmentId * MAX_PAGES + page;
}

/** Chooses the page by the key's first bits, so that all pages of a segment have about the same size. */
export function pageOf(key: number, pages: number): number {
  return Math.floor((key / 2 ** 52) * pages);
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
 * A Bloom filter for the keys of one segment. It has 16 bits for each key and sets eight of them, all in one block of 512 bits. About one absent key in
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

/** The place of a segment's filter: one bit in each byte of a group. */
interface FilterPlace {
  group: FilterGroup;
  mask: number;
}

/**
 * Interleaves the filters of all segments: each byte of a group holds the same bit of eight filters. A lookup of an absent key in forty segments then reads
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

  /** Removes a segment and its filter. Returns the other segments. */
  without(deleted: DedupeSegment, segments: readonly DedupeSegment[]): DedupeSegment[] {
    if (deleted.filter !== null) {
      deleted.filter.group.remove(deleted.filter.mask);
      this.#count -= 1;
      this.#groups = this.#groups.filter(({ taken }) => taken > 0);
    }
    return segments.filter((segment) => segment !== deleted);
  }

  /** Returns whether any of this number of segments may hold the key. A segment whose filter is not read yet may hold any key. */
  mayHold(key: number, segments: number): boolean {
    if (this.#count < segments) return true;
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
  /** A mask of the bits that belong to a segment. */
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
   * Returns a mask of the segments that may hold the key. `low` is the key's low 32 bits as an integer. It computes the same bits as `bitOf` but reads
   * the first four at once, so that the processor waits for their cache lines together. Few segments pass these four.
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
