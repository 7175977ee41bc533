/** Limits where several nodes serve one database: what they let through together, whoever the balancer sends a call to, and as nodes come and go. */
import { afterEach, describe, expect, test } from "bun:test";
import { createHmac } from "node:crypto";
import { DEFAULT_LIMITS, MINUTE_MS, PASSWORD_WINDOW_MS } from "../../src/base/limit.ts";
import { drawPlaces, takeAll } from "../../src/base/limit-window.ts";
import { Limiter } from "../../src/base/limiter.ts";
import { Refusal } from "../../src/base/refusal.ts";
import { SyncCap } from "../../src/operator/sync/sync-cap.ts";
import { SharedPlaces } from "../../src/platform/account/shared-limit.ts";
import { SigninCap } from "../../src/platform/account/signin-cap.ts";
import { LiveRelays } from "../../src/rules/relay/live-relay.ts";
import { PersonSigninCap } from "../../src/shop/portal/person-signin-cap.ts";
import { OutcomeUnknown, type Store, StoreUnavailable } from "../../src/store/port.ts";
import { makeBareReceiver } from "../kit/bare-receiver.ts";
import { openTestStore, type TestStore } from "../kit/fresh-store.ts";
import { makeRelayKit, receiver, sealer } from "../kit/relay-kit.ts";
import { START_MS } from "../kit/virtual-clock.ts";

/** As migrations/postgres has it. */
const TABLE = "CREATE TABLE limit_window (name BLOB PRIMARY KEY, ends_at INTEGER NOT NULL, taken INTEGER NOT NULL)";

interface Cluster extends AsyncDisposable {
  fresh: TestStore;
  /** What the database's clock says, which no node's own clock moves. */
  database: { nowMs: number };
  /** Writes to the store so far. */
  writes(): number;
  /** What each node draws with; `nodes` may be changed. */
  nodes: { live: number };
  places: SharedPlaces[];
  /** The same time passes for everyone. */
  pass(ms: number): Promise<void>;
}

/** So many nodes on one store. */
async function openCluster(live: number, storeOf: (store: Store) => Store = (store) => store): Promise<Cluster> {
  const fresh = await openTestStore();
  await fresh.store.write("app", (tx) => tx.run(TABLE));
  const database = { nowMs: START_MS };
  const nodes = { live };
  let written = 0;
  const counted = storeOf(fresh.store);
  const store = new Proxy(counted, {
    get(target, name) {
      const own: unknown = Reflect.get(target, name, target);
      if (typeof own !== "function") return own;
      if (name !== "write") return own.bind(target);
      return (...given: Parameters<Store["write"]>) => {
        written += 1;
        return target.write(...given);
      };
    },
  });
  const digest = (text: string): Uint8Array => new Bun.CryptoHasher("sha256").update(text).digest();
  const deps = { store, clock: fresh.clock, digest, nodes, readNow: async () => database.nowMs };
  return {
    fresh,
    database,
    nodes,
    writes: () => written,
    places: Array.from({ length: live }, () => new SharedPlaces(deps)),
    async pass(ms) {
      database.nowMs += ms;
      await fresh.clock.advance(ms);
    },
    [Symbol.asyncDispose]: () => fresh[Symbol.asyncDispose](),
  };
}

type Drawing = "each" | "blocks" | "above" | "blocks above";
const limitersOf = ({ fresh, places }: Cluster, limit: number, drawing: Drawing): Limiter[] =>
  places.map((own) => new Limiter(fresh.clock, limit, MINUTE_MS, { kind: "test", places: own, drawing }));

async function takeDrawn(limiter: Limiter | undefined, name = "one"): Promise<number | null> {
  if (limiter === undefined) throw new Error("no such node");
  await drawPlaces([{ limiter, name }]);
  return limiter.take(name);
}

/** How many of so many tries pass at these nodes in turn. */
async function countPasses(limiters: readonly Limiter[], tries: number): Promise<number> {
  let passed = 0;
  for (let at = 0; at < tries; at++) if ((await takeDrawn(limiters[at % limiters.length])) === null) passed += 1;
  return passed;
}

describe("a limit that each place of is drawn", () => {
  for (const live of [2, 3, 6, 12])
    test(`of ${live} nodes lets through as many at one of them, or at each in turn, as one process`, async () => {
      for (const limit of [1, 5, 10]) {
        await using atOne = await openCluster(live);
        expect(await countPasses(limitersOf(atOne, limit, "each").slice(-1), limit + 5)).toBe(limit);
        await using inTurn = await openCluster(live);
        expect(await countPasses(limitersOf(inTurn, limit, "each"), limit + live + 5)).toBe(limit);
      }
    });

  test("has one that passes where two nodes are at its last place at the same moment", async () => {
    await using cluster = await openCluster(2);
    const limiters = limitersOf(cluster, 3, "each");
    expect(await countPasses(limiters, 2)).toBe(2);
    const ends = await Promise.all(limiters.flatMap((limiter) => [takeDrawn(limiter), takeDrawn(limiter)]));
    expect(ends.filter((end) => end === null)).toHaveLength(1);
    expect(ends.filter((end) => end !== null)).toEqual(Array(3).fill(START_MS + MINUTE_MS));
  });

  test("keeps what a node took that died, until the window ends", async () => {
    await using cluster = await openCluster(2);
    const [dead, alive] = limitersOf(cluster, 4, "each");
    expect(await countPasses([dead as Limiter], 3)).toBe(3);
    cluster.nodes.live = 1;
    expect(await countPasses([alive as Limiter], 4)).toBe(1);
    await cluster.pass(MINUTE_MS);
    expect(await countPasses([alive as Limiter], 5)).toBe(4);
  });

  test("has a place for another node where one was given back", async () => {
    await using cluster = await openCluster(2);
    const [one, other] = limitersOf(cluster, 2, "each") as [Limiter, Limiter];
    expect(await countPasses([one], 2)).toBe(2);
    expect(await takeDrawn(other)).not.toBeNull();
    one.giveBack("one");
    // That it is used up is believed for a second.
    await cluster.pass(1_000);
    expect([await takeDrawn(other), await takeDrawn(other)]).toEqual([null, START_MS + MINUTE_MS]);
  });

  for (const [who, set] of [
    ["the database's", (cluster: Cluster) => Object.assign(cluster.database, { nowMs: cluster.database.nowMs - 3_600_000 })],
    ["a node's", (cluster: Cluster) => cluster.fresh.clock.jump(-3_600_000)],
  ] as const)
    test(`is as full after ${who} clock was set back, and for no longer than one window`, async () => {
      await using cluster = await openCluster(2);
      const limiters = limitersOf(cluster, 3, "each");
      expect(await countPasses(limiters, 4)).toBe(3);
      await cluster.pass(2_000);
      set(cluster);
      expect(await countPasses(limiters, 4)).toBe(0);
      await cluster.pass(MINUTE_MS);
      expect(await countPasses(limiters, 4)).toBe(3);
    });

  test("draws nothing for what another window refuses, and asks the database once a second for what is full", async () => {
    await using cluster = await openCluster(2);
    const [full] = limitersOf(cluster, 1, "each") as [Limiter];
    const [other] = cluster.places.map((places) => new Limiter(cluster.fresh.clock, 5, MINUTE_MS, { kind: "other", places })) as [Limiter];
    const both = async (): Promise<string | null> => {
      const needs = [
        { limiter: other, name: "two" },
        { limiter: full, name: "one" },
      ];
      await drawPlaces(needs);
      return takeAll(needs)?.need.name ?? null;
    };
    expect([await both(), await both()]).toEqual([null, "one"]);
    const before = cluster.writes();
    for (let at = 0; at < 20; at++) expect(await both()).toBe("one");
    expect(cluster.writes() - before).toBe(0);
    const rows = await cluster.fresh.store.read((tx) => tx.all<{ taken: number }>("SELECT taken FROM limit_window ORDER BY taken"));
    expect(rows).toEqual([{ taken: 1 }, { taken: 1 }]);
  });

  test("lets through as much at once as one process does, where fewer places are left", async () => {
    await using cluster = await openCluster(2);
    const [limiter, other] = limitersOf(cluster, 5, "each") as [Limiter, Limiter];
    expect(await countPasses([other], 4)).toBe(4);
    const needs = [{ limiter, name: "one", amount: 3 }];
    await drawPlaces(needs);
    expect(takeAll(needs)).toBeNull();
    expect(await takeDrawn(other)).not.toBeNull();
    await cluster.pass(1_000);
    await drawPlaces(needs);
    expect(takeAll(needs)).not.toBeNull();
  });

  test("forgets windows that are over", async () => {
    await using cluster = await openCluster(2);
    const [limiter] = limitersOf(cluster, 5, "each") as [Limiter];
    for (let at = 0; at < 30; at++) await takeDrawn(limiter, `name ${at}`);
    await cluster.pass(MINUTE_MS);
    await takeDrawn(limiter, "last");
    expect(await cluster.fresh.count("limit_window")).toBe(1);
  });
});

describe("a limit that is drawn in blocks", () => {
  for (const live of [1, 2, 3, 12])
    test(`of ${live} nodes lets one of them have nearly all of it with few draws, and together never more`, async () => {
      for (const limit of [1, 7, 120, 6_000]) {
        await using cluster = await openCluster(live);
        const limiters = limitersOf(cluster, limit, "blocks");
        expect(await countPasses(limiters.slice(0, 1), limit + 1)).toBe(limit);
        expect(cluster.writes()).toBeLessThanOrEqual(4 * live + 2 + Math.min(limit, 4 * live));
        await cluster.pass(MINUTE_MS);
        const passed = await countPasses(limiters, 2 * limit);
        expect(passed).toBe(limit);
      }
    });

  test("keeps unused at the other nodes a quarter of it at most", async () => {
    await using cluster = await openCluster(3);
    const limiters = limitersOf(cluster, 120, "blocks");
    expect(await countPasses(limiters, 3)).toBe(3);
    expect(await countPasses(limiters.slice(0, 1), 200)).toBeGreaterThanOrEqual(90 - 3);
  });
});

describe.each(["above", "blocks above"] as const)("a limit of which each node has a few places without drawing (%s)", (drawing) => {
  test("costs the database nothing for a few, and lets all nodes together have it and never more", async () => {
    for (const live of [1, 2, 3, 6, 20]) {
      await using cluster = await openCluster(live);
      const limiters = limitersOf(cluster, 60, drawing);
      const few = Math.floor(60 / (4 * live));
      expect(await countPasses(limiters.slice(0, 1), few)).toBe(few);
      expect(cluster.writes()).toBe(0);
      expect(await countPasses(limiters, 200)).toBe(60 - few);
    }
  });

  test("lets one node have more than three quarters of it, and asks no more once it is used up", async () => {
    await using cluster = await openCluster(3);
    const [one] = limitersOf(cluster, 60, drawing) as [Limiter];
    expect(await countPasses([one], 100)).toBe(50);
    const before = cluster.writes();
    await cluster.pass(2_000);
    expect(await countPasses([one], 100)).toBe(0);
    expect(cluster.writes()).toBe(before);
  });
});

test("passwords guessed at every node in turn are as many as at one, and at one as many as the sentence says", async () => {
  for (const turns of [3, 1]) {
    await using cluster = await openCluster(3);
    const caps = cluster.places.map((places) => new SigninCap(cluster.fresh.clock, places));
    let taken = 0;
    for (let turn = 0; turn < 30; turn++) {
      try {
        await caps[turn % turns]?.countAttempt(`203.0.113.${turn}`, "ada@example.com");
        taken += 1;
      } catch (error) {
        expect(error).toMatchObject({ code: "signin_capped", extra: { resetAtMs: START_MS + PASSWORD_WINDOW_MS } });
        expect((error as Refusal).message).toContain("The limit of 10 sign-in attempts on this account");
      }
    }
    expect(taken).toBe(10);
  }
});

test("codes asked for at every node in turn, or at one of them, are answered as one process answers them", async () => {
  const asked = Array.from({ length: 90 }, (_, at) => ({
    source: at % 3 === 0 ? `198.51.${at}.7` : `203.0.113.${at}`,
    email: at % 5 === 0 ? "ada@example.com" : `new-${at}@example.com`,
    isStranger: at % 5 !== 0,
  }));
  const answer = async (caps: readonly PersonSigninCap[]): Promise<string[]> => {
    const answers: string[] = [];
    for (const [at, { source, email, isStranger }] of asked.entries())
      answers.push(
        (await caps[at % caps.length]
          ?.countCode(source, { environmentId: 1, email, network: source }, { isKnown: false, isStranger })
          .catch((error: Error) => error.message)) ?? "no cap",
      );
    return answers;
  };
  await using cluster = await openCluster(3);
  const expected = await answer([new PersonSigninCap(cluster.fresh.clock, DEFAULT_LIMITS, null)]);
  expect(new Set(expected).size).toBeGreaterThan(2);
  const caps = cluster.places.map((places) => new PersonSigninCap(cluster.fresh.clock, DEFAULT_LIMITS, places));
  expect(await answer(caps)).toEqual(expected);
  await using other = await openCluster(3);
  expect(await answer(other.places.slice(0, 1).map((places) => new PersonSigninCap(other.fresh.clock, DEFAULT_LIMITS, places)))).toEqual(expected);
});

const opened: AsyncDisposable[] = [];
afterEach(async () => {
  for (const one of opened.splice(0)) await one[Symbol.asyncDispose]();
});

/** A relay on one store, and a way to send to it at each of the nodes. `storeOf`: the store as receivers have it. */
async function openReceivers(limit: number, live: number, storeOf: (store: Store) => Store = (store) => store) {
  const cluster = await openCluster(live);
  opened.push(cluster);
  const { fresh } = cluster;
  const kit = makeRelayKit(fresh);
  await kit.create(receiver("orders", undefined, undefined, { map: { event_id: "id" } }), { secret: "theSecret-of-thirty-Character5" });
  const relays = new LiveRelays({ store: fresh.store, sealer, baseUrl: () => "https://relay.example.com" });
  const limits = { ...DEFAULT_LIMITS, verifiedEventsPerMinute: limit };
  const { clock } = fresh;
  const store = storeOf(fresh.store);
  const log = { info() {}, warn() {}, error() {} } as never;
  const receivers = cluster.places.map(
    (places) => makeBareReceiver({ store, clock, relays, log, limits, sealer, places: live === 1 ? null : places }).receiver,
  );
  const send = (id: string, node = 0) => {
    const body = Buffer.from(JSON.stringify({ id }));
    const signature = createHmac("sha256", "theSecret-of-thirty-Character5").update(body).digest("hex");
    const headers = new Headers({ "content-type": "application/json", "x-signature": signature });
    return receivers[node % live]?.receive({ appId: "app_test", name: "orders", headers, body, search: "", source: () => "203.0.113.7" });
  };
  return { fresh, cluster, send };
}

test("events that come to every node in turn are as many in a minute as at one, and a duplicate is one on each", async () => {
  const { fresh, send } = await openReceivers(7, 3);
  const first = await send("call-0", 0);
  for (const node of [1, 2]) expect(await send("call-0", node)).toMatchObject({ duplicate: true, eventId: (first as { eventId: string }).eventId });
  const answers = await Promise.all(Array.from({ length: 30 }, (_, at) => send(`call-${at + 1}`, at)));
  expect(answers.filter((answer) => answer instanceof Refusal && answer.code === "receiver_capped")).toHaveLength(24);
  expect(await fresh.count("event")).toBe(7);
});

test("all events of a minute may come to one of the nodes, and few of them ask the database for places", async () => {
  const { fresh, cluster, send } = await openReceivers(60, 3);
  const answers: unknown[] = [];
  for (let at = 0; at < 70; at++) answers.push(await send(`call-${at}`, 1));
  const refused = answers.filter((answer) => answer instanceof Refusal) as Refusal[];
  expect(refused).toHaveLength(10);
  expect(refused[0]?.message).toBe(
    "This app may receive 60 verified events in a minute, and none of them is left here: send the event again after resetAt.",
  );
  expect(await fresh.count("event")).toBe(60);
  // Blocks of five.
  expect(cluster.writes()).toBe(13);
});

test("an event of which nobody knows whether it is there has its place in the minute; one that is surely not there has none", async () => {
  const failures: Error[] = [new StoreUnavailable("lost"), new OutcomeUnknown("nobody knows"), new OutcomeUnknown("nobody knows")];
  /** Each is stored, and then that much is known of it. */
  const forgetful = (store: Store): Store =>
    new Proxy(store, {
      get(target, name) {
        const own: unknown = Reflect.get(target, name, target);
        if (typeof own !== "function") return own;
        if (name !== "batchWrites") return own.bind(target);
        return (...given: Parameters<Store["batchWrites"]>) => {
          const write = target.batchWrites(...given);
          return async (draft: unknown) => {
            const failure = failures.shift();
            if (failure instanceof OutcomeUnknown) await write(draft);
            if (failure !== undefined) throw failure;
            return await write(draft);
          };
        };
      },
    });
  const { fresh, send } = await openReceivers(3, 1, forgetful);
  const answers: string[] = [];
  for (let at = 0; at < 6; at++)
    answers.push(await Promise.resolve(send(`call-${at}`)).then((answer) => (answer instanceof Refusal ? answer.code : "taken"), String));
  expect(answers.map((answer) => answer.split(":")[0])).toEqual([
    "not_recorded",
    "not_recorded",
    "not_recorded",
    "taken",
    "receiver_capped",
    "receiver_capped",
  ]);
  expect(await fresh.count("event")).toBe(3);
});

test("changes of syncs count for every node, past a restart, and not where the sync is undone", async () => {
  await using opened = await openTestStore();
  const { store, clock } = opened;
  const { id } = await opened.environment("development");
  const take = (changes: number, isUndone = false) =>
    store
      .write("dashboard", async (tx) => {
        await new SyncCap(30).makeCap({ id, name: "development" }, clock.now()).take(tx, changes);
        if (isUndone) throw new Error("undone");
        return "taken";
      })
      .catch((error: Error) => (error instanceof Refusal ? `${error.code}: ${/of which (\d+) are left/.exec(error.message)?.[1]}` : error.message));
  const startMs = clock.now();
  expect([await take(20), await take(10, true), await take(5), await take(6)]).toEqual(["taken", "undone", "taken", "sync_capped: 5"]);
  await clock.advance(MINUTE_MS);
  expect([await take(30), await take(1)]).toEqual(["taken", "sync_capped: 0"]);
  expect(await store.read((tx) => tx.all("SELECT environment_id, began_at, changes FROM sync_minute"))).toEqual([
    { environment_id: id, began_at: startMs + MINUTE_MS, changes: 30 },
  ]);
});
