/** A load whose events also run. It lasts from the first request until the last event is done. Each event writes one record. */
import { Database } from "bun:sqlite";
import { join } from "node:path";
import { compareAmounts, compareCount, type Figure, type Round } from "./figure.ts";
import { BARE_PATHS } from "./full-load.ts";
import type { Run } from "./measure.ts";
import { load, type ProductReady, SECRET, type Started, scratch, start } from "./process.ts";

type Load = Pick<Run, "seconds" | "warmUpSeconds">;

export interface Drained extends Round {
  /** Events that waited when the load ended. */
  waiting: number;
  residentMiB: number;
}

async function drain(
  server: Started<unknown>,
  file: string,
  { port, paths, seconds, warmUpSeconds }: { port: number; paths: readonly string[] } & Load,
): Promise<Drained> {
  using database = new Database(file, { readonly: true });
  const waits = database.query("SELECT 1 FROM event WHERE state IN ('queued', 'running') LIMIT 1");
  const count = (sql: string): number => database.query<{ count: number }, []>(sql).get()?.count ?? 0;
  const settle = async (): Promise<void> => {
    for (; waits.get() !== null; await Bun.sleep(20)) server.requireRunning();
  };
  const { ok: warm } = await load(port, paths, SECRET, { seconds: warmUpSeconds });
  await settle();
  const [begun, before] = [performance.now(), await server.cpuMs()];
  const { ok } = await load(port, paths, SECRET, { seconds });
  const waiting = count("SELECT count(*) AS count FROM event WHERE state IN ('queued', 'running')");
  await settle();
  const [took, after] = [(performance.now() - begun) / 1_000, await server.cpuMs()];
  const done = count("SELECT count(*) AS count FROM event WHERE state = 'done'");
  const records = count("SELECT count(*) AS count FROM record");
  if (done !== warm + ok || records !== done)
    throw new Error(`acknowledged ${warm + ok}, done ${done}, records ${records}`);
  return {
    perSecond: ok / took,
    cpuMicros: (1_000 * (after - before)) / ok,
    waiting,
    residentMiB: await server.residentMiB(),
  };
}

/** Drains the bare server D. It receives, claims, writes one record and saves the result, in grouped transactions. */
export async function drainBare(run: Load): Promise<Drained> {
  using folder = scratch();
  const file = join(folder.path, "bare.db");
  await using server = await start<number>("bare.ts", "D", file, SECRET);
  return await drain(server, file, { port: server.ready, paths: BARE_PATHS, ...run });
}

export async function drainProduct(relays: number, run: Load): Promise<Drained> {
  using folder = scratch();
  const { path } = folder;
  await using server = await start<ProductReady>("product.ts", path, String(relays), SECRET, "running");
  return await drain(server, join(path, "relay.db"), { ...server.ready, ...run });
}

/** 64 connections have at most 64 open requests. The limit is twice that. */
const MOST_WAITING = 128;
const MOST_RESIDENT_MIB = 200;

/** Returns figures of the queue and the memory of drained loads: the maximum of all rounds. */
export function restOf(products: readonly Drained[]): Figure[] {
  const waiting = Math.max(...products.map((product) => product.waiting));
  const residentMiB = Math.max(...products.map((product) => product.residentMiB));
  return [
    compareCount("events of these that waited when the load ended", waiting, MOST_WAITING),
    compareAmounts("resident memory after these", "MiB", residentMiB, null, { atMost: MOST_RESIDENT_MIB }),
  ];
}
