/** Limits across several nodes over one database: what they allow together, however requests are spread, and as nodes come and go. */
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

/** The table of migrations/postgres. */
const TABLE = "CREATE TABLE limit_window (name BLOB PRIMARY KEY, ends_at INTEGER NOT NULL, taken INTEGER NOT NULL)";

interface Cluster extends AsyncDisposable {
  fresh: TestStore;
  /** The database's clock, which no node's clock moves. */
  database: { nowMs: number };
  /** The number of writes to the store so far. */
  writes(): number;
  /** The nodes that each node counts when it draws. A test can change `nodes`. */
  nodes: { live: number };
  places: SharedPlaces[];
  /** Moves every clock by the same time. */
  pass(ms: number): Promise<void>;
}

/** Opens this many nodes on one store. */
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

/** Counts how many of the tries pass at these nodes in turn. */
async function countPasses(limiters: readonly Limiter[], tries: number): Promise<number> {
  let passed = 0;
  for (let at = 0; at < tries; at++) if ((await takeDrawn(limiters[at % limiters.length])) === null) passed += 1;
  return passed;
}

describe("a limit whose places are drawn one by one", () => {
  for (const live of [2, 3, 6, 12])
    test(`of ${live} nodes allows as many at one node, or at each in turn, as one process`, async () => {
      for (const limit of [1, 5, 10]) {
        await using atOne = await openCluster(live);
        expect(await countPasses(limitersOf(atOne, limit, "each").slice(-1), limit + 5)).toBe(limit);
        await using inTurn = await openCluster(live);
        expect(await countPasses(limitersOf(inTurn, limit, "each"), limit + live + 5)).toBe(limit);
      }
    });

  test("allows one request when two nodes compete for the last place", async () => {
    await using cluster = await openCluster(2);
    const limiters = limitersOf(cluster, 3, "each");
    expect(await countPasses(limiters, 2)).toBe(2);
    const ends = await Promise.all(limiters.flatMap((limiter) => [takeDrawn(limiter), takeDrawn(limiter)]));
    expect(ends.filter((end) => end === null)).toHaveLength(1);
    expect(ends.filter((end) => end !== null)).toEqual(Array(3).fill(START_MS + MINUTE_MS));
  });

  test("keeps the places of a dead node until the window ends", async () => {
    await using cluster = await openCluster(2);
    const [dead, alive] = limitersOf(cluster, 4, "each");
    expect(await countPasses([dead as Limiter], 3)).toBe(3);
    cluster.nodes.live = 1;
    expect(await countPasses([alive as Limiter], 4)).toBe(1);
    await cluster.pass(MINUTE_MS);
    expect(await countPasses([alive as Limiter], 5)).toBe(4);
  });

  test("gives a returned place to another node", async () => {
    await using cluster = await openCluster(2);
    const [one, other] = limitersOf(cluster, 2, "each") as [Limiter, Limiter];
    expect(await countPasses([one], 2)).toBe(2);
    expect(await takeDrawn(other)).not.toBeNull();
    one.giveBack("one");
    // The limiter believes for a second that the limit is used up.
    await cluster.pass(1_000);
    expect([await takeDrawn(other), await takeDrawn(other)]).toEqual([null, START_MS + MINUTE_MS]);
  });

  for (const [who, set] of [
    ["the database's", (cluster: Cluster) => Object.assign(cluster.database, { nowMs: cluster.database.nowMs - 3_600_000 })],
    ["a node's", (cluster: Cluster) => cluster.fresh.clock.jump(-3_600_000)],
  ] as const)
    test(`stays full after ${who} clock was set back, for one window at most`, async () => {
      await using cluster = await openCluster(2);
      const limiters = limitersOf(cluster, 3, "each");
      expect(await countPasses(limiters, 4)).toBe(3);
      await cluster.pass(2_000);
      set(cluster);
      expect(await countPasses(limiters, 4)).toBe(0);
      await cluster.pass(MINUTE_MS);
      expect(await countPasses(limiters, 4)).toBe(3);
    });

  test("draws no place for what another window refuses, and asks the database once a second about a full window", async () => {
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

  test("allows as much at once as one process does when few places are left", async () => {
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

  test("deletes windows that have ended", async () => {
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
    test(`of ${live} nodes gives one node nearly all of it with few draws, and all nodes together never more`, async () => {
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

  test("leaves at most a quarter of it unused at the other nodes", async () => {
    await using cluster = await openCluster(3);
    const limiters = limitersOf(cluster, 120, "blocks");
    expect(await countPasses(limiters, 3)).toBe(3);
    expect(await countPasses(limiters.slice(0, 1), 200)).toBeGreaterThanOrEqual(90 - 3);
  });
});

describe.each(["above", "blocks above"] as const)("a limit of which each node has a few places without drawing (%s)", (drawing) => {
  test("writes nothing for a few requests, and gives all nodes together the limit but never more", async () => {
    for (const live of [1, 2, 3, 6, 20]) {
      await using cluster = await openCluster(live);
      const limiters = limitersOf(cluster, 60, drawing);
      const few = Math.floor(60 / (4 * live));
      expect(await countPasses(limiters.slice(0, 1), few)).toBe(few);
      expect(cluster.writes()).toBe(0);
      expect(await countPasses(limiters, 200)).toBe(60 - few);
    }
  });

  test("gives one node more than three quarters of it, and asks no more once it is used up", async () => {
    await using cluster = await openCluster(3);
    const [one] = limitersOf(cluster, 60, drawing) as [Limiter];
    expect(await countPasses([one], 100)).toBe(50);
    const before = cluster.writes();
    await cluster.pass(2_000);
    expect(await countPasses([one], 100)).toBe(0);
    expect(cluster.writes()).toBe(before);
  });
});

test("guessed passwords are limited equally at every node in turn and at one node", async () => {
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

test("requested codes are limited equally at every node in turn and at one node", async () => {
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

/** Creates a relay on one store, and a function that sends to it at each node. `storeOf` wraps the receivers' store. */
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

test("events sent to all nodes in turn share one limit per minute, and a duplicate is one on each node", async () => {
  const { fresh, send } = await openReceivers(7, 3);
  const first = await send("call-0", 0);
  for (const node of [1, 2]) expect(await send("call-0", node)).toMatchObject({ duplicate: true, eventId: (first as { eventId: string }).eventId });
  const answers = await Promise.all(Array.from({ length: 30 }, (_, at) => send(`call-${at + 1}`, at)));
  expect(answers.filter((answer) => answer instanceof Refusal && answer.code === "receiver_capped")).toHaveLength(24);
  expect(await fresh.count("event")).toBe(7);
});

test("one node can accept all events of a minute, and draws few times", async () => {
  const { fresh, cluster, send } = await openReceivers(60, 3);
  const answers: unknown[] = [];
  for (let at = 0; at < 70; at++) answers.push(await send(`call-${at}`, 1));
  const refused = answers.filter((answer) => answer instanceof Refusal) as Refusal[];
  expect(refused).toHaveLength(10);
  expect(refused[0]?.message).toBe(
    "This app may receive 60 verified events in a minute, and none of them is left here: send the event again after resetAt.",
  );
  expect(await fresh.count("event")).toBe(60);
  // Draws happen in blocks of five.
  expect(cluster.writes()).toBe(13);
});

test("an event with an unknown outcome keeps its place in the minute, and a failed one returns it", async () => {
  const failures: Error[] = [new StoreUnavailable("lost"), new OutcomeUnknown("nobody knows"), new OutcomeUnknown("nobody knows")];
  /** Stores each event, and then hides the outcome. */
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

test("changes by syncs count for every node, survive a restart, and do not count if the sync rolls back", async () => {
  await using opened = await openTestStore();
  const { store, clock } = opened;
  const { id } = await opened.environment("development");
  await store.write("dashboard", (tx) =>
    tx.run("INSERT INTO synced (environment_id, target, content, synced_at) VALUES (?1, 'relay:one', '{}', 1)", id),
  );
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
