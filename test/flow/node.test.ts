/** Tests two services on one PostgreSQL: either accepts a request, and the environment's node runs it once. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { SQL } from "bun";
import type { NodesView } from "../../src/interfaces/api/server.ts";
import { createOwner } from "../../src/platform/account/owner.ts";
import { createSession } from "../../src/platform/account/session.ts";
import { ALL_ENVIRONMENTS } from "../../src/store/lease/lease-holder.ts";
import { until } from "../kit/event-flow.ts";
import { callApi, makeTenants, type Node, post, saveReceiver, startNode, type Tenant } from "../kit/node.ts";
import { freshDatabase } from "../kit/postgres.ts";
import { sampleOf } from "../kit/prometheus-text.ts";
import { receiverDefinition } from "../kit/relay-definition.ts";

const CALL = { type: "call_url", url: "https://example.com/notice" };
const WRITE = { type: "write_record", collection: "orders", data: { order: "{{mapped.event_id}}" } };

let database: Awaited<ReturnType<typeof freshDatabase>>;
let one: Node;
let other: Node;
let tenants: Tenant[];

beforeAll(async () => {
  database = await freshDatabase();
  one = await startNode(database.url);
  tenants = [];
  for (const app of ["app_a", "app_b", "app_c"]) tenants.push(...(await makeTenants(one, app, ["development"])));
  for (const tenant of tenants) {
    await callApi(one, tenant, "POST", "/collections", { name: "orders", kind: "shared", fields: { order: { type: "text" } } });
    await saveReceiver(one, tenant, receiverDefinition({ name: "calls", actions: [CALL] }));
    await saveReceiver(one, tenant, receiverDefinition({ name: "writes", actions: [WRITE] }));
  }
  other = await startNode(database.url);
});

afterAll(async () => {
  await one[Symbol.asyncDispose]();
  await other[Symbol.asyncDispose]();
  await database[Symbol.asyncDispose]();
});

beforeEach(async () => {
  await until("the leases are spread", () => areSpread(one, other));
  for (const node of [one, other]) {
    node.caller.requests.length = 0;
    node.lines.length = 0;
  }
});

/** Checks that every lease is held, and that the nodes hold equal numbers. */
function areSpread(...nodes: Node[]): boolean {
  const counts = nodes.map(({ service }) => [ALL_ENVIRONMENTS, ...tenants.map(({ id }) => id)].filter((id) => service.leases.holds(id)).length);
  const all = counts.reduce((sum, count) => sum + count, 0);
  return all === tenants.length + 1 && Math.max(...counts) - Math.min(...counts) <= 1;
}

function holderOf({ id }: Tenant): Node {
  const holder = [one, other].find(({ service }) => service.leases.holds(id));
  if (holder === undefined) throw new Error(`No node holds ${id}.`);
  return holder;
}

/** Creates an owner's session through this node and returns its cookie. */
async function openSession({ service }: Node): Promise<string> {
  const nowMs = Date.now();
  const owner = await service.store.write("app", (tx) => createOwner(tx, { email: "ann@example.com", passwordHash: null, nowMs }));
  const { token } = await service.store.write("app", (tx) => createSession(tx, owner.id, nowMs));
  return `relay_session=${token}`;
}

async function unfinished(node: Node): Promise<number> {
  const row = await node.service.store.read((tx) =>
    tx.get<{ count: number }>("SELECT count(*) AS count FROM event WHERE state IN ('queued', 'running')"),
  );
  return row?.count ?? -1;
}

async function ordersOf(node: Node, tenant: Tenant): Promise<string[]> {
  const rows = await node.service.store.read((tx) =>
    tx.all<{ order: string }>("SELECT data ->> '$.order' AS \"order\" FROM record WHERE environment_id = ?1 ORDER BY seq", tenant.id),
  );
  return rows.map(({ order }) => order);
}

const namesOf = (prefix: string, count: number) => Array.from({ length: count }, (_, at) => `${prefix}-${at}`);

describe("two nodes", () => {
  test("share the environments, and each runs its own, whichever accepts the requests", async () => {
    for (const tenant of tenants)
      for (const [at, id] of namesOf(`spread-${tenant.app}`, 8).entries()) await post(at % 2 === 0 ? one : other, tenant, "calls", id);
    await until("all have run", async () => (await unfinished(one)) === 0);
    const all = tenants.flatMap(({ app }) => namesOf(`spread-${app}`, 8));
    const called = [...one.caller.requests, ...other.caller.requests].map(
      ({ body }) => (JSON.parse(body) as { data: { event: { id: string } } }).data?.event?.id ?? body,
    );
    expect(called.length).toBe(all.length);
    await until("all are told", () => one.lines.length + other.lines.length >= all.length);
    for (const node of [one, other]) expect(node.lines.length).toBe(tenants.filter((tenant) => holderOf(tenant) === node).length * 8);
  });

  test("report their identity and leases to probes, metrics and owners", async () => {
    for (const { service } of [one, other]) {
      const { node, house, environments } = service.leases.count() as NonNullable<ReturnType<typeof service.leases.count>>;
      const ready = await (await fetch(`${service.url}/readyz`)).json();
      expect(ready).toMatchObject({ ready: true, node, holds: { house, environments } });
      const metrics = await (await fetch(`${service.url}/metrics`)).text();
      expect(sampleOf(metrics, `relay_node_leases{node="${node}",kind="environment"}`)).toBe(environments);
      expect(metrics).toContain(`relay_node_takeovers_total{node="${node}"}`);
      for (const level of ["everything", "environment"])
        expect(metrics).toMatch(new RegExp(`\nrelay_node_lock_wait_seconds_count\\{node="${node}",level="${level}"\\} [1-9]`));
      expect(sampleOf(metrics, `relay_node_write_groups{node="${node}",state="waiting"}`)).toBe(0);
      expect(metrics).toContain(`relay_node_write_groups{node="${node}",state="running"}`);
      expect(sampleOf(metrics, `relay_node_connections{node="${node}"}`)).toBeGreaterThan(1);
      expect(sampleOf(metrics, `relay_node_waiting_reads{node="${node}"}`)).toBe(0);
    }
    const session = await openSession(one);
    const { nodes } = (await (await fetch(`${other.service.url}/api/nodes`, { headers: { cookie: session } })).json()) as { nodes: NodesView };
    const held = nodes.filter(({ live }) => live);
    expect(held.map(({ answers, house }) => [answers, house]).toSorted()).toEqual([
      [false, one.service.leases.holds(ALL_ENVIRONMENTS)],
      [true, other.service.leases.holds(ALL_ENVIRONMENTS)],
    ]);
    const environments = held.flatMap((node) => node.environments).map(({ app, environment }) => `${app} ${environment}`);
    expect(environments.toSorted()).toEqual(tenants.map(({ app, name }) => `${app} ${name}`));
    expect(held.map(({ url }) => url).toSorted()).toEqual([one, other].map(({ service }) => service.url).toSorted());
  });

  test("keep a relay's order across both", async () => {
    const [tenant] = tenants as [Tenant];
    const ids = namesOf("order", 40);
    for (const [at, id] of ids.entries()) await post(at % 3 === 0 ? one : other, tenant, "writes", id);
    await until("all are written", async () => (await ordersOf(other, tenant)).length === ids.length);
    expect(await ordersOf(one, tenant)).toEqual(ids);
  });

  test("run an event that only writes to the database where it arrives, and report it there", async () => {
    const [tenant] = tenants as [Tenant];
    const holder = holderOf(tenant);
    const taker = holder === one ? other : one;
    await post(taker, tenant, "writes", "beside");
    expect([await unfinished(taker), (await ordersOf(holder, tenant)).at(-1)]).toEqual([0, "beside"]);
    expect([taker.lines.length, holder.lines.length]).toEqual([1, 0]);
  });

  test.each([
    ["an event of its relay waits", "UPDATE event SET state = 'queued' WHERE seq = (SELECT max(seq) FROM event)"],
    ["its relay was paused", "UPDATE relay SET state = 'paused' WHERE name = 'writes'"],
    ["its environment was put on hold", "UPDATE environment SET held_at = 1"],
  ])("leave it to the environment's node if %s, also before the notification arrives", async (_what, quietly) => {
    const [tenant] = tenants as [Tenant];
    const holder = holderOf(tenant);
    const taker = holder === one ? other : one;
    await post(taker, tenant, "writes", "before");
    // Writes without a notification, like a node whose notification is delayed.
    const quiet = new SQL(database.url, { max: 1, connection: { application_name: "relay test" } });
    await quiet.unsafe(quietly);
    taker.lines.length = 0;
    await post(taker, tenant, "writes", "behind");
    expect(taker.lines).toEqual([]);
    await quiet.unsafe("UPDATE relay SET state = 'active'");
    await quiet.unsafe("UPDATE environment SET held_at = NULL");
    await quiet.close();
    await until("all have run", async () => (await unfinished(one)) === 0);
    expect((await ordersOf(one, tenant)).slice(-2)).toEqual(["before", "behind"]);
    expect(taker.lines).toEqual([]);
  });

  test("a stopped node releases its leases, and the other node runs new events at once", async () => {
    await one[Symbol.asyncDispose]();
    await until("the other holds all", () => areSpread(other));
    for (const tenant of tenants) await post(other, tenant, "calls", "after-stop");
    await until("all have run", async () => (await unfinished(other)) === 0);
    expect(other.service.leases.count()?.takeovers).toBe(0);
    one = await startNode(database.url);
  });

  test("a stopping node finishes its running event before it releases the lease", async () => {
    const tenant = tenants.find((each) => holderOf(each) === one) as Tenant;
    one.caller.reply = () => "hang";
    await post(other, tenant, "calls", "begun");
    await until("it is called", () => one.caller.hanging() === 1);
    const ended = one[Symbol.asyncDispose]();
    one.caller.letGo();
    await ended;
    await until("it is done", async () => (await unfinished(other)) === 0);
    expect(other.caller.requests).toEqual([]);
    one = await startNode(database.url);
  });

  test("an unfinished event is finished by the node that takes over, and the first node's late result is ignored", async () => {
    const tenant = tenants.find((each) => holderOf(each) === one) as Tenant;
    one.caller.reply = () => "hang";
    await post(one, tenant, "calls", "taken-over");
    await until("it is called", () => one.caller.hanging() === 1);
    await other.service.store.write("app", (tx) =>
      tx.run("UPDATE node_lease SET epoch = epoch + 1, node = NULL, until = 0 WHERE environment_id = ?1", tenant.id),
    );
    one.caller.reply = () => ({ kind: "answered", ok: true, status: 200, body: "again" });
    await until("it has run again", async () => (await unfinished(other)) === 0);
    one.caller.letGo(1, { kind: "answered", ok: false, status: 500, body: "too late" });
    await Bun.sleep(50);
    const [run] = await other.service.store.read((tx) =>
      tx.all<{ state: string; attempts: number; runs: number }>(
        "SELECT state, attempts, runs FROM event WHERE environment_id = ?1 ORDER BY seq DESC LIMIT 1",
        tenant.id,
      ),
    );
    expect(run).toEqual({ state: "done", attempts: 2, runs: 2 });
  });
});
