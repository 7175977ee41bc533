/** Tests a receiver with followers on two nodes of one PostgreSQL: equal and different requests at both, and changes at one while the other receives. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { DEFAULT_LIMITS } from "../../src/base/limit.ts";
import { callApi, makeTenants, type Node, saveReceiver, startNode, type Tenant } from "../kit/node.ts";
import { poll } from "../kit/patience.ts";
import { freshDatabase } from "../kit/postgres.ts";
import { receiverDefinition, signedCall, TOKEN_RECIPE, tokenCall } from "../kit/relay-definition.ts";

const database = await freshDatabase();
const nodes: Node[] = [];
let tenant: Tenant;

interface Answer {
  status: number;
  body: { eventId?: string; duplicate?: true; events?: { relay: string; eventId: string }[] };
}

beforeAll(async () => {
  // The requests of all tests arrive within a minute of the real clock.
  const limits = { ...DEFAULT_LIMITS, verifiedEventsPerMinute: 10_000 };
  for (let nth = 0; nth < 2; nth++) nodes.push(await startNode(database.url, undefined, { limits }));
  [tenant] = (await makeTenants(node(0), "shop", ["development"])) as [Tenant];
  const fields = { order: { type: "text" }, amount: { type: "text" } };
  await callApi(node(1), tenant, "POST", "/collections", { name: "orders", kind: "shared", fields });
});
afterAll(async () => {
  for (const one of nodes) await one[Symbol.asyncDispose]();
  await database[Symbol.asyncDispose]();
});

function node(nth: number): Node {
  const found = nodes[nth % nodes.length];
  if (found === undefined) throw new Error("The node did not start.");
  return found;
}

const follower = (name: string, receiver: string) => receiverDefinition({ name, verify: { scheme: "receiver", receiver } });

/** Saves a receiver with two followers, each at the other node, and waits until both nodes know them. */
async function begin(source: string, verify?: Record<string, unknown>): Promise<string[]> {
  const names = [source, `${source}-a`, `${source}-b`];
  await saveReceiver(node(0), tenant, receiverDefinition({ name: source, ...(verify === undefined ? {} : { verify }) }));
  for (const [nth, name] of names.slice(1).entries()) await callApi(node(nth), tenant, "POST", "/relays", { definition: follower(name, source) });
  for (const { service } of nodes)
    await poll(
      async () => (await service.relays.current()).relays.filter(({ name }) => names.includes(name)).length,
      (known) => known === names.length,
    );
  return names;
}

/** Waits until the second node, which learns of a change shortly after it, knows the relay so. */
async function untilKnown(name: string, isKnown: (relay: { version: number } | undefined) => boolean): Promise<void> {
  await poll(async () => (await node(1).service.relays.current()).relays.find((one) => one.name === name), isKnown);
}

async function send(nth: number, source: string, delivery: ReturnType<typeof signedCall>): Promise<Answer> {
  const response = await fetch(`${node(nth).service.url}/hooks/shop/${source}`, { method: "POST", ...delivery });
  return { status: response.status, body: (await response.json()) as Answer["body"] };
}
const call = (id: string) => signedCall({ id, type: "paid", amount: 1 });

/** Lists the relays that have an event of each request. */
async function listStored(): Promise<Map<string, string[]>> {
  const rows = await node(0).service.store.read((tx) =>
    tx.all<{ relay: string; payload: string }>(
      "SELECT (SELECT name FROM relay_name WHERE key = event.name_key) AS relay, payload FROM event ORDER BY seq",
    ),
  );
  const stored = new Map<string, string[]>();
  for (const { relay, payload } of rows) {
    const id = (JSON.parse(payload) as { event: { id: string } }).event.id;
    stored.set(id, [...(stored.get(id) ?? []), relay].sort());
  }
  return stored;
}

async function untilDone(): Promise<void> {
  const open = "SELECT count(*) AS count FROM event WHERE state IN ('queued', 'running')";
  await poll(
    () => node(0).service.store.read((tx) => tx.get<{ count: number }>(open)),
    (found) => found?.count === 0,
  );
}

const SCHEMES: [what: string, source: string, verify: Record<string, unknown> | undefined, deliver: (id: string) => ReturnType<typeof signedCall>][] =
  [
    ["whose signature can be used again", "signed", undefined, call],
    ["whose signature counts once", "once", TOKEN_RECIPE, (id) => tokenCall(id, { id, type: "paid" }, Math.floor(Date.now() / 1000))],
  ];
for (const [what, source, verify, deliver] of SCHEMES)
  test(`each request ${what} has one event of each relay, whichever nodes receive it and how often`, async () => {
    const names = await begin(source, verify);
    const deliveries = Array.from({ length: 10 }, (_, nth) => deliver(`${source}-${nth}`));
    const answers = await Promise.all(deliveries.map((delivery) => Promise.all([0, 1, 0, 1].map((nth) => send(nth, source, delivery)))));
    for (const ofRequest of answers) {
      expect(ofRequest.map(({ status }) => status)).toEqual([200, 200, 200, 200]);
      const [first] = ofRequest.map(({ body }) => body.events);
      expect(first?.map(({ relay }) => relay)).toEqual(names);
      expect(ofRequest.map(({ body }) => body.events)).toEqual([first, first, first, first]);
      expect(ofRequest.filter(({ body }) => body.duplicate === undefined)).toHaveLength(1);
    }
    await untilDone();
    const stored = await listStored();
    expect(deliveries.map((_, nth) => stored.get(`${source}-${nth}`))).toEqual(deliveries.map(() => names));
  });

test("what a node acknowledges is stored whole while the other node saves, deletes and adds relays", async () => {
  const source = "moving";
  const names = await begin(source);
  const acknowledged = new Map<string, Answer>();
  let number = 0;
  /** Sends requests to the second node during the change at the first one, and after it. */
  const during = async (change: () => Promise<unknown>): Promise<void> => {
    const sender = async (): Promise<void> => {
      for (let left = 3; left > 0; left--) {
        const id = `${source}-${number++}`;
        const answer = await send(1, source, call(id));
        if (answer.status === 200) acknowledged.set(id, answer);
        else expect([404, 503]).toContain(answer.status);
      }
    };
    await Promise.all([change(), sender(), sender()]);
    await sender();
  };
  const remove = (name: string) => () => callApi(node(0), tenant, "DELETE", `/relays/${name}`);
  for (const when of [{ event_type: "other" }, { event_type: "paid" }]) {
    const { relay } = (await callApi(node(0), tenant, "GET", `/relays/${source}`)) as { relay: { version: number } };
    const definition = receiverDefinition({ name: source, when });
    await during(() => callApi(node(0), tenant, "PUT", `/relays/${source}`, { definition, version: relay.version }));
    await untilKnown(source, ({ version } = { version: 0 }) => version > relay.version);
  }
  await during(() => callApi(node(0), tenant, "POST", "/relays", { definition: follower(`${source}-c`, source) }));
  for (const name of [`${source}-c`, ...names.slice(1), source]) await during(remove(name));
  await untilKnown(source, (known) => known === undefined);
  expect((await send(1, source, call("too-late"))).status).toBe(404);
  const stored = await listStored();
  const relaysOf = ({ body }: Answer): string[] => (body.events?.map(({ relay }) => relay) ?? (body.eventId === undefined ? [] : [source])).sort();
  expect(acknowledged.size).toBeGreaterThan(12);
  for (const [id, answer] of acknowledged) expect([id, stored.get(id) ?? []]).toEqual([id, relaysOf(answer)]);
});
