/** Limits where several nodes serve one database: what they let through together, whoever the balancer sends a call to, and as nodes come and go. */
import { describe, expect, test } from "bun:test";
import { createHmac } from "node:crypto";
import { SigninCap } from "../../src/account/signin-cap.ts";
import { DEFAULT_LIMITS, MINUTE_MS, PASSWORD_WINDOW_MS } from "../../src/ground/limit.ts";
import { Limiter, shareOf } from "../../src/ground/limiter.ts";
import { Refusal } from "../../src/ground/refusal.ts";
import { LiveRelays } from "../../src/relay/live-relay.ts";
import { OutcomeUnknown, type Store, StoreUnavailable } from "../../src/store/port.ts";
import { SyncCap } from "../../src/sync/sync-cap.ts";
import { makeBareReceiver } from "../kit/bare-receiver.ts";
import { openFreshStore, openTestStore } from "../kit/fresh-store.ts";
import { makeRelayKit, receiver, sealer } from "../kit/relay-kit.ts";
import { VirtualClock } from "../kit/virtual-clock.ts";

const nodesOf = (live: number) => Array.from({ length: live }, (_, rank) => ({ live, rank }));

describe("the nodes' shares of a limit", () => {
  for (const live of [1, 2, 3, 4, 7, 12]) {
    test(`of ${live} come to the limit and differ by one at most`, () => {
      for (const limit of [1, 2, 5, 10, 60, 119, 120]) {
        const shares = nodesOf(live).map((nodes) => shareOf(limit, nodes));
        expect(shares.reduce((sum, share) => sum + share, 0)).toBe(limit);
        expect(Math.max(...shares) - Math.min(...shares)).toBeLessThanOrEqual(1);
      }
    });
  }
});

describe("a limiter", () => {
  const limited = (limit: number, nodes: { live: number; rank: number }) => {
    const clock = new VirtualClock(0);
    return { clock, limiter: new Limiter(clock, limit, MINUTE_MS, { nodes }) };
  };
  const passes = (limiter: Limiter, tries: number) => Array.from({ length: tries }, () => limiter.take("one")).filter((full) => full === null).length;

  test("lets through its share, and tells the limit of all", () => {
    const { limiter } = limited(5, { live: 3, rank: 2 });
    expect([passes(limiter, 10), limiter.limit]).toEqual([1, 5]);
  });

  test("without a share lets through nothing, and says when to come again", () => {
    const { limiter } = limited(1, { live: 2, rank: 1 });
    expect([limiter.take("one"), limiter.take("two")]).toEqual([MINUTE_MS, MINUTE_MS]);
  });

  test("is full where a node came, and has room where one went", () => {
    const nodes = { live: 1, rank: 0 };
    const { limiter } = limited(6, nodes);
    expect(passes(limiter, 4)).toBe(4);
    nodes.live = 2;
    expect(passes(limiter, 4)).toBe(0);
    nodes.live = 1;
    expect(passes(limiter, 4)).toBe(2);
    // A full window is what no other name may push out, so it is known how many there are.
    const { limiter: small } = { limiter: new Limiter(new VirtualClock(0), 2, MINUTE_MS, { maxWindows: 2, nodes }) };
    for (const name of ["a", "b"]) small.take(name);
    nodes.live = 2;
    expect(small.fullUntil("c")).toBe(MINUTE_MS);
    nodes.live = 1;
    expect(small.fullUntil("c")).toBeNull();
  });
});

test("passwords guessed at every node in turn are as many as at one", () => {
  const caps = nodesOf(3).map((nodes) => new SigninCap(new VirtualClock(0), nodes));
  let taken = 0;
  for (let turn = 0; turn < 60; turn++) {
    try {
      caps[turn % 3]?.count(`203.0.113.${turn}`, "ada@example.com");
      taken += 1;
    } catch (error) {
      expect(error).toMatchObject({ code: "signin_capped", extra: { resetAtMs: PASSWORD_WINDOW_MS } });
      expect((error as Refusal).message).toContain("The limit of 10 sign-in attempts on this account");
    }
  }
  expect(taken).toBe(10);
});

/** A relay on one store, and a way to send to it at each of the nodes. `storeOf`: the store as receivers have it. */
async function openReceivers(limit: number, live: number, storeOf: (store: Store) => Store = (store) => store) {
  const fresh = await openFreshStore();
  const kit = makeRelayKit(fresh);
  await kit.create(receiver("orders", undefined, undefined, { map: { event_id: "id" } }), { secret: "theSecret-of-thirty-Character5" });
  const relays = new LiveRelays({ store: fresh.store, sealer, baseUrl: () => "https://relay.example.com" });
  const limits = { ...DEFAULT_LIMITS, verifiedEventsPerMinute: limit };
  const { clock } = fresh;
  const store = storeOf(fresh.store);
  const log = { info() {}, warn() {}, error() {} } as never;
  const receivers = nodesOf(live).map((nodes) => makeBareReceiver({ store, clock, relays, log, limits, sealer, nodes }).receiver);
  const send = (id: string, node = 0) => {
    const body = Buffer.from(JSON.stringify({ id }));
    const signature = createHmac("sha256", "theSecret-of-thirty-Character5").update(body).digest("hex");
    const headers = new Headers({ "content-type": "application/json", "x-signature": signature });
    return receivers[node % live]?.receive({ appId: "app_test", name: "orders", headers, body, search: "", source: () => "203.0.113.7" });
  };
  return { fresh, send };
}

test("events that come to every node in turn are as many in a minute as at one, and a duplicate is one on each", async () => {
  const { fresh, send } = await openReceivers(7, 3);
  const first = await send("call-0", 0);
  for (const node of [1, 2]) expect(await send("call-0", node)).toMatchObject({ duplicate: true, eventId: (first as { eventId: string }).eventId });
  const answers = await Promise.all(Array.from({ length: 30 }, (_, at) => send(`call-${at + 1}`, at)));
  expect(answers.filter((answer) => answer instanceof Refusal && answer.code === "receiver_capped")).toHaveLength(24);
  expect(await fresh.count("event")).toBe(7);
});

test("an event of which nobody knows whether it is there has its place in the minute; one that is surely not there has none", async () => {
  const failures: Error[] = [new StoreUnavailable("lost"), new OutcomeUnknown("nobody knows"), new OutcomeUnknown("nobody knows")];
  /** Each is stored, and then that much is known of it. */
  const forgetful = (store: Store): Store =>
    new Proxy(store, {
      get(target, name) {
        const own: unknown = Reflect.get(target, name, target);
        if (typeof own !== "function") return own;
        if (name !== "gather") return own.bind(target);
        return (...given: Parameters<Store["gather"]>) => {
          const write = target.gather(...given);
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
        await new SyncCap(30).of({ id, name: "development" }, clock.now()).take(tx, changes);
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
