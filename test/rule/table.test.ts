/** Table definitions: reads return what was written, a missing column is an error, and changes are announced after the commit. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { ChangedTopics, Store, Writer } from "../../src/store/port.ts";
import { openDatabaseFile } from "../../src/store/sqlite/database-file.ts";
import { openSqlite } from "../../src/store/sqlite/sqlite.ts";
import { bytes, defineTable, flag, given, integer, json, type NewRowOf, orNull, text } from "../../src/store/table.ts";
import { VirtualClock } from "../kit/virtual-clock.ts";

const THING = defineTable({
  name: "thing",
  key: ["environmentId", "name"],
  topic: "relay",
  columns: {
    seq: given(),
    environmentId: integer(),
    name: text(),
    body: orNull(bytes()),
    isNew: flag(),
    data: json<{ list: unknown[] }>(),
    note: orNull(json<string>()),
  },
});

const ROW: NewRowOf<typeof THING> = {
  environmentId: 1,
  name: "one",
  body: new Uint8Array([1, 2]),
  isNew: true,
  data: { list: [1, 9007199254740993n, "x"] },
  note: null,
};

let folder: string;
let store: Store;
const told: ChangedTopics[] = [];

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "relay-table-"));
  store = await openSqlite(join(folder, "data.db"), { clock: new VirtualClock(Date.UTC(2026, 0, 1)) });
  await store.write("app", (tx) =>
    tx.run(`CREATE TABLE thing (seq INTEGER PRIMARY KEY, environment_id INTEGER NOT NULL, name TEXT NOT NULL, body BLOB,
      is_new INTEGER NOT NULL, data TEXT NOT NULL, note TEXT, UNIQUE (environment_id, name))`),
  );
  store.listen((changes) => told.push(new Map(changes)));
});

afterAll(async () => {
  await store.close();
  rmSync(folder, { recursive: true });
});

const find = (name: string) => store.read((tx) => THING.get(tx, "WHERE name = $name", { name }));

test("selected columns of a row are read as in the full row", async () => {
  const named = THING.pick("name", "isNew", "note");
  await store.write("app", (tx) => THING.insert(tx, { ...ROW, name: "picked" }));
  expect(await store.read((tx) => named.get(tx, "WHERE name = $name", { name: "picked" }))).toEqual({ name: "picked", isNew: true, note: null });
  expect(named.columnsOf("t")).toBe("t.name, t.is_new AS isNew, t.note");
  await store.write("app", (tx) => THING.delete(tx, { environmentId: 1, name: "picked" }));
  told.length = 0;
});

test("a row is read with its inserted values and a number from the database", async () => {
  const { seq } = await store.write("app", (tx) => THING.insertGiven(tx, ROW));
  expect(await find("one")).toEqual({ ...ROW, seq });
});

test("an update writes every column of the row with its key, and no other row", async () => {
  await store.write("app", (tx) => THING.insert(tx, { ...ROW, name: "two" }));
  const before = await find("one");
  if (before === null) throw new Error("no row");
  const after = { ...before, body: null, isNew: false, data: { list: [] }, note: "it is" };
  expect(await store.write("app", (tx) => THING.update(tx, after))).toBe(1);
  expect(await find("one")).toEqual(after);
  expect(await find("two")).toMatchObject({ ...ROW, name: "two" });
});

test("a change writes only the columns it names", async () => {
  const before = await find("two");
  await store.write("app", (tx) => THING.change(tx, { environmentId: 1, name: "two" }, { isNew: false }));
  expect(await find("two")).toEqual({ ...before, isNew: false } as never);
});

test("a row without one of its columns is refused, and not written", async () => {
  const { data: _, ...short } = ROW;
  const insert = store.write("app", (tx) => THING.insert(tx, { ...short, name: "short" } as never));
  expect(insert).rejects.toThrow('Missing parameter "data"');
  await insert.catch(() => undefined);
  expect(await find("short")).toBeNull();
});

test("an undefined value in a row or its key is refused, and never becomes NULL", async () => {
  const before = await find("two");
  const key = { environmentId: 1, name: "two" };
  const refused = 'Missing parameter "note" of thing';
  const writes: [work: (tx: Writer) => Promise<unknown>, message: string][] = [
    [(tx) => THING.insert(tx, { ...ROW, name: "holed", note: undefined } as never), refused],
    [(tx) => THING.insertGiven(tx, { ...ROW, name: "holed", note: undefined } as never), refused],
    [(tx) => THING.update(tx, { ...before, note: undefined } as never), refused],
    [(tx) => THING.change(tx, key, { note: undefined } as never), refused],
    [(tx) => THING.change(tx, { environmentId: 1 }, { note: "x" }), 'Missing parameter "name" of thing'],
    [(tx) => THING.delete(tx, { environmentId: 1 }), 'Missing parameter "name" of thing'],
  ];
  for (const [work, message] of writes) expect(store.write("app", work)).rejects.toThrow(message);
  expect([await find("holed"), await find("two")]).toEqual([null, before]);
});

test("a row is read only from a query that selected all of its columns", () => {
  expect(() => THING.read({ name: "two" })).toThrow("isNew of thing was not selected");
});

test("an existing database file binds names as the store does", async () => {
  using file = openDatabaseFile(join(folder, "data.db"));
  expect(await THING.get(file, "WHERE name = $name", { name: "two" })).toEqual(await find("two"));
});

test("an insert can ignore a conflict", async () => {
  const added = await store.write("app", (tx) => THING.insert(tx, ROW, "ON CONFLICT DO NOTHING"));
  expect(added).toBe(0);
});

test("a delete removes only the row with this key", async () => {
  expect(await store.write("app", (tx) => THING.delete(tx, { environmentId: 1, name: "one" }))).toBe(1);
  expect([await find("one"), (await find("two"))?.name]).toEqual([null, "two"]);
});

test("a write is announced once it is durable, with the environment of its rows and the given ids", async () => {
  told.length = 0;
  await store.write("app", async (tx) => {
    await THING.insert(tx, { ...ROW, name: "three" });
    tx.notify("event", "rly_1");
  });
  expect(told).toEqual([
    new Map([
      ["relay", new Set(["1"])],
      ["event", new Set(["rly_1"])],
    ]) as ChangedTopics,
  ]);
});

test("a full or partial rollback announces nothing", async () => {
  told.length = 0;
  const failed = store.write("app", async (tx) => {
    tx.notify("relay");
    throw new Error("no");
  });
  await failed.catch(() => undefined);
  await store.write("app", async (tx) => {
    tx.notify("event", "kept");
    const undone = tx.attempt(async () => {
      tx.notify("event", "undone");
      throw new Error("no");
    });
    await undone.catch(() => undefined);
  });
  expect(told).toEqual([new Map([["event", new Set(["kept"])]]) as ChangedTopics]);
});

test("a record that a relay wrote is announced without change capture", async () => {
  told.length = 0;
  await store.write("relay", async (tx) => tx.notify("record"));
  await store.write("app", async (tx) => tx.notify("record"));
  expect(told.map((changes) => [...changes.keys()])).toEqual([["record"], ["record", "record_change"]]);
});

test("a row is found by its values, and a required row that is missing throws the caller's message", async () => {
  await store.write("app", (tx) => THING.insert(tx, { ...ROW, name: "sought" }));
  const key = { environmentId: 1, name: "sought" };
  expect(await store.read((tx) => THING.find(tx, key))).toMatchObject({ ...key, isNew: true });
  expect(await store.read((tx) => THING.find(tx, { ...key, environmentId: 2 }))).toBeNull();
  expect(await store.read((tx) => THING.require(tx, key, "No such thing."))).toMatchObject(key);
  const missed = store.read((tx) => THING.require(tx, { ...key, environmentId: 2 }, "No such thing."));
  await expect(missed).rejects.toMatchObject({ code: "not_found", message: "No such thing." });
});
