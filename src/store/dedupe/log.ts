/**
 * Stores deduplication keys on SQLite as a log that is searched in memory, because an index over random keys would write a page for each key. Each
 * transaction appends one row with its keys. A full in-memory table is written as a segment, in steps after later groups (flush.ts). A segment is
 * deleted with the newest row of its keys. A search returns candidates, and the caller compares the complete hash.
 */
import { numberOfHash } from "../../base/id.ts";
import type { DedupeKeys } from "../port.ts";
import type { SqliteConnection } from "../sqlite/connection.ts";
import { type Flush, type FlushStep, makeFlush, writeFlushStep } from "./flush.ts";
import {
  type DedupeSegment,
  decodeNumbers,
  deleteSegment,
  deleteSlot,
  findInSegment,
  findInSlots,
  hasSlots,
  listIncomplete,
  listSegments,
  mayBeIn,
  readFilter,
  SegmentFilters,
} from "./segment.ts";

/** The number of keys in one segment. A segment is larger if a start finds more keys in the log. */
const SEGMENT_KEYS = 229_376;
/** Rows of the log that one step reads. */
const STEP_ROWS = 500;
/** The range of row numbers that one step deletes. It exceeds what a group adds, even if each row used many numbers. */
const STEP_DELETED = 100;
/** Bytes of keys after which a step of reading ends, because a row can hold a thousand keys. */
const STEP_BYTES = 128 * 1024;
/** Filters that one transaction reads. After a start, the first groups search the other segments without their filters. */
const STEP_FILTERS = 4;
/** A row with fewer bytes also takes the next transaction's keys, so that a quiet service does not need one row for each key. */
const MIN_ROW_BYTES = 512;
/** The initial number of places of a table in memory. */
const FIRST_PLACES = 4_096;

/** Changes of the open transaction that take effect in memory once it is durable. */
interface Wrote {
  /** Bytes of keys in the transaction's row. */
  row?: number;
  step?: FlushStep;
  deleted?: DedupeSegment;
}

export class DedupeLog implements DedupeKeys {
  readonly #connection: SqliteConnection;
  readonly #segmentKeys: number;
  #recent = new KeyTable();
  #flush: Flush<KeyTable> | null = null;
  #segments: DedupeSegment[] = [];
  readonly #filters = new SegmentFilters();
  /** The number of the last log row in memory, and the bytes of its keys. */
  #lastId = 0;
  #lastBytes = 0;
  /** Log rows up to this one are in a segment. Later groups delete them. */
  #flushedId = 0;
  /** Keys and numbers, alternating, that the open transaction added. `undoTo` removes those of its undone parts. */
  #open: number[] = [];
  readonly #openByKey = new Map<number, number[]>();
  #wrote: Wrote = {};
  /** The number of filters that the open transaction read or skipped. */
  #read = 0;
  /** True if a table of an earlier version still holds keys. */
  #hasSlots = false;
  #loaded = false;
  /** The numbers of incomplete segments, whose pages are deleted. */
  #incomplete: number[] = [];
  /** The database version up to which the writes of other connections are in memory. Null before the first read. */
  #version: number | null = null;
  /** The version that the open transaction sees. The group sets it when it has the write lock. */
  locked = 0;
  /** True if the open transaction used a key. If not, there is nothing to write, commit or undo. */
  used = false;

  constructor(connection: SqliteConnection, { segmentKeys = SEGMENT_KEYS }: { segmentKeys?: number } = {}) {
    this.#connection = connection;
    this.#segmentKeys = segmentKeys;
  }

  find(hash: Uint8Array): readonly number[] | Promise<readonly number[]> {
    if (!this.#isReady || this.#hasSlots) return this.#findStored(hash);
    const key = numberOfHash(hash);
    if (this.#filters.mayHold(key, this.#segments.length)) return this.#findStored(hash);
    return this.#findInMemory(key);
  }

  #findInMemory(key: number): number[] {
    const found = this.#recent.find(key);
    const open = this.#openByKey.get(key);
    if (open !== undefined) found.push(...open);
    if (this.#flush !== null) found.push(...this.#flush.table.find(key));
    return found;
  }

  async #findStored(hash: Uint8Array): Promise<number[]> {
    if (!this.#isReady) await this.#makeReady();
    const key = numberOfHash(hash);
    const found = this.#findInMemory(key);
    for (const segment of this.#segments) {
      if (segment.filter === null && this.#read++ < STEP_FILTERS) await this.#readFilter(segment);
      if (mayBeIn(segment, key)) found.push(...(await findInSegment(this.#connection, segment, key)));
    }
    if (this.#hasSlots) found.push(...(await findInSlots(this.#connection, hash)));
    return found;
  }

  add(hash: Uint8Array, value: number): undefined | Promise<void> {
    if (!this.#isReady) return this.#makeReady().then(() => this.add(hash, value));
    const key = numberOfHash(hash);
    this.#open.push(key, value);
    const values = this.#openByKey.get(key);
    if (values === undefined) this.#openByKey.set(key, [value]);
    else values.push(value);
    return undefined;
  }

  async deleteBefore(value: number): Promise<boolean> {
    if (!this.#isReady) await this.#makeReady();
    const old = this.#segments.find(({ newest }) => newest < value);
    if (old === undefined) return false;
    if (!(await deleteSegment(this.#connection, old.id))) this.#wrote.deleted = old;
    return true;
  }

  async deleteSlot(hash: Uint8Array, value: number): Promise<void> {
    if (!this.#isReady) await this.#makeReady();
    if (this.#hasSlots) await deleteSlot(this.#connection, hash, value);
  }

  /**
   * Loads a part of the log into memory, in a few milliseconds. Returns whether more is left. It runs in its own transactions after a start, or in
   * the first transaction that uses a key.
   */
  async load(): Promise<boolean> {
    if (this.#loaded) return false;
    if (this.#version === null) {
      this.#incomplete = await listIncomplete(this.#connection);
      await this.#findForeign();
    }
    const [incomplete] = this.#incomplete;
    if (incomplete !== undefined) {
      if (!(await deleteSegment(this.#connection, incomplete))) this.#incomplete.shift();
    } else {
      this.#loaded = !(await this.#readRows());
    }
    return !this.#loaded;
  }

  get #isReady(): boolean {
    return this.used && this.#loaded && this.#version === this.locked;
  }

  /** Reads what another process wrote since the last lookup. */
  async #makeReady(): Promise<void> {
    this.used = true;
    if (this.#version !== null && this.#version !== this.locked) {
      await this.#findForeign();
      this.#loaded = false;
    }
    while (!this.#loaded) await this.load();
  }

  /** The position in the transaction's keys, for `undoTo`. */
  get mark(): number {
    return this.#open.length;
  }

  /** Removes the keys that were added since `mark`, or all of the transaction's for 0. */
  undoTo(mark: number): void {
    const undone = this.#open.splice(mark);
    for (let at = undone.length - 2; at >= 0; at -= 2) {
      const key = undone[at] ?? 0;
      const values = this.#openByKey.get(key);
      if (values?.length === 1) this.#openByKey.delete(key);
      else values?.pop();
    }
    if (mark > 0) return;
    this.used = false;
    this.#wrote = {};
    this.#read = 0;
    // The rollback removed its pages too, and another process may take the number.
    if (this.#flush?.done === 0) this.#flush.id = 0;
  }

  /** Runs the last statements of a transaction that added keys. It writes the log row and takes a step of the write of a segment and of the deletion. */
  async write(): Promise<void> {
    if (this.#open.length === 0) return;
    this.#wrote.row = await this.#writeRow(new Uint8Array(Float64Array.from(this.#open).buffer));
    if (this.#flush !== null) this.#wrote.step = await writeFlushStep(this.#connection, this.#flush);
    if (this.#flushedId > 0) await this.#deleteFlushed();
  }

  /** Adds the transaction's keys to the table in memory, when the transaction is durable. */
  commit(): void {
    const { row, step, deleted } = this.#wrote;
    this.used = false;
    this.#wrote = {};
    this.#read = 0;
    if (deleted !== undefined) this.#segments = this.#filters.without(deleted, this.#segments);
    if (row === undefined) return;
    this.#recent.add(Float64Array.from(this.#open));
    this.#open = [];
    this.#openByKey.clear();
    this.#lastId += 1;
    this.#lastBytes = row;
    if (this.#flush !== null && step !== undefined) this.#applyFlushStep(this.#flush, step);
    if (this.#flush !== null || this.#recent.size < this.#segmentKeys) return;
    this.#flush = makeFlush(this.#recent, this.#lastId);
    this.#recent = new KeyTable();
    // The next keys belong to another segment, so they need a new row.
    this.#lastBytes = MIN_ROW_BYTES;
  }

  #applyFlushStep(flush: Flush<KeyTable>, step: FlushStep): void {
    if (step === "sorted") return;
    flush.done += 1;
    if (step === "restart") {
      this.#incomplete.push(flush.id);
      this.#flush = makeFlush(flush.table, flush.untilId);
    } else if (step === "complete") {
      const { id, newest, pages, filter, table, untilId } = flush;
      this.#segments.push({ id, newest, pages, filter: this.#filters.add(filter.words, true) });
      this.#flushedId = untilId;
      // Reuses the old table's memory. A growing table would move half a segment's keys at once, into memory that the system must clear first.
      if (this.#recent.keys.length < table.keys.length && table.keys.length < 4 * this.#segmentKeys)
        this.#recent = table.restart(this.#recent);
      this.#flush = null;
    }
  }

  /** Finds segments and slots that other processes wrote. */
  async #findForeign(): Promise<void> {
    this.#version = this.locked;
    const known = new Set(this.#segments.map(({ id }) => id));
    this.#segments.push(...(await listSegments(this.#connection)).filter(({ id }) => !known.has(id)));
    this.#hasSlots = await hasSlots(this.#connection);
  }

  /** Reads some rows of the log. Returns whether there may be more. */
  async #readRows(): Promise<boolean> {
    const sql = "SELECT id, keys FROM dedupe_log WHERE id > ?1 ORDER BY id LIMIT 1";
    let bytes = 0;
    for (let rows = 0; rows < STEP_ROWS && bytes < STEP_BYTES; rows++) {
      const row = await this.#connection.get<{ id: number; keys: Uint8Array }>(sql, this.#lastId);
      if (row === null) return false;
      this.#recent.add(decodeNumbers(row.keys));
      this.#lastId = row.id;
      this.#lastBytes = row.keys.length;
      bytes += row.keys.length;
    }
    return true;
  }

  /** Adds the transaction's row, or appends its keys to the last row. That row gets a new number, so that other processes read it again. */
  async #writeRow(keys: Uint8Array): Promise<number> {
    const id = this.#lastId + 1;
    if (this.#lastId > 0 && this.#lastBytes < MIN_ROW_BYTES) {
      const sql = "UPDATE dedupe_log SET id = ?1, keys = CAST(keys || ?2 AS BLOB) WHERE id = ?3";
      if ((await this.#connection.run(sql, id, keys, this.#lastId)) > 0) return this.#lastBytes + keys.length;
    }
    await this.#connection.run("INSERT INTO dedupe_log (id, keys) VALUES (?1, ?2)", id, keys);
    return keys.length;
  }

  /** Reads the segment's filter. Removes the segment if it was deleted. */
  async #readFilter(segment: DedupeSegment): Promise<void> {
    if (!(await readFilter(this.#connection, segment, this.#filters)))
      this.#segments = this.#filters.without(segment, this.#segments);
  }

  /** Deletes the oldest log rows whose keys are in a segment. */
  async #deleteFlushed(): Promise<void> {
    const first = "SELECT min(id) FROM dedupe_log";
    const sql = `DELETE FROM dedupe_log WHERE id <= min(?1, (${first}) + ${STEP_DELETED} - 1)`;
    if ((await this.#connection.run(sql, this.#flushedId)) === 0) this.#flushedId = 0;
  }
}

/** A hash table of keys and their numbers: two typed arrays with open addressing, 16 bytes for each place. It can hold a key twice. */
class KeyTable {
  keys = new Float64Array(FIRST_PLACES);
  /** 0 means that the place is free. */
  values = new Float64Array(FIRST_PLACES);
  size = 0;
  greatestValue = 0;

  /** Adds keys and numbers, which alternate in `pairs`. The numbers are above 0. */
  add(pairs: Float64Array): void {
    this.size += pairs.length / 2;
    this.#growFor(this.size);
    const greatest = put(pairs, pairs.subarray(1), 2, this.keys, this.values);
    this.greatestValue = Math.max(this.greatestValue, greatest);
  }

  /** Returns the numbers of the key's rows. */
  find(key: number): number[] {
    const found: number[] = [];
    const mask = this.keys.length - 1;
    for (let at = key & mask; this.values[at] !== 0; at = (at + 1) & mask) {
      if (this.keys[at] === key) found.push(this.values[at] ?? 0);
    }
    return found;
  }

  /** Drops its keys and takes those of another table, which has fewer places. */
  restart(other: KeyTable): KeyTable {
    this.values.fill(0);
    this.size = other.size;
    this.greatestValue = put(other.keys, other.values, 1, this.keys, this.values);
    return this;
  }

  #growFor(size: number): void {
    const [keys, values] = [this.keys, this.values];
    if (size * 2 <= keys.length) return;
    const places = 2 ** Math.ceil(Math.log2(size * 2));
    this.keys = new Float64Array(places);
    this.values = new Float64Array(places);
    put(keys, values, 1, this.keys, this.values);
  }
}

/**
 * Puts each key into the first free place from the one that its last bits name. The last bits suit, because the first ones choose the page of a segment.
 * Keys and numbers are `step` apart in their arrays. Returns the greatest number. It is one loop over typed arrays, so that the runtime compiles it
 * soon after a start.
 */
function put(
  fromKeys: Float64Array,
  fromValues: Float64Array,
  step: number,
  keys: Float64Array,
  values: Float64Array,
): number {
  const mask = keys.length - 1;
  let greatest = 0;
  for (let from = 0; from < fromKeys.length; from += step) {
    const key = fromKeys[from] ?? 0;
    const value = fromValues[from] ?? 0;
    if (value === 0) continue;
    let at = key & mask;
    while (values[at] !== 0) at = (at + 1) & mask;
    keys[at] = key;
    values[at] = value;
    if (value > greatest) greatest = value;
  }
  return greatest;
}
