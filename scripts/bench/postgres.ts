/** The same service on PostgreSQL, beside what one connection can write to it: with one node, and with three over three apps. */
import { join } from "node:path";
import { SQL } from "bun";
import { compareRates, type Figure, type Round } from "./figure.ts";
import { load, type ProductReady, SECRET, type Started, scratch, startWith } from "./process.ts";

const WARM_UP_SECONDS = 2;
const NODES = 3;

interface Turns {
  seconds: number;
  rounds: number;
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

async function loadAll(
  servers: readonly Started<ProductReady>[],
  seconds: number,
): Promise<{ ok: number; seconds: number }> {
  const connections = Math.ceil(64 / servers.length);
  const each = await Promise.all(
    servers.map(({ ready: { port, paths } }) => load(port, paths, SECRET, { seconds, connections })),
  );
  return {
    ok: each.reduce((sum, { ok }) => sum + ok, 0),
    seconds: Math.max(...each.map((one) => one.seconds)),
  };
}

async function cpuOf(servers: readonly Started<ProductReady>[]): Promise<number> {
  const each = await Promise.all(servers.map((server) => server.cpuMs()));
  return each.reduce((sum, ms) => sum + ms, 0);
}

async function ingest(server: string, count: number, seconds: number): Promise<Round> {
  await using database = await fresh(server);
  await using started = await nodes(database.url, count, "paused");
  await loadAll(started.servers, WARM_UP_SECONDS);
  const before = await cpuOf(started.servers);
  const { ok, seconds: took } = await loadAll(started.servers, seconds);
  return { perSecond: ok / took, cpuMicros: (1_000 * ((await cpuOf(started.servers)) - before)) / ok };
}

/** From the first call to the last `done`, each event one record. */
async function drain(server: string, count: number, seconds: number): Promise<Round> {
  await using database = await fresh(server);
  await using started = await nodes(database.url, count, "running");
  const sql = new SQL(database.url, { max: 1 });
  const settle = async (): Promise<void> => {
    while ((await sql.unsafe("SELECT 1 FROM event WHERE state IN ('queued', 'running') LIMIT 1")).length > 0)
      await Bun.sleep(50);
  };
  const { ok: warm } = await loadAll(started.servers, WARM_UP_SECONDS);
  await settle();
  const [begun, before] = [performance.now(), await cpuOf(started.servers)];
  const { ok } = await loadAll(started.servers, seconds);
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

/** `server`: a URL of somebody who may create databases there. */
export async function measurePostgres(server: string, { seconds, rounds }: Turns): Promise<Figure[]> {
  const turns: { limit: Round; ingested: Round; drained: Round; ingestedBy3: Round; drainedBy3: Round }[] =
    [];
  for (let round = 0; round < rounds; round++) {
    turns.push({
      ingested: await ingest(server, 1, seconds),
      limit: await bare(server, seconds),
      drained: await drain(server, 1, seconds),
      ingestedBy3: await ingest(server, NODES, seconds),
      drainedBy3: await drain(server, NODES, seconds),
    });
  }
  const of = (name: keyof (typeof turns)[number]): Round[] => turns.map((turn) => turn[name]);
  const limit = "P (rows, one connection, pipelined)";
  return [
    compareRates("durable ingestion on PostgreSQL", of("ingested"), limit, of("limit"), 0.4),
    compareRates("ingest to done on PostgreSQL", of("drained"), limit, of("limit"), 0.2),
    compareRates("  ingestion by three nodes", of("ingestedBy3"), "one node", of("ingested"), 1),
    compareRates("  ingest to done by three nodes", of("drainedBy3"), "one node", of("drained"), 1),
  ];
}
