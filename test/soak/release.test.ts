/**
 * Thousands of events that waited for a hold, and servers that are killed while the events run: one server on SQLite, two nodes on PostgreSQL. Every
 * event runs once, in the order in which all of them arrived, and people have what their last event gave them. The seed is random, and a failure
 * prints it.
 */
import { Database } from "bun:sqlite";
import { expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { systemClock } from "../../src/base/clock.ts";
import { ClusterNode, Ground } from "../crash/cluster.ts";
import { callApi, makeTenants, type Node, saveReceiver, startNode, type Tenant } from "../kit/node.ts";
import { untilNoneLeft } from "../kit/patience.ts";
import { startPostgres } from "../kit/postgres.ts";
import { receiverDefinition } from "../kit/relay-definition.ts";
import { rounds } from "../kit/rounds.ts";
import { type Arriving, storeEvents } from "../kit/stored-events.ts";

const EVENTS = rounds({ slice: 2_000, soak: 2_000, long: 5_000 });
const KILLS = 6;
const RELAYS = { paid: "grant_access", canceled: "revoke_access" } as const;
const seed = Math.floor(Math.random() * 2 ** 31);

function makeRandom(start: number): () => number {
  let state = start | 1;
  return () => {
    state = (state * 48_271) % 2_147_483_647;
    return state / 2_147_483_647;
  };
}

const setHold = async (node: { service: { url: string } }, tenant: Tenant, held: boolean): Promise<void> => {
  const { settings } = (await callApi(node, tenant, "GET", "/settings")) as { settings: { version: number } };
  await callApi(node, tenant, "PUT", "/settings", { version: settings.version, held });
};

/** Stores events that wait for a hold. Returns the people to whom their last event gives access. */
async function stage(node: Node, random: () => number): Promise<{ tenant: Tenant; ids: string[]; holders: string[] }> {
  const [tenant] = (await makeTenants(node, "app_a", ["development"])) as [Tenant];
  await callApi(node, tenant, "PUT", "/access/club", {});
  for (const [name, type] of Object.entries(RELAYS)) {
    const map = { event_id: "id", person_email: "email" };
    await saveReceiver(node, tenant, receiverDefinition({ name, map, actions: [{ type, entitlement: "access:club" }] }));
  }
  await setHold(node, tenant, true);
  const arriving: Arriving[] = Array.from({ length: EVENTS }, () => ({
    relay: random() < 0.6 ? "paid" : "canceled",
    email: `b${Math.floor(random() * 150)}@example.com`,
  }));
  const { store } = node.service;
  const ids = await storeEvents(
    { service: node.service, clock: systemClock, rows: (sql, ...values) => store.read((tx) => tx.all(sql, ...values)) },
    arriving,
  );
  const last = new Map(arriving.map(({ email, relay }) => [email, relay]));
  return { tenant, ids, holders: [...last].flatMap(([email, relay]) => (relay === "paid" ? [email] : [])).sort() };
}

type Ask = <Row>(sql: string) => Promise<Row[]>;

/** Releases the hold, and kills one node after the other until no event waits. */
async function killThrough(nodes: readonly ClusterNode[], tenant: Tenant, ask: Ask, random: () => number): Promise<number> {
  const [first] = nodes as [ClusterNode];
  const countLeft = async () => Number((await ask<{ count: number }>("SELECT count(*) AS count FROM event WHERE state <> 'done'"))[0]?.count);
  await setHold({ service: { url: first.url } }, tenant, false);
  let inTheMiddle = 0;
  for (let kill = 0; kill < KILLS; kill++) {
    await Bun.sleep(random() * 400);
    const victim = nodes[kill % nodes.length] as ClusterNode;
    await victim.kill();
    const left = await countLeft();
    if (left > 0 && left < EVENTS) inTheMiddle += 1;
    await victim.start();
    // A second hold begins and ends in the middle.
    if (kill === 2) {
      await setHold({ service: { url: victim.url } }, tenant, true);
      await setHold({ service: { url: victim.url } }, tenant, false);
    }
  }
  expect(await untilNoneLeft(countLeft)).toBe(0);
  return inTheMiddle;
}

async function expectOrder(ask: Ask, { ids, holders }: { ids: string[]; holders: string[] }): Promise<void> {
  const ran = await ask<{ event: string }>("SELECT event_id AS event FROM audit WHERE action = 'run' ORDER BY seq");
  expect(ran.map(({ event }) => event)).toEqual(ids);
  const held = await ask<{ email: string }>(
    "SELECT DISTINCT email FROM access_grant JOIN person ON person.id = person_id WHERE revoked_at IS NULL ORDER BY email",
  );
  expect(held.map(({ email }) => email).sort()).toEqual(holders);
  expect((await ask<{ through: number | null }>("SELECT released_through AS through FROM environment"))[0]?.through).toBeNull();
}

test(`held events run once and in order on SQLite: ${EVENTS} events, ${KILLS} kills (seed ${seed})`, async () => {
  const random = makeRandom(seed);
  const dataDir = mkdtempSync(join(tmpdir(), "relay-release-"));
  try {
    const seeded = await startNode("", dataDir);
    const staged = await stage(seeded, random);
    await seeded.service[Symbol.asyncDispose]();
    await using node = new ClusterNode({ databaseUrl: "", aheadMs: 0, sinkUrl: "", dataDir });
    await node.start();
    const ask: Ask = async <Row>(sql: string) => {
      using database = new Database(join(dataDir, "relay.db"), { readonly: true });
      return database.query(sql).all() as Row[];
    };
    expect(await killThrough([node], staged.tenant, ask, random)).toBeGreaterThan(0);
    await expectOrder(ask, staged);
  } finally {
    rmSync(dataDir, { recursive: true, force: true });
  }
});

test(`held events run once and in order on PostgreSQL with two nodes: ${EVENTS} events, ${KILLS} kills (seed ${seed})`, async () => {
  const random = makeRandom(seed);
  await using server = await startPostgres();
  const seeded = await startNode(server.url);
  const staged = await stage(seeded, random);
  await seeded[Symbol.asyncDispose]();
  const place = { databaseUrl: server.url, aheadMs: 0, sinkUrl: "" };
  await using first = new ClusterNode(place);
  await using second = new ClusterNode(place);
  await first.start();
  await second.start();
  await using ground = new Ground(server.url);
  const ask: Ask = (sql) => ground.rows(sql);
  expect(await killThrough([first, second], staged.tenant, ask, random)).toBeGreaterThan(0);
  await expectOrder(ask, staged);
});
