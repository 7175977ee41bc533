/** Measures the service on PostgreSQL, with one node and with three over three apps, next to what one connection can write to the database. */
import { join } from "node:path";
import { SQL } from "bun";
import { startPostgres } from "../../test/kit/postgres.ts";
import { compareRates, type Figure, type Round } from "./figure.ts";
import { LeftOut, type Run } from "./measure.ts";
import {
  type Client,
  type LoadResult,
  type ProductReady,
  SECRET,
  type Started,
  scratch,
  startClient,
  startWith,
} from "./process.ts";

interface Sizes {
  /**
   * Requests that each node gets before the measurement. Three nodes get as many each as one node does, or their figure would include the time to
   * compile their code. The compiler's threads take 15 to 31 µs of each event after 20,000 requests, 7 to 17 after 40,000 and 1 to 6 after
   * 100,000.
   */
  warmUpCalls: number;
  /** Concurrent requests: as many as for SQLite's figures, and enough to fill one node's next group during a commit. */
  callers: readonly number[];
}

const FULL: Sizes = { warmUpCalls: 100_000, callers: [64, 192] };
const SHORT: Sizes = { ...FULL, warmUpCalls: 20_000 };
const TINY: Sizes = { warmUpCalls: 100, callers: [64] };
/** Loads of at least this many seconds get the full warm-up. */
const FULL_FROM_SECONDS = 10;
const WARM_UP_SECONDS = 120;
const NODES = 3;

/** Creates a database on the server that `url` names. */
export async function fresh(url: string): Promise<{ url: string } & AsyncDisposable> {
  const name = `relay_bench_${crypto.randomUUID().slice(0, 8)}`;
  const admin = new SQL(url, { max: 1 });
  await admin.unsafe(`CREATE DATABASE ${name} TEMPLATE template0 ENCODING 'UTF8'`);
  const own = new URL(url);
  own.pathname = `/${name}`;
  return {
    url: own.href,
    async [Symbol.asyncDispose]() {
      await admin.unsafe(`DROP DATABASE ${name} WITH (FORCE)`);
      await admin.close();
    },
  };
}

async function bare(server: string, seconds: number): Promise<Round> {
  await using database = await fresh(server);
  const script = join(import.meta.dir, "bare-postgres.ts");
  const child = Bun.spawn([process.execPath, script, database.url, String(seconds)], {
    stdout: "pipe",
    stderr: "inherit",
  });
  const { perSecond } = JSON.parse(await new Response(child.stdout).text()) as { perSecond: number };
  return { perSecond, cpuMicros: 0 };
}

type RelayState = "paused" | "running";

/** Starts nodes on one database, each with its own folder. Each serves the requests of every app, which has one environment. */
export async function startNodes(
  url: string,
  { nodes, apps = NODES, kind }: { nodes: number; apps?: number; kind: RelayState },
): Promise<{ servers: Started<ProductReady>[] } & AsyncDisposable> {
  const ended = new AsyncDisposableStack();
  const servers: Started<ProductReady>[] = [];
  const env = { RELAY_DATABASE: url, RELAY_MASTER_KEY: "ab".repeat(32), BENCH_APPS: String(apps) };
  for (let at = 0; at < nodes; at++) {
    const folder = ended.use(scratch());
    servers.push(ended.use(await startWith<ProductReady>(env, "product.ts", folder.path, "4", SECRET, kind)));
  }
  return { servers, [Symbol.asyncDispose]: () => ended.disposeAsync() };
}

/** Lists the nodes such that each gets the requests of only one app. */
export function listApart(
  servers: readonly Started<ProductReady>[],
): { pid: number; port: number; paths: string[] }[] {
  const apps = (paths: readonly string[]): string[][] =>
    Map.groupBy(paths, (path) => path.split("/")[2])
      .values()
      .toArray();
  return servers.map(({ pid, ready: { port, paths } }, at) => ({ pid, port, paths: apps(paths)[at] ?? [] }));
}

/** Loads the nodes in turn, as a balancer does. */
function loadAll(
  client: Client,
  servers: readonly Started<ProductReady>[],
  turn: { seconds: number; connections: number; limit?: number },
): Promise<LoadResult> {
  return client.load(
    servers.map(({ ready }) => ready),
    turn,
  );
}

/**
 * Sends the requests before the measured ones. It turns autovacuum off, which takes a second of one processor each minute. Autovacuum would
 * affect three nodes more often than one.
 */
export async function warmUp(
  url: string,
  client: Client,
  servers: readonly Started<ProductReady>[],
  { connections, calls }: { connections: number; calls: number },
): Promise<LoadResult> {
  await using sql = new SQL(url, { max: 1 });
  for (const { name } of await sql.unsafe(
    "SELECT relname AS name FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace",
  ))
    await sql.unsafe(`ALTER TABLE "${name}" SET (autovacuum_enabled = false)`);
  const limit = calls * servers.length;
  const warm = await loadAll(client, servers, { seconds: WARM_UP_SECONDS, connections, limit });
  await sql.unsafe("ANALYZE");
  return warm;
}

export async function cpuOf(servers: readonly Started<ProductReady>[]): Promise<number> {
  const each = await Promise.all(servers.map((server) => server.cpuMs()));
  return each.reduce((sum, ms) => sum + ms, 0);
}

interface Load {
  seconds: number;
  nodes: number;
  connections: number;
  warmUpCalls: number;
}

/** Measures stored requests, with paused relays. */
export async function ingestOnPostgres(server: string, load: Load): Promise<Round> {
  const { seconds, connections, warmUpCalls: calls } = load;
  await using database = await fresh(server);
  await using started = await startNodes(database.url, { nodes: load.nodes, kind: "paused" });
  await using client = startClient(SECRET);
  await warmUp(database.url, client, started.servers, { connections, calls });
  const before = await cpuOf(started.servers);
  const { ok, seconds: took } = await loadAll(client, started.servers, { seconds, connections });
  return { perSecond: ok / took, cpuMicros: (1_000 * ((await cpuOf(started.servers)) - before)) / ok };
}

/** Measures the time from the first request until the last event is done. Each event writes one record. */
export async function drainOnPostgres(server: string, load: Load): Promise<Round> {
  const { seconds, connections, warmUpCalls: calls } = load;
  await using database = await fresh(server);
  await using started = await startNodes(database.url, { nodes: load.nodes, kind: "running" });
  await using sql = new SQL(database.url, { max: 1 });
  const waits = "SELECT 1 FROM event WHERE state IN ('queued', 'running') LIMIT 1";
  const settle = async (): Promise<void> => {
    for (; (await sql.unsafe(waits)).length > 0; await Bun.sleep(50))
      for (const one of started.servers) one.requireRunning();
  };
  await using client = startClient(SECRET);
  const { ok: warm } = await warmUp(database.url, client, started.servers, { connections, calls });
  await settle();
  const [begun, before] = [performance.now(), await cpuOf(started.servers)];
  const { ok } = await loadAll(client, started.servers, { seconds, connections });
  await settle();
  const took = (performance.now() - begun) / 1_000;
  const after = await cpuOf(started.servers);
  const [row] = await sql.unsafe(
    "SELECT (SELECT count(*) FROM event WHERE state = 'done')::int AS done, (SELECT count(*) FROM record)::int AS records",
  );
  if (row.done !== warm + ok || row.records !== row.done)
    throw new Error(`acknowledged ${warm + ok}, done ${row.done}, records ${row.records}`);
  return { perSecond: ok / took, cpuMicros: (1_000 * (after - before)) / ok };
}

type OnPostgres = (server: string, load: Load) => Promise<Round>;

/** Measures the bare limit, one node and three nodes in turns. `goal` is one node's share of what one connection writes. */
export async function measureOnPostgres(
  run: Run,
  { what, goal, work }: { what: string; goal: number; work: OnPostgres },
): Promise<Figure[]> {
  const { warmUpCalls, callers } = run.tiny ? TINY : run.seconds < FULL_FROM_SECONDS ? SHORT : FULL;
  await using server = await openServer(run);
  const limits: Round[] = [];
  const turns = callers.map((connections) => ({ connections, one: [] as Round[], three: [] as Round[] }));
  for (let round = 0; round < run.rounds; round++) {
    limits.push(await bare(server.url, run.seconds));
    for (const { connections, one, three } of turns) {
      const load = { seconds: run.seconds, connections, warmUpCalls };
      one.push(await work(server.url, { ...load, nodes: 1 }));
      three.push(await work(server.url, { ...load, nodes: NODES }));
    }
  }
  const limit = `rows that one pipelined connection writes${server.note}`;
  return turns.flatMap(({ connections, one, three }) => [
    compareRates(`${what}, one node, ${connections} connections`, one, limit, limits, goal),
    compareRates(`${what}, ${NODES} nodes, ${connections} connections`, three, "one node", one, 1),
  ]);
}

/** Returns the PostgreSQL server of `--database`, or starts the embedded one, which stops with the measure. */
export async function openServer({
  database,
}: Run): Promise<{ url: string; note: string } & AsyncDisposable> {
  if (database !== null) return { url: database, note: "", [Symbol.asyncDispose]: async () => undefined };
  try {
    const embedded = await startPostgres({ isDurable: true });
    return { ...embedded, note: " (embedded PostgreSQL)" };
  } catch (error) {
    throw new LeftOut(`no PostgreSQL: ${(error as Error).message}`);
  }
}
