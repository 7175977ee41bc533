/** The round trips that a write costs on PostgreSQL. A database at a distance answers each of them later, and other writers wait meanwhile. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { SQL } from "bun";
import { systemClock } from "../../src/base/clock.ts";
import { Limiter } from "../../src/base/limiter.ts";
import { SharedPlaces } from "../../src/platform/account/shared-limit.ts";
import { lookAtLeases } from "../../src/store/lease/node-lease.ts";
import { callApi, makeTenants, type Node, post, saveReceiver, startNode, type Tenant } from "../kit/node.ts";
import { freshDatabase } from "../kit/postgres.ts";
import { receiverDefinition } from "../kit/relay-definition.ts";
import { countRoundTrips } from "../kit/round-trip.ts";

/** The number of writes of which the cheapest is the result. The first ones read what later ones remember, and work in the background adds to many. */
const TRIES = 13;

/** Names another node as the last writer of an environment. */
const WROTE = "UPDATE writer_scope SET node = 'n:other' WHERE scope = $1";

const ended = new AsyncDisposableStack();
let url: string;
let node: Node;
let tenant: Tenant;

beforeAll(async () => {
  const database = ended.use(await freshDatabase());
  url = database.url;
  node = ended.use(await startNode(url));
  [tenant] = (await makeTenants(node, "app_a", ["development"])) as [Tenant];
  const fields = { order: { type: "text" } };
  await callApi(node, tenant, "POST", "/collections", { name: "orders", kind: "shared", fields });
});

afterAll(() => ended.disposeAsync());

async function countLeast(work: (at: number) => Promise<unknown>): Promise<number> {
  const counts: number[] = [];
  for (let at = 0; at < TRIES; at++) counts.push(await countRoundTrips(() => work(at)));
  return Math.min(...counts);
}

test.each([
  [
    "writes a record",
    2,
    { map: { event_id: "id" }, actions: [{ type: "write_record", collection: "orders", data: { order: "{{mapped.event_id}}" } }] },
  ],
  ["waits for its paused relay", 1, { map: { event_id: "id" }, actions: [{ type: "call_url", url: "https://example.com/notice" }] }],
  ["grants credits to a known person", 2, { map: { event_id: "id", person_email: "email" }, actions: [{ type: "grant_credits", amount: 3 }] }],
] as const)("an event that %s costs %i round trips at most while no other node writes its environment", async (what, most, { map, actions }) => {
  const name = what.replace(/\W+/g, "-");
  await saveReceiver(node, tenant, receiverDefinition({ name, map, actions: [...actions] }));
  if (what === "waits for its paused relay") await callApi(node, tenant, "POST", `/relays/${name}/pause`, {});
  expect(await countLeast((at) => post(node, tenant, name, `evt-${name}-${at}`))).toBeLessThanOrEqual(most);
});

test("an event that writes a record costs two round trips at most while another node writes its environment, too", async () => {
  const actions = [{ type: "write_record", collection: "orders", data: { order: "{{mapped.event_id}}" } }];
  await saveReceiver(node, tenant, receiverDefinition({ name: "shared", map: { event_id: "id" }, actions }));
  await using other = new SQL(url, { max: 1 });
  const counts: number[] = [];
  for (let at = 0; at < TRIES; at++) {
    await other.unsafe(WROTE, [tenant.id]);
    counts.push(await countRoundTrips(() => post(node, tenant, "shared", `evt-shared-${at}`)));
  }
  expect(Math.min(...counts)).toBeLessThanOrEqual(2);
});

test("a node's turn to renew its leases costs three round trips, however many leases it has", async () => {
  await makeTenants(node, "app_b", ["development", "production"]);
  const { store } = node.service;
  let held = new Map<number, number>();
  const turn = async () => {
    const looking = { id: "nod_other", url: null, baseUrl: "", clockAt: 0, known: true, held, leaving: new Map() };
    held = (await store.write("app", (tx) => lookAtLeases(tx, looking))).own;
  };
  expect(await countLeast(turn)).toBeLessThanOrEqual(3);
});

test("a draw of places from several limits costs three round trips", async () => {
  const { store } = node.service;
  const places = new SharedPlaces({
    store,
    clock: systemClock,
    digest: (text) => new Bun.CryptoHasher("sha256").update(text).digest(),
    nodes: { live: 2 },
  });
  const limiters = ["one", "two", "three"].map((kind) => new Limiter(systemClock, 100, 60_000, { kind, places, drawing: "each" }));
  const draw = () => places.draw(limiters.map((limiter) => ({ limiter, name: "app", amount: 1 })));
  expect(await countLeast(draw)).toBeLessThanOrEqual(3);
});
