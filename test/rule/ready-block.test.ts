/** The blocks of due events for each relay, on SQLite. The runner finds the same events in the same order as without them, whatever was written. */
import { Database } from "bun:sqlite";
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { listCommits } from "../../scripts/bench/log-commits.ts";
import { systemClock } from "../../src/base/clock.ts";
import { listDueEvents, listReadyRelays } from "../../src/engine/event/event.ts";
import { SQLITE_MIGRATIONS } from "../../src/store/migrate/migrations.ts";
import type { Store, Writer } from "../../src/store/port.ts";
import { followBlocks } from "../../src/store/sqlite/index-hint.ts";
import { openSqlite } from "../../src/store/sqlite/sqlite.ts";

const BLOCK = 2_048;
const RELAYS = [1, 2, 3];
const DUE = "state = 'queued' AND next_attempt_at IS NULL";
const HELD = "SELECT of_relay AS relay, block FROM ready_block ORDER BY of_relay, block";
const HELD_TRULY = `SELECT DISTINCT relay_key AS relay, seq >> 11 AS block FROM event WHERE ${DUE} ORDER BY relay_key, seq >> 11`;
const INSERT = `INSERT INTO event (seq, environment_id, name_key, relay_key, trigger, state, next_attempt_at, created_at, payload)
  SELECT value ->> '$[0]', 1, 1, value ->> '$[1]', 'receiver', value ->> '$[2]', value ->> '$[3]', 5, '{}' FROM json_each($rows)`;
const LIST_DUE = `SELECT seq FROM event INDEXED BY event_ready
  WHERE relay_key = (SELECT key FROM relay_key WHERE relay_id = $relayId) AND ${DUE} AND seq > $after ORDER BY seq LIMIT $limit`;

interface Place {
  relay: number;
  block: number;
}

let folder: string;
let store: Store;
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "relay-ready-"));
  store = await openSqlite(join(folder, "relay.db"), { clock: systemClock });
  await store.write("app", async (tx) => {
    await tx.run("INSERT INTO relay_name (key, environment_id, name) VALUES (1, 1, 'orders')");
    for (const key of RELAYS) await tx.run("INSERT INTO relay_key (key, relay_id, name_key) VALUES (?1, ?2, 1)", key, `rly_${key}`);
  });
});
afterAll(async () => {
  await store.close();
  rmSync(folder, { recursive: true });
});

const reset = () =>
  store.write("app", async (tx) => {
    for (const table of ["event", "ready_block"]) await tx.run(`DELETE FROM ${table}`);
  });
type Row = readonly [seq: number, relay: number, state: string, nextAttemptAt: number | null];
const insert = (tx: Writer, rows: readonly Row[]) => tx.run(INSERT, { rows: JSON.stringify(rows) });
const held = () => store.read((tx) => tx.all<Place>(HELD));

/** Each block with a due event is listed. A block without one is listed only if it is the relay's newest. */
async function checkBlocks(): Promise<void> {
  const listed = await held();
  const truly = await store.read((tx) => tx.all<Place>(HELD_TRULY));
  const has = (places: readonly Place[], { relay, block }: Place) => places.some((one) => one.relay === relay && one.block === block);
  expect(truly.filter((one) => !has(listed, one))).toEqual([]);
  for (const relay of RELAYS) {
    const empty = listed.filter((one) => one.relay === relay && !has(truly, one));
    const newest = listed.filter((one) => one.relay === relay).at(-1);
    expect(empty.filter((one) => one !== newest)).toEqual([]);
  }
}

describe("the due events of a relay", () => {
  const state = fc.constantFrom<[string, number | null]>(["queued", null], ["queued", 9], ["running", null], ["done", null], ["dead", null]);
  const row = fc.record({ step: fc.integer({ min: 1, max: 700 }), relay: fc.constantFrom(...RELAYS), state });
  const work = fc.oneof(
    fc.record({ kind: fc.constant("insert" as const), rows: fc.array(row, { maxLength: 25 }), undone: fc.boolean() }),
    fc.record({ kind: fc.constant("change" as const), from: fc.nat(20_000), wide: fc.nat(6_000), every: fc.integer({ min: 1, max: 4 }), state }),
    fc.record({ kind: fc.constant("adopt" as const), from: fc.nat(20_000), relay: fc.constantFrom(...RELAYS) }),
    fc.record({ kind: fc.constant("delete" as const), from: fc.nat(20_000), wide: fc.nat(6_000) }),
  );

  test("match a search without blocks, whatever was stored, moved between states, rolled back and deleted", async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(work, { maxLength: 14 }), fc.nat(20_000), fc.integer({ min: 1, max: 9 }), async (works, after, limit) => {
        await reset();
        let seq = 0;
        for (const one of works) {
          await store.write("app", async (tx) => {
            if (one.kind === "insert") {
              const rows = one.rows.map(({ step, relay, state: [name, next] }): Row => {
                seq += step;
                return [seq, relay, name, next];
              });
              const storing = tx.attempt(async () => {
                await insert(tx, rows);
                if (one.undone) throw new Error("undone");
              });
              await storing.catch(() => undefined);
            } else if (one.kind === "change") {
              const [name, next] = one.state;
              const sql = "UPDATE event SET state = ?1, next_attempt_at = ?2 WHERE seq >= ?3 AND seq < ?4 AND seq % ?5 = 0";
              await tx.run(sql, name, next, one.from, one.from + one.wide, one.every);
            } else if (one.kind === "adopt") {
              await tx.run(
                "UPDATE event SET relay_key = ?1, state = 'queued', next_attempt_at = NULL WHERE seq >= ?2 AND seq < ?2 + 900",
                one.relay,
                one.from,
              );
            } else await tx.run("DELETE FROM event WHERE seq >= ?1 AND seq < ?2", one.from, one.from + one.wide);
          });
          await checkBlocks();
        }
        await store.read(async (tx) => {
          const due = await tx.all<{ seq: number; relay: number }>(`SELECT seq, relay_key AS relay FROM event NOT INDEXED WHERE ${DUE} ORDER BY seq`);
          expect(await listReadyRelays(tx)).toEqual(RELAYS.filter((key) => due.some(({ relay }) => relay === key)).map((key) => `rly_${key}`));
          for (const key of RELAYS) {
            const expected = due.filter((one) => one.relay === key && one.seq > after).slice(0, limit);
            expect((await listDueEvents(tx, `rly_${key}`, limit, after)).map((one) => one.seq)).toEqual(expected.map((one) => one.seq));
          }
        });
      }),
      { numRuns: 80 },
    );
  });

  test("in a short queue add and remove no block for each event", async () => {
    await reset();
    const changes: number[] = [];
    for (let seq = 1; seq <= 20; seq++) {
      await store.write("app", (tx) => insert(tx, [[seq, 1, "queued", null]]));
      await store.write("app", (tx) => tx.run("UPDATE event SET state = 'done' WHERE seq = ?1", seq));
      changes.push((await held()).length);
    }
    expect(changes).toEqual(Array(20).fill(1));
    await store.write("app", (tx) => insert(tx, [[BLOCK * 3, 1, "queued", null]]));
    expect(await held()).toEqual([{ relay: 1, block: 3 }]);
  });

  test("are found through the blocks, without a scan or a sort", () => {
    using database = new Database(join(folder, "relay.db"), { readonly: true });
    const steps = database.query<{ detail: string }, []>(`EXPLAIN QUERY PLAN ${followBlocks(LIST_DUE)}`).all();
    const plan = steps.map(({ detail }) => detail).join("; ");
    expect(plan).toMatch(/SEARCH ready_block USING PRIMARY KEY \(of_relay=\?/);
    expect(plan).toMatch(/SEARCH event USING (COVERING )?INDEX event_ready \(<expr>=\? AND relay_key=\?/);
    expect(plan).not.toMatch(/SCAN event|TEMP B-TREE/);
  });

  test("keep their blocks without a walk through the index", () => {
    using database = new Database(join(folder, "relay.db"), { readonly: true });
    const triggers = database.query<{ sql: string }, []>("SELECT sql FROM sqlite_schema WHERE type = 'trigger' AND name LIKE 'ready_block_%'").all();
    const written = triggers.map(({ sql }) => sql.replaceAll(/(NEW|OLD)\.(seq|relay_key)/g, "1"));
    const deletes = written.flatMap((sql) => sql.match(/DELETE FROM ready_block[^;]+/g) ?? []);
    const looks = written.flatMap((sql) => sql.match(/SELECT 1 FROM event .*?next_attempt_at IS NULL/g) ?? []);
    expect([deletes.length, looks.length]).toEqual([3, 3]);
    for (const sql of [...deletes, ...looks.filter((one) => !one.includes("ready_block."))]) {
      const steps = database.query<{ detail: string }, []>(`EXPLAIN QUERY PLAN ${sql}`).all();
      const plan = steps.map(({ detail }) => detail).join("; ");
      expect(plan).not.toMatch(/SCAN|event_ready \(<expr>=\?\)/);
      if (sql.includes("FROM event")) expect(plan).toContain("INDEX event_ready (<expr>=? AND relay_key=?)");
    }
  });

  test("are in their blocks after the migration that created these", async () => {
    await reset();
    using database = new Database(join(folder, "relay.db"));
    database.run("BEGIN");
    for (const name of ["begun", "begun_again", "left", "deleted"]) database.run(`DROP TRIGGER ready_block_${name}`);
    database.run("DROP TABLE ready_block");
    database.run("DROP INDEX event_ready");
    database.run(`CREATE INDEX event_ready ON event (relay_key, seq) WHERE ${DUE}`);
    const rows = Array.from({ length: 3 * BLOCK }, (_, at): Row => [at * 2 + 1, 1 + (at % 3), at % 500 === 0 ? "queued" : "done", null]);
    database.query(INSERT.replaceAll("$rows", "?1")).run(JSON.stringify(rows));
    database.run(SQLITE_MIGRATIONS.find(({ number }) => number === 74)?.sql ?? "");
    const blocks = database.query(HELD).all();
    expect(blocks).toEqual(database.query(HELD_TRULY).all());
    expect(blocks.length).toBeGreaterThan(9);
    database.run("ROLLBACK");
  });
});

test("a group of fifty relays' events writes few more pages than one relay's", async () => {
  /** Returns the number of pages that the commit of fifty events writes on a store with a long queue. */
  const pagesOf = async (relays: number): Promise<number> => {
    await reset();
    const rows = (from: number, count: number) => Array.from({ length: count }, (_, at): Row => [from + at, 1 + (at % relays), "queued", null]);
    await store.write("app", (tx) => insert(tx, rows(1, 30_000)));
    await store.write("app", (tx) => insert(tx, rows(30_001, 50)));
    return listCommits(join(folder, "relay.db-wal")).at(-1) ?? 0;
  };
  const one = await pagesOf(1);
  const fifty = await pagesOf(50);
  expect(one).toBeGreaterThan(3);
  expect(fifty - one).toBeLessThan(15);
});
