/**
 * The bench: every figure of the product beside the bare limit measured in the same run, as a ratio, since machines differ.
 *
 * bun scripts/bench/main.ts [--quick] [--only ingest,run,latency,call]
 */

import { Database } from "bun:sqlite";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { type LoadResult, load, scratch, start } from "./process.ts";

const { values } = parseArgs({
  options: { quick: { type: "boolean", default: false }, only: { type: "string" } },
});
const seconds = values.quick ? 4 : 15;
const rounds = values.quick ? 1 : 3;
const FIGURES = ["ingest", "run", "latency", "call"];
const only = values.only?.split(",");
for (const name of only ?? []) {
  if (!FIGURES.includes(name))
    throw new Error(`--only ${name} is not known: one or more of ${FIGURES.join()}`);
}
const SECRET = "bench-secret-of-thirty-two-chars";

interface Figure {
  name: string;
  value: string;
  limit: string;
  ratio: string;
  goal: string;
}
const figures: Figure[] = [];

interface ProductReady {
  port: number;
  paths: string[];
  base: string;
  key: string;
}

const median = (numbers: number[]): number =>
  numbers.toSorted((a, b) => a - b)[Math.floor(numbers.length / 2)] ?? 0;
const wanted = (name: string): boolean => only === undefined || only.includes(name);

async function bare(variant: string): Promise<number> {
  using folder = scratch();
  await using server = await start<number>("bare.ts", variant, join(folder.path, "bare.db"), SECRET);
  return (await load(server.ready, ["/hooks/bench/orders-0"], SECRET, { seconds })).perSecond;
}

async function ingest(): Promise<LoadResult & { resident: number }> {
  using folder = scratch();
  await using server = await start<ProductReady>("product.ts", folder.path, "1", SECRET, "paused");
  const result = await load(server.ready.port, server.ready.paths, SECRET, { seconds });
  return { ...result, resident: await server.residentMiB() };
}

/** Events per second from the first call to the last `done`, and how many were still waiting when the load ended. */
async function runToDone(relays: number): Promise<{ perSecond: number; waiting: number; resident: number }> {
  using folder = scratch();
  await using server = await start<ProductReady>(
    "product.ts",
    folder.path,
    String(relays),
    SECRET,
    "running",
  );
  const begun = performance.now();
  const { ok } = await load(server.ready.port, server.ready.paths, SECRET, { seconds });
  using database = new Database(join(folder.path, "relay.db"), { readonly: true });
  const count = database.query<{ count: number }, []>(
    "SELECT count(*) AS count FROM event WHERE state IN ('queued', 'running')",
  );
  const waiting = count.get()?.count ?? 0;
  while ((count.get()?.count ?? 0) > 0) await Bun.sleep(20);
  const took = (performance.now() - begun) / 1000;
  const done =
    database.query<{ count: number }, []>("SELECT count(*) AS count FROM event WHERE state = 'done'").get()
      ?.count ?? 0;
  const records =
    database.query<{ count: number }, []>("SELECT count(*) AS count FROM record").get()?.count ?? 0;
  if (done !== ok || records !== ok) throw new Error(`acknowledged ${ok}, done ${done}, records ${records}`);
  return { perSecond: Math.round(done / took), waiting, resident: await server.residentMiB() };
}

interface Latency {
  /** From the call's first byte sent to the called URL's first byte received. */
  called: number[];
  /** From the same moment to the receiver's answer. */
  answered: number[];
  /** CPU of the service for one event with its call, from the receiver's socket to the result, µs. */
  cpuMicros: number;
}

/** One call at a time on an idle server, the first one of its start first. */
async function callLatency(): Promise<Latency> {
  using folder = scratch();
  const arrivals = new Map<string, (at: number) => void>();
  const sink = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    async fetch(request) {
      const at = performance.now();
      const notice = (await request.json()) as { id: string; event: { mapped: { event_id: string } } };
      arrivals.get(notice.event.mapped.event_id)?.(at);
      return new Response("ok");
    },
  });
  const startProduct = () =>
    start<ProductReady>("product.ts", folder.path, "1", SECRET, "calls", `http://127.0.0.1:${sink.port}/`);
  // The first start makes the relay; the second is a start as it is on every other day.
  await (await startProduct())[Symbol.asyncDispose]();
  await using server = await startProduct();
  const latency: Latency = { called: [], answered: [], cpuMicros: 0 };
  const calls = values.quick ? 200 : 1_000;
  await Bun.sleep(500);
  let cpuAtFirst = 0;
  for (let index = 0; index <= calls; index++) {
    const body = JSON.stringify({ id: `call_${index}`, type: "order.paid", amount: 1 });
    const signature = new Bun.CryptoHasher("sha256", SECRET).update(body).digest("hex");
    const arrived = new Promise<number>((resolve) => arrivals.set(`call_${index}`, resolve));
    const begun = performance.now();
    const answer = fetch(`http://127.0.0.1:${server.ready.port}${server.ready.paths[0]}`, {
      method: "POST",
      headers: { "x-signature": signature, "content-type": "application/json" },
      body,
    }).then(() => performance.now());
    latency.answered.push((await answer) - begun);
    latency.called.push((await arrived) - begun);
    if (index === 0) cpuAtFirst = await server.cpuMs();
  }
  latency.cpuMicros = Math.round((1_000 * ((await server.cpuMs()) - cpuAtFirst)) / calls);
  await sink.stop(true);
  return latency;
}

/** µs of CPU of one call out, the product's and a bare keep-alive client's, medians of turns. */
async function callCost(): Promise<{ product: number; bare: number }> {
  const sink = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    async fetch(request) {
      await request.arrayBuffer();
      return new Response("ok");
    },
  });
  const costs: Record<string, number[]> = { product: [], bare: [] };
  for (let round = 0; round < 3; round++) {
    for (const [kind, of] of Object.entries(costs)) {
      await using run = await start<number>("call.ts", kind, `http://localhost:${sink.port}/`, "3000");
      of.push(run.ready);
    }
  }
  await sink.stop(true);
  return { product: median(costs.product ?? []), bare: median(costs.bare ?? []) };
}

function add(name: string, value: number, limitName: string, limit: number, goal: number): void {
  const ratio = value / limit;
  figures.push({
    name,
    value: `${value}/s`,
    limit: `${limitName} ${limit}/s`,
    ratio: `${Math.round(ratio * 100)} %`,
    goal: `≥ ${goal} %${ratio * 100 >= goal ? "" : "  MISSED"}`,
  });
}

if (wanted("ingest")) {
  const limits: number[] = [];
  const bareHttp: number[] = [];
  const framework: number[] = [];
  const products: number[] = [];
  let last: Awaited<ReturnType<typeof ingest>> | undefined;
  for (let round = 0; round < rounds; round++) {
    bareHttp.push(await bare("A"));
    limits.push(await bare("C"));
    last = await ingest();
    products.push(last.perSecond);
    framework.push(await bare("E"));
  }
  figures.push({
    name: "bare HTTP, no store",
    value: `${median(bareHttp)}/s`,
    limit: "A",
    ratio: "",
    goal: "",
  });
  figures.push({
    name: "bare, one commit a call",
    value: `${await bare("B")}/s`,
    limit: "B",
    ratio: "",
    goal: "",
  });
  add("bare group commit behind Elysia (E)", median(framework), "C", median(limits), 0);
  add("durable ingestion", median(products), "C", median(limits), 80);
  figures.push({
    name: "  resident after it",
    value: `${last?.resident} MiB`,
    limit: "",
    ratio: "",
    goal: "< 200 MiB",
  });
  figures.push({
    name: "  answer p50 / p99 at 64 connections",
    value: `${last?.p50Ms} / ${last?.p99Ms} ms`,
    limit: "",
    ratio: "",
    goal: "",
  });
}
if (wanted("run")) {
  const limits: number[] = [];
  const products: number[] = [];
  let last: Awaited<ReturnType<typeof runToDone>> | undefined;
  for (let round = 0; round < rounds; round++) {
    limits.push(await bare("D"));
    last = await runToDone(4);
    products.push(last.perSecond);
  }
  add("ingest to done, one record each", median(products), "D", median(limits), 50);
  figures.push({
    name: "  waiting when the load ended",
    value: String(last?.waiting),
    limit: "",
    ratio: "",
    goal: "not growing",
  });
  figures.push({
    name: "  resident after it",
    value: `${last?.resident} MiB`,
    limit: "",
    ratio: "",
    goal: "< 200 MiB",
  });
}
if (wanted("latency")) {
  const { called, answered, cpuMicros } = await callLatency();
  const [first = 0, ...rest] = called;
  const [firstAnswer = 0, ...answers] = answered;
  const at = (share: number, numbers: number[]): number =>
    numbers.toSorted((a, b) => a - b)[Math.floor(numbers.length * share)] ?? 0;
  const compare = (name: string, [value, limit]: [number, number]): void => {
    figures.push({
      name,
      value: `${value.toFixed(2)} ms`,
      limit: `its answer ${limit.toFixed(2)} ms`,
      ratio: `${(value / limit).toFixed(2)} ×`,
      goal: `≤ 1.5 ×${value / limit <= 1.5 ? "" : "  MISSED"}`,
    });
  };
  compare("arrival to called URL, idle, p50", [at(0.5, rest), at(0.5, answers)]);
  compare("arrival to called URL, idle, p99", [at(0.99, rest), at(0.99, answers)]);
  compare("arrival to called URL, the first after a start", [first, firstAnswer]);
  figures.push({
    name: "  CPU of an event with its call",
    value: `${cpuMicros} µs`,
    limit: "",
    ratio: "",
    goal: "",
  });
}
if (wanted("call")) {
  const { product, bare: limit } = await callCost();
  figures.push({
    name: "CPU of a call out",
    value: `${product} µs`,
    limit: `a bare client ${limit} µs`,
    ratio: `${(product / limit).toFixed(2)} ×`,
    goal: `≤ 200 µs${product <= 200 ? "" : "  MISSED"}`,
  });
}

const columns: (keyof Figure)[] = ["name", "value", "limit", "ratio", "goal"];
const width = (column: keyof Figure): number =>
  Math.max(column.length, ...figures.map((figure) => figure[column].length));
console.log(columns.map((column) => column.padEnd(width(column))).join("  "));
for (const figure of figures)
  console.log(columns.map((column) => figure[column].padEnd(width(column))).join("  "));
console.log(`
What people use instead, less work each, measured elsewhere on two shared cores: Node-RED 2,250/s, adnanh/webhook 300/s with a stored row,
Directus flow 43 to 184/s, n8n 8 to 37/s; queues alone: plainjob 2,800/s, graphile-worker 1,500/s, BullMQ with fsync 3,400/s.`);
