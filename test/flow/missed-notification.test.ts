/** Tests two nodes on one PostgreSQL where one misses the other's notifications, or cannot know the result of a commit. */
import { expect, test } from "bun:test";
import { SQL } from "bun";
import { OK } from "../kit/fake-caller.ts";
import { callApi, makeTenants, type Node, post, saveReceiver, startNode, type Tenant } from "../kit/node.ts";
import { poll } from "../kit/patience.ts";
import { freshDatabase } from "../kit/postgres.ts";
import { openPostgresProxy } from "../kit/postgres-proxy.ts";
import { receiverDefinition } from "../kit/relay-definition.ts";

const map = { event_id: "id" };
const write = (step: string) => ({ type: "write_record", collection: "orders", data: { order: "{{mapped.event_id}}", step } });
const call = (path: string) => ({ type: "call_url", url: `https://example.com/${path}` });

async function until(isSo: () => boolean | Promise<boolean>): Promise<void> {
  expect(await poll(isSo, Boolean)).toBe(true);
}

async function makeShop(node: Node): Promise<Tenant> {
  const [tenant] = await makeTenants(node, "shop", ["development"]);
  if (tenant === undefined) throw new Error("There is no environment.");
  await callApi(node, tenant, "POST", "/collections", {
    name: "orders",
    kind: "shared",
    fields: { order: { type: "text" }, step: { type: "text" } },
  });
  await saveReceiver(node, tenant, receiverDefinition({ name: "writes", map, actions: [write("first")] }));
  await saveReceiver(node, tenant, receiverDefinition({ name: "sends", map, actions: [call("first")] }));
  return tenant;
}

interface EventRow {
  relay: string;
  state: string;
  reason: string | null;
}

const listEvents = async ({ service }: Node): Promise<string[]> => {
  const rows = await service.store.read((tx) =>
    tx.all<EventRow>("SELECT relay_name.name AS relay, state, reason FROM event JOIN relay_name ON relay_name.key = event.name_key ORDER BY seq"),
  );
  return rows.map(({ relay, state, reason }) => [relay, state, ...(reason === null ? [] : [reason])].join(" "));
};

const listSteps = async ({ service }: Node): Promise<string[]> => {
  const rows = await service.store.read((tx) => tx.all<{ data: string }>("SELECT data FROM record ORDER BY seq"));
  return rows.map(({ data }) => (JSON.parse(data) as { step: string }).step);
};

/** Starts two nodes. `deaf` runs the environment behind its own proxy. */
async function startTwo() {
  const stack = new AsyncDisposableStack();
  const database = stack.use(await freshDatabase());
  const places: { node: Node; proxy: Awaited<ReturnType<typeof openPostgresProxy>> }[] = [];
  for (let count = 0; count < 2; count++) {
    const proxy = stack.use(await openPostgresProxy(database.url));
    places.push({ proxy, node: stack.use(await startNode(proxy.url)) });
  }
  const [one, two] = places;
  if (one === undefined || two === undefined) throw new Error("There are no two nodes.");
  const tenant = await makeShop(one.node);
  const holds = ({ node: { service } }: typeof one, id: number) => service.leases.holds(id);
  // One node must hold the environment's lease, and the other the lease for global jobs.
  await until(() => [one, two].filter((place) => holds(place, tenant.id)).length === 1 && [one, two].filter((place) => holds(place, 0)).length === 1);
  const [deaf, other] = holds(one, tenant.id) ? [one, two] : [two, one];
  return { stack, tenant, deaf, other };
}

const edit = async (node: Node, tenant: Tenant, name: string, action: unknown): Promise<void> => {
  const { relay } = (await callApi(node, tenant, "GET", `/relays/${name}`)) as { relay: { definition: object; version: number } };
  await callApi(node, tenant, "PUT", `/relays/${name}`, { definition: { ...relay.definition, actions: [action] }, version: relay.version });
};

/** Reads the states directly from the database. */
async function listStates(url: string): Promise<string[]> {
  await using sql = new SQL(url, { max: 1 });
  const rows = (await sql.unsafe("SELECT state FROM event ORDER BY seq")) as { state: string }[];
  return rows.map(({ state }) => state);
}

const tryPost = (node: Node, tenant: Tenant, id: string, relay = "sends"): Promise<boolean> =>
  post(node, tenant, relay, id).then(
    () => true,
    () => false,
  );

const paths = ({ caller }: Node): string[] => caller.requests.map(({ url }) => new URL(url).pathname.slice(1));

test("a node that misses notifications still follows pauses, changes and deletions by another node", async () => {
  const { stack, tenant, deaf, other } = await startTwo();
  await using _ = stack;
  const names = ["writes", "sends"];
  const { node, proxy } = deaf;
  const postBoth = async (id: string): Promise<void> => {
    for (const name of names) await post(node, tenant, name, id);
    // Gives a node enough time to run the event by mistake.
    await Bun.sleep(500);
  };
  await postBoth("before");
  await until(async () => (await listEvents(other.node)).every((event) => event.endsWith(" done")));

  proxy.cut("relay listener");
  for (const name of names) await callApi(other.node, tenant, "POST", `/relays/${name}/pause`);
  await postBoth("paused");
  expect((await listEvents(other.node)).slice(-2)).toEqual(["writes queued", "sends queued"]);

  await edit(other.node, tenant, "writes", write("second"));
  await edit(other.node, tenant, "sends", call("second"));
  for (const name of names) await callApi(other.node, tenant, "POST", `/relays/${name}/resume`);
  await postBoth("changed");
  await until(async () => (await listEvents(other.node)).every((event) => event.endsWith(" done")));
  expect(await listSteps(other.node)).toEqual(["first", "second", "second"]);
  expect(paths(node)).toEqual(["first", "second", "second"]);

  for (const name of names) await callApi(other.node, tenant, "DELETE", `/relays/${name}`);
  await Promise.all(names.map((name) => post(node, tenant, name, "deleted").catch(() => undefined)));
  await until(async () => (await listEvents(other.node)).every((event) => !event.endsWith(" queued")));
  expect((await listEvents(other.node)).filter((event) => event.endsWith(" done")).length).toBe(6);
  expect(await listSteps(other.node)).toEqual(["first", "second", "second"]);
  expect(paths(node)).toEqual(["first", "second", "second"]);
});

/** Starts one node behind a proxy that loses a commit. */
async function startShop() {
  const stack = new AsyncDisposableStack();
  const database = stack.use(await freshDatabase());
  const proxy = stack.use(await openPostgresProxy(database.url));
  const node = stack.use(await startNode(proxy.url));
  const tenant = await makeShop(node);
  return { database, proxy, node, tenant, [Symbol.asyncDispose]: () => stack.disposeAsync() };
}

test("an event whose start was committed without an answer runs again, before its relay's next events", async () => {
  await using shop = await startShop();
  const { database, proxy, node, tenant } = shop;
  await until(() => node.service.leases.holds(tenant.id));
  await post(node, tenant, "sends", "before");
  await until(() => paths(node).length === 1);
  let isLost = false;
  proxy.loseCommit = (said) => {
    if (isLost || !said.includes("running")) return null;
    isLost = true;
    proxy.isClosed = true;
    // Prevents the node from asking for the result.
    proxy.drop("relay flusher");
    return "unheard";
  };
  await post(node, tenant, "sends", "taken");
  await until(() => isLost);
  expect(await listStates(database.url)).toEqual(["done", "running"]);
  // Exceeds the time for which the node asks.
  await Bun.sleep(12_000);
  proxy.isClosed = false;
  await until(async () => (await tryPost(node, tenant, "behind")) === true);
  await until(async () => (await listStates(database.url)).every((state) => state === "done"));
  expect(node.caller.ids.length).toBe(3);
  expect(new Set(node.caller.ids).size).toBe(3);
});

test("a save that was committed without an answer is known to its node a moment later", async () => {
  await using shop = await startShop();
  const { proxy, node, tenant } = shop;
  proxy.loseCommit = (said) => {
    if (!said.includes("later-relay")) return null;
    proxy.loseCommit = () => null;
    proxy.isClosed = true;
    // Prevents the node from asking for the result.
    proxy.drop("relay flusher");
    return "unheard";
  };
  const saved = saveReceiver(node, tenant, receiverDefinition({ name: "later-relay", map, actions: [write("later")] }));
  await expect(saved).rejects.toThrow("503");
  proxy.isClosed = false;
  await until(async () => (await tryPost(node, tenant, "one", "later-relay")) === true);
});

test("an event that was blocked by a lease considered lost continues if the node held the lease all the time", async () => {
  await using database = await freshDatabase();
  await using node = await startNode(database.url);
  const tenant = await makeShop(node);
  await saveReceiver(node, tenant, receiverDefinition({ name: "twice", map, actions: [call("one"), call("two")] }));
  const { leases } = node.service;
  await until(() => leases.holds(tenant.id));
  node.caller.reply = () => "hang";
  await post(node, tenant, "twice", "away");
  await until(() => node.caller.hanging() === 1);
  const holds = leases.holds.bind(leases);
  leases.holds = () => false;
  node.caller.reply = () => OK;
  node.caller.letGo();
  const settled = "SELECT 1 FROM run WHERE finished_at IS NULL AND results LIKE '%done%'";
  await until(async () => (await node.service.store.read((tx) => tx.get(settled))) !== null);
  await Bun.sleep(300);
  expect(paths(node)).toEqual(["one"]);
  leases.holds = holds;
  await until(async () => (await listEvents(node)).every((event) => event.endsWith(" done")));
  // The service may repeat the first call with the same id, so only the second call is counted.
  expect(paths(node).filter((path) => path === "two").length).toBe(1);
});
