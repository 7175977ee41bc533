/** Leases under load without faults: a node that renews late keeps its leases, because the other nodes do not need them. */
import { expect, test } from "bun:test";
import { ClusterNode, Ground, Sender } from "../crash/cluster.ts";
import { makeTenants, saveReceiver, startNode } from "../kit/node.ts";
import { poll, TEST_MS } from "../kit/patience.ts";
import { startPostgres } from "../kit/postgres.ts";
import { receiverDefinition } from "../kit/relay-definition.ts";
import { startSink } from "../kit/sink.ts";

const LOAD_MS = 200_000;
const APPS = ["app_a", "app_b", "app_c"];
const SENDERS = 8;

test(
  "no lease moves between three nodes in 200 s of load without faults",
  async () => {
    await using server = await startPostgres();
    await using sink = startSink();
    {
      await using node = await startNode(server.url);
      for (const app of APPS)
        for (const tenant of await makeTenants(node, app, ["development"]))
          for (let at = 0; at < SENDERS; at++)
            await saveReceiver(
              node,
              tenant,
              receiverDefinition({
                name: `gives-${at}`,
                map: { event_id: "id", person_email: "email" },
                actions: [{ type: "grant_credits", amount: 3 }],
              }),
            );
    }
    const place = { databaseUrl: server.url, aheadMs: 0, sinkUrl: sink.url };
    await using first = new ClusterNode(place);
    await using second = new ClusterNode(place);
    await using third = new ClusterNode(place);
    const nodes = [first, second, third];
    await Promise.all(nodes.map((node) => node.start()));
    await using ground = new Ground(server.url);
    const holders = async () =>
      (await ground.rows<{ node: string | null; epoch: bigint }>("SELECT node, epoch FROM node_lease ORDER BY environment_id")).map(
        ({ node, epoch }) => `${node} ${epoch}`,
      );
    const held = () => ground.rows("SELECT node FROM node_lease WHERE node IS NOT NULL GROUP BY node");
    await poll(
      async () => (await held()).length,
      (count) => count === nodes.length,
    );
    await Bun.sleep(10_000);
    const before = await holders();
    const sender = new Sender(nodes);
    sender.begin(
      APPS,
      Array.from({ length: SENDERS }, (_, at) => `gives-${at}`),
      0,
    );
    const endMs = Date.now() + LOAD_MS;
    while (Date.now() < endMs) {
      await Bun.sleep(1_000);
      expect(await holders()).toEqual(before);
    }
    expect(await sender.end()).toBeGreaterThan(0);
    expect(await holders()).toEqual(before);
  },
  { timeout: LOAD_MS + TEST_MS },
);
