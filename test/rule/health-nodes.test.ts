/**
 * The health of relays when a balancer spreads requests over three nodes. The observations of all nodes add up, and one node's success ends a problem
 * for all.
 */
import { beforeEach, describe, expect, test } from "bun:test";
import { createHmac } from "node:crypto";
import { DAY_MS, DEFAULT_LIMITS, HOUR_MS, MINUTE_MS } from "../../src/base/limit.ts";
import { createLog } from "../../src/base/log.ts";
import { findSecretUse } from "../../src/engine/health/shared-health.ts";
import { listRecentRequests } from "../../src/engine/receiver/request.ts";
import { listAlerts, resolveAlert } from "../../src/platform/audit/alert.ts";
import { type LiveRelay, LiveRelays } from "../../src/rules/relay/live-relay.ts";
import { type Store, StoreUnavailable } from "../../src/store/port.ts";
import { type BareReceiver, makeBareReceiver } from "../kit/bare-receiver.ts";
import { type FreshStore, openFreshStore } from "../kit/fresh-store.ts";
import { makeRelayKit, type RelayKit, receiver, sealer } from "../kit/relay-kit.ts";

const SECRET = "theSecret-of-thirty-Character5";
const NODES = [0, 1, 2] as const;

let fresh: FreshStore;
let kit: RelayKit;
let relays: LiveRelays;
let nodes: BareReceiver[];
let isAway = false;
let serial = 0;

beforeEach(async () => {
  fresh = await openFreshStore();
  isAway = false;
  kit = makeRelayKit(fresh);
  relays = new LiveRelays({ store: fresh.store, sealer, baseUrl: () => "https://relay.example.com" });
  const definition = receiver("orders", undefined, undefined, { map: { event_id: "id", event_type: "type" }, when: { event_type: "paid" } });
  await kit.create(definition, { secret: SECRET });
  relays.invalidate();
  nodes = [];
  for (const _ of NODES) nodes.push(await startNode());
});

/** Wraps a store that can be made unavailable for background writes. */
const mayBeAway = (store: Store): Store =>
  new Proxy(store, {
    get: (target, name) =>
      name === "write" && isAway
        ? () => Promise.reject(new StoreUnavailable("It is away."))
        : typeof Reflect.get(target, name) === "function"
          ? Reflect.get(target, name).bind(target)
          : Reflect.get(target, name),
  });

async function startNode(): Promise<BareReceiver> {
  const { clock } = fresh;
  const log = createLog({ clock, format: "json", sink: () => undefined });
  const deps = { store: mayBeAway(fresh.store), clock, relays, log, limits: DEFAULT_LIMITS, sealer, shared: true };
  const node = makeBareReceiver(deps);
  await node.start();
  return node;
}

async function send(node: number, kind: "paid" | "other" | "wrong" = "paid", secret = SECRET): Promise<void> {
  const body = Buffer.from(JSON.stringify({ id: `call-${++serial}`, type: kind === "wrong" ? "paid" : kind }));
  const signature = kind === "wrong" ? "00".repeat(32) : createHmac("sha256", secret).update(body).digest("hex");
  const headers = new Headers({ "content-type": "application/json", "x-signature": signature });
  await nodes[node % 3]?.receiver.receive({ appId: "app_test", name: "orders", body, search: "", source: () => "203.0.113.7", headers });
}

async function inTurn(everyMs: number, times: number, one: (node: number) => Promise<void>): Promise<void> {
  for (let at = 0; at < times; at++) {
    await one(at);
    // Three nodes check every five minutes, which makes thousands of checks in a week.
    if (everyMs < HOUR_MS) await fresh.clock.advance(everyMs);
    else await fresh.clock.leap(everyMs, HOUR_MS);
  }
}

async function findRelay(): Promise<LiveRelay> {
  const [relay] = (await relays.current()).relays;
  if (relay === undefined) throw new Error("There is no relay.");
  return relay;
}

const fails = async (node: number): Promise<void> =>
  nodes[node % 3]?.health.recordRun({ relay: await findRelay(), outcome: "failed", code: "call_failed", why: "it answered 500.", dead: false });

const all = <Row>(sql: string): Promise<Row[]> => fresh.store.read((tx) => tx.all<Row>(sql));

/** The open problems and the alerts, after all writes. */
async function outcome(): Promise<{ stands: string[]; told: string[] }> {
  for (const _ of NODES) await fresh.clock.advance(1_500);
  const stands = await all<{ code: string }>("SELECT code FROM problem WHERE cleared_at IS NULL ORDER BY id");
  const told = await all<{ code: string; count: number; message: string }>("SELECT code, count, message FROM alert ORDER BY id");
  return { stands: stands.map(({ code }) => code), told: told.map(({ code, count, message }) => `${code} ${count}: ${message}`) };
}

/** Records a verified request on one node, so that the relay counts as verified on all of them. */
async function verifyOnce(): Promise<void> {
  nodes[0]?.health.recordVerified(await findRelay(), fresh.clock.now());
  await outcome();
  await fresh.clock.advance(HOUR_MS);
}

describe("a relay that never verified a request", () => {
  test("is one problem, and a success on another node resolves it", async () => {
    await inTurn(MINUTE_MS, 6, (node) => send(node, "wrong"));
    expect(await outcome()).toEqual({ stands: ["never_verified"], told: [expect.stringContaining("never_verified 1: ")] });
    await send(1);
    expect((await outcome()).stands).toEqual([]);
  });

  test("is no problem on a node that did not see the verified request", async () => {
    await send(0);
    await fresh.clock.advance(1_500);
    await send(1, "wrong");
    expect(await outcome()).toEqual({ stands: [], told: [] });
  });
});

describe("a series counts across all nodes", () => {
  beforeEach(verifyOnce);

  const RUNS: [what: string, code: string, count: number, happens: () => Promise<void>, good: (node: number) => Promise<void>][] = [
    ["rejected requests", "relay_refusing", 6, () => inTurn(4 * MINUTE_MS, 6, (node) => send(node, "wrong")), (node) => send(node)],
    ["ignored requests", "relay_ignoring", 3, () => inTurn(13 * HOUR_MS, 3, (node) => send(node, "other")), (node) => send(node)],
    [
      "failed runs on a different node each time",
      "relay_failing",
      4,
      () => inTurn(11 * MINUTE_MS, 4, fails),
      async (node) => nodes[node]?.health.recordRun({ relay: await findRelay(), outcome: "ok", code: null, why: null, dead: false }),
    ],
  ];
  test.each(RUNS)("%s raise one alert with the total, and a success on another node resolves it", async (_what, code, count, happens, good) => {
    await happens();
    const begun = await outcome();
    expect(begun).toEqual({ stands: [code], told: [expect.stringContaining(`${code} 1: `)] });
    const [row] = await all<{ refused: number; streaks: string }>("SELECT refused_count AS refused, streaks FROM relay");
    expect(row?.refused === 0 ? JSON.parse(row.streaks).runs[code].count : row?.refused).toBe(count);
    await good(1);
    const ended = await outcome();
    expect(ended.stands).toEqual([]);
    expect(ended.told).toEqual([...begun.told, expect.stringContaining("relay_recovered 1: ")]);
    await fresh.clock.advance(HOUR_MS);
    expect((await outcome()).told).toEqual(ended.told);
  });

  const MIXED: [what: string, happens: () => Promise<void>][] = [
    ["one node accepts requests and the others refuse them", () => inTurn(3 * MINUTE_MS, 40, (at) => (at % 3 === 0 ? send(0) : send(at, "wrong")))],
    ["one node acts on requests and the others ignore them", () => inTurn(5 * HOUR_MS, 40, (at) => (at % 3 === 0 ? send(0) : send(at, "other")))],
  ];
  test.each(MIXED)("%s, so there is no alert", async (_what, happens) => {
    await happens();
    expect(await outcome()).toEqual({ stands: [], told: [] });
  });

  test("a series survives the end of a node, and a store that is unavailable for a while", async () => {
    await inTurn(4 * MINUTE_MS, 2, (node) => send(node, "wrong"));
    await nodes[0]?.stop();
    nodes[0] = await startNode();
    isAway = true;
    await inTurn(4 * MINUTE_MS, 2, (node) => send(node, "wrong"));
    isAway = false;
    await inTurn(4 * MINUTE_MS, 2, (node) => send(node, "wrong"));
    expect((await outcome()).stands).toEqual(["relay_refusing"]);
    expect(await all("SELECT refused_count AS refused FROM relay")).toEqual([{ refused: 6 }]);
  });

  test("a problem that a user resolved returns only with later failures", async () => {
    await inTurn(4 * MINUTE_MS, 6, (node) => send(node, "wrong"));
    expect((await outcome()).stands).toEqual(["relay_refusing"]);
    const { id: environmentId } = await fresh.environment("development");
    const open = await fresh.store.read((tx) => listAlerts(tx, environmentId, { limit: 9, after: null }, true));
    const change = { environmentId, id: open.items[0]?.id ?? "", by: "owner", nowMs: fresh.clock.now() };
    await fresh.store.write("app", (tx) => resolveAlert(tx, change));
    await fresh.clock.advance(11 * MINUTE_MS);
    await inTurn(4 * MINUTE_MS, 2, (node) => send(node, "wrong"));
    expect((await outcome()).stands).toEqual([]);
    await inTurn(4 * MINUTE_MS, 4, (node) => send(node, "wrong"));
    expect((await outcome()).stands).toEqual(["relay_refusing"]);
  });
});

test("a request that one node verified is known when another node refuses the next", async () => {
  await send(0);
  await outcome();
  await fresh.clock.advance(HOUR_MS);
  await send(1, "wrong");
  await outcome();
  const { id } = await fresh.environment("development");
  const calls = await fresh.store.read((tx) => listRecentRequests(tx, id, {}, { limit: 9, after: null }));
  expect(calls.items.map(({ cause }) => cause)).toEqual([expect.stringContaining(". Requests verified until 2026-01-15T12:00:00.000Z")]);
});

test("all nodes know which of two secrets was used last", async () => {
  const until = fresh.clock.now() + DAY_MS;
  const { id } = await findRelay();
  await fresh.store.write("app", (tx) => tx.run("UPDATE relay SET previous_secret = secret, previous_secret_until = ?1", until));
  relays.invalidate();
  await relays.current();
  await send(0);
  await outcome();
  const used = fresh.clock.now();
  await send(1);
  await outcome();
  const nothing = { until, presentAt: null, previousAt: null };
  expect(await fresh.store.read((tx) => findSecretUse(tx, id, nothing))).toEqual({ ...nothing, presentAt: used });
  // An expired overlap has no use to report.
  expect(await fresh.store.read((tx) => findSecretUse(tx, id, { ...nothing, until: until + 1 }))).toEqual({ ...nothing, until: until + 1 });
});

test("all nodes share one ring of requests, and count an unknown relay name together", async () => {
  await inTurn(MINUTE_MS, 6, (node) => send(node, "wrong"));
  for (const node of nodes) {
    const call = { appId: "app_test", name: "order", source: "203.0.113.7" };
    await node.receiver.rejectUnknownReceiver(call.appId, call.name, () => call.source);
  }
  await outcome();
  const [ring] = await all<{ rows: number; calls: number }>("SELECT count(*) AS rows, sum(count) AS calls FROM recent_request");
  expect(ring?.calls).toBe(6);
  expect(await all("SELECT name, nearest, count FROM unknown_request WHERE nearest IS NOT NULL")).toEqual([
    { name: "order", nearest: "orders", count: 3 },
  ]);
});
