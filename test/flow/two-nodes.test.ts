/** Tests two nodes on one PostgreSQL behind a load balancer. Work that begins at one node continues at the other, and both show the same state. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { systemClock } from "../../src/base/clock.ts";
import { readDatabaseUrl } from "../../src/base/database-url.ts";
import { DEFAULT_LIMITS } from "../../src/base/limit.ts";
import { followChanges } from "../kit/change-stream.ts";
import { CALL } from "../kit/event-flow.ts";
import { BROKEN, FakeCaller, OK } from "../kit/fake-caller.ts";
import { poll } from "../kit/patience.ts";
import { freshDatabase } from "../kit/postgres.ts";
import { HOOK_SECRET, receiverDefinition, signedCall } from "../kit/relay-definition.ts";
import { type BareService, startBareService } from "../kit/running-service.ts";

const BASE = "http://relay.example.test";
const E = "/api/apps/shop/development";
const password = "a long enough password";

const database = await freshDatabase();
const nodes: BareService[] = [];
/** Receives the outbound requests of both nodes. */
const caller = new FakeCaller();
let cookie = "";
let key = "";

afterAll(async () => {
  for (const node of nodes) await node[Symbol.asyncDispose]();
  await database[Symbol.asyncDispose]();
});

async function startNode(): Promise<void> {
  const url = readDatabaseUrl(database.url);
  if (typeof url === "string") throw new Error(url);
  const limits = { ...DEFAULT_LIMITS, unverifiedCallsPerMinute: 41 };
  const config = { database: url, baseUrl: BASE, clock: systemClock, masterKey: "ab".repeat(32), limits, trustedProxies: ["127.0.0.1"] };
  nodes.push(await startBareService({ config, ports: { caller } }));
}

interface Asked {
  method?: string;
  body?: unknown;
  /** Authenticates the request instead of the owner's session. */
  key?: string;
  cookie?: string;
}

/** Sends a request to the node with this index. */
async function call(node: number, path: string, { method = "GET", body, key, cookie: own = cookie }: Asked = {}) {
  const headers = new Headers(key === undefined ? { cookie: own, origin: BASE } : { authorization: `Bearer ${key}` });
  if (body !== undefined) headers.set("content-type", "application/json");
  const sent = body === undefined ? {} : { body: JSON.stringify(body) };
  const response = await fetch(`${nodes[node]?.service.url}${path}`, { method, headers, ...sent });
  const text = await response.text();
  // biome-ignore lint/suspicious/noExplicitAny: the test reads answers of any shape
  return { status: response.status, headers: response.headers, json: (text === "" ? null : JSON.parse(text)) as any };
}

const post = (node: number, path: string, body: unknown = {}, more: Asked = {}) => call(node, path, { method: "POST", body, ...more });
const hook = async (node: number, event: object, signature?: string, { name = "orders", source = "203.0.113.7" } = {}) => {
  const { headers, body } = signedCall(event);
  const sent = { ...headers, ...(signature === undefined ? {} : { "x-signature": signature }), "x-forwarded-for": source };
  const response = await fetch(`${nodes[node]?.service.url}/hooks/shop/${name}`, { method: "POST", headers: sent, body });
  // biome-ignore lint/suspicious/noExplicitAny: the test reads answers of any shape
  return { status: response.status, json: (await response.json()) as any };
};
const sessionOf = (headers: Headers): string =>
  headers
    .getSetCookie()
    .map((one) => one.split(";")[0])
    .join("; ");

beforeAll(async () => {
  await startNode();
  await startNode();
  // Each node prints a link, and both links work, because an operator may read either log.
  const [other = "", token = ""] = await Promise.all(nodes.map(async ({ service }) => (await service.makeSigninLink())?.split("#")[1]));
  for (const live of [token, other]) expect((await post(1, "/api/link", { kind: "setup", token: live })).json).toEqual({ live: true });
  const made = await post(1, "/api/setup", { token, email: "ann@example.com", password });
  expect(made.status).toBe(201);
  cookie = sessionOf(made.headers);
  for (const node of [0, 1])
    for (const ended of [token, other])
      expect((await post(node, "/api/setup", { token: ended, email: "eve@example.com", password })).status).toBe(401);
  expect((await post(0, "/api/apps", { id: "shop", name: "Shop" })).status).toBe(201);
  const minted = await post(1, `${E}/keys`, { kind: "secret", name: "test" });
  key = minted.json.token;
  expect(
    (await post(0, `${E}/collections`, { name: "orders", kind: "shared", fields: { order: { type: "text" }, amount: { type: "text" } } })).status,
  ).toBe(201);
  expect((await post(1, `${E}/relays`, { definition: receiverDefinition({}), secret: HOOK_SECRET })).status).toBe(201);
});

test("a session is valid on every node, and ends on all", async () => {
  const signed = await post(0, "/api/session", { email: "ann@example.com", password });
  const own = sessionOf(signed.headers);
  for (const node of [0, 1]) expect((await call(node, "/api/session", { cookie: own })).json.owner.email).toBe("ann@example.com");
  expect((await call(1, "/api/session", { method: "DELETE", cookie: own })).status).toBe(204);
  for (const node of [0, 1]) expect((await call(node, "/api/session", { cookie: own })).json.owner).toBeNull();
});

test("an event at either node runs once, and every node shows it", async () => {
  // The relay was saved at the other node.
  const first = await poll(
    () => hook(0, { id: "evt_0", amount: "1" }),
    ({ status }) => status === 200,
  );
  expect(first.status).toBe(200);
  const again = await hook(1, { id: "evt_0", amount: "1" });
  expect(again.json).toMatchObject({ duplicate: true, eventId: first.json.eventId });
  const sent = await Promise.all(Array.from({ length: 12 }, (_, at) => hook(at % 2, { id: `evt_${at + 1}`, amount: "1" })));
  expect(sent.map(({ status }) => status)).toEqual(sent.map(() => 200));
  for (const node of [0, 1]) {
    const shown = await poll(
      () => call(node, `${E}/events?limit=50`, { key }),
      ({ json }) => json.items.every(({ state }: { state: string }) => state === "done"),
    );
    expect(shown.json.items.map(({ state }: { state: string }) => state)).toEqual(Array(13).fill("done"));
    expect((await call(node, `${E}/collections/orders/records?limit=50`, { key })).json.items).toHaveLength(13);
  }
});

test("rejected requests of either node are listed on every node", async () => {
  for (const node of [0, 1, 0]) expect((await hook(node, { id: "evt_bad" }, "00".repeat(32))).status).toBe(401);
  const refused = (node: number) => async () => {
    const { json } = await call(node, `${E}/calls?outcome=refused`, { key });
    return json.items.reduce((sum: number, { count }: { count: number }) => sum + count, 0);
  };
  for (const node of [0, 1]) expect(await poll(refused(node), (count) => count === 3)).toBe(3);
});

describe("a stream of changes at one node includes the other's:", () => {
  const CHANGES: [kind: string, act: () => Promise<unknown>][] = [
    ["event", () => hook(1, { id: `evt_${crypto.randomUUID()}`, amount: "1" })],
    ["call", () => hook(1, { id: "evt_bad" }, "11".repeat(32))],
    ["record", () => post(1, `${E}/collections/orders/records`, { data: { order: "by hand" } }, { key })],
    ["relay", () => post(1, `${E}/relays/orders/pause`)],
    ["relay", () => post(1, `${E}/relays/orders/resume`)],
    ["audit", () => post(1, `${E}/keys`, { kind: "secret", name: "another" })],
  ];
  test.each(CHANGES)("%s", async (kind, act) => {
    await using stream = await followChanges(`${nodes[0]?.service.url}${E}/stream`, { authorization: `Bearer ${key}` });
    expect(stream.status).toBe(200);
    await act();
    await stream.until(kind);
  });
});

test("a relay that is paused at one node waits at the other, and continues after a resume there", async () => {
  const waits = async (isPaused: boolean) => {
    for (const node of [0, 1])
      await poll(
        async () => nodes[node]?.service.relays.cached?.relays[0]?.waitsFor ?? null,
        (found) => (found === "paused") === isPaused,
      );
  };
  expect((await post(0, `${E}/relays/orders/pause`)).status).toBe(200);
  await waits(true);
  const { json } = await hook(1, { id: "evt_waits", amount: "1" });
  expect((await call(0, `${E}/events/${json.eventId}`, { key })).json.event.state).toBe("queued");
  expect((await post(1, `${E}/relays/orders/resume`)).status).toBe(200);
  const shown = await poll(
    () => call(0, `${E}/events/${json.eventId}`, { key }),
    (one) => one.json.event.state === "done",
  );
  expect(shown.json.event.state).toBe("done");
});

test("a bulk replay from one node runs once, and the other reports it", async () => {
  const nowhere = [{ type: "write_record", collection: "nowhere", data: { order: "x" } }];
  expect((await post(0, `${E}/relays`, { definition: receiverDefinition({ name: "broken", actions: nowhere }), secret: HOOK_SECRET })).status).toBe(
    201,
  );
  await poll(
    () => hook(1, { id: "dead_0", amount: "1" }, undefined, { name: "broken" }),
    ({ status }) => status === 200,
  );
  for (const at of [1, 2, 3])
    expect((await hook(at % 2, { id: `dead_${at}`, amount: "1" }, undefined, { name: "broken" })).json).toEqual({
      received: true,
      eventId: expect.any(String),
    });
  const fields = { order: { type: "text" } };
  const planned = await poll(
    () => post(0, `${E}/bulk-replays/plan`, { state: "dead" }, { key }),
    ({ json }) => json.plan?.planned === 4,
  );
  expect([planned.status, planned.json.plan?.planned]).toEqual([200, 4]);
  expect((await post(1, `${E}/collections`, { name: "nowhere", kind: "shared", fields })).status).toBe(201);
  const begun = await post(1, `${E}/bulk-replays`, { state: "dead", perSecond: 50 }, { key });
  expect(begun.status).toBe(202);
  const shown = await poll(
    () => call(0, `${E}/bulk-replays/${begun.json.replay.id}`, { key }),
    ({ json }) => json.replay.state !== "running",
  );
  expect(shown.json.replay).toMatchObject({ state: "done", replayed: 4 });
  const records = await poll(
    () => call(0, `${E}/collections/nowhere/records`, { key }),
    ({ json }) => json.items.length === 4,
  );
  expect(records.json.items).toHaveLength(4);
});

test("waiting events can be retried from either node, one or all of a relay, once each", async () => {
  caller.reply = () => BROKEN;
  const definition = receiverDefinition({ name: "caller", actions: [CALL] });
  expect((await post(0, `${E}/relays`, { definition, secret: HOOK_SECRET })).status).toBe(201);
  const ids: string[] = [];
  for (const at of [0, 1, 2, 3]) {
    const { json } = await poll(
      () => hook(at % 2, { id: `waits_${at}`, amount: "1" }, undefined, { name: "caller" }),
      ({ status }) => status === 200,
    );
    ids.push(json.eventId);
  }
  const event = async (node: number, id: string) => (await call(node, `${E}/events/${id}`, { key })).json.event;
  for (const id of ids)
    expect(
      await poll(
        () => event(1, id),
        ({ attempts, state }) => attempts === 1 && state === "queued",
      ),
    ).toMatchObject({ state: "queued", attempts: 1 });
  caller.reply = () => OK;
  // One of the two nodes runs the environment, so each retry goes to a different node.
  const [one = "", two = ""] = ids;
  expect([(await post(0, `${E}/events/${one}/retry`, {}, { key })).status, (await post(1, `${E}/events/${two}/retry`, {}, { key })).status]).toEqual([
    202, 202,
  ]);
  const done = async (id: string) =>
    await poll(
      () => event(0, id),
      ({ state }) => state === "done",
    );
  for (const id of [one, two]) expect(await done(id)).toMatchObject({ state: "done", attempts: 2 });
  const tried = await Promise.all([0, 1].map((node) => post(node, `${E}/relays/caller/retry`, {}, { key })));
  expect(tried.reduce((sum, { json }) => sum + json.tried, 0)).toBe(2);
  for (const id of ids) expect(await done(id)).toMatchObject({ state: "done", attempts: 2 });
  expect(caller.ids.toSorted()).toEqual([...ids, ...ids].toSorted());
});

test("a preview from one node can be applied at the other, and both share the cap on changes", async () => {
  const relays = (from: number, count: number) =>
    Array.from({ length: count }, (_, at) => ({
      ...receiverDefinition({ name: `synced-${from + at}` }),
    }));
  const known = (await call(0, `${E}/relays/orders`, { key })).json.relay.definition;
  const sync = async (node: number, count: number) => {
    const body = { relays: [known, ...relays(0, count)], replaceEdited: true };
    const { json } = await post(node, `${E}/sync/plan`, body, { key });
    return await post(1 - node, `${E}/sync/apply`, { ...body, plan: json.plan }, { key });
  };
  const done = await sync(0, 16);
  expect([done.status, done.json.changes]).toEqual([200, 16]);
});

test("an approval can be requested, given and used at either node", async () => {
  const wish = { from: "development", to: "production" };
  const { json: read } = await post(0, `${E}/sync/plan`, wish, { key });
  const asked = await post(1, `${E}/approvals`, { ...wish, plan: read.plan }, { key });
  expect(asked.status).toBe(201);
  const { id, plan } = asked.json.approval;
  expect((await post(0, `/api/approvals/${id}`, { decision: "approve", plan })).json.approval.state).toBe("approved");
  const used = await Promise.all([0, 1].map((node) => post(node, `/api/approvals/${id}/apply`, {}, { key })));
  expect(used.map(({ status }) => status).sort()).toEqual([200, 409]);
});

test("a command's login can be started, approved and fetched at either node, and its key works everywhere", async () => {
  const { json: begun } = await post(0, "/api/login", { machine: "laptop", account: "ann" });
  expect((await post(1, "/api/login/approve", { code: begun.userCode, app: "shop", environment: "development" })).status).toBe(200);
  const { json: fetched } = await post(1, "/api/login/token", { deviceCode: begun.deviceCode });
  for (const node of [0, 1])
    expect((await call(node, "/api/key", { key: fetched.token })).json).toMatchObject({ app: "shop", environment: "development" });
});

test("a capture of one node takes requests at the other, both share its limit, and its deletion ends it everywhere", async () => {
  const { capture } = (await post(0, `${E}/captures`)).json;
  const { pathname } = new URL(capture.url);
  const send = (node: number, from: number) => call(node, pathname, { method: "POST", body: { from }, cookie: "" }).then(({ status }) => status);
  const statuses = await Promise.all(Array.from({ length: 24 }, (_, at) => send(at % 2, at)));
  expect([200, 404].map((wanted) => statuses.filter((status) => status === wanted).length)).toEqual([20, 4]);
  for (const node of [0, 1]) expect((await call(node, `${E}/captures/${capture.id}`)).json.capture).toMatchObject({ isFull: true });
  const other = (await post(1, `${E}/captures`)).json.capture;
  expect((await call(0, `${E}/captures/${other.id}`, { method: "DELETE" })).status).toBe(204);
  expect((await call(1, new URL(other.url).pathname, { method: "POST", body: {}, cookie: "" })).status).toBe(404);
});

test("only one of several concurrent uses of a one-time link at both nodes works", async () => {
  const { json: made } = await post(1, "/api/owners", { email: "bob@example.com" });
  const token = made.link.url.split("#")[1];
  const raced = await Promise.all([0, 1, 0, 1].map((node) => post(node, "/api/session/reset", { token, password: `${password} anew` })));
  expect(raced.filter(({ status }) => status === 200)).toHaveLength(1);
});

test("both nodes share the limit on unverified requests per address", async () => {
  let tries = 0;
  const flood = async (): Promise<number> => {
    tries += 1;
    const source = `198.51.${tries >> 8}.${tries & 255}`;
    const answers = await Promise.all(Array.from({ length: 60 }, (_, at) => hook(at % 2, { id: "evt_flood" }, "22".repeat(32), { source })));
    return answers.filter(({ status }) => status === 401).length;
  };
  // Each node learns of the other with its next lease renewal.
  expect(await poll(flood, (passed) => passed === 41)).toBe(41);
});

test("a stopping node is unready for the load balancer, and still accepts requests", async () => {
  // A node that knows no other node stops at once.
  await poll(
    () => nodes[0]?.service.leases.nodes.live,
    (live) => live === 2,
  );
  const leaving = nodes[0]?.service.leave();
  const ready = await call(0, "/readyz");
  expect([ready.status, ready.json]).toEqual([503, { ready: false, problem: "This node is stopping: the other nodes take its requests." }]);
  expect((await call(1, "/readyz")).status).toBe(200);
  expect((await hook(0, { id: "evt_late", amount: "1" })).status).toBe(200);
  await leaving;
});
