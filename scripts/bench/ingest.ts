/** What the receiver and the runner do at full load, beside bare servers that take turns with them. */
import { Database } from "bun:sqlite";
import { join } from "node:path";
import { compareAmounts, compareRates, type Figure, type Round } from "./figure.ts";
import { type LoadResult, load, type ProductReady, SECRET, type Started, scratch, start } from "./process.ts";

export interface Turns {
  seconds: number;
  rounds: number;
}

/** Of product and limit alike: a server's code is compiled for some seconds, and of the product there is more. */
const WARM_UP_SECONDS = 3;
const BARE_PATHS = ["/hooks/bench/orders-0"];

type Loaded = LoadResult & Round;

/** A warm-up, then a load, with the server's CPU over the load alone. */
async function loadWarm(
  server: Started<unknown>,
  port: number,
  paths: readonly string[],
  seconds: number,
): Promise<Loaded> {
  await load(port, paths, SECRET, { seconds: WARM_UP_SECONDS });
  const before = await server.cpuMs();
  const result = await load(port, paths, SECRET, { seconds });
  const after = await server.cpuMs();
  const cpuMicros = (1_000 * (after - before)) / result.ok;
  return { ...result, cpuMicros };
}

async function bare(variant: string, seconds: number): Promise<Loaded> {
  using folder = scratch();
  await using server = await start<number>("bare.ts", variant, join(folder.path, "bare.db"), SECRET);
  return await loadWarm(server, server.ready, BARE_PATHS, seconds);
}

interface Ingested extends Loaded {
  resident: number;
}

/** The product's receiver, its relays paused. */
async function ingest(seconds: number): Promise<Ingested> {
  using folder = scratch();
  await using server = await start<ProductReady>("product.ts", folder.path, "4", SECRET, "paused");
  const result = await loadWarm(server, server.ready.port, server.ready.paths, seconds);
  return { ...result, resident: await server.residentMiB() };
}

export async function measureIngest({ seconds, rounds }: Turns): Promise<Figure[]> {
  const turns: { indexed: Loaded; product: Ingested; plain: Loaded }[] = [];
  for (let round = 0; round < rounds; round++) {
    turns.push({
      indexed: await bare("C", seconds),
      product: await ingest(seconds),
      plain: await bare("N", seconds),
    });
  }
  const products = turns.map(({ product }) => product);
  const indexed = turns.map((turn) => turn.indexed);
  const plain = turns.map((turn) => turn.plain);
  const last = products.at(-1);
  const figures = [
    compareRates("durable ingestion", products, "C (group commit, unique index)", indexed, 1),
    compareRates("durable ingestion", products, "N (group commit, no index)", plain, 0.55),
  ];
  if (last !== undefined) {
    figures.push(
      compareAmounts("  answer p50 at 64 connections", "ms", last.p50Ms, {
        name: "C",
        amount: indexed.at(-1)?.p50Ms ?? 0,
      }),
      compareAmounts("  answer p99 at 64 connections", "ms", last.p99Ms, {
        name: "C",
        amount: indexed.at(-1)?.p99Ms ?? 0,
      }),
      compareAmounts("  resident after it", "MiB", last.resident, null, { atMost: 200 }),
    );
  }
  const others = {
    "bare HTTP, HMAC and JSON, no store (A)": "A",
    "bare, one commit a call (B)": "B",
    "bare group commit behind Elysia (E)": "E",
  };
  for (const [name, variant] of Object.entries(others))
    figures.push(compareRates(name, [await bare(variant, seconds)], "C", indexed.slice(-1)));
  return figures;
}

interface Drained extends Round {
  /** How many waited when the load ended. */
  waiting: number;
  resident: number;
}

/** From the first call to the last `done`, with the CPU of all of it. */
async function drain(
  server: Started<unknown>,
  file: string,
  { port, paths, seconds }: { port: number; paths: readonly string[]; seconds: number },
): Promise<Drained> {
  using database = new Database(file, { readonly: true });
  const waits = database.query("SELECT 1 FROM event WHERE state IN ('queued', 'running') LIMIT 1");
  const count = (sql: string): number => database.query<{ count: number }, []>(sql).get()?.count ?? 0;
  const settle = async (): Promise<void> => {
    while (waits.get() !== null) await Bun.sleep(20);
  };
  const { ok: warm } = await load(port, paths, SECRET, { seconds: WARM_UP_SECONDS });
  await settle();
  const [begun, before] = [performance.now(), await server.cpuMs()];
  const { ok } = await load(port, paths, SECRET, { seconds });
  const waiting = count("SELECT count(*) AS count FROM event WHERE state IN ('queued', 'running')");
  await settle();
  const [seconds_, after] = [(performance.now() - begun) / 1_000, await server.cpuMs()];
  const done = count("SELECT count(*) AS count FROM event WHERE state = 'done'");
  const records = count("SELECT count(*) AS count FROM record");
  if (done !== warm + ok || records !== done)
    throw new Error(`acknowledged ${warm + ok}, done ${done}, records ${records}`);
  return {
    perSecond: ok / seconds_,
    cpuMicros: (1_000 * (after - before)) / ok,
    waiting,
    resident: await server.residentMiB(),
  };
}

async function drainBare(seconds: number): Promise<Drained> {
  using folder = scratch();
  const file = join(folder.path, "bare.db");
  await using server = await start<number>("bare.ts", "D", file, SECRET);
  return await drain(server, file, { port: server.ready, paths: BARE_PATHS, seconds });
}

async function drainProduct(relays: number, seconds: number): Promise<Drained> {
  using folder = scratch();
  const file = join(folder.path, "relay.db");
  await using server = await start<ProductReady>(
    "product.ts",
    folder.path,
    String(relays),
    SECRET,
    "running",
  );
  return await drain(server, file, { ...server.ready, seconds });
}

/** Ingest to done, one record each, of four relays and of fifty, the bare limit between them in each turn. */
export async function measureRun({ seconds, rounds }: Turns): Promise<Figure[]> {
  const few: Drained[] = [];
  const limits: Drained[] = [];
  const many: Drained[] = [];
  for (let round = 0; round < rounds; round++) {
    few.push(await drainProduct(4, seconds));
    limits.push(await drainBare(seconds));
    many.push(await drainProduct(50, seconds));
  }
  return [
    compareRates("ingest to done, one record each, 4 relays", few, "D (the same, bare)", limits, 0.6),
    ...restOf(few),
    compareRates("ingest to done, one record each, 50 relays", many, "D", limits, 0.6),
    ...restOf(many),
  ];
}

/** The same for a minute: what cannot be kept up shows as a queue. */
export async function measureSustained(seconds: number): Promise<Figure[]> {
  const limit = await drainBare(seconds);
  const product = await drainProduct(4, seconds);
  return [
    compareRates(`ingest to done for ${seconds} s`, [product], "D (the same, bare)", [limit], 0.6),
    ...restOf([product]),
  ];
}

function restOf(products: readonly Drained[]): Figure[] {
  const waiting = Math.max(...products.map((product) => product.waiting));
  // What 64 connections have on their way, twice.
  const allowed = 128;
  return [
    {
      name: "  waiting when the load ended, most",
      value: String(waiting),
      goal: `≤ ${allowed}`,
      met: waiting <= allowed,
    },
    compareAmounts(
      "  resident after it, most",
      "MiB",
      Math.max(...products.map(({ resident }) => resident)),
      null,
      {
        atMost: 200,
      },
    ),
  ];
}
