/**
 * Events of an earlier version move into the current table in steps, and a killed start continues at the next one. Afterwards old ids resolve, dedupe
 * keys still apply, and numbers continue.
 */
import { Database } from "bun:sqlite";
import { afterAll, beforeAll, expect, test } from "bun:test";
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { readPageRequest } from "../../src/base/page.ts";
import { findEventSeq, listDueEvents, listReadyRelays } from "../../src/engine/event/event.ts";
import { insertEvent, keyOfEventId, makePayload } from "../../src/engine/event/insert.ts";
import { listEvents } from "../../src/engine/event/list.ts";
import { findEventView } from "../../src/engine/event/view.ts";
import { encodeNumbers } from "../../src/store/dedupe/segment.ts";
import { readPage } from "../../src/store/index-scan.ts";
import { SQLITE_MIGRATIONS } from "../../src/store/migrate/migrations.ts";
import { openSqlite } from "../../src/store/sqlite/sqlite.ts";
import { relayOf } from "../kit/event-sql.ts";
import { START_MS, VirtualClock } from "../kit/virtual-clock.ts";

const EVENTS = 23_000;
const LAST_SEQ = EVENTS + 500;
const folder = mkdtempSync(join(tmpdir(), "relay-move-"));
const file = join(folder, "relay.db");
const clock = new VirtualClock(START_MS);
const script = join(import.meta.dir, "../../src/store/sqlite/sqlite.ts");
const idOf = (seq: number) => `evt_${(START_MS + seq).toString(16).padStart(12, "0")}70008${seq.toString(16).padStart(15, "0")}`;
const keyOf = (seq: number) => keyOfEventId(1, "orders", `sent-${seq}`).hash;

afterAll(() => rmSync(folder, { recursive: true }));

/**
 * Creates a database as a killed process of the previous version left it. It has running and waiting events, and relays that were deleted or created
 * again.
 */
function fillBefore(): void {
  using old = new Database(file, { create: true, readwrite: true });
  old.run("PRAGMA auto_vacuum = INCREMENTAL");
  old.run("PRAGMA journal_mode = WAL");
  old.run("CREATE TABLE schema_migration (number INTEGER PRIMARY KEY, name TEXT NOT NULL, applied_at INTEGER NOT NULL)");
  for (const { number, name, sql } of SQLITE_MIGRATIONS.filter((one) => one.number < 25)) {
    old.run(sql);
    old.run("INSERT INTO schema_migration VALUES (?1, ?2, 0)", [number, name]);
  }
  old.run("INSERT INTO app (id, name, created_at) VALUES ('shop', 'Shop', 0)");
  old.run("INSERT INTO environment (id, app_id, name, created_at) VALUES (1, 'shop', 'production', 0), (2, 'shop', 'development', 0)");
  for (const [id, environment, name] of [
    ["rly_new", 1, "orders"],
    ["rly_dev", 2, "orders"],
  ] as const)
    old.run(
      `INSERT INTO relay (id, environment_id, name, definition, origin_kind, origin_at, active_since, created_at, updated_at)
       VALUES (?1, ?2, ?3, '{"trigger":{"kind":"receiver"}}', 'file', 0, 0, 0, 0)`,
      [id, environment, name],
    );
  const insert = old.prepare(
    `INSERT INTO event (seq, id, environment_id, relay_id, relay_name, trigger, state, attempts, next_attempt_at, runs, replays, payload, truncated,
       preview, unsigned, dedupe_hash, person_id, warnings, created_at, started_at, finished_at, form, map_version, mapped_again, chosen, reason)
     VALUES (?1, ?2, ?3, ?4, ?5, 'receiver', ?6, 2, ?7, 3, 1, ?8, 1, 'begins', 1, ?9, ?10, '["a warning"]', ?11, 5, 6, 1, 4, 1, '["key"]', 'http_error')`,
  );
  const key = old.prepare("INSERT INTO key_recent (id, keys) VALUES (?1, ?2)");
  old.transaction(() => {
    for (let seq = 1; seq <= EVENTS; seq++) {
      const dev = seq % 10 === 0;
      const relay = dev ? "rly_dev" : seq % 10 === 1 ? "rly_gone" : seq % 10 === 2 ? "rly_before" : "rly_new";
      const state = seq === EVENTS - 5 ? "running" : seq > EVENTS - 4 ? "queued" : seq % 100 === 7 ? "dead" : "done";
      const text = JSON.stringify({ event: { number: seq, note: "x".repeat(seq === 40 ? 300_000 : 200) }, mapped: {} });
      const name = relay === "rly_gone" ? "gone" : "orders";
      // The clock was an hour ahead for these events.
      const atMs = START_MS + seq + (seq > 20_000 && seq <= 20_003 ? 3_600_000 : 0);
      insert.run(
        seq,
        idOf(seq),
        dev ? 2 : 1,
        relay,
        name,
        state,
        seq === EVENTS ? atMs + 60_000 : null,
        text,
        keyOf(seq),
        seq % 50 === 0 ? "per_1" : null,
        atMs,
      );
      const view = new DataView(keyOf(seq).slice().buffer);
      const first = view.getUint32(0) * 2 ** 20 + (view.getUint32(4) >>> 12);
      key.run(seq, encodeNumbers(new Float64Array([first, seq])));
    }
    old.run("UPDATE sqlite_sequence SET seq = ?1 WHERE name = 'event'", [LAST_SEQ]);
  })();
}

/** Kills several starts before or after their first step, and returns how many rows were left to move after each. */
async function killStarts(): Promise<number[]> {
  const start = `
    const { openSqlite } = await import(${JSON.stringify(script)});
    let asked = 0;
    const monotonicMs = () => (++asked === 2 ? process.kill(process.pid, "SIGKILL") : 0);
    await openSqlite(${JSON.stringify(file)}, { clock: { now: Date.now, monotonicMs } });`;
  const left: number[] = [];
  for (let kills = 0; kills < 3; kills++) {
    await Bun.spawn([process.execPath, "-e", start], { stdout: "ignore", stderr: "ignore" }).exited;
    using look = new Database(file, { readwrite: true });
    left.push(look.query<{ count: number }, []>("SELECT count(*) AS count FROM event_before").get()?.count ?? 0);
  }
  return left;
}

let before: Record<string, unknown>[];
let left: number[];
let told: [from: number, begun: boolean][];

beforeAll(async () => {
  fillBefore();
  using look = new Database(file, { readwrite: true });
  before = look.query<Record<string, unknown>, []>("SELECT * FROM event ORDER BY seq").all();
  look.close();
  left = await killStarts();
  told = [];
  await (await openSqlite(file, { clock, onMigrate: ({ from }, begun) => told.push([from, begun]) })).close();
});

test("the next start continues a killed one, and one copy exists from before the first", () => {
  expect(left).toEqual([23_000, 18_000, 13_000]);
  expect(told).toEqual([[25, true]]);
  const copies = readdirSync(join(folder, "backups"));
  expect(copies).toHaveLength(1);
  using copy = new Database(join(folder, "backups", copies[0] ?? ""), { readonly: true });
  expect(copy.query("SELECT max(number) AS schema FROM schema_migration").get()).toEqual({ schema: 24 });
  expect(copy.query("SELECT count(*) AS count FROM event").get()).toEqual({ count: EVENTS });
});

test("every row exists once, unchanged", () => {
  using moved = new Database(file, { readwrite: true });
  const rows = moved
    .query<Record<string, unknown>, []>(
      `SELECT event.*, former_id AS id, relay_key.relay_id, relay_name.name AS relay_name FROM event
       JOIN relay_key ON relay_key.key = event.relay_key JOIN relay_name ON relay_name.key = event.name_key
         AND relay_name.environment_id = event.environment_id AND relay_key.name_key = relay_name.key ORDER BY seq`,
    )
    .all()
    .map(({ former_id: _, relay_key: __, name_key: ___, ...row }) => row);
  expect(rows).toHaveLength(before.length);
  const expected = before.map((row) => ({ ...row, source: null }));
  for (const [at, row] of rows.entries()) if (!Bun.deepEquals(row, expected[at])) expect(row).toEqual(expected[at] ?? {});
  expect(moved.query("SELECT name FROM sqlite_master WHERE name LIKE '%before%'").all()).toEqual([]);
  expect(moved.query("SELECT seq FROM clock_rollback").all()).toEqual([{ seq: 20_004 }]);
  expect(moved.query("PRAGMA integrity_check").get()).toEqual({ integrity_check: "ok" });
});

test("old ids are found and shown, dedupe keys still apply, and numbers continue after the greatest", async () => {
  const store = await openSqlite(file, { clock });
  const page = readPageRequest({ limit: "3" });
  for (const seq of [1, 40, 5_000, 5_001, 20_002, EVENTS]) {
    const environmentId = seq % 10 === 0 ? 2 : 1;
    const id = idOf(seq);
    expect(await store.read((tx) => findEventSeq(tx, environmentId, id))).toBe(seq);
    expect(await store.read((tx) => findEventView(tx, environmentId, id))).toMatchObject({ id, mapVersion: 4, warnings: ["a warning"] });
    const found = await store.read((tx) => listEvents(tx, environmentId, { q: id }, page));
    expect(found).toMatchObject({ items: [{ id }], next: null });
  }
  const gone = await store.read((tx) => listEvents(tx, 1, { relay: "gone" }, page));
  expect(gone.items.map(({ id, relay }) => [id, relay])).toEqual(
    [EVENTS - 9, EVENTS - 19, EVENTS - 29].map((seq) => [idOf(seq), { id: "rly_gone", name: "gone" }]),
  );
  const listSince = (request: typeof page) => readPage(store, request, (tx, step) => listEvents(tx, 1, { sinceMs: START_MS + 3_600_000 }, step));
  let since = await listSince(page);
  // On a busy machine, a page may end before its steps find any row.
  while (since.items.length === 0 && since.next !== null) since = await listSince(readPageRequest({ limit: "3", cursor: since.next }));
  expect(since.items.map(({ id }) => id)).toEqual([20_003, 20_002, 20_001].map(idOf));
  expect(await store.read(listReadyRelays)).toEqual(expect.arrayContaining(["rly_new"]));
  const due = await store.read((tx) => listDueEvents(tx, "rly_new", 9));
  expect(due.map(({ id, relayName }) => [id, relayName])).toEqual([EVENTS - 3, EVENTS - 2, EVENTS - 1].map((seq) => [idOf(seq), "orders"]));
  const insert = (key: string) =>
    store.write("app", async (tx) =>
      insertEvent(tx, {
        ...(await relayOf(tx, 1, "rly_new", "orders")),
        trigger: "receiver",
        payload: makePayload({}),
        unsigned: false,
        dedupe: keyOfEventId(1, "orders", key),
        nowMs: clock.now() + EVENTS,
      }),
    );
  expect(await insert("sent-17")).toEqual({ id: idOf(17), seq: 17, duplicate: true });
  expect(await insert("another")).toMatchObject({ seq: LAST_SEQ + 1, duplicate: false });
  await store.close();
});
