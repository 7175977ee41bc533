/** The embedded store: the rules of every store, and those of a database file. */

import { Database } from "bun:sqlite";
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { chmodSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { systemClock } from "../../src/base/clock.ts";
import { MigrationRefused } from "../../src/store/migrate/migrations.ts";
import { type Reader, type Store, StoreUnavailable } from "../../src/store/port.ts";
import { DataDirectoryTaken, lockDataDirectory } from "../../src/store/sqlite/directory-lock.ts";
import { openSqlite } from "../../src/store/sqlite/sqlite.ts";
import { addApp, listApps, testStore } from "../kit/store-conformance.ts";
import { VirtualClock } from "../kit/virtual-clock.ts";

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

testStore({ store: () => ({ store, groups }) });

/** Works longer than a group may block the event loop. */
function burn(ms: number): void {
  const endMs = systemClock.monotonicMs() + ms;
  while (systemClock.monotonicMs() < endMs);
}

describe("a write", () => {
  test("that takes long leaves the next ones to another group, in order, and the event loop turns in between", async () => {
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
        burn(13);
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

  test("survives a second opening of the file", async () => {
    await store.write("app", addApp("a"));
    await store.close();
    store = await openSqlite(file, { clock: systemClock });
    expect(await store.read(listApps)).toEqual(["a"]);
  });
});

test("a command that only reads waits for no lock and changes nothing in the file", async () => {
  await store.write("app", addApp("a"));
  const other = new Database(file);
  const version = other.query("PRAGMA data_version").get();
  other.exec("BEGIN IMMEDIATE");
  const reading = await openSqlite(file, { clock: systemClock });
  expect(await reading.read(listApps)).toEqual(["a"]);
  await reading.close();
  await expect(reading.write("app", addApp("b"))).rejects.toThrow(StoreUnavailable);
  other.exec("ROLLBACK");
  expect(other.query("PRAGMA data_version").get()).toEqual(version);
  other.close();
});

describe("a read", () => {
  test("has one consistent view from its first to its last statement", async () => {
    const other = new Database(file);
    const views = await store.read(async (tx) => {
      const before = await listApps(tx);
      other.exec("INSERT INTO app (id, name, created_at) VALUES ('x', 'x', 0)");
      return [before, await listApps(tx)];
    });
    other.close();
    expect(views).toEqual([[], []]);
  });
});

describe("a database that cannot be used", () => {
  test("because of another process's lock fails a write and stores nothing, and the next write succeeds", async () => {
    const other = new Database(file);
    other.exec("BEGIN IMMEDIATE");
    await expect(store.write("app", addApp("a"))).rejects.toBeInstanceOf(StoreUnavailable);
    other.exec("ROLLBACK");
    other.close();
    await store.write("app", addApp("b"));
    expect(await store.read(listApps)).toEqual(["b"]);
  });

  test("because it is full fails every write of the group and stores none, and recovers when there is space", async () => {
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

  test("because a newer version wrote it is refused and unchanged", async () => {
    await store.write("app", (tx) => tx.run("INSERT INTO schema_migration (number, name, applied_at) VALUES (9999, 'future', 0)"));
    await store.close();
    await expect(openSqlite(file, { clock: systemClock })).rejects.toBeInstanceOf(MigrationRefused);
    const database = new Database(file);
    database.exec("DELETE FROM schema_migration WHERE number = 9999");
    database.close();
    store = await openSqlite(file, { clock: systemClock });
  });

  test("because its folder is not writable is reported when it is opened", async () => {
    const closed = mkdtempSync(join(tmpdir(), "relay-closed-"));
    chmodSync(closed, 0o500);
    const missing = join(closed, "no-such-folder", "relay.db");
    await expect(openSqlite(missing, { clock: systemClock })).rejects.toThrow();
    chmodSync(closed, 0o700);
    rmSync(closed, { recursive: true });
  });
});

describe("the switch for change capture", () => {
  const captured = async (tx: Reader): Promise<number | undefined> =>
    (await tx.get<{ captured: number }>("SELECT captured FROM capture_switch"))?.captured;

  for (const [origin, expected] of [
    ["app", 1],
    ["dashboard", 1],
    ["receipt", 1],
    ["relay", 0],
    ["erasure", 0],
  ] as const) {
    test(`is ${expected === 1 ? "on" : "off"} while ${origin} writes, and on again after the commit`, async () => {
      const during = await Promise.all([store.write("app", captured), store.write(origin, captured), store.write("dashboard", captured)]);
      expect(during).toEqual([1, expected, 1]);
      expect(await store.read(captured)).toBe(1);
    });
  }
});

test("the store notices another process's change, but not its own", async () => {
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
  test("refuses a second process with a message that names the first", () => {
    const lock = lockDataDirectory(directory, "relay serve", 0);
    expect(() => lockDataDirectory(directory, "relay dev", 0)).toThrow(DataDirectoryTaken);
    expect(() => lockDataDirectory(directory, "relay dev", 0)).toThrow(`relay serve, process ${process.pid}, since 1970-01-01`);
    lock.release();
    lockDataDirectory(directory, "relay dev", 0).release();
  });

  test("does not stop other processes from reading and writing rows", async () => {
    const lock = lockDataDirectory(directory, "relay serve", 0);
    await store.write("app", addApp("a"));
    expect(await store.read(listApps)).toEqual(["a"]);
    lock.release();
  });
});
