/**
 * Measures how much more three nodes over three environments do than one node over one, and what several environments cost one node. Shared
 * processors must not decide the result. So each node first gets a quota of processor time, if this machine allows one. Then the database is at a
 * distance with few callers, so that the nodes only wait for the database and for each other.
 */

import { openDistance } from "../distance.ts";
import { compareRates, type Figure, type Round } from "../figure.ts";
import type { Measure, Run } from "../measure.ts";
import { cpuOf, fresh, listApart, openServer, startNodes, warmUp } from "../postgres.ts";
import { type Client, type ProductReady, SECRET, type Started, startClient } from "../process.ts";
import { openQuota } from "../quota.ts";

/** The share of one processor that each node gets. Three nodes, the database and the client then need about one and a half processors. */
const QUOTA = 0.15;
/** The distance of the database, and the callers of each node, which are few so that they fill no group. */
const FAR_MS = 5;
const FAR_CALLERS = 8;
const NEAR_CALLERS = 64;
const WARM_UP_CALLS = 20_000;
const TURN_SECONDS = 2;

/** Nodes on a database of their own, and the requests that each gets. */
interface Cluster extends AsyncDisposable {
  servers: readonly Pick<ProductReady, "port" | "paths">[];
  started: readonly Started<ProductReady>[];
  /** How many times the callers of one node call it. */
  times: number;
  rounds: Round[];
}

interface Shape {
  nodes: number;
  environments: number;
  /** True if each environment's requests go to one node, else each node gets those of every environment. */
  isApart?: boolean;
}

async function openCluster(
  server: string,
  { nodes, environments, isApart = false }: Shape,
  { client, tiny }: { client: Client; tiny: boolean },
): Promise<Cluster> {
  await using ended = new AsyncDisposableStack();
  const database = ended.use(await fresh(server));
  const { servers: started } = ended.use(
    await startNodes(database.url, { nodes, apps: environments, kind: "paused" }),
  );
  const connections = NEAR_CALLERS * nodes;
  await warmUp(database.url, client, started, { connections, calls: tiny ? 100 : WARM_UP_CALLS });
  const servers = isApart ? listApart(started) : started.map(({ ready }) => ready);
  const held = ended.move();
  return { servers, started, times: nodes, rounds: [], [Symbol.asyncDispose]: () => held.disposeAsync() };
}

async function takeTurn(
  client: Client,
  cluster: Cluster,
  { seconds, callers }: { seconds: number; callers: number },
): Promise<void> {
  const { servers, started, times } = cluster;
  const connections = callers * times;
  const before = await cpuOf(started);
  const { ok, seconds: took } = await client.load(servers, { seconds, connections });
  const cpuMicros = (1_000 * ((await cpuOf(started)) - before)) / ok;
  cluster.rounds.push({ perSecond: ok / took, cpuMicros });
}

/** One way to keep the shared processors from deciding the result. */
interface Throttle {
  /** Says in the figures what limits the nodes. */
  how: string;
  /** Callers of each node. */
  callers: number;
  /** The share of one processor that each node gets; null for no quota. */
  quota: number | null;
  /** How much longer a round trip to the database takes. */
  delayMs: number;
}

/** Measures all clusters in turns. */
async function measureThrottled(run: Run, databaseUrl: string, throttle: Throttle): Promise<Figure[]> {
  // The groups of processor time are removed after the nodes in them ended.
  using quotas = new DisposableStack();
  await using ended = new AsyncDisposableStack();
  const client = ended.use(startClient(SECRET));
  const distance = ended.use(await openDistance(databaseUrl));
  const url = throttle.delayMs === 0 ? databaseUrl : distance.url;
  const options = { client, tiny: run.tiny };
  const open = async (shape: Shape): Promise<Cluster> => ended.use(await openCluster(url, shape, options));
  const one = await open({ nodes: 1, environments: 1 });
  const several = await open({ nodes: 1, environments: 3 });
  const busy: Cluster = { ...several, times: 3, rounds: [] };
  const apart = await open({ nodes: 3, environments: 3, isApart: true });
  const mixed = await open({ nodes: 3, environments: 3 });
  const clusters = [one, several, busy, apart, mixed];
  if (throttle.quota !== null)
    for (const { pid } of [one, several, apart, mixed].flatMap(({ started }) => started)) {
      const quota = openQuota(throttle.quota);
      if (quota !== null) quotas.use(quota).add(pid);
    }
  distance.delayMs = throttle.delayMs;
  const seconds = run.tiny ? run.seconds : TURN_SECONDS;
  const turns = run.tiny ? 1 : Math.max(1, Math.round((run.seconds * run.rounds) / TURN_SECONDS));
  for (let turn = 0; turn < turns; turn++)
    for (const cluster of turn % 2 === 0 ? clusters : clusters.toReversed())
      await takeTurn(client, cluster, { seconds, callers: throttle.callers });
  const compare = (what: string, { rounds }: Cluster, goal: number): Figure =>
    compareRates(`${what}, ${throttle.how}`, rounds, "one node over one environment", one.rounds, goal);
  return [
    compare("one node over three environments, as many callers", several, 0.95),
    compare("one node over three environments, as many callers each", busy, 0.95),
    compare("three nodes, each with its environment", apart, 2.4),
    compare("three nodes, each with every environment", mixed, 2.4),
  ];
}

/** Returns whether this machine allows a quota of processor time. */
function allowsQuota(): boolean {
  const quota = openQuota(QUOTA);
  quota?.[Symbol.dispose]();
  return quota !== null;
}

export const scale: Measure = {
  name: "scale",
  what: "webhooks stored on PostgreSQL by three nodes over three environments, next to one over one",
  // Nodes, database and load are more processes than there are processors.
  pinned: false,
  async measure(run) {
    await using server = await openServer(run);
    const near = {
      how: `${100 * QUOTA} % of a processor each`,
      callers: NEAR_CALLERS,
      quota: QUOTA,
      delayMs: 0,
    };
    const far = { how: `database ${FAR_MS} ms away`, callers: FAR_CALLERS, quota: null, delayMs: FAR_MS };
    const throttles: Throttle[] = allowsQuota() ? [near, far] : [far];
    const figures: Figure[] = [];
    for (const throttle of run.tiny ? throttles.slice(0, 1) : throttles)
      figures.push(...(await measureThrottled(run, server.url, throttle)));
    return figures;
  },
};
