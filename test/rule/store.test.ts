/** What a store must keep, whatever the database: the conformance suite of the port. */

import { Database } from "bun:sqlite";
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { chmodSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { systemClock } from "../../src/ground/clock.ts";
import { DataDirectoryTaken, lockDataDirectory } from "../../src/store/lock.ts";
import { MigrationRefused } from "../../src/store/migrate.ts";
import { type Reader, type Store, StoreUnavailable, UniqueViolation, type Writer } from "../../src/store/port.ts";
import { openSqlite } from "../../src/store/sqlite.ts";
import { settle, VirtualClock } from "../kit/virtual-clock.ts";

let directory: string;
let file: string;
let store: Store;
let groups: number[];

beforeEach(async () => {
  directory = mkdtempSync(join(tmpdir(), "relay-store-"));
  file = join(directory, "relay.db");
  groups = [];
  store = await openSqlite(file, { clock: systemClock, onGroup: (size) => groups.push(size) });
});

afterEach(async () => {
  await store.close();
  rmSync(directory, { recursive: true, force: true });
});

const addApp = (id: string) => async (tx: Writer) => {
  await tx.run("INSERT INTO app (id, name, created_at) VALUES (?1, ?1, 0)", id);
  return id;
};
const listApps = async (tx: Reader): Promise<string[]> => (await tx.all<{ id: string }>("SELECT id FROM app ORDER BY id")).map((row) => row.id);

describe("a write", () => {
  test("is seen by the next read, and answers what its work answered", async () => {
    expect(await store.write("app", addApp("a"))).toBe("a");
    expect(await store.read(listApps)).toEqual(["a"]);
  });

  test("that throws is undone alone; the others of its group are kept", async () => {
    const failed = store.write("app", async (tx) => {
      await addApp("b")(tx);
      throw new Error("no");
    });
    const others = [store.write("app", addApp("a")), store.write("app", addApp("c"))];
    await expect(failed).rejects.toThrow("no");
    await Promise.all(others);
    expect(await store.read(listApps)).toEqual(["a", "c"]);
  });

  test("that waits while the writer is busy joins one group, committed once", async () => {
    await Promise.all(Array.from({ length: 100 }, (_, index) => store.write("app", addApp(`a${index}`))));
    // A group holds the event loop for milliseconds, which on a busy machine is less than all of them.
    expect(groups.reduce((sum, size) => sum + size, 0)).toBe(100);
    expect(groups.length).toBeLessThan(10);
  });

  test("that takes long leaves those behind it to the next group, in their order, and the loop turns between", async () => {
    const order: number[] = [];
    let turns = 0;
    let over = false;
    const turn = (): void => {
      turns += 1;
      if (!over) setImmediate(turn);
    };
    setImmediate(turn);
    const slow = Array.from({ length: 6 }, (_, index) =>
      store.write("app", async (tx) => {
        await addApp(`a${index}`)(tx);
        const endMs = systemClock.monotonicMs() + 13;
        while (systemClock.monotonicMs() < endMs);
        order.push(index);
      }),
    );
    await Promise.all(slow);
    over = true;
    expect(order).toEqual([0, 1, 2, 3, 4, 5]);
    expect(groups).toEqual([1, 1, 1, 1, 1, 1]);
    expect(turns).toBeGreaterThan(5);
    expect((await store.read(listApps)).length).toBe(6);
  });

  test("that are gathered are one call where they wait together, and each is answered in its place", async () => {
    const calls: number[] = [];
    const add = store.gather("app", async (tx, ids: readonly string[]) => {
      calls.push(ids.length);
      for (const id of ids) await addApp(id)(tx);
      return ids.map((id) => id.toUpperCase());
    });
    const before = ["a", "b"].map(add);
    const between = store.write("app", addApp("c"));
    const after = ["d", "e", "f"].map(add);
    await between;
    expect(await Promise.all([...before, ...after])).toEqual(["A", "B", "D", "E", "F"]);
    expect(calls).toEqual([2, 3]);
    expect(groups).toEqual([6]);
  });

  test("that are gathered fail each by itself", async () => {
    const called: string[] = [];
    const add = store.gather("app", async (tx, ids: readonly string[]) => {
      for (const id of ids) {
        await addApp(id)(tx);
        tx.afterCommit(() => called.push(id));
      }
      return ids;
    });
    await add("a");
    const answers = await Promise.allSettled([add("b"), add("a"), add("c"), store.write("app", addApp("d"))]);
    expect(answers.map(({ status }) => status)).toEqual(["fulfilled", "rejected", "fulfilled", "fulfilled"]);
    expect(await store.read(listApps)).toEqual(["a", "b", "c", "d"]);
    expect(called).toEqual(["a", "b", "c"]);
  });

  test("that breaks a unique rule says so, and may catch it inside an attempt", async () => {
    await store.write("app", addApp("a"));
    await expect(store.write("app", addApp("a"))).rejects.toBeInstanceOf(UniqueViolation);
    const caught = await store.write("app", async (tx) => {
      await addApp("b")(tx);
      return tx.attempt(() => addApp("a")(tx)).catch((error: unknown) => error instanceof UniqueViolation);
    });
    expect(caught).toBe(true);
    expect(await store.read(listApps)).toEqual(["a", "b"]);
  });

  test("may nest attempts; each undoes what is inside it and nothing else", async () => {
    await store.write("app", async (tx) => {
      await addApp("a")(tx);
      await tx
        .attempt(async () => {
          await addApp("b")(tx);
          await tx.attempt(() => addApp("c")(tx));
          throw new Error("undo b and c");
        })
        .catch(() => undefined);
      await tx.attempt(() => addApp("d")(tx));
    });
    expect(await store.read(listApps)).toEqual(["a", "d"]);
  });

  test("that goes on after a failed attempt never meets what the attempt left behind", async () => {
    const tried = store.write("app", async (tx) => {
      await tx
        .attempt(async () => {
          await addApp("a")(tx);
          throw new Error("undo a");
        })
        .catch(() => undefined);
      await addApp("a")(tx);
    });
    await tried;
    expect(await store.read(listApps)).toEqual(["a"]);
  });

  test("that awaits anything but its transaction is refused and undone, and later writes go on", async () => {
    const strays: Error[] = [];
    const somethingElse = Promise.withResolvers<void>();
    const stray = store.write("app", async (tx) => {
      await addApp("a")(tx);
      await somethingElse.promise;
      await addApp("b")(tx).catch((error: Error) => strays.push(error));
    });
    await expect(stray).rejects.toThrow("awaited something other than its transaction");
    await store.write("app", addApp("c"));
    somethingElse.resolve();
    await settle();
    expect(strays[0]?.message).toContain("has ended");
    expect(await store.read(listApps)).toEqual(["c"]);
  });

  test("calls back after its commit only, and never when it was undone", async () => {
    const called: string[] = [];
    await store.write("app", async (tx) => {
      tx.afterCommit(() => called.push("kept"));
      await tx
        .attempt(async () => {
          tx.afterCommit(() => called.push("undone inside"));
          throw new Error("no");
        })
        .catch(() => undefined);
      expect(called).toEqual([]);
    });
    await store
      .write("app", async (tx) => {
        tx.afterCommit(() => called.push("undone"));
        throw new Error("no");
      })
      .catch(() => undefined);
    expect(called).toEqual(["kept"]);
  });

  test("survives a second opening of the file", async () => {
    await store.write("app", addApp("a"));
    await store.close();
    store = await openSqlite(file, { clock: systemClock });
    expect(await store.read(listApps)).toEqual(["a"]);
  });
});

describe("a read", () => {
  test("never sees an open transaction", async () => {
    const seen: string[][] = [];
    const write = store.write("app", async (tx) => {
      await addApp("a")(tx);
      for (let turn = 0; turn < 20; turn++) await tx.get("SELECT 1");
    });
    const read = new Promise<void>((resolve) => setImmediate(resolve)).then(async () => {
      seen.push(await store.read(listApps));
    });
    await Promise.all([write, read]);
    expect([[], ["a"]]).toContainEqual(seen[0] as never);
    expect(await store.read(listApps)).toEqual(["a"]);
  });

  test("is one consistent view from its first to its last statement", async () => {
    const other = new Database(file);
    const views = await store.read(async (tx) => {
      const before = await listApps(tx);
      other.exec("INSERT INTO app (id, name, created_at) VALUES ('x', 'x', 0)");
      return [before, await listApps(tx)];
    });
    other.close();
    expect(views).toEqual([[], []]);
  });

  test("cannot write", async () => {
    const sneaky = store.read((tx) => tx.get("INSERT INTO app (id, name, created_at) VALUES ('a', 'a', 0) RETURNING id"));
    await expect(sneaky).rejects.toThrow();
    expect(await store.read(listApps)).toEqual([]);
  });
});

describe("a database that cannot be used", () => {
  test("locked by another process: the write says so, keeps nothing, and the next one works", async () => {
    const other = new Database(file);
    other.exec("BEGIN IMMEDIATE");
    await expect(store.write("app", addApp("a"))).rejects.toBeInstanceOf(StoreUnavailable);
    other.exec("ROLLBACK");
    other.close();
    await store.write("app", addApp("b"));
    expect(await store.read(listApps)).toEqual(["b"]);
  });

  test("full: every write of the group says so, nothing of it is kept, and it recovers when there is room", async () => {
    const pages = await store.read((tx) => tx.get<{ page_count: number }>("PRAGMA page_count"));
    const limit = (count: number) => store.write("app", (tx) => tx.get(`PRAGMA max_page_count = ${count}`));
    await limit((pages?.page_count ?? 0) + 2);
    const large = "x".repeat(200_000);
    const addLarge = (id: string) => store.write("app", (tx) => tx.run("INSERT INTO app (id, name, created_at) VALUES (?1, ?2, 0)", id, large));
    const results = await Promise.allSettled([store.write("app", addApp("small")), addLarge("big"), store.write("app", addApp("after"))]);
    expect(results.map((result) => result.status)).toEqual(["rejected", "rejected", "rejected"]);
    for (const result of results) expect((result as PromiseRejectedResult).reason).toBeInstanceOf(StoreUnavailable);
    expect(await store.read(listApps)).toEqual([]);
    await limit(1_000_000);
    await addLarge("big");
    expect(await store.read(listApps)).toEqual(["big"]);
  });

  test("closed: reads and writes say so", async () => {
    await store.close();
    await expect(store.write("app", addApp("a"))).rejects.toBeInstanceOf(StoreUnavailable);
    await expect(store.read(listApps)).rejects.toBeInstanceOf(StoreUnavailable);
  });

  test("written by a newer version: refused, untouched", async () => {
    await store.write("app", (tx) => tx.run("INSERT INTO schema_migration (number, name, applied_at) VALUES (9999, 'future', 0)"));
    await store.close();
    await expect(openSqlite(file, { clock: systemClock })).rejects.toBeInstanceOf(MigrationRefused);
    const database = new Database(file);
    database.exec("DELETE FROM schema_migration WHERE number = 9999");
    database.close();
    store = await openSqlite(file, { clock: systemClock });
  });

  test("a folder that cannot be written is said at the opening", async () => {
    const closed = mkdtempSync(join(tmpdir(), "relay-closed-"));
    chmodSync(closed, 0o500);
    const missing = join(closed, "no-such-folder", "relay.db");
    await expect(openSqlite(missing, { clock: systemClock })).rejects.toThrow();
    chmodSync(closed, 0o700);
    rmSync(closed, { recursive: true });
  });
});

describe("change capture's switch", () => {
  const captured = async (tx: Reader): Promise<number | undefined> =>
    (await tx.get<{ captured: number }>("SELECT captured FROM capture_switch"))?.captured;

  for (const [origin, expected] of [
    ["app", 1],
    ["dashboard", 1],
    ["receipt", 1],
    ["relay", 0],
    ["erasure", 0],
  ] as const) {
    test(`is ${expected === 1 ? "up" : "down"} while ${origin} writes, and up again after the commit`, async () => {
      const during = await Promise.all([store.write("app", captured), store.write(origin, captured), store.write("dashboard", captured)]);
      expect(during).toEqual([1, expected, 1]);
      expect(await store.read(captured)).toBe(1);
    });
  }
});

test("another process's change is noticed, the store's own is not", async () => {
  const clock = new VirtualClock(0);
  const watched = await openSqlite(join(directory, "watched.db"), { clock });
  let changes = 0;
  const stop = watched.watch(({ foreignChange }) => {
    if (foreignChange) changes += 1;
  });
  await clock.advance(1_000);
  await watched.write("app", addApp("own"));
  await clock.advance(2_000);
  expect(changes).toBe(0);
  const other = new Database(join(directory, "watched.db"));
  other.exec("INSERT INTO app (id, name, created_at) VALUES ('other', 'other', 0)");
  other.close();
  await clock.advance(2_000);
  expect(changes).toBe(1);
  stop();
  await watched.close();
});

describe("the data directory's lock", () => {
  test("the second process is refused with a sentence that names the first", () => {
    const lock = lockDataDirectory(directory, "relay serve", 0);
    expect(() => lockDataDirectory(directory, "relay dev", 0)).toThrow(DataDirectoryTaken);
    expect(() => lockDataDirectory(directory, "relay dev", 0)).toThrow(`relay serve, process ${process.pid}, since 1970-01-01`);
    lock.release();
    lockDataDirectory(directory, "relay dev", 0).release();
  });

  test("does not stop others from reading and writing rows", async () => {
    const lock = lockDataDirectory(directory, "relay serve", 0);
    await store.write("app", addApp("a"));
    expect(await store.read(listApps)).toEqual(["a"]);
    lock.release();
  });
});
