/** The specification's "data_change": the writes that fire relays, how often they fire, and their payload. */
import { Database } from "bun:sqlite";
import { describe, expect, test } from "bun:test";
import { MAX_PREVIEW_BYTES, MAX_STORED_PAYLOAD_BYTES } from "../../src/base/limit.ts";
import { drainChanges } from "../../src/engine/change-capture/capture.ts";
import { deleteCollection } from "../../src/shop/records/collection.ts";
import { SQLITE_MIGRATIONS } from "../../src/store/migrate/migrations.ts";
import type { Origin } from "../../src/store/port.ts";
import { openSqlite } from "../../src/store/sqlite/sqlite.ts";
import { testOfFile } from "../kit/chosen-store.ts";
import { erase } from "../kit/erasing.ts";
import { until } from "../kit/event-flow.ts";
import { RELAY_NAME } from "../kit/event-sql.ts";
import { openTestStore } from "../kit/fresh-store.ts";
import { openWatchedRecords, type WatchedRecords } from "../kit/watched-records.ts";

const ALL = { on: ["created", "updated", "deleted"] };
const warningsOf = async ({ store }: WatchedRecords): Promise<string[]> =>
  (await store.read((tx) => tx.all<{ warnings: string }>("SELECT warnings FROM event ORDER BY seq"))).map(({ warnings }) => warnings);
/** A record that another program wrote, and the statement that repairs it. */
const BROKEN = `INSERT INTO record (id, environment_id, collection, data, written_by, created_at, updated_at)
  SELECT 'rec_broken', environment_id, name, ?1, 'by hand', 0, 0 FROM collection WHERE name = 'notes'
  AND environment_id = (SELECT id FROM environment WHERE name = 'development')`;
const FIXED = `UPDATE record SET data = '{"title":"after"}', updated_at = 1 WHERE id = 'rec_broken'`;
const relays = async (records: WatchedRecords): Promise<string[]> => (await records.fired()).map((event) => event.relay);

describe("a relay fires", () => {
  test.each([
    ["only on created, when a record is created", ["created"], [1, 0, 0]],
    ["only on updated, when a record changes", ["updated"], [0, 1, 0]],
    ["only on deleted, when a record is deleted", ["deleted"], [0, 0, 1]],
    ["on all three", ["created", "updated", "deleted"], [1, 1, 1]],
  ])("%s", async (_rule, on, expected) => {
    await using records = await openWatchedRecords();
    await records.watch("watcher", { on });
    const counts: number[] = [];
    let before = 0;
    const step = async () => {
      await records.drain();
      const now = (await records.fired()).length;
      counts.push(now - before);
      before = now;
    };
    const record = await records.write({ title: "a" });
    await step();
    const changed = await records.update(record, { title: "b" });
    await step();
    await records.remove(changed);
    await step();
    expect(counts).toEqual(expected);
    expect(await records.count("record_change")).toBe(0);
    expect(records.woken).toHaveLength(expected.filter((count) => count === 1).length);
  });

  test("at most once for each write and each relay that watches", async () => {
    await using records = await openWatchedRecords();
    await records.watch("first", ALL);
    await records.watch("second", ALL);
    await records.watch("elsewhere", { collection: "orders" });
    const record = await records.write({ title: "a" });
    await records.drain();
    await records.drain();
    expect(await relays(records)).toEqual(["first", "second"]);
    await records.update(record, { title: "b" });
    await records.drain();
    expect(await relays(records)).toEqual(["first", "second", "first", "second"]);
  });

  test("for every write in its order, also when many writes precede the next capture step", async () => {
    await using records = await openWatchedRecords();
    await records.watch("watcher", ALL);
    await records.stop();
    let record = await records.write({ size: 0 });
    for (let size = 1; size < 150; size++) record = await records.update(record, { size });
    await records.start();
    const fired = await records.fired();
    expect(fired.map(({ payload }) => payload.record.data.size)).toEqual(Array.from({ length: 150 }, (_, i) => i));
    expect(fired.slice(1).map(({ payload }) => payload.previous.data.size)).toEqual(Array.from({ length: 149 }, (_, i) => i));
  });

  test("not for another environment's record", async () => {
    await using records = await openWatchedRecords();
    await records.watch("here", ALL, "production");
    await records.write({ title: "a" });
    await records.drain();
    expect(await relays(records)).toEqual([]);
    expect(await records.count("record_change")).toBe(0);
  });

  test("within 2 seconds without a notification", async () => {
    await using records = await openWatchedRecords();
    await records.watch("watcher");
    await records.write({ title: "a" });
    await records.clock.advance(2_000);
    expect(await relays(records)).toEqual(["watcher"]);
  });
});

describe("writers", () => {
  const origins: [Origin, number][] = [
    ["app", 3],
    ["dashboard", 3],
    ["receipt", 3],
    ["relay", 0],
    ["erasure", 0],
  ];
  test.each(origins)("%s: a create, an update and a delete fire %p times", async (origin, expected) => {
    await using records = await openWatchedRecords();
    await records.watch("watcher", ALL);
    const record = await records.write({ title: "a" }, origin);
    await records.remove(await records.update(record, { title: "b" }, origin), origin);
    await records.drain();
    expect(await records.fired()).toHaveLength(expected);
  });

  test("a relay's write fires nothing, although one transaction commits it with a write of the API", async () => {
    await using records = await openWatchedRecords();
    await records.watch("watcher", ALL);
    await Promise.all([
      records.write({ title: "app" }),
      records.write({ title: "relay" }, "relay"),
      records.write({ title: "erasure" }, "erasure"),
      records.write({ title: "dashboard" }, "dashboard"),
    ]);
    await records.drain();
    expect((await records.fired()).map(({ payload }) => payload.record.data.title)).toEqual(["app", "dashboard"]);
  });

  test("SQL on another connection fires", async () => {
    await using records = await openWatchedRecords();
    await records.watch("watcher", ALL);
    const record = await records.write({ title: "a" });
    const { run } = records.direct;
    await run('UPDATE record SET data = \'{"title":"by hand"}\' WHERE id = ?1', record.id);
    await run("DELETE FROM record WHERE id = ?1", record.id);
    await run(
      `INSERT INTO record (id, environment_id, collection, data, written_by, created_at, updated_at)
       SELECT 'rec_hand', environment_id, name, '{"size":12345678901234567890}', 'by hand', 0, 0 FROM collection WHERE name = 'notes'
       AND environment_id = (SELECT id FROM environment WHERE name = 'development')`,
    );
    await records.clock.advance(2_000);
    expect((await records.fired()).map(({ payload }) => payload.record.data)).toEqual([
      { title: "a" },
      { title: "by hand" },
      { title: "by hand" },
      { size: 12345678901234567890n },
    ]);
  });

  test("erasing a person deletes their records and fires nothing", async () => {
    await using records = await openWatchedRecords();
    await records.watch("watcher", { on: ["deleted"] });
    const { id: environmentId } = await records.environment();
    await records.store.write("app", (tx) =>
      tx.run(
        `INSERT INTO person (id, environment_id, email, email_key, status, created_by, created_at, updated_at)
         VALUES ('per_1', ?1, 'a@example.com', 'a@example.com', 'active', 'key:1', 0, 0)`,
        environmentId,
      ),
    );
    await records.write({ title: "theirs" }, "app", { ownerId: "per_1" });
    const erasure = { environmentId, personId: "per_1", by: "key:1", nowMs: records.clock.now() };
    await erase(records.store, erasure);
    await records.drain();
    expect([await records.count("record"), await relays(records)]).toEqual([0, []]);
  });

  test("deleting a collection with its records fires for each of them", async () => {
    await using records = await openWatchedRecords();
    await records.watch("watcher", { on: ["deleted"] });
    for (const title of ["a", "b", "c"]) await records.write({ title });
    const { id } = await records.environment();
    const gone = await records.store.write("dashboard", (tx) => deleteCollection(tx, id, "notes", { force: true }));
    await records.drain();
    expect(gone.recordsDeleted).toBe(3);
    expect((await records.fired()).map(({ payload }) => payload.record.data.title)).toEqual(["a", "b", "c"]);
  });
});

describe("a write that changes nothing", () => {
  test.each([
    ["the same data", { title: "a", size: 1 }, 0],
    ["the same data, its fields in another order", { size: 1, title: "a" }, 0],
    ["other data", { title: "a", size: 2 }, 1],
  ])("%s: %o fires %p times", async (_rule, data, expected) => {
    await using records = await openWatchedRecords();
    const record = await records.write({ title: "a", size: 1 });
    await records.watch("watcher", ALL);
    await records.clock.advance(1_000);
    await records.update(record, data);
    await records.drain();
    expect(await records.fired()).toHaveLength(expected);
  });

  test("another owner counts as a change", async () => {
    await using records = await openWatchedRecords();
    const record = await records.write({ title: "a" });
    await records.watch("watcher", ALL);
    await records.store.write("app", (tx) => tx.run("UPDATE record SET owner_id = 'per_9' WHERE id = ?1", record.id));
    await records.drain();
    expect((await records.fired()).map(({ payload }) => [payload.previous.owner, payload.record.owner])).toEqual([[null, "per_9"]]);
  });
});

describe("where", () => {
  const paid = { status: "paid" };
  test.each([
    ["matches the record's own data exactly", paid, { status: "paid" }, true],
    ["compares letters exactly", paid, { status: "Paid" }, false],
    ["requires the field to exist", paid, { title: "a" }, false],
    ["requires every field", { status: "paid", size: 4 }, { status: "paid" }, false],
    ["accepts any number of fields", { status: "paid", size: 4 }, { status: "paid", size: 4, title: "a" }, true],
    ["separates a number from its text", { status: "4" }, { size: 4, status: "5" }, false],
    ["matches a number", { size: 4 }, { size: 4 }, true],
    ["matches false", { done: false }, { done: false }, true],
    ["does not accept a missing field as false", { done: false }, {}, false],
    ["matches an integer beyond 2^53 exactly", { size: 9007199254740993n }, { size: 9007199254740993n }, true],
    ["separates neighboring integers beyond 2^53", { size: 9007199254740993n }, { size: 9007199254740992n }, false],
    ["never reads inherited properties", { constructor: "x" }, {}, false],
  ])("%s", async (_rule, where, data, fires) => {
    await using records = await openWatchedRecords();
    await records.watch("watcher", { where });
    await records.write(data);
    await records.drain();
    expect(await records.fired()).toHaveLength(fires ? 1 : 0);
  });

  test("reads the new data of an update and the last data of a deleted record", async () => {
    await using records = await openWatchedRecords();
    await records.watch("watcher", { ...ALL, where: paid });
    const open = await records.write({ status: "open" });
    const nowPaid = await records.update(open, { status: "paid" });
    const closed = await records.update(nowPaid, { status: "closed" });
    await records.remove(closed);
    await records.remove(await records.write({ status: "paid", title: "other" }));
    await records.drain();
    expect((await records.fired()).map(({ payload }) => [payload.previous?.data ?? null, payload.record.data])).toEqual([
      [{ status: "open" }, { status: "paid" }],
      [null, { status: "paid", title: "other" }],
      [
        { status: "paid", title: "other" },
        { status: "paid", title: "other" },
      ],
    ]);
  });
});

describe("the payload", () => {
  test("is { record, previous } in the API's shape: created has no previous, updated both, deleted the record on both sides", async () => {
    await using records = await openWatchedRecords();
    await records.watch("watcher", ALL);
    const record = await records.write({ title: "a" });
    await records.clock.advance(1_000);
    const changed = await records.update(record, { title: "b" });
    await records.remove(changed);
    await records.drain();
    const first = {
      id: record.id,
      collection: "notes",
      data: { title: "a" },
      owner: null,
      recipient: null,
      createdAt: "2026-01-15T12:00:00.000Z",
      updatedAt: "2026-01-15T12:00:00.000Z",
      by: "key:key_1",
    };
    const second = { ...first, data: { title: "b" }, updatedAt: "2026-01-15T12:00:01.000Z" };
    expect((await records.fired()).map(({ payload }) => payload)).toEqual([
      { record: first, previous: null },
      { record: second, previous: first },
      { record: second, previous: second },
    ]);
  });

  test("keeps integers beyond 2^53 exactly", async () => {
    await using records = await openWatchedRecords();
    await records.watch("watcher");
    await records.write({ size: 12345678901234567890n, extra: { deep: [9007199254740993n] } });
    await records.drain();
    const [event] = await records.fired();
    expect(event?.text).toContain('"data":{"size":12345678901234567890,"extra":{"deep":[9007199254740993]}}');
  });

  test.each([
    ["one long text", { title: "é".repeat(40_000), status: "paid" }],
    ["a long json field", { status: "paid", extra: Array.from({ length: 9_000 }, (_, i) => i) }],
    ["a long text on both sides", { title: "x".repeat(20_000), status: "paid" }],
  ])("over 32 KB is cut with a flag and a preview, and short fields stay complete: %s", async (_rule, data) => {
    await using records = await openWatchedRecords();
    await records.watch("watcher", { ...ALL, where: { status: "paid" } });
    await records.remove(await records.write(data));
    await records.drain();
    const deleted = (await records.fired())[1];
    if (deleted === undefined) throw new Error("The deletion fired nothing.");
    expect(Buffer.byteLength(deleted.text)).toBeLessThanOrEqual(MAX_STORED_PAYLOAD_BYTES);
    expect(deleted.truncated).toBe(1);
    const told = (await warningsOf(records)).at(-1) ?? "";
    const [long = ""] = Object.keys(data).filter((name) => name !== "status");
    expect(told).toContain(`record.data.${long} was cut: the change is larger than 32 KB`);
    expect(deleted.payload.record.data.status).toBe("paid");
    expect(deleted.payload.record.collection).toBe("notes");
    expect(deleted.payload.previous).toEqual(deleted.payload.record);
    expect(Buffer.byteLength(deleted.preview ?? "")).toBeLessThanOrEqual(MAX_PREVIEW_BYTES);
    expect(JSON.stringify(data).startsWith(deleted.preview ?? "-")).toBe(true);
  });

  test("of many fields keeps the fields that fit", async () => {
    await using records = await openWatchedRecords();
    await records.watch("watcher");
    const data = Object.fromEntries(Array.from({ length: 60 }, (_, i) => [`f${i}`, "x".repeat(1_000)]));
    await records.direct.run(
      `INSERT INTO record (id, environment_id, collection, data, written_by, created_at, updated_at)
       SELECT 'rec_many', environment_id, name, ?1, 'by hand', 0, 0 FROM collection WHERE name = 'notes'
       AND environment_id = (SELECT id FROM environment WHERE name = 'development')`,
      JSON.stringify(data),
    );
    await records.drain();
    const kept = Object.keys((await records.fired())[0]?.payload.record.data ?? {});
    expect(kept.length).toBeGreaterThan(10);
    expect(kept).toEqual(Object.keys(data).slice(0, kept.length));
    const [told = "[]"] = await warningsOf(records);
    const warnings = JSON.parse(told) as string[];
    expect(warnings[0]).toBe(`record.data.f${kept.length} was left out: the change is larger than 32 KB.`);
    expect(warnings).toHaveLength(20);
  });
});

describe("the relays that see a write", () => {
  test("exclude a relay that was created after it, even before the next capture step", async () => {
    await using records = await openWatchedRecords();
    await records.watch("early");
    await records.stop();
    await records.write({ title: "a" });
    await records.watch("late");
    await records.start();
    expect(await relays(records)).toEqual(["early"]);
  });

  test("exclude a relay that was deleted before the capture step, and the log drops the write", async () => {
    await using records = await openWatchedRecords();
    await records.watch("watcher");
    await records.stop();
    await records.write({ title: "a" });
    await records.store.write("dashboard", (tx) => tx.run("DELETE FROM relay"));
    await records.start();
    expect([await relays(records), await records.count("record_change"), await records.count("record_watch")]).toEqual([[], 0, 0]);
  });

  test("include a paused relay, whose events wait in the queue", async () => {
    await using records = await openWatchedRecords();
    await records.watch("watcher");
    await records.store.write("dashboard", (tx) => tx.run("UPDATE relay SET state = 'paused'"));
    await records.write({ title: "a" });
    await records.drain();
    expect((await records.fired()).map(({ state }) => state)).toEqual(["queued"]);
  });

  test("use the new trigger of an edited relay from the edit on", async () => {
    await using records = await openWatchedRecords();
    await records.watch("watcher");
    const actions = [{ type: "call_url", url: "https://example.com/notice" }];
    const trigger = { kind: "data_change", collection: "notes", on: ["deleted"] };
    await records.kit.update("watcher", { name: "watcher", trigger, actions }, 1);
    await records.remove(await records.write({ title: "a" }));
    await records.drain();
    expect((await records.fired()).map(({ payload }) => payload.previous?.data.title)).toEqual(["a"]);
  });

  test("use the old trigger of a relay that was edited twice before the capture step", async () => {
    await using records = await openWatchedRecords();
    await records.watch("watcher");
    await records.stop();
    await records.write({ title: "watched" });
    const actions = [{ type: "call_url", url: "https://example.com/notice" }];
    const away = { kind: "data_change", collection: "notes", on: ["deleted"] };
    await records.kit.update("watcher", { name: "watcher", trigger: away, actions }, 1);
    await records.write({ title: "between" });
    await records.kit.update("watcher", { name: "watcher", trigger: { ...away, on: ["created"] }, actions }, 2);
    await records.write({ title: "again" });
    await records.start();
    expect((await records.fired()).map(({ payload }) => payload.record.data.title)).toEqual(["watched", "again"]);
    expect(await records.count("past_record_watch")).toBe(0);
  });

  test("leave the log empty when no relay watches", async () => {
    await using records = await openWatchedRecords();
    await records.stop();
    await records.watch("watcher", { on: ["deleted"] });
    await records.update(await records.write({ title: "a" }), { title: "b" });
    expect(await records.count("record_change")).toBe(0);
  });
});

describe("a change that many relays watch", () => {
  test("is one row in the log, and becomes events in steps, so that another writer waits for at most one step", async () => {
    await using records = await openWatchedRecords();
    await records.stop();
    await watchMany(records, 200, { where: { status: "paid" } });
    await watchMany(records, 1_100, { where: { status: "open" } });
    await records.write({ status: "paid" });
    expect(await records.count("record_change")).toBe(1);
    const steps: number[] = [];
    for (let before = 0; (await records.count("record_change")) > 0; before = await records.count("event")) {
      await records.store.write("app", (tx) => drainChanges(tx, {}, 0, records.log));
      steps.push((await records.count("event")) - before);
    }
    expect([Math.max(...steps), await records.count("event")]).toEqual([64, 200]);
    expect(new Set(await relays(records)).size).toBe(200);
    await records.write({ status: "paid" });
    await records.start();
    expect(await records.count("event")).toBe(400);
  });

  test("becomes events in smaller steps when its events are large", async () => {
    await using records = await openWatchedRecords();
    await records.stop();
    await watchMany(records, 40, {});
    await records.write({ title: "x".repeat(30_000) });
    await records.store.write("app", (tx) => drainChanges(tx, {}, 0, records.log));
    const first = await records.count("event");
    await records.start();
    expect([first < 20, await records.count("event")]).toEqual([true, 40]);
  });

  /** Copies one relay in SQL, because saving so many one by one takes long. */
  async function watchMany(records: WatchedRecords, count: number, trigger: object): Promise<void> {
    const first = `first-of-${count}`;
    await records.watch(first, trigger);
    await records.store.write("app", async (tx) => {
      const columns = Object.keys((await tx.get<object>("SELECT * FROM relay")) ?? {});
      const copied = columns.map((name) => (name === "id" || name === "name" ? `${name} || ?1` : name));
      const sql = `INSERT INTO relay (${columns.join(", ")}) SELECT ${copied.join(", ")} FROM relay WHERE name = ?2`;
      for (let at = 1; at < count; at++) await tx.run(sql, `-${at}`, first);
    });
  }
});

testOfFile("what an earlier version left in the log fires for those who watched, and still want it", async () => {
  await using opened = await openTestStore();
  const file = `${opened.file}.old`;
  using old = new Database(file, { create: true, readwrite: true });
  old.run("PRAGMA foreign_keys = ON");
  old.run("CREATE TABLE schema_migration (number INTEGER PRIMARY KEY, name TEXT NOT NULL, applied_at INTEGER NOT NULL)");
  for (const { number, name, sql } of SQLITE_MIGRATIONS.filter((one) => one.number < 22)) {
    old.run(sql);
    old.run("INSERT INTO schema_migration VALUES (?1, ?2, 0)", [number, name]);
  }
  old.run("INSERT INTO app (id, name, created_at) VALUES ('shop', 'Shop', 0)");
  old.run("INSERT INTO environment (id, app_id, name, created_at) VALUES (1, 'shop', 'production', 0)");
  old.run(`INSERT INTO collection (environment_id, name, kind, fields, created_at, updated_at) VALUES (1, 'notes', 'shared', '{}', 0, 0)`);
  const definitionOf = (on: string[], where = {}) =>
    JSON.stringify({ trigger: { kind: "data_change", collection: "notes", on, where }, actions: [] });
  const watch = (id: string, where = {}) =>
    old.run(
      `INSERT INTO relay (id, environment_id, name, definition, origin_kind, origin_at, active_since, created_at, updated_at)
       VALUES (?1, 1, ?1, ?2, 'file', 0, 0, 0, 0)`,
      [id, definitionOf(["created", "updated"], where)],
    );
  const edit = (id: string, on: string[]) => old.run("UPDATE relay SET definition = ?2 WHERE id = ?1", [id, definitionOf(on)]);
  const write = (size: number) =>
    old.run(
      `INSERT INTO record (id, environment_id, collection, data, written_by, created_at, updated_at)
       VALUES ('rec_' || ?1, 1, 'notes', json_object('size', ?1), 'by hand', 0, 0)`,
      [size],
    );
  for (const id of ["stays", "ends", "leaves", "returns"]) watch(id);
  watch("picks", { size: 2 });
  write(1);
  edit("returns", ["deleted"]);
  write(2);
  for (const id of ["leaves", "returns"]) edit(id, id === "leaves" ? ["deleted"] : ["created"]);
  watch("late");
  old.run("DELETE FROM relay WHERE id = 'ends'");
  write(3);
  old.run("UPDATE record SET data = json_object('size', 4) WHERE id = 'rec_1'");
  old.close();

  const store = await openSqlite(file, { clock: opened.clock });
  const write5 = `INSERT INTO record (id, environment_id, collection, data, written_by, created_at, updated_at)
    VALUES ('rec_5', 1, 'notes', '{"size":5}', 'by hand', 0, 0)`;
  await store.write("app", (tx) => tx.run(write5));
  await store.write("app", (tx) => drainChanges(tx, {}, 0, opened.log));
  const fired = await store.read((tx) =>
    tx.all<{ told: string }>(
      `SELECT json_extract(payload, '$.record.data.size') || ' ' || ${RELAY_NAME} || iif(json_extract(payload, '$.previous.data.size') = 1, ' was 1', '')
       AS told FROM event ORDER BY seq`,
    ),
  );
  const left = await store.read((tx) => tx.get("SELECT (SELECT count(*) FROM record_change) + (SELECT count(*) FROM past_record_watch) AS count"));
  await store.close();
  expect(fired.map(({ told }) => told)).toEqual([
    ...["1 returns", "1 stays", "2 picks", "2 stays", "3 late", "3 returns", "3 stays", "4 late was 1", "4 stays was 1"],
    ...["5 late", "5 returns", "5 stays"],
  ]);
  expect(left).toEqual({ count: 0 });
});

describe("an interruption", () => {
  test("that loses a transaction keeps the log, and the next step makes each event once", async () => {
    await using records = await openWatchedRecords();
    await records.watch("watcher");
    await records.stop();
    for (const title of ["a", "b", "c"]) await records.write({ title });
    const lost = records.store.write("app", async (tx) => {
      expect(await drainChanges(tx, { changes: 2 }, records.clock.now(), records.log)).toBe(2);
      throw new Error("killed before the commit");
    });
    await expect(lost).rejects.toThrow("killed");
    expect([await records.count("record_change"), await records.count("event")]).toEqual([3, 0]);
    await records.start();
    expect((await records.fired()).map(({ payload }) => payload.record.data.title)).toEqual(["a", "b", "c"]);
    await records.stop();
    await records.start();
    expect(await records.count("event")).toBe(3);
  });

  test("by a second drain at the same time makes each event once", async () => {
    await using records = await openWatchedRecords();
    await records.watch("watcher");
    await records.stop();
    for (let size = 0; size < 10; size++) await records.write({ size });
    const drain = () => records.store.write("app", (tx) => drainChanges(tx, { changes: 6 }, 0, records.log));
    await Promise.all([drain(), drain(), drain()]);
    expect(await records.count("event")).toBe(10);
  });

  const unread: [string, string, object, boolean][] = [
    ["no JSON", "{not json", {}, true],
    ["nested deeper than can be read", `{"extra":${"[".repeat(200_000)}${"]".repeat(200_000)}}`, {}, true],
    ["null, which no where matches", "null", { where: { title: "after" } }, false],
    ["a list, which no where matches", "[1]", { where: { title: "after" } }, false],
  ];
  test.each(unread)("a record whose data is %s fires nothing and delays no other record", async (_, data, trigger, told) => {
    await using records = await openWatchedRecords();
    await records.watch("watcher", trigger);
    await records.direct.run(BROKEN, data);
    await records.write({ title: "after" });
    await records.drain();
    expect((await records.fired()).map(({ payload }) => payload.record.data.title)).toEqual(["after"]);
    expect(records.logged.join().includes("rec_broken")).toBe(told);
  });

  const fixes: [string, object, string, (records: WatchedRecords) => Promise<void>][] = [
    ["written again", { on: ["updated"], where: { title: "after" } }, "{not json", (records) => records.direct.run(FIXED)],
    ["written again from a list", { on: ["updated"], where: { title: "after" } }, "[1]", (records) => records.direct.run(FIXED)],
    ["deleted", { on: ["deleted"] }, "{not json", (records) => records.direct.run("DELETE FROM record WHERE id = 'rec_broken'")],
  ];
  test.each(fixes)("a record with unreadable data fires once it is %s", async (_, trigger, data, fix) => {
    await using records = await openWatchedRecords();
    await records.watch("watcher", trigger);
    await records.direct.run(BROKEN, data);
    await fix(records);
    await records.drain();
    expect((await records.fired()).map(({ payload }) => payload.record.id)).toEqual(["rec_broken"]);
  });

  test("of the store's writes keeps the log until the store recovers", async () => {
    await using records = await openWatchedRecords();
    await records.watch("watcher");
    await records.write({ title: "a" });
    await records.direct.whileUnwritable(async () => {
      await records.drain(1);
      await until("capture says so", () => records.logged.join().includes("cannot be captured now"));
      expect(await records.count("event")).toBe(0);
    });
    await records.clock.advance(2_000);
    expect(await relays(records)).toEqual(["watcher"]);
  });
});
