/** Tests a node's readiness if its database does not answer, or has no space for new rows. */
import { afterEach, beforeEach, expect, test } from "bun:test";
import { SQL } from "bun";
import { systemClock } from "../../src/base/clock.ts";
import { createLog } from "../../src/base/log.ts";
import { makeReadyCheck } from "../../src/boot/readiness.ts";
import { until } from "../kit/event-flow.ts";
import { makeTenants, type Node, post, saveReceiver, startNode, type Tenant } from "../kit/node.ts";
import { type FreshDatabase, freshDatabase } from "../kit/postgres.ts";
import { openPostgresProxy } from "../kit/postgres-proxy.ts";
import { receiverDefinition } from "../kit/relay-definition.ts";

/** Exceeds the second for which the readiness response is cached. */
const KEPT_MS = 1_100;

let database: FreshDatabase;
let proxy: Awaited<ReturnType<typeof openPostgresProxy>>;
let node: Node;

beforeEach(async () => {
  database = await freshDatabase();
  proxy = await openPostgresProxy(database.url);
  node = await startNode(proxy.url);
});
afterEach(async () => {
  await node[Symbol.asyncDispose]();
  proxy[Symbol.dispose]();
  await database[Symbol.asyncDispose]();
});

async function ready(): Promise<{ status: number; problem?: string }> {
  const answer = await fetch(`${node.service.url}/readyz`);
  const { problem } = (await answer.json()) as { problem?: string };
  return { status: answer.status, ...(problem === undefined ? {} : { problem }) };
}

test("a silent database makes the node unready until it answers again", async () => {
  expect(await ready()).toEqual({ status: 200 });
  await Bun.sleep(KEPT_MS);
  proxy.cut();
  expect(await ready()).toEqual({ status: 503, problem: expect.stringContaining("given no answer for three seconds") });
  proxy.reconnect();
  await until("it is ready", async () => (await ready()).status === 200, 50);
});

test("a silent database gets one query, however often readiness is requested", async () => {
  const { store, leases, runner } = node.service;
  let asked = 0;
  const write = (): Promise<never> => {
    asked += 1;
    return Promise.withResolvers<never>().promise;
  };
  const silent = new Proxy(store, { get: (target, name) => (name === "write" ? write : Reflect.get(target, name)) });
  const log = createLog({ clock: systemClock, format: "json", sink: () => undefined });
  const check = makeReadyCheck({ store: silent, leases, runner, clock: systemClock, log });
  const first = await check.ask();
  expect(first).toEqual({ ready: false, problem: expect.stringContaining("given no answer for three seconds") });
  await Bun.sleep(KEPT_MS);
  for (let turn = 0; turn < 3; turn++) expect(await check.ask()).toBe(first);
  expect(asked).toBe(1);
});

test("a full database makes the node unready with the reason, although small writes succeed, until there is space", async () => {
  const [tenant] = (await makeTenants(node, "app_a", ["development"])) as [Tenant];
  await saveReceiver(node, tenant, receiverDefinition({ name: "orders" }));
  await using admin = new SQL(database.url, { max: 1 });
  await admin.unsafe(
    `CREATE FUNCTION take_nothing() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
       RAISE EXCEPTION 'could not extend file: No space left on device' USING ERRCODE = '53100'; END $$`,
  );
  await admin.unsafe("CREATE TRIGGER take_nothing BEFORE INSERT ON event FOR EACH ROW EXECUTE FUNCTION take_nothing()");
  expect(await ready()).toEqual({ status: 200 });
  await expect(post(node, tenant, "orders", "first")).rejects.toThrow("503");
  const full = { status: 503, problem: "The database's disk is full: free space there, and writes continue automatically." };
  for (let turn = 0; turn < 3; turn++) {
    await Bun.sleep(KEPT_MS);
    expect(await ready()).toEqual(full);
  }
  await admin.unsafe("DROP TRIGGER take_nothing ON event");
  await until("it is ready", async () => (await ready()).status === 200, 50);
  await post(node, tenant, "orders", "first");
  const told = node.logged.map((line) => JSON.parse(line).message).filter((message) => /the database (cannot|is available)/.test(message));
  expect(told).toEqual(["the database cannot be used, so nothing is recorded", "the database is available again, and writes continue"]);
});
