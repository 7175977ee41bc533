/** A table of keys that takes no more and is on its way to the disk: written as a run, a part of it behind each of the groups that follow. */
import { encodeNumbers, KeyFilter, type KeyRun, pieceId, pieceOf } from "./key-run.ts";
import type { SqliteConnection } from "./sqlite-connection.ts";

/** Keys in a piece, on average: two pieces stand in a page of the file. */
const PIECE_KEYS = 112;
/** Groups over which a frozen table is written, so that none of them waits long. */
const FREEZE_STEPS = 64;

/** Keys in memory that take no more. */
interface FrozenKeys {
  readonly size: number;
  readonly greatestValue: number;
  /** Keys of at least `from` and below `to`, and their numbers, by turns. */
  between(from: number, to: number): number[];
}

/** A table that takes no more keys and is on its way to the disk. */
export interface Freeze<Table extends FrozenKeys = FrozenKeys> extends Omit<KeyRun, "filter"> {
  /** 0 until its first step. */
  run: number;
  table: Table;
  filter: KeyFilter;
  /** The last row of the log whose keys it holds. */
  untilId: number;
  /** Steps that are durable. */
  done: number;
}

export function makeFreeze<Table extends FrozenKeys>(table: Table, untilId: number): Freeze<Table> {
  const pieces = 2 ** Math.ceil(Math.log2(Math.max(FREEZE_STEPS, table.size / PIECE_KEYS)));
  const filter = new KeyFilter(table.size);
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
  const counted = "SELECT count(*) AS count FROM key_piece WHERE id >= ?1 AND id < ?2";
  const row = await connection.get<{ count: number }>(counted, pieceId(run, 0), pieceId(run + 1, 0));
  if (row?.count !== pieces) return false;
  const sql = "INSERT INTO key_run (run, newest, pieces, filter) VALUES ($run, $newest, $pieces, $filter)";
  await connection.run(sql, { run, newest, pieces, filter: filter.bytes });
  return true;
}
