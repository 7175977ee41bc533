/**
 * Three nodes and one PostgreSQL under load, with every failure that can happen to them: SIGKILL, a lost connection to the database, ended sessions,
 * SIGSTOP for longer than a lease, a database that crashes and restarts, a graceful stop. The default is two rounds. `RELAY_CLUSTER_ROUNDS=20 npm run
 * test:soak -- test/soak/cluster.test.ts` runs the long loop and prints its figures.
 */
import { expect, test } from "bun:test";
import { ClusterNode, Ground, Sender } from "../crash/cluster.ts";
import { CLUSTER_APPS, CLUSTER_RELAYS, compareCluster, seedCluster, settleCluster, TICK_MS } from "../crash/cluster-model.ts";
import { TEST_MS } from "../kit/patience.ts";
import { startPostgres } from "../kit/postgres.ts";
import { openPostgresProxy } from "../kit/postgres-proxy.ts";
import { startSink } from "../kit/sink.ts";

const rounds = Number(process.env.RELAY_CLUSTER_ROUNDS ?? 2);
/** A schedule's period begins this long after the start of the nodes. */
const TICK_AFTER_MS = 18_000;

/** Causes every failure once. Returns how long each takeover took. */
async function hurt(
  nodes: readonly [ClusterNode, ClusterNode, ClusterNode],
  ground: Ground,
  io: { proxy: Awaited<ReturnType<typeof openPostgresProxy>>; server: Awaited<ReturnType<typeof startPostgres>> },
) {
  const [first, second, third] = nodes;
  const times: number[] = [];
  const cutOff = third.id;
  const killed = second.id;
  io.proxy.cut();
  await second.kill();
  times.push(...(await Promise.all([killed, cutOff].map((id) => ground.timeTakeover(id)))));
  io.proxy.reconnect();
  await second.start();
  await ground.terminate();
  await Bun.sleep(4_000);
  first.signal("SIGSTOP");
  times.push(await ground.timeTakeover(first.id));
  await io.server.stop();
  await Bun.sleep(200);
  await io.server.start();
  first.signal("SIGCONT");
  await Bun.sleep(4_000);
  const stopped = second.id;
  const ended = second.stop();
  await ground.timeTakeover(stopped);
  await ended;
  await second.start();
  return times;
}

test(
  `a cluster loses, doubles or leaves stuck nothing over ${rounds} rounds of every failure, and other nodes take over what a node ran`,
  async () => {
    await using server = await startPostgres();
    await using sink = startSink();
    const tenants = await seedCluster(server.url);
    const beganMs = Date.now();
    const tickMs = Math.ceil((beganMs + 1) / TICK_MS) * TICK_MS;
    const aheadMs = tickMs - beganMs - TICK_AFTER_MS;
    using proxy = await openPostgresProxy(server.url);
    const place = { databaseUrl: server.url, aheadMs, sinkUrl: sink.url };
    await using first = new ClusterNode(place);
    await using second = new ClusterNode(place);
    await using third = new ClusterNode({ ...place, databaseUrl: proxy.url });
    const nodes = [first, second, third] as const;
    await Promise.all(nodes.map((node) => node.start()));
    await using ground = new Ground(server.url);
    const sender = new Sender(nodes);
    sender.begin(CLUSTER_APPS, CLUSTER_RELAYS, 50);
    const times: number[] = [];
    for (let round = 0; round < rounds; round++) {
      times.push(...(await hurt(nodes, ground, { proxy, server })));
    }
    const recorded = await sender.end();
    await settleCluster(ground, first, tenants);
    expect(await compareCluster(ground, { senders: [sender], sink, tickMs })).toEqual([]);
    if (process.env.RELAY_CLUSTER_ROUNDS !== undefined) console.log({ recorded, slowestMs: Math.round(Math.max(...times)) });
  },
  { timeout: rounds * TEST_MS },
);
