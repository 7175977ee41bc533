/** Several nodes over one database. The test moves each node's clock, and the database has its own. */
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { createApp } from "../../src/platform/account/app.ts";
import { ALL_ENVIRONMENTS } from "../../src/store/lease/lease-holder.ts";
import { NodeLeaseManager } from "../../src/store/lease/node-lease-holder.ts";
import { type Store, StoreUnavailable, type Writer } from "../../src/store/port.ts";
import { classifyError } from "../../src/store/postgres/error.ts";
import { openTestStore, type TestStore } from "../kit/fresh-store.ts";
import { START_MS, settle, VirtualClock } from "../kit/virtual-clock.ts";

const HOUR_MS = 3_600_000;
/** The tables of migrations/postgres. */
const TABLES = [
  `CREATE TABLE node (id TEXT PRIMARY KEY, host TEXT NOT NULL, pid INTEGER NOT NULL, version TEXT NOT NULL, schema_version INTEGER NOT NULL,
     url TEXT, started_at INTEGER NOT NULL, seen_at INTEGER NOT NULL, probes INTEGER NOT NULL DEFAULT 0,
     base_url TEXT, clock_at INTEGER)`,
  "CREATE TABLE node_lease (environment_id INTEGER PRIMARY KEY, node TEXT, epoch INTEGER NOT NULL, until INTEGER NOT NULL)",
];

class Node {
  readonly clock: VirtualClock;
  readonly leases: NodeLeaseManager;
  /** The reports of the node's lease manager: `+2` for a start, `-2` for an end, `=` for environments that it has again after a doubt. */
  readonly told: string[] = [];
  /** Environments that it lost without giving them back. */
  readonly lost: number[] = [];
  /** The node runs with the others while this is true. */
  runs = true;
  /** The node's connection to the database: open, cut, locked, or losing every answer. */
  way: "open" | "cut" | "locked" | "deaf" = "open";
  /** Writes of this environment wait for the promise, because another session holds one of its rows. */
  heldUp: { environmentId: number; until: Promise<void> } | null = null;
  /** A write waits for this promise. */
  slow: Promise<void> = Promise.resolve();
  /** An end waits for this promise. */
  busy: Promise<void> = Promise.resolve();

  constructor(startMs: number) {
    this.clock = new VirtualClock(startMs);
    const write: Store["write"] = async (origin, work, scope) => {
      if (this.way === "cut") throw new StoreUnavailable("no way there");
      if (this.way === "locked") throw classifyError(Object.assign(new Error("canceling statement due to lock timeout"), { errno: "55P03" }));
      await this.slow;
      if (this.heldUp !== null && scope === this.heldUp.environmentId) await this.heldUp.until;
      const result = await fresh.store.write(origin, work, scope);
      if (this.way === "deaf") throw new StoreUnavailable("no way back");
      return result;
    };
    const store: Store = Object.assign(Object.create(fresh.store) as Store, { write });
    for (const name of ["read", "withFence", "listen"] as const) Object.assign(store, { [name]: fresh.store[name].bind(fresh.store) });
    this.leases = new NodeLeaseManager({ store, clock: this.clock, log: fresh.log, baseUrl: null, readNow: async () => databaseMs });
    this.leases.watch({
      begin: async (id) => void this.told.push(`+${id}`),
      end: async (id, isLost) => {
        if (isLost) this.lost.push(id);
        await this.busy;
        this.told.push(`-${id}`);
      },
      lost: () => undefined,
      regained: () => void this.told.push("="),
      renewed: () => undefined,
    });
  }

  get held(): number[] {
    return all.filter((id) => this.leases.holds(id));
  }

  /** Tries a write of the node's environment. */
  async passes(store = this.leases.storeOf(1)): Promise<boolean> {
    return await store.write("app", async () => true).catch(() => false);
  }
}

let fresh: TestStore;
let databaseMs: number;
let all: number[];
let nodes: Node[];

beforeEach(async () => {
  fresh = await openTestStore();
  await fresh.store.write("app", async (tx: Writer) => {
    for (const table of TABLES) await tx.run(table);
  });
  databaseMs = START_MS;
  all = [ALL_ENVIRONMENTS, 1, 2, 3];
  nodes = [];
});

afterEach(async () => {
  for (const node of nodes) node.busy = Promise.resolve();
  for (const { leases } of nodes) await leases.release();
  await fresh[Symbol.asyncDispose]();
});

async function join(startMs = START_MS): Promise<Node> {
  const node = new Node(startMs);
  nodes.push(node);
  await node.leases.start(`http://127.0.0.1:${nodes.length}`);
  return node;
}

/** Moves the time of the database and of every running node. At no moment may two nodes believe they hold the same lease. */
async function pass(ms: number): Promise<void> {
  for (let left = ms; left > 0; left -= 250) {
    databaseMs += 250;
    for (const node of nodes) if (node.runs) await node.clock.advance(250);
    await settle();
    const held = nodes.filter(({ runs }) => runs).flatMap((node) => node.held);
    expect(held.length).toBe(new Set(held).size);
  }
}

/** Returns the milliseconds until `done` is true. */
async function passUntil(mostMs: number, done: () => boolean): Promise<number> {
  for (let ms = 0; ms <= mostMs; ms += 250) {
    if (done()) return ms;
    await pass(250);
  }
  throw new Error(`It did not come about within ${mostMs} ms.`);
}

const takeoversOf = (node: Node) => node.leases.count().takeovers;

describe("the distribution of leases", () => {
  test("gives one node all environments and the server's own lease, and starts each", async () => {
    const one = await join();
    expect(one.held).toEqual(all);
    expect(one.told.toSorted()).toEqual(["+0", "+1", "+2", "+3"]);
    expect(takeoversOf(one)).toBe(0);
  });

  test("gives half to a node that joins, and each lease ends on one node before it starts on the other", async () => {
    const one = await join();
    const other = await join();
    await pass(7_000);
    expect([one.held.length, other.held.length]).toEqual([2, 2]);
    for (const id of other.held) expect(one.told).toContain(`-${id}`);
    expect([takeoversOf(one), takeoversOf(other)]).toEqual([0, 0]);
  });

  test("keeps a lease on its node until its work has ended", async () => {
    const one = await join();
    const idle = Promise.withResolvers<void>();
    one.busy = idle.promise;
    const other = await join();
    await pass(20_000);
    expect([one.held, other.held]).toEqual([all, []]);
    idle.resolve();
    await pass(4_000);
    expect([one.held.length, other.held.length]).toEqual([2, 2]);
  });

  test("passes leases on at a graceful stop, without counting a takeover", async () => {
    const [one, other] = [await join(), await join()];
    await pass(7_000);
    await one.leases.release();
    nodes = [other];
    expect(await passUntil(1_000, () => other.held.length === 4)).toBeLessThanOrEqual(250);
    expect(takeoversOf(other)).toBe(0);
    expect((await other.leases.listNodes()).map(({ own }) => own)).toEqual([true]);
  });

  test("includes a new environment at once, and excludes a deleted one", async () => {
    const one = await join();
    const { environments } = await fresh.store.write("app", (tx) =>
      createApp(tx, { id: "app_new", name: "New", environments: ["development"], nowMs: START_MS }),
    );
    const id = environments[0]?.id ?? 0;
    await pass(250);
    expect(one.leases.holds(id)).toBe(true);
    await fresh.store.write("app", (tx) => tx.run("DELETE FROM environment WHERE id = ?1", id));
    await pass(4_000);
    expect(one.leases.holds(id)).toBe(false);
    expect(one.told).toContain(`-${id}`);
  });

  test("logs in words what a node begins and ends to run", async () => {
    const said = () =>
      fresh.logged
        .splice(0)
        .map((line) => JSON.parse(line))
        .filter(({ message }) => message.startsWith("this node "));
    const { environments } = await fresh.store.write("app", (tx) =>
      createApp(tx, { id: "app_new", name: "New", environments: ["development"], nowMs: START_MS }),
    );
    const count = all.length;
    const everything = `${count} environments and the tasks for all environments`;
    await join();
    expect(said()).toMatchObject([{ message: `this node started to run ${everything}`, runs: everything }]);
    await fresh.store.write("app", (tx) => tx.run("DELETE FROM environment WHERE id = ?1", environments[0]?.id ?? 0));
    await pass(4_000);
    expect(said()).toMatchObject([{ message: "this node no longer runs 1 environment, which another node took over or an owner deleted" }]);
    const other = await join();
    await pass(7_000);
    const shared = said().map(({ message }) => message);
    expect(new Set(shared)).toEqual(new Set(["this node gave 1 environment to other nodes", "this node started to run 1 environment"]));
    other.runs = false;
    await pass(20_000);
    expect(said()).toMatchObject([{ message: expect.stringMatching(/^this node took over .* from a node that stopped responding$/) }]);
  });

  test("reports the live nodes and what each runs", async () => {
    const [one, other] = [await join(), await join()];
    await pass(7_000);
    other.runs = false;
    await pass(20_000);
    const told = await one.leases.listNodes();
    expect(told.map(({ live, own, house, environments, url }) => ({ live, own, house, environments, url }))).toEqual([
      { live: true, own: true, house: true, environments: [1, 2, 3], url: "http://127.0.0.1:1" },
      { live: false, own: false, house: false, environments: [], url: "http://127.0.0.1:2" },
    ]);
    expect(one.leases.nodes.live).toBe(1);
  });

  test("reports to each node how many serve", async () => {
    const three = [await join(), await join(), await join()];
    await pass(4_000);
    expect(three.map(({ leases }) => leases.nodes.live)).toEqual([3, 3, 3]);
  });
});

describe("a node that dies", () => {
  test("loses its leases within 15 seconds, but never before they expire", async () => {
    const [one, other] = [await join(), await join()];
    await pass(7_000);
    one.runs = false;
    const before = other.held.length;
    await pass(6_500);
    expect(other.held.length).toBe(before);
    expect(6_500 + (await passUntil(8_000, () => other.held.length === 4))).toBeLessThan(13_500);
    expect(takeoversOf(other)).toBe(4 - before);
  });

  test("leaves its leases to all live nodes", async () => {
    const [one, other, third] = [await join(), await join(), await join()];
    await pass(10_000);
    one.runs = false;
    await passUntil(14_000, () => other.held.length + third.held.length === 4);
    await pass(4_000);
    expect([other.held.length, third.held.length]).toEqual([2, 2]);
  });

  for (const [what, startMs] of [
    ["an hour ahead", START_MS + HOUR_MS],
    ["an hour behind", START_MS - HOUR_MS],
    ["of 1970", 0],
  ] as const) {
    test(`loses its leases equally fast to a node whose clock is ${what}`, async () => {
      const one = await join();
      const other = await join(startMs);
      await pass(7_000);
      one.runs = false;
      await pass(6_500);
      expect(other.held.length).toBe(2);
      await passUntil(7_000, () => other.held.length === 4);
    });
  }

  for (const [what, jumpMs] of [
    ["back", -HOUR_MS],
    ["forth", HOUR_MS],
  ] as const) {
    test(`loses its leases even if the database's clock was set ${what}`, async () => {
      const [one, other] = [await join(), await join()];
      await pass(7_000);
      one.runs = false;
      databaseMs += jumpMs;
      expect(await passUntil(14_500, () => other.held.length === 4)).toBeLessThanOrEqual(14_500);
    });
  }
});

test("a node that cannot take the lease of an environment whose row is held keeps and takes the others", async () => {
  const [one, other] = [await join(), await join()];
  await pass(7_000);
  const [stuck = 0] = other.held.filter((id) => id !== ALL_ENVIRONMENTS);
  const free = Promise.withResolvers<void>();
  one.heldUp = { environmentId: stuck, until: free.promise };
  other.runs = false;
  await passUntil(16_000, () => one.held.length === 3);
  await pass(30_000);
  expect(one.held).toEqual(all.filter((id) => id !== stuck));
  expect(one.lost).toEqual([]);
  free.resolve();
  one.heldUp = null;
  await passUntil(16_000, () => one.held.length === 4);
});

describe("a node that was stopped and continues", () => {
  test("holds no lease when it wakes, cannot write, and gets its share again", async () => {
    const one = await join();
    const other = await join();
    await pass(7_000);
    const [own = 0] = one.held.filter((id) => id !== ALL_ENVIRONMENTS);
    const store = one.leases.storeOf(own);
    expect(await one.passes(store)).toBe(true);
    one.runs = false;
    await pass(20_000);
    expect(other.held).toEqual(all);
    expect(await one.passes(store)).toBe(false);
    // The node's clock continued without it.
    await one.clock.leap(20_000);
    expect(one.leases.holds(own)).toBe(false);
    expect(one.told).toContain(`-${own}`);
    one.runs = true;
    await pass(7_000);
    expect([one.held.length, other.held.length]).toEqual([2, 2]);
    expect(await one.passes(store)).toBe(false);
  });

  test("does not give back what another node took while it was stopped", async () => {
    const one = await join();
    const idle = Promise.withResolvers<void>();
    one.busy = idle.promise;
    const other = await join();
    await pass(7_000);
    // The node gives back half of its leases, which are still in use.
    expect([one.held, other.held]).toEqual([all, []]);
    one.runs = false;
    await pass(20_000);
    expect(other.held).toEqual(all);
    idle.resolve();
    await settle();
    await one.clock.leap(27_000);
    one.runs = true;
    await pass(7_000);
    expect([one.held.length, other.held.length]).toEqual([2, 2]);
    expect([one, other].map(({ leases }) => leases.count().takeovers)).toEqual([0, 4]);
    expect(other.lost).toEqual([]);
  });

  test("within its lease continues with the leases it had", async () => {
    const one = await join();
    await pass(3_000);
    const store = one.leases.storeOf(1);
    one.runs = false;
    databaseMs += 8_000;
    await one.clock.leap(8_000);
    one.runs = true;
    await pass(3_500);
    expect(one.held).toEqual(all);
    expect(await one.passes(store)).toBe(true);
    expect(one.told.filter((word) => !word.startsWith("+"))).toEqual([]);
  });
});

describe("a node that cannot renew", () => {
  test("stops before another node can start, and starts again when it can", async () => {
    const [one, other] = [await join(), await join()];
    await pass(7_000);
    one.way = "cut";
    const stopped = await passUntil(10_000, () => one.held.length === 0);
    expect(other.held.length).toBe(2);
    expect(stopped + (await passUntil(10_000, () => other.held.length === 4))).toBeLessThan(15_000);
    one.way = "open";
    await pass(10_000);
    expect([one.held.length, other.held.length]).toEqual([2, 2]);
  });

  test("in two turns in a row keeps its leases, and no other node takes one", async () => {
    const [one, other] = [await join(), await join()];
    await pass(7_000);
    const before = [one.held, other.held];
    for (let round = 0; round < 3; round++) {
      // The last renewal is at most three seconds old, and the two turns that follow fail.
      const failed = () => fresh.logged.filter((line) => line.includes("cannot be renewed")).length;
      const earlier = failed();
      one.way = "cut";
      await passUntil(8_000, () => failed() === earlier + 2);
      one.way = "open";
      await passUntil(2_000, () => one.held.length === 2);
      await pass(4_000);
      expect([one.held, other.held]).toEqual(before);
    }
    expect([one, other].map(({ lost, leases }) => [lost, leases.count().takeovers])).toEqual([
      [[], 0],
      [[], 0],
    ]);
    expect([...one.told, ...other.told].filter((word) => word === "=")).toEqual([]);
  });

  test("and whose turns take two seconds each still renews every three", async () => {
    const [one, other] = [await join(), await join()];
    await pass(7_000);
    const before = [one.held, other.held];
    for (let round = 0; round < 6; round++) {
      const slow = Promise.withResolvers<void>();
      one.slow = slow.promise;
      await pass(2_000);
      slow.resolve();
      await settle();
      one.slow = Promise.resolve();
      await pass(1_000);
    }
    expect([one.held, other.held]).toEqual(before);
    expect(one.lost).toEqual([]);
  });

  test("because a session holds a lock logs what to do", async () => {
    const one = await join();
    one.way = "locked";
    await pass(3_500);
    const [told] = fresh.logged.map((line) => JSON.parse(line)).filter(({ message }) => message === "the leases of this node cannot be renewed");
    expect(told).toMatchObject({
      cause: "canceling statement due to lock timeout (55P03).",
      todo: expect.stringContaining("end the session that holds a lock"),
    });
    one.way = "open";
    await pass(3_500);
  });

  test("and is the only node continues with the same leases once it can", async () => {
    const one = await join();
    const store = one.leases.storeOf(1);
    one.way = "cut";
    await pass(60_000);
    expect(one.held).toEqual([]);
    one.way = "open";
    await pass(3_500);
    expect(one.held).toEqual(all);
    expect(await one.passes(store)).toBe(true);
    expect(one.told.toSorted()).toEqual(["+0", "+1", "+2", "+3", "="]);
  });

  test("and whose renewal took longer than a lease reports its leases again only after the next renewal", async () => {
    const one = await join();
    const slow = Promise.withResolvers<void>();
    one.slow = slow.promise;
    await pass(20_000);
    expect(one.held).toEqual([]);
    slow.resolve();
    await settle();
    // The late answer describes the moment of the request.
    expect([one.held, one.told.includes("=")]).toEqual([[], false]);
    await pass(3_500);
    expect(one.held).toEqual(all);
    expect(one.told.filter((word) => word === "=")).toHaveLength(1);
  });

  test("and gets no answers holds no lease until it knows of it, and all leases afterwards", async () => {
    const one = new Node(START_MS);
    nodes.push(one);
    one.way = "deaf";
    await one.leases.start("http://127.0.0.1:1");
    await pass(7_000);
    expect([one.held, one.told]).toEqual([[], []]);
    one.way = "open";
    await pass(3_500);
    expect(one.held).toEqual(all);
  });
});

test("a write that began before the lease was lost is refused even after the node took the lease again", async () => {
  const one = await join();
  const before = one.leases.storeOf(1);
  // Another node took the lease, and this node took it back.
  await fresh.store.write("app", (tx) => tx.run("UPDATE node_lease SET epoch = epoch + 2 WHERE environment_id = 1"));
  expect(await one.passes(before)).toBe(false);
});

test("a write that began before the lease was lost is refused in its transaction, and the keeper learns of the loss", async () => {
  const one = await join();
  await fresh.store.write("app", (tx) => tx.run("UPDATE node_lease SET node = 'nod_other', epoch = epoch + 1 WHERE environment_id = 1"));
  expect(one.leases.holds(1)).toBe(true);
  expect(await one.passes()).toBe(false);
  await settle();
  expect(one.leases.holds(1)).toBe(false);
  expect(one.told).toContain("-1");
  expect(await one.passes(one.leases.storeOf(2))).toBe(true);
});
