/** Several nodes over one database, each with a clock of its own that the test moves, beside the database's. */
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { createApp } from "../../src/platform/account/app.ts";
import { ALL_ENVIRONMENTS } from "../../src/store/lease/lease-holder.ts";
import { NodeLeaseManager } from "../../src/store/lease/node-lease-holder.ts";
import { type Store, StoreUnavailable, type Writer } from "../../src/store/port.ts";
import { tellApart } from "../../src/store/postgres/error.ts";
import { openTestStore, type TestStore } from "../kit/fresh-store.ts";
import { START_MS, settle, VirtualClock } from "../kit/virtual-clock.ts";

const HOUR_MS = 3_600_000;
/** As migrations/postgres has them. */
const TABLES = [
  `CREATE TABLE node (id TEXT PRIMARY KEY, host TEXT NOT NULL, pid INTEGER NOT NULL, version TEXT NOT NULL, schema_version INTEGER NOT NULL,
     url TEXT, started_at INTEGER NOT NULL, seen_at INTEGER NOT NULL, probes INTEGER NOT NULL DEFAULT 0,
     base_url TEXT, clock_at INTEGER)`,
  "CREATE TABLE node_lease (environment_id INTEGER PRIMARY KEY, node TEXT, epoch INTEGER NOT NULL, until INTEGER NOT NULL)",
];

class Node {
  readonly clock: VirtualClock;
  readonly leases: NodeLeaseManager;
  /** What its keeper was told: `+2` for a beginning, `-2` for an end, `=` where it has again what seemed over. */
  readonly told: string[] = [];
  /** Environments that it did not give back, and had no more. */
  readonly lost: number[] = [];
  /** While it is true it runs as others do. */
  runs = true;
  /** Its way to the database: open, cut off, or losing every answer. */
  way: "open" | "cut" | "locked" | "deaf" = "open";
  /** What a write waits for. */
  slow: Promise<void> = Promise.resolve();
  /** What an end waits for. */
  busy: Promise<void> = Promise.resolve();

  constructor(startMs: number) {
    this.clock = new VirtualClock(startMs);
    const write: Store["write"] = async (origin, work) => {
      if (this.way === "cut") throw new StoreUnavailable("no way there");
      if (this.way === "locked") throw tellApart(Object.assign(new Error("canceling statement due to lock timeout"), { errno: "55P03" }));
      await this.slow;
      const result = await fresh.store.write(origin, work);
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

  /** Whether a write of its environment passes now. */
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

/** Time passes for the database and for every node that runs; at no moment do two of them believe in the same lease. */
async function pass(ms: number): Promise<void> {
  for (let left = ms; left > 0; left -= 250) {
    databaseMs += 250;
    for (const node of nodes) if (node.runs) await node.clock.advance(250);
    await settle();
    const held = nodes.filter(({ runs }) => runs).flatMap((node) => node.held);
    expect(held.length).toBe(new Set(held).size);
  }
}

/** Milliseconds until it came about. */
async function passUntil(mostMs: number, done: () => boolean): Promise<number> {
  for (let ms = 0; ms <= mostMs; ms += 250) {
    if (done()) return ms;
    await pass(250);
  }
  throw new Error(`It did not come about within ${mostMs} ms.`);
}

const takeoversOf = (node: Node) => node.leases.count().takeovers;

describe("who holds what", () => {
  test("one node takes the house and every environment, and begins each", async () => {
    const one = await join();
    expect(one.held).toEqual(all);
    expect(one.told.toSorted()).toEqual(["+0", "+1", "+2", "+3"]);
    expect(takeoversOf(one)).toBe(0);
  });

  test("one that joins gets half, each ended by the one before it begins at the other", async () => {
    const one = await join();
    const other = await join();
    await pass(7_000);
    expect([one.held.length, other.held.length]).toEqual([2, 2]);
    for (const id of other.held) expect(one.told).toContain(`-${id}`);
    expect([takeoversOf(one), takeoversOf(other)]).toEqual([0, 0]);
  });

  test("what still runs is held until it has ended", async () => {
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

  test("at a graceful stop the others have it at their next look, and nothing counts as taken over", async () => {
    const [one, other] = [await join(), await join()];
    await pass(7_000);
    await one.leases.release();
    nodes = [other];
    expect(await passUntil(1_000, () => other.held.length === 4)).toBeLessThanOrEqual(250);
    expect(takeoversOf(other)).toBe(0);
    expect((await other.leases.listNodes()).map(({ own }) => own)).toEqual([true]);
  });

  test("a new environment has a lease at once, and one that is gone has none", async () => {
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

  test("what is told of the nodes says who is there and who runs what", async () => {
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

  test("each knows how many serve", async () => {
    const three = [await join(), await join(), await join()];
    await pass(4_000);
    expect(three.map(({ leases }) => leases.nodes.live)).toEqual([3, 3, 3]);
  });
});

describe("a node that dies", () => {
  test("is taken over within 15 seconds, and never before its lease is over", async () => {
    const [one, other] = [await join(), await join()];
    await pass(7_000);
    one.runs = false;
    const before = other.held.length;
    await pass(6_500);
    expect(other.held.length).toBe(before);
    expect(6_500 + (await passUntil(8_000, () => other.held.length === 4))).toBeLessThan(13_500);
    expect(takeoversOf(other)).toBe(4 - before);
  });

  test("is shared by those that live", async () => {
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
    test(`is taken over as soon by one whose clock is ${what}, and no sooner`, async () => {
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
    test(`is taken over where the database's clock was set ${what} meanwhile`, async () => {
      const [one, other] = [await join(), await join()];
      await pass(7_000);
      one.runs = false;
      databaseMs += jumpMs;
      expect(await passUntil(14_500, () => other.held.length === 4)).toBeLessThanOrEqual(14_500);
    });
  }
});

describe("a node that was stopped and goes on", () => {
  test("believes in nothing when it wakes, its writes are refused, and it gets its share again", async () => {
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
    // Its clock went on without it.
    await one.clock.leap(20_000);
    expect(one.leases.holds(own)).toBe(false);
    expect(one.told).toContain(`-${own}`);
    one.runs = true;
    await pass(7_000);
    expect([one.held.length, other.held.length]).toEqual([2, 2]);
    expect(await one.passes(store)).toBe(false);
  });

  test("gives back nothing that another one took while it was stopped", async () => {
    const one = await join();
    const idle = Promise.withResolvers<void>();
    one.busy = idle.promise;
    const other = await join();
    await pass(7_000);
    // It is giving back a half, which still runs there.
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

  test("within its lease goes on with what it had", async () => {
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
  test("stops before another may begin, and begins again when it can", async () => {
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

  test("because somebody holds a lock there says in the log what to do", async () => {
    const one = await join();
    one.way = "locked";
    await pass(3_500);
    const [told] = fresh.logged.map((line) => JSON.parse(line)).filter(({ message }) => message === "the leases of this node cannot be renewed");
    expect(told).toMatchObject({
      cause: "canceling statement due to lock timeout (55P03).",
      todo: expect.stringContaining("end what holds a lock or is slow there"),
    });
    one.way = "open";
    await pass(3_500);
  });

  test("and is alone goes on with the same leases once it can", async () => {
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

  test("and whose renewal took longer than a lease says that it has it again once the next one tells so", async () => {
    const one = await join();
    const slow = Promise.withResolvers<void>();
    one.slow = slow.promise;
    await pass(20_000);
    expect(one.held).toEqual([]);
    slow.resolve();
    await settle();
    // What it was told now is of when it asked.
    expect([one.held, one.told.includes("=")]).toEqual([[], false]);
    await pass(3_500);
    expect(one.held).toEqual(all);
    expect(one.told.filter((word) => word === "=")).toHaveLength(1);
  });

  test("and hears no answers takes nothing that it does not know of, and all of it afterwards", async () => {
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

test("a write that began before the lease went is refused in its own transaction, and its room is told", async () => {
  const one = await join();
  await fresh.store.write("app", (tx) => tx.run("UPDATE node_lease SET node = 'nod_other', epoch = epoch + 1 WHERE environment_id = 1"));
  expect(one.leases.holds(1)).toBe(true);
  expect(await one.passes()).toBe(false);
  await settle();
  expect(one.leases.holds(1)).toBe(false);
  expect(one.told).toContain("-1");
  expect(await one.passes(one.leases.storeOf(2))).toBe(true);
});
