/** The same service on PostgreSQL, beside what one connection can write to it: with one node, and with three over three apps. */
import { join } from "node:path";
import { SQL } from "bun";
import { compareRates, type Figure, type Round } from "./figure.ts";
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

/**
 * Calls that each node takes before it is measured: as many of three as of one, or what is measured of three is how long their code is compiled. Of an
 * event that ends the compiler's threads take 15 to 31 µs after 20,000 of them, 7 to 17 after 40,000 and 1 to 6 after 100,000.
 */
const WARM_UP_CALLS = 100_000;
const WARM_UP_SECONDS = 120;
const NODES = 3;
/** Calls at once: as many as SQLite's figures have, and as many as keep one node's next group full while the one before is made durable. */
const CALLERS = [64, 192] as const;

interface Turns {
  seconds: number;
  rounds: number;
  /** Kinds, by their names; null: all. */
  only: readonly string[] | null;
}

/** A database of its own on the server that `url` names, for one measure. */
async function fresh(url: string): Promise<{ url: string } & AsyncDisposable> {
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

/** So many nodes on one database, each with a folder of its own; each serves calls of every app. */
async function nodes(
  url: string,
  count: number,
  kind: "paused" | "running",
): Promise<{ servers: Started<ProductReady>[] } & AsyncDisposable> {
  const ended = new AsyncDisposableStack();
  const servers: Started<ProductReady>[] = [];
  const env = { RELAY_DATABASE: url, RELAY_MASTER_KEY: "ab".repeat(32), BENCH_APPS: String(NODES) };
  for (let at = 0; at < count; at++) {
    const folder = ended.use(scratch());
    servers.push(ended.use(await startWith<ProductReady>(env, "product.ts", folder.path, "4", SECRET, kind)));
  }
  return { servers, [Symbol.asyncDispose]: () => ended.disposeAsync() };
}

/** The callers go round the nodes, as behind a balancer. */
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
 * The calls before what is measured. The server's own care of tables stays out of it: once a minute it takes a second of one processor, and would meet
 * three nodes more often than one, whose calls take less long.
 */
async function warmUp(
  url: string,
  client: Client,
  servers: readonly Started<ProductReady>[],
  connections: number,
): Promise<LoadResult> {
  const limit = WARM_UP_CALLS * servers.length;
  await using sql = new SQL(url, { max: 1 });
  for (const { name } of await sql.unsafe(
    "SELECT relname AS name FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace",
  ))
    await sql.unsafe(`ALTER TABLE "${name}" SET (autovacuum_enabled = false)`);
  const warm = await loadAll(client, servers, { seconds: WARM_UP_SECONDS, connections, limit });
  await sql.unsafe("ANALYZE");
  return warm;
}

async function cpuOf(servers: readonly Started<ProductReady>[]): Promise<number> {
  const each = await Promise.all(servers.map((server) => server.cpuMs()));
  return each.reduce((sum, ms) => sum + ms, 0);
}

async function ingest(server: string, count: number, seconds: number, callers: number): Promise<Round> {
  await using database = await fresh(server);
  await using started = await nodes(database.url, count, "paused");
  await using client = startClient(SECRET);
  await warmUp(database.url, client, started.servers, callers);
  const before = await cpuOf(started.servers);
  const { ok, seconds: took } = await loadAll(client, started.servers, { seconds, connections: callers });
  return { perSecond: ok / took, cpuMicros: (1_000 * ((await cpuOf(started.servers)) - before)) / ok };
}

/** From the first call to the last `done`, each event one record. */
async function drain(server: string, count: number, seconds: number, callers: number): Promise<Round> {
  await using database = await fresh(server);
  await using started = await nodes(database.url, count, "running");
  const sql = new SQL(database.url, { max: 1 });
  const settle = async (): Promise<void> => {
    while ((await sql.unsafe("SELECT 1 FROM event WHERE state IN ('queued', 'running') LIMIT 1")).length > 0)
      await Bun.sleep(50);
  };
  await using client = startClient(SECRET);
  const { ok: warm } = await warmUp(database.url, client, started.servers, callers);
  await settle();
  const [begun, before] = [performance.now(), await cpuOf(started.servers)];
  const { ok } = await loadAll(client, started.servers, { seconds, connections: callers });
  await settle();
  const took = (performance.now() - begun) / 1_000;
  const after = await cpuOf(started.servers);
  const [row] = await sql.unsafe(
    "SELECT (SELECT count(*) FROM event WHERE state = 'done')::int AS done, (SELECT count(*) FROM record)::int AS records",
  );
  await sql.close();
  if (row.done !== warm + ok || row.records !== row.done)
    throw new Error(`acknowledged ${warm + ok}, done ${row.done}, records ${row.records}`);
  return { perSecond: ok / took, cpuMicros: (1_000 * (after - before)) / ok };
}

/** By the name that `--only` has for each; the goal is one node's share of what one connection writes. */
const KINDS = {
  ingest: { name: "ingestion", goal: 0.4, measure: ingest },
  run: { name: "ingest to done", goal: 0.2, measure: drain },
};

function chooseKinds(only: Turns["only"]) {
  const names = only ?? Object.keys(KINDS);
  const unknown = names.find((name) => !Object.hasOwn(KINDS, name));
  if (unknown !== undefined)
    throw new Error(
      `--only ${unknown} is not measured on PostgreSQL: one or both of ${Object.keys(KINDS).join()}`,
    );
  return Object.entries(KINDS).flatMap(([name, kind]) => (names.includes(name) ? [kind] : []));
}

/** `server`: a URL of somebody who may create databases there. */
export async function measurePostgres(server: string, { seconds, rounds, only }: Turns): Promise<Figure[]> {
  const kinds = chooseKinds(only);
  const turns = new Map<string, Round[]>();
  const of = (name: string): Round[] => turns.get(name) ?? [];
  const take = async (name: string, measure: () => Promise<Round>): Promise<void> => {
    const taken = of(name);
    console.error(`measuring ${name} (round ${taken.length + 1} of ${rounds})`);
    turns.set(name, [...taken, await measure()]);
  };
  const limit = "P (rows, one connection, pipelined)";
  const nameTurn = (name: string, callers: number, count: number): string =>
    `${name}, ${callers} callers, ${count === 1 ? "one node" : `${count} nodes`}`;
  for (let round = 0; round < rounds; round++) {
    await take(limit, () => bare(server, seconds));
    for (const callers of CALLERS)
      for (const count of [1, NODES])
        for (const { name, measure } of kinds)
          await take(nameTurn(name, callers, count), () => measure(server, count, seconds, callers));
  }
  return CALLERS.flatMap((callers) => {
    const ofOne = (name: string) => of(nameTurn(name, callers, 1));
    const ofThree = (name: string) => of(nameTurn(name, callers, NODES));
    return [
      ...kinds.map(({ name, goal }) =>
        compareRates(`${name}, ${callers} callers`, ofOne(name), limit, of(limit), goal),
      ),
      ...kinds.map(({ name }) =>
        compareRates(`  ${name} by three nodes`, ofThree(name), "one node", ofOne(name), 1),
      ),
    ];
  });
}
