/**
 * Keys that were taken out of the log: sorted into pieces by their first bits, written once and never changed, with a filter in memory that
 * says which keys are surely not among them.
 */
import { numberOfHash } from "../ground/id.ts";
import type { SqliteConnection } from "./sqlite-connection.ts";

/** Keys in a piece, on average: two pieces stand in a page of the file. */
const PIECE_KEYS = 112;
/** Pieces of one run at most. */
const MAX_PIECES = 2 ** 20;
/** Groups over which a frozen table is written, so that none of them waits long. */
const FREEZE_STEPS = 64;
/** Pieces of a run that one step deletes. */
const STEP_PIECES = 200;

const BITS_A_KEY = 16;
const BITS_OF_A_KEY = 8;
const BLOCK_WORDS = 16;

export interface KeyRun {
  run: number;
  /** The greatest number that any of its keys was kept for. */
  newest: number;
  pieces: number;
  /** null: it was not read yet, and every key may be in the run. */
  filter: KeyFilter | null;
}

/** Keys in memory that take no more. */
interface FrozenKeys {
  readonly size: number;
  readonly greatestValue: number;
  /** Keys of at least `from` and below `to`, and their numbers, by turns. */
  between(from: number, to: number): number[];
}

/** A table that takes no more keys and is on its way to the disk. */
export interface Freeze<Table extends FrozenKeys = FrozenKeys> extends KeyRun {
  /** 0 until its first step. */
  run: number;
  table: Table;
  filter: KeyFilter;
  /** The last row of the log whose keys it holds. */
  untilId: number;
  /** Steps that are durable. */
  done: number;
}

/** The runs that count, their filters unread. */
export async function listRuns(connection: SqliteConnection): Promise<KeyRun[]> {
  const sql = "SELECT run, newest, pieces FROM key_run ORDER BY run";
  const rows = await connection.all<Omit<KeyRun, "filter">>(sql);
  return rows.map((row) => ({ ...row, filter: null }));
}

/** Runs that have pieces and do not count: a crash cut them off. */
export async function listCutOff(connection: SqliteConnection): Promise<number[]> {
  const counting = new Set((await listRuns(connection)).map(({ run }) => run));
  const found: number[] = [];
  const sql = "SELECT min(id) AS id FROM key_piece WHERE id >= ?1";
  for (let run = 1; ; run++) {
    const id = (await connection.get<{ id: number | null }>(sql, pieceId(run, 0)))?.id ?? null;
    if (id === null) return found;
    run = Math.floor(id / MAX_PIECES);
    if (!counting.has(run)) found.push(run);
  }
}

/** Reads the filter into the run; answers whether it is there. */
export async function readFilter(connection: SqliteConnection, run: KeyRun): Promise<boolean> {
  const sql = "SELECT filter FROM key_run WHERE run = ?1";
  const row = await connection.get<{ filter: Uint8Array }>(sql, run.run);
  if (row !== null) run.filter = KeyFilter.read(row.filter);
  return row !== null;
}

/** The numbers that the run holds for the key. */
export async function findInRun(
  connection: SqliteConnection,
  { run, pieces }: KeyRun,
  key: number,
): Promise<number[]> {
  const id = pieceId(run, pieceOf(key, pieces));
  const row = await connection.get<{ keys: Uint8Array }>("SELECT keys FROM key_piece WHERE id = ?1", id);
  const found: number[] = [];
  const pairs = row === null ? new Float64Array() : decodeNumbers(row.keys);
  for (let at = 0; at < pairs.length; at += 2) if (pairs[at] === key) found.push(pairs[at + 1] ?? 0);
  return found;
}

/** A step of deleting a run; answers whether there may be more. */
export async function deleteRun(connection: SqliteConnection, run: number): Promise<boolean> {
  const sql = `DELETE FROM key_piece WHERE id IN (SELECT id FROM key_piece WHERE id >= ?1 AND id < ?2 LIMIT ${STEP_PIECES})`;
  if ((await connection.run(sql, pieceId(run, 0), pieceId(run + 1, 0))) === STEP_PIECES) return true;
  await connection.run("DELETE FROM key_run WHERE run = ?1", run);
  return false;
}

export function makeFreeze<Table extends FrozenKeys>(table: Table, untilId: number): Freeze<Table> {
  const pieces = 2 ** Math.ceil(Math.log2(Math.max(FREEZE_STEPS, table.size / PIECE_KEYS)));
  const filter = KeyFilter.forKeys(table.size);
  return { run: 0, newest: table.greatestValue, pieces, filter, table, untilId, done: 0 };
}

/**
 * Writes the next part of the frozen keys; one that is undone is written again, whole. `whole`: it was the last, and the run counts; `again`:
 * a process that began beside this one took it for one that a crash cut off, and it is to be begun anew.
 */
export async function writeFreezeStep(
  connection: SqliteConnection,
  freeze: Freeze,
): Promise<"part" | "whole" | "again"> {
  if (freeze.run === 0) freeze.run = newRun();
  const perStep = freeze.pieces / FREEZE_STEPS;
  const first = freeze.done * perStep;
  const parts: number[][] = Array.from({ length: perStep }, () => []);
  const begin = (piece: number): number => (piece / freeze.pieces) * 2 ** 52;
  const pairs = freeze.table.between(begin(first), begin(first + perStep));
  for (let at = 0; at < pairs.length; at += 2) {
    const key = pairs[at] ?? 0;
    parts[pieceOf(key, freeze.pieces) - first]?.push(key, pairs[at + 1] ?? 0);
    freeze.filter.add(key);
  }
  const sql = "INSERT INTO key_piece (id, keys) VALUES (?1, ?2)";
  for (const [at, part] of parts.entries())
    await connection.run(sql, pieceId(freeze.run, first + at), encodeNumbers(Float64Array.from(part)));
  if (freeze.done < FREEZE_STEPS - 1) return "part";
  return (await keepRun(connection, freeze)) ? "whole" : "again";
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
  const sql = "SELECT count(*) AS count FROM key_piece WHERE id >= ?1 AND id < ?2";
  const row = await connection.get<{ count: number }>(sql, pieceId(run, 0), pieceId(run + 1, 0));
  if (row?.count !== pieces) return false;
  await connection.run(
    "INSERT INTO key_run (run, newest, pieces, filter) VALUES ($run, $newest, $pieces, $filter)",
    {
      run,
      newest,
      pieces,
      filter: filter.bytes,
    },
  );
  return true;
}

function pieceId(run: number, piece: number): number {
  return run * MAX_PIECES + piece;
}

/** By the key's first bits, so that a run's pieces are about as large as each other. */
function pieceOf(key: number, pieces: number): number {
  return Math.floor((key / 2 ** 52) * pieces);
}

/** Neighbouring slots one key of an earlier version may stand in: a row each, addressed by 63 bits of the hash, until their events have gone. */
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
 * Which keys are surely not in a run: 16 bits a key, eight of them in one block of 512 for each key, so that a question touches one line of
 * the processor's cache. About one key in a thousand that is not in the run is said to be.
 * Source: Putze, Sanders, Singler, "Cache-, hash- and space-efficient Bloom filters" (2007).
 */
class KeyFilter {
  readonly #words: Uint32Array;
  readonly #blocks: number;

  private constructor(words: Uint32Array) {
    this.#words = words;
    this.#blocks = words.length / BLOCK_WORDS;
  }

  /** An empty one for so many keys. */
  static forKeys(count: number): KeyFilter {
    const blocks = 2 ** Math.ceil(Math.log2(Math.max(1, (count * BITS_A_KEY) / (BLOCK_WORDS * 32))));
    return new KeyFilter(new Uint32Array(blocks * BLOCK_WORDS));
  }

  /** One that was kept as its bytes. */
  static read(bytes: Uint8Array): KeyFilter {
    return new KeyFilter(new Uint32Array(bytes.slice().buffer));
  }

  get bytes(): Uint8Array {
    return new Uint8Array(this.#words.buffer);
  }

  /** The key is a whole number of 52 bits. */
  add(key: number): void {
    const block = this.#blockOf(key);
    for (let turn = 0; turn < BITS_OF_A_KEY; turn++) {
      const bit = bitOf(key, turn);
      const at = block + (bit >>> 5);
      this.#words[at] = (this.#words[at] ?? 0) | (1 << (bit & 31));
    }
  }

  mayHold(key: number): boolean {
    const block = this.#blockOf(key);
    for (let turn = 0; turn < BITS_OF_A_KEY; turn++) {
      const bit = bitOf(key, turn);
      if (((this.#words[block + (bit >>> 5)] ?? 0) & (1 << (bit & 31))) === 0) return false;
    }
    return true;
  }

  /** Where its block begins, by the last bits. */
  #blockOf(key: number): number {
    return (key & (this.#blocks - 1)) * BLOCK_WORDS;
  }
}

/** In its block: where it begins by the nine bits before 2^32, and on in odd steps that the bits above it say. */
function bitOf(key: number, turn: number): number {
  const step = ((Math.floor(key / 2 ** 32) & 0xff) << 1) | 1;
  return ((key >>> 23) + turn * step) & 511;
}

/** Numbers as bytes, in the machine's own order, which is little-endian on every machine that Bun runs on. */
export function encodeNumbers(numbers: Float64Array): Uint8Array {
  return new Uint8Array(numbers.buffer, numbers.byteOffset, numbers.byteLength);
}

export function decodeNumbers(bytes: Uint8Array): Float64Array {
  const { buffer, byteOffset, byteLength } = bytes.byteOffset % 8 === 0 ? bytes : bytes.slice();
  return new Float64Array(buffer, byteOffset, byteLength / 8);
}

/** A row of the log with these keys, for a database that is being made. */
export function writeKeyRow(kept: readonly { hash: Uint8Array; value: number }[]): Uint8Array {
  return encodeNumbers(Float64Array.from(kept.flatMap(({ hash, value }) => [numberOfHash(hash), value])));
}
