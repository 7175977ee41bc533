/**
 * Three nodes and one PostgreSQL under load, with every failure that can happen to them: SIGKILL, a lost connection to the database, ended sessions,
 * SIGSTOP for longer than a lease, a database that crashes and restarts, a graceful stop. The default is two rounds. `RELAY_CLUSTER_ROUNDS=20 npm run
 * test:soak -- test/soak/cluster.test.ts` runs the long loop and prints its figures.
 */
import { expect, test } from "bun:test";
import { MINUTE_MS } from "../../src/base/limit.ts";
import { ClusterNode, Ground, Sender } from "../crash/cluster.ts";
import { callApi, makeTenants, saveReceiver, startNode, type Tenant } from "../kit/node.ts";
import { poll, TEST_MS } from "../kit/patience.ts";
import { startPostgres } from "../kit/postgres.ts";
import { openPostgresProxy } from "../kit/postgres-proxy.ts";
import { receiverDefinition } from "../kit/relay-definition.ts";
import { startSink } from "../kit/sink.ts";

const rounds = Number(process.env.RELAY_CLUSTER_ROUNDS ?? 2);
const RELAYS = ["writes", "sends", "gives"];
const APPS = ["app_a", "app_b", "app_c"];
const PERIOD_MS = 15 * MINUTE_MS;
/** A schedule's period begins this long after the start of the nodes. */
const TICK_AFTER_MS = 18_000;

const write = (step: string) => ({ type: "write_record", collection: "orders", data: { order: "{{mapped.event_id}}", step } });

async function seed(databaseUrl: string): Promise<Tenant[]> {
  await using node = await startNode(databaseUrl);
  const map = { event_id: "id" };
  const tenants: Tenant[] = [];
  for (const app of APPS) {
    for (const tenant of await makeTenants(node, app, ["development"])) {
      tenants.push(tenant);
      const fields = { order: { type: "text" }, step: { type: "text" } };
      await callApi(node, tenant, "POST", "/collections", { name: "orders", kind: "shared", fields });
      await saveReceiver(node, tenant, receiverDefinition({ name: "writes", map, actions: [write("one")] }));
      await saveReceiver(
        node,
        tenant,
        receiverDefinition({
          name: "sends",
          map,
          actions: [write("before"), { type: "call_url", url: "https://example.com/notice" }, write("after")],
        }),
      );
      const person = { ...map, person_email: "email" };
      await saveReceiver(node, tenant, receiverDefinition({ name: "gives", map: person, actions: [{ type: "grant_credits", amount: 3 }] }));
      const trigger = { kind: "schedule", every: "15m" };
      const tick = { type: "write_record", collection: "orders", data: { order: "tick", step: "{{tick.periodStart}}" } };
      await callApi(node, tenant, "POST", "/relays", { definition: { name: "ticks", trigger, actions: [tick] } });
    }
  }
  return tenants;
}

/** Retries now what was cut off more than once, which otherwise waits as after a failed attempt. */
async function retryAll({ url }: ClusterNode, tenants: readonly Tenant[]): Promise<void> {
  for (const tenant of tenants) for (const relay of RELAYS) await callApi({ service: { url } }, tenant, "POST", `/relays/${relay}/retry`, {});
}

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
  io.proxy.mend();
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
    const tenants = await seed(server.url);
    const beganMs = Date.now();
    const tickMs = Math.ceil((beganMs + 1) / PERIOD_MS) * PERIOD_MS;
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
    sender.begin(APPS, RELAYS, 50);
    const times: number[] = [];
    for (let round = 0; round < rounds; round++) {
      times.push(...(await hurt(nodes, ground, { proxy, server })));
    }
    const ticked = "SELECT 1 FROM record WHERE data::json ->> 'order' = 'tick'";
    await poll(
      async () => (await ground.rows(ticked)).length,
      (count) => count >= APPS.length,
    );
    const recorded = await sender.end();
    await retryAll(first, tenants);
    await ground.untilDone();

    const ids = (relay: string) => [...sender.recorded].filter(([name]) => name.endsWith(` ${relay}`)).flatMap(([, all]) => all);
    const rows = await ground.rows<{ app: string; order: string; step: string }>(
      `SELECT app_id AS app, data::json ->> 'order' AS "order", data::json ->> 'step' AS step
       FROM record JOIN environment ON environment.id = record.environment_id ORDER BY record.seq`,
    );
    const made = rows.map(({ app, order, step }) => (order === "tick" ? `${app} ${order} ${step}` : `${order} ${step}`));
    expect(made.length).toBe(new Set(made).size);
    const wanted = [...ids("writes").map((id) => `${id} one`), ...ids("sends").flatMap((id) => [`${id} before`, `${id} after`])];
    const there = new Set(made);
    expect(wanted.filter((one) => !there.has(one))).toEqual([]);
    for (const app of APPS) {
      const written = rows.filter((row) => row.app === app && row.step === "one").map(({ order }) => Number(order.split("-").at(-1)));
      expect(written).toEqual(written.toSorted((one, other) => one - other));
      const ticks = rows.filter((row) => row.app === app && row.order === "tick").map(({ step }) => step);
      expect(ticks).toEqual([new Date(tickMs).toISOString()]);
    }
    const notices = new Set(sink.notices.map(({ body }) => (JSON.parse(String(body)) as { id: string }).id));
    const sent = await ground.rows<{ id: string }>(
      "SELECT relay_name.name AS id FROM event JOIN relay_name ON relay_name.key = event.name_key WHERE relay_name.name = 'sends'",
    );
    expect(notices.size).toBe(sent.length);
    const [credit] = await ground.rows<{ amount: bigint; events: bigint }>(
      `SELECT (SELECT sum(amount) FROM credit)::bigint AS amount,
         (SELECT count(*) FROM event JOIN relay_name ON relay_name.key = event.name_key WHERE relay_name.name = 'gives') AS events`,
    );
    expect(Number(credit?.amount)).toBe(3 * Number(credit?.events));
    expect(Number(credit?.events)).toBeGreaterThanOrEqual(ids("gives").length);
    expect(await ground.rows("SELECT seq, state, reason FROM event WHERE state <> 'done'")).toEqual([]);
    if (process.env.RELAY_CLUSTER_ROUNDS !== undefined) console.log({ recorded, slowestMs: Math.round(Math.max(...times)) });
    expect([...sender.recorded].filter(([, all]) => all.length === 0)).toEqual([]);
  },
  { timeout: rounds * TEST_MS },
);
