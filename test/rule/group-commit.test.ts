/** Group commit: which writes share a group, how long it waits for more, the drafts of one call, and mixtures of failures. */
import { Database } from "bun:sqlite";
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { systemClock } from "../../src/base/clock.ts";
import { GroupCommit } from "../../src/store/group-commit/group-commit.ts";
import type { GroupDatabase } from "../../src/store/group-commit/group-database.ts";
import { CommitEffects, type GroupWriter } from "../../src/store/group-commit/transaction.ts";
import { type Fence, type Reader, type Store, StoreUnavailable, type Writer } from "../../src/store/port.ts";
import { openSqlite } from "../../src/store/sqlite/sqlite.ts";
import { holdRealClock } from "../kit/moved-clock.ts";
import { PATIENCE_MS } from "../kit/patience.ts";

let directory: string;
let file: string;
let store: Store;
let groups: number[];

const open = (): Promise<Store> => openSqlite(file, { clock: systemClock, segmentKeys: 64, onGroup: (size) => groups.push(size) });

beforeEach(async () => {
  directory = mkdtempSync(join(tmpdir(), "relay-group-"));
  file = join(directory, "relay.db");
  groups = [];
  store = await open();
});

afterEach(async () => {
  await store.close();
  rmSync(directory, { recursive: true, force: true });
});

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
const burn = (ms: number): void => {
  const endMs = systemClock.monotonicMs() + ms;
  while (systemClock.monotonicMs() < endMs);
};
const addApp = (tx: Writer, id: string) => tx.run("INSERT INTO app (id, name, created_at) VALUES (?1, ?1, 0)", id);
const listApps = async (tx: Reader): Promise<string[]> => (await tx.all<{ id: string }>("SELECT id FROM app ORDER BY rowid")).map(({ id }) => id);

describe("a group", () => {
  test("of one write waits for no other write, and runs in the next turn of the event loop", async () => {
    let ran = false;
    const written = store.write("app", async () => {
      ran = true;
    });
    expect(ran).toBe(false);
    await turn();
    expect(ran).toBe(true);
    await written;
  });

  test("that other writes joined waits one more turn for late writes, and never a second turn", async () => {
    using _ = holdRealClock();
    const order: string[] = [];
    const add = (id: string) =>
      store.write("app", async (tx) => {
        order.push(id);
        await addApp(tx, id);
      });
    const writes = [add("a"), add("b")];
    await turn();
    expect(order).toEqual([]);
    writes.push(add("c"), add("d"));
    await turn();
    expect(order).toEqual(["a", "b", "c", "d"]);
    await Promise.all(writes);
    expect(groups).toEqual([4]);
    expect(await store.read(listApps)).toEqual(["a", "b", "c", "d"]);
  });

  test("keeps the order of arrival, and leaves no write waiting when writes never stop", async () => {
    // Time does not end a group here.
    using _ = holdRealClock();
    let now = 0;
    const waited: number[] = [];
    const order: number[] = [];
    const writes: Promise<void>[] = [];
    for (; now < 200; now++) {
      for (let more = 0; more < 3; more++) {
        const number = writes.length;
        const cameAt = now;
        writes.push(
          store
            .write("app", async () => {
              order.push(number);
            })
            .then(() => void waited.push(now - cameAt)),
        );
      }
      await turn();
    }
    await Promise.all(writes);
    expect(order).toEqual(writes.map((_, at) => at));
    expect(Math.max(...waited)).toBeLessThanOrEqual(4);
  });

  test("that waits one more turn is written before the store closes", async () => {
    const writes = ["a", "b"].map((id) => store.write("app", (tx) => addApp(tx, id)));
    const closed = store.close();
    expect(await Promise.all(writes)).toEqual([1, 1]);
    await closed;
    store = await open();
    expect(await store.read(listApps)).toEqual(["a", "b"]);
  });
});

test("each fence of a group is checked, so one that holds lets no other write pass", async () => {
  const [holds, fails] = [async () => undefined, async () => Promise.reject(new StoreUnavailable("The lease was lost."))];
  const add = (id: string, fence: Fence) => store.withFence(fence).write("app", (tx) => addApp(tx, id));
  const ended = await Promise.allSettled([add("a", holds), add("b", fails), add("c", holds)]);
  expect(ended.map(({ status }) => status)).toEqual(["fulfilled", "rejected", "fulfilled"]);
  expect(await store.read(listApps)).toEqual(["a", "c"]);
});

test.each([
  ["every write", [true, true], true],
  ["only the first write", [true, false], false],
  ["only the last write", [false, true], false],
])("a group wakes other nodes unless it was suppressed by each: %s", (_what, quiet, isQuiet) => {
  const effects = new CommitEffects();
  for (const one of quiet) effects.add({ committed: [], changes: [], isQuiet: one } as unknown as GroupWriter, { captured: false });
  expect(effects.isQuiet).toBe(isQuiet);
});

describe("drafts", () => {
  test("are processed in larger calls the less time they take, 64 at most", async () => {
    // On the held clock these drafts take no time, even on a busy machine.
    using _ = holdRealClock();
    const calls: number[] = [];
    const add = store.batchWrites("app", async (_tx, drafts: readonly number[]) => {
      calls.push(drafts.length);
      return drafts;
    });
    const all = Array.from({ length: 400 }, (_, at) => at);
    expect(await Promise.all(all.map(add))).toEqual(all);
    expect(calls[0]).toBe(8);
    expect(Math.max(...calls)).toBe(64);
    expect(calls.reduce((sum, size) => sum + size)).toBe(400);
  });

  test("that each take long block the event loop hardly longer than separate writes, and later ones get their turn", async () => {
    const add = store.batchWrites("app", async (_tx, drafts: readonly number[]) => {
      for (const _ of drafts) burn(3);
      return drafts;
    });
    const quick = store.batchWrites("app", async (_tx, drafts: readonly number[]) => drafts);
    // Drafts that take no time first raise the batch to its maximum.
    await Promise.all(Array.from({ length: 200 }, (_, at) => quick(at)));
    const slow = () => Promise.all(Array.from({ length: 64 }, (_, at) => add(at)));
    await slow();
    groups.length = 0;
    let turns = 0;
    let over = false;
    const watch = (async () => {
      for (; !over; turns++) await turn();
    })();
    await slow();
    over = true;
    await watch;
    expect(Math.max(...groups)).toBeLessThanOrEqual(8);
    // The event loop turns between the groups.
    expect(turns).toBeGreaterThanOrEqual(groups.length);
  });
});

/** Returns the same numbers for the same seed. */
function random(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
}

type Kind = "good" | "throws" | "throws late" | "same row" | "caught inside";

describe("any mixture of drafts and writes", () => {
  test.each([1, 2, 3, 4, 5, 6])(
    "gives each its own result, and keeps rows, keys and callbacks only of those that succeeded (seed %d)",
    async (seed) => {
      const below = random(seed);
      const called: string[] = [];
      const kept: string[] = [];
      const hashOf = (id: string): Uint8Array => Bun.CryptoHasher.hash("sha256", id).slice(0, 16) as unknown as Uint8Array;
      const one = async (tx: Writer, { id, kind }: { id: string; kind: Kind }): Promise<string> => {
        if ((await tx.keys.find(hashOf(id))).length > 0) throw new Error(`key of ${id} taken`);
        if (kind === "caught inside")
          await tx
            .attempt(async () => {
              await tx.keys.add(hashOf(`${id} inside`), 1);
              await addApp(tx, `${id} inside`);
              tx.afterCommit(() => called.push(`${id} inside`));
              throw new Error("inside");
            })
            .catch(() => undefined);
        if (kind === "throws") throw new Error(`no ${id}`);
        await tx.keys.add(hashOf(id), 1);
        tx.afterCommit(() => called.push(id));
        await addApp(tx, kind === "same row" ? "taken" : id);
        if (kind === "throws late") throw new Error(`no ${id}`);
        return `did ${id}`;
      };
      const roads = [
        store.batchWrites("app", async (tx, drafts: readonly { id: string; kind: Kind }[]) => {
          const done: string[] = [];
          for (const draft of drafts) done.push(await one(tx, draft));
          return done;
        }),
        store.batchWrites("relay", async (tx, drafts: readonly { id: string; kind: Kind }[]) => {
          const done: string[] = [];
          for (const draft of drafts) done.push(await one(tx, draft));
          return done;
        }),
        (draft: { id: string; kind: Kind }) => store.write("dashboard", (tx) => one(tx, draft)),
      ];
      await store.write("app", (tx) => addApp(tx, "taken"));
      const kinds: readonly Kind[] = ["throws", "throws late", "same row", "caught inside"];
      for (let wave = 0; wave < 25; wave++) {
        const isFull = wave % 8 === 7;
        if (isFull)
          await store.write("app", async (tx) =>
            tx.get(`PRAGMA max_page_count = ${(await tx.get<{ page_count: number }>("PRAGMA page_count"))?.page_count}`),
          );
        const drafts = Array.from({ length: 1 + below(90) }, (_, at) => {
          const kind: Kind = isFull || below(12) > 0 ? "good" : (kinds[below(4)] ?? "good");
          return { id: `${seed} ${wave} ${at}${isFull ? "x".repeat(3_000) : ""}`, kind };
        });
        let road = below(3);
        const answers = await Promise.allSettled(
          drafts.map((draft) => {
            if (below(6) === 0) road = below(3);
            return (roads[road] as (typeof roads)[number])(draft);
          }),
        );
        for (const [at, answer] of answers.entries()) {
          const { id, kind } = drafts[at] as (typeof drafts)[number];
          const succeeds = kind === "good" || kind === "caught inside";
          if (answer.status === "fulfilled") {
            expect([succeeds, answer.value]).toEqual([true, `did ${id}`]);
            kept.push(id);
          } else if (succeeds) expect([isFull, answer.reason]).toEqual([true, expect.any(StoreUnavailable)]);
          else if (!(answer.reason instanceof StoreUnavailable)) expect(String(answer.reason)).toContain(kind === "same row" ? "UNIQUE" : `no ${id}`);
        }
        if (isFull) await store.write("app", (tx) => tx.get("PRAGMA max_page_count = 4294967294"));
        expect(called).toEqual(kept);
        expect(await store.read(listApps)).toEqual(["taken", ...kept]);
        if (wave < 16 || below(5) > 0) continue;
        await store.close();
        store = await open();
        expect(await store.read(listApps)).toEqual(["taken", ...kept]);
        // The batch writers belong to the store that was closed.
        break;
      }
      const keysOf = (ids: readonly string[]) =>
        store.write("app", async (tx) => {
          const found: boolean[] = [];
          for (const id of ids) found.push((await tx.keys.find(hashOf(id))).length > 0);
          return found;
        });
      expect(await keysOf(kept)).toEqual(kept.map(() => true));
      expect(await keysOf(kept.map((id) => `${id} inside`))).toEqual(kept.map(() => false));
    },
  );
});

test("drafts wait for another process that writes between two groups, and see its rows", async () => {
  // Lets the other process hold the lock for any time.
  using _ = holdRealClock();
  const add = store.batchWrites("app", async (tx, ids: readonly string[]) => {
    const found: (string | null)[] = [];
    for (const id of ids) {
      const there = await tx.get("SELECT 1 FROM app WHERE id = ?1", id);
      if (there === null) await addApp(tx, id);
      found.push(there === null ? id : null);
    }
    return found;
  });
  const script = `
    const { Database } = require("bun:sqlite");
    const db = new Database(${JSON.stringify(file)});
    db.run("PRAGMA busy_timeout = ${PATIENCE_MS}");
    let made = 0;
    for (let at = 0; at < 300; at++) made += db.run("INSERT OR IGNORE INTO app (id, name, created_at) VALUES (?1, 'other', 0)", ["n" + at]).changes;
    console.log(made);`;
  const other = Bun.spawn([process.execPath, "-e", script], { stdout: "pipe", stderr: "inherit" });
  const mine: (string | null)[] = [];
  for (let at = 299; at >= 0; at -= 20) {
    mine.push(...(await Promise.all(Array.from({ length: Math.min(20, at + 1) }, (_, back) => add(`n${at - back}`)))));
    await Bun.sleep(5);
  }
  const theirs = Number(await new Response(other.stdout).text());
  expect(mine).toHaveLength(300);
  expect(mine.filter((id) => id !== null).length + theirs).toBe(300);
  using database = new Database(file);
  expect(database.query("SELECT count(*) AS apps FROM app").get()).toEqual({ apps: 300 });
});

const LIMIT = { groupMs: 50, waitMs: 20_000, firstDrafts: 1, mostDrafts: 1 };

/** A group commit over a database that stores nothing. `own` replaces its members. */
function groupOver(
  beginsAhead: boolean,
  commit: GroupDatabase["commit"],
  onGroup: (size: number) => void = () => undefined,
  own: Partial<GroupDatabase> = {},
): GroupCommit {
  const none = async () => null;
  const nothing = async () => undefined;
  const connection = {
    ...{ get: none, all: async () => [], run: async () => 0, runEach: async () => 0, post: nothing, postEach: nothing, settle: nothing },
    ...{ firstOf: (error: unknown) => error, exec: () => undefined, inTransaction: true },
  };
  const keys = { mark: 0, undoTo: () => undefined, find: () => [], add: () => undefined, deleteBefore: async () => false, deleteSlot: nothing };
  return new GroupCommit(
    {
      ...{
        connection,
        keys,
        limit: LIMIT,
        begin: async () => 1,
        beginsAhead,
        expectedVersion: null,
        isBegun: false,
      },
      ...{ capture: () => undefined, rollBack: () => undefined, mayRunAgain: () => false, commit },
      watch: () => ({ over: (working) => working, stop: () => undefined }),
      ...own,
    },
    { onGroup, onChanges: () => undefined },
  );
}

test("groups that become durable in another order are reported in commit order", async () => {
  const told: number[] = [];
  const durables = [1, 2].map(() => Promise.withResolvers<void>());
  let commits = 0;
  const group = groupOver(false, async () => {
    commits += 1;
    return { durable: durables[commits - 1]?.promise ?? null };
  });
  const write = (number: number) => group.add("app", async (tx) => tx.afterCommit(() => told.push(number)));
  const first = write(1);
  while (commits < 1) await turn();
  const second = write(2);
  while (commits < 2) await turn();
  const third = write(3);
  while (commits < 3) await turn();
  durables[1]?.resolve();
  for (let at = 0; at < 5; at++) await turn();
  expect(told).toEqual([]);
  durables[0]?.resolve();
  await Promise.all([first, second, third]);
  expect(told).toEqual([1, 2, 3]);
});

/** The group sizes for a constant number of waiting callers, when the next group starts before the previous one is durable. */
const TOGETHER: readonly (readonly [callers: number, beginsAhead: boolean, size: number])[] = [
  [40, true, 40],
  [64, true, 64],
  [65, true, 33],
  [100, true, 50],
  [192, true, 96],
  [192, false, 192],
];

for (const [callers, beginsAhead, size] of TOGETHER)
  test(`${callers} concurrent calls become groups of ${size}${beginsAhead ? ", and the next is read while one is written" : " if a group ends before the next starts"}`, async () => {
    // A group also ends after some milliseconds, however few calls it contains.
    using _ = holdRealClock();
    const sizes: number[] = [];
    const group = groupOver(
      beginsAhead,
      async () => ({ durable: turn() }),
      (made) => sizes.push(made),
    );
    await Promise.all(Array.from({ length: callers }, () => group.add("app", async () => undefined)));
    expect(Math.max(...sizes)).toBe(size);
    expect(sizes.reduce((sum, one) => sum + one, 0)).toBe(callers);
    await group.close();
  });

/** Optimistic groups under way, the calls that wait, and whether these begin as the next group. */
const UNDER_WAY: readonly (readonly [sizes: readonly number[], waiting: number, begins: boolean])[] = [
  [[4], 3, false],
  [[4], 4, true],
  [[4], 9, true],
  [[4, 4], 9, false],
  [[1], 1, true],
];

for (const [sizes, waiting, begins] of UNDER_WAY)
  test(`${waiting} calls ${begins ? "begin" : "wait"} while optimistic groups of ${sizes.join(" and ")} are under way, and begin when the first ends`, async () => {
    using _ = holdRealClock();
    const ends = [1, 2, 3].map(() => Promise.withResolvers<void>());
    const made: number[] = [];
    const group = groupOver(
      true,
      async () => {
        const ended = ends[made.length]?.promise ?? Promise.resolve();
        return { durable: ended, ended };
      },
      (size) => made.push(size),
      { expectedVersion: 1 },
    );
    const call = (count: number) => Array.from({ length: count }, () => group.add("app", async () => undefined));
    const written: Promise<unknown>[] = [];
    for (const size of sizes) {
      written.push(...call(size));
      while (made.reduce((sum, one) => sum + one, 0) < written.length) await turn();
    }
    written.push(...call(waiting));
    for (let at = 0; at < 9; at++) await turn();
    expect(made).toEqual(begins ? [...sizes, waiting] : [...sizes]);
    ends[0]?.resolve();
    while (made.length === sizes.length) await turn();
    expect(made).toEqual([...sizes, waiting]);
    for (const { resolve } of ends) resolve();
    await Promise.all(written);
    await group.close();
  });

describe("a write that waits for a lock", () => {
  /** The time that each begin takes and whether it gets the lock, and what two writes get. The second comes 15 s after the first. */
  const WAITS: readonly (readonly [begins: readonly (readonly [ms: number, locked: boolean])[], first: string, second: string])[] = [
    [[[30_000, true]], "stored", "stored"],
    [
      [
        [15_000, false],
        [5_000, true],
      ],
      "stored",
      "stored",
    ],
    [
      [
        [15_000, false],
        [15_000, false],
        [1, true],
      ],
      "no lock",
      "stored",
    ],
    [
      [
        [15_000, false],
        [15_000, false],
        [15_000, false],
      ],
      "no lock",
      "no lock",
    ],
  ];

  for (const [begins, first, second] of WAITS)
    test(`for ${begins.map(([ms, locked]) => `${ms} ms with${locked ? "" : "out"} success`).join(", then ")} gets: ${first}, and a later one: ${second}`, async () => {
      using clock = holdRealClock();
      const ran: string[] = [];
      const writes: Promise<string>[] = [];
      const left = [...begins];
      const group = groupOver(true, async () => ({ durable: null }), undefined, {
        mayRunAgain: () => true,
        begin: async () => {
          const [ms, locked] = left.shift() ?? [0, true];
          clock.pass(Math.min(ms, 15_000));
          if (writes.length === 1) write("second");
          clock.pass(Math.max(ms - 15_000, 0));
          if (!locked) throw new StoreUnavailable("no lock");
          return 1;
        },
      });
      const write = (name: string): void => {
        const written = group.add("app", async () => void ran.push(name));
        writes.push(
          written.then(
            () => "stored",
            (error: Error) => error.message,
          ),
        );
      };
      write("first");
      await writes[0];
      expect(await Promise.all(writes)).toEqual([first, second]);
      expect(ran).toEqual(["first", "second"].filter((_, at) => [first, second][at] === "stored"));
      await group.close();
    });

  test("of an earlier write is rejected before the next transaction begins", async () => {
    using clock = holdRealClock();
    const group = groupOver(true, async () => ({ durable: null }));
    const add = (work = async () => undefined) =>
      group.add("app", work).then(
        () => "stored",
        (error: Error) => error.message,
      );
    const later: Promise<string>[] = [];
    const first = add(async () => {
      later.push(add());
      clock.pass(LIMIT.waitMs);
      later.push(add());
      clock.pass(1);
      return undefined;
    });
    expect(await first).toBe("stored");
    expect(await Promise.all(later)).toEqual(["The write waited too long for earlier ones.", "stored"]);
    await group.close();
  });
});
