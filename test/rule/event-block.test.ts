/** The blocks of events for each relay name, on SQLite. Every query through them finds the same rows in the same order as without them. */
import { Database } from "bun:sqlite";
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { systemClock } from "../../src/base/clock.ts";
import { SQLITE_MIGRATIONS } from "../../src/store/migrate/migrations.ts";
import type { Store, Writer } from "../../src/store/port.ts";
import { followBlocks } from "../../src/store/sqlite/index-hint.ts";
import { openSqlite } from "../../src/store/sqlite/sqlite.ts";

const BLOCK = 2_048;
const NAMES = [1, 2, 3, 4, 5];
/** The last name never has an event. The second environment has a name too. */
const STORED = [1, 2, 3, 4];

const INSERT = `INSERT INTO event (seq, environment_id, name_key, relay_key, trigger, state, created_at, payload)
  SELECT json_extract(value, '$[0]'), 1, json_extract(value, '$[1]'), 1, 'receiver', 'done', 5, '{}' FROM json_each($rows)`;
const HELD = "SELECT of_name AS name, block FROM event_block ORDER BY of_name, block";
const HELD_TRULY = `SELECT DISTINCT name_key AS name, seq >> 11 AS block FROM event ORDER BY name_key, seq >> 11`;
const BETWEEN = "event.seq >= $from AND event.seq < $to";
const OF_ENVIRONMENT = "event.name_key IN (SELECT key FROM relay_name WHERE environment_id = $environment)";

/** The queries of the service. Each returns the same rows as the query without the index. */
const ASKED: Readonly<Record<string, string>> = {
  "the newest events of a name": `SELECT seq FROM event INDEXED BY event_of_relay WHERE name_key = $name AND ${BETWEEN} ORDER BY event.seq DESC LIMIT 70`,
  "the oldest events of a name": `SELECT seq FROM event INDEXED BY event_of_relay WHERE name_key = $name AND seq > $from ORDER BY seq LIMIT 70`,
  "events far back": `SELECT event.seq FROM event INDEXED BY event_of_relay WHERE event.name_key = $name AND event.seq <= $to ORDER BY event.seq DESC LIMIT 1 OFFSET 99`,
  "one event by number": "SELECT seq FROM event INDEXED BY event_of_relay WHERE name_key = $name AND seq = $from ORDER BY seq",
  "the totals of a name": "SELECT count(*) AS count, sum(seq) AS sum FROM event INDEXED BY event_of_relay WHERE name_key = $name",
  "events of a looked-up name": `SELECT seq, created_at AS at FROM event INDEXED BY event_of_relay
    WHERE name_key = (SELECT key FROM relay_name WHERE environment_id = $environment AND name = 'n3') AND seq >= $from AND created_at >= 1 ORDER BY seq LIMIT 9`,
  "events of an environment": `SELECT seq FROM event INDEXED BY event_of_relay WHERE ${OF_ENVIRONMENT} AND ${BETWEEN} ORDER BY seq`,
  "counts of an environment by name": `SELECT name_key, count(*) AS count FROM (SELECT event.name_key AS name_key FROM relay_name
    CROSS JOIN event INDEXED BY event_of_relay ON event.name_key = relay_name.key WHERE relay_name.environment_id = $environment AND ${BETWEEN}) GROUP BY name_key ORDER BY name_key`,
  "each name's newest event": `SELECT key, (SELECT seq FROM event INDEXED BY event_of_relay WHERE name_key = relay_name.key AND ${BETWEEN} ORDER BY seq DESC LIMIT 1) AS head
    FROM relay_name WHERE environment_id = $environment`,
  "a join with another table": `SELECT event.seq AS seq, other.seq AS other FROM event INDEXED BY event_of_relay LEFT JOIN audit AS other ON other.seq > $width
    WHERE event.name_key = $name AND event.seq >= $from ORDER BY event.seq LIMIT 9`,
  "slices with computed ends": `SELECT slice.value AS start, (SELECT count(*) FROM (SELECT 1 FROM event INDEXED BY event_of_relay
    WHERE name_key = $name AND seq >= CAST(slice.value AS INTEGER) AND seq < CAST(slice.value AS INTEGER) + $width ORDER BY seq LIMIT 999)) AS count
    FROM json_each($starts) AS slice`,
};

describe("the events of a relay's name", () => {
  let folder: string;
  let store: Store;
  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), "relay-block-"));
    store = await openSqlite(join(folder, "relay.db"), { clock: systemClock });
    await store.write("app", async (tx) => {
      for (const key of NAMES)
        await tx.run("INSERT INTO relay_name (key, environment_id, name) VALUES (?1, ?2, ?3)", key, key < 4 ? 1 : 2, `n${key}`);
    });
  });
  afterAll(async () => {
    await store.close();
    rmSync(folder, { recursive: true });
  });

  const insert = (tx: Writer, rows: readonly (readonly [number, number])[]) => tx.run(INSERT, { rows: JSON.stringify(rows) });
  /** A run of numbers with gaps. The names alternate, except that one name has most of the events. */
  const batch = fc.record({
    skipped: fc.nat(3_000),
    rows: fc.array(fc.tuple(fc.integer({ min: 1, max: 40 }), fc.constantFrom(...STORED)), { maxLength: 60 }),
    undone: fc.boolean(),
  });
  const cut = fc.record({ from: fc.nat(30_000), wide: fc.nat(9_000), name: fc.option(fc.constantFrom(...STORED)) });
  const question = fc.record({ name: fc.constantFrom(...NAMES), environment: fc.constantFrom(1, 2, 3), from: fc.nat(30_000), wide: fc.nat(12_000) });

  test("match a search without blocks, whatever was stored, rolled back and deleted", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(batch, { maxLength: 12 }),
        fc.array(cut, { maxLength: 3 }),
        fc.array(question, { minLength: 3, maxLength: 3 }),
        holds,
      ),
      { numRuns: 60 },
    );
  });

  async function holds(
    batches: readonly { skipped: number; rows: readonly (readonly [number, number])[]; undone: boolean }[],
    cuts: readonly { from: number; wide: number; name: number | null }[],
    questions: readonly { name: number; environment: number; from: number; wide: number }[],
  ): Promise<void> {
    await store.write("app", (tx) => tx.run("DELETE FROM event"));
    expect(await store.read((tx) => tx.all(HELD))).toEqual([]);
    let seq = 0;
    for (const { skipped, rows, undone } of batches) {
      seq += skipped;
      const numbered = rows.map(([step, name]) => {
        seq += step;
        return [seq, name] as const;
      });
      await store.write("app", async (tx) => {
        const storing = tx.attempt(async () => {
          await insert(tx, numbered);
          if (undone) throw new Error("undone");
        });
        await storing.catch(() => undefined);
      });
    }
    for (const { from, wide, name } of cuts)
      await store.write("app", (tx) =>
        tx.run("DELETE FROM event WHERE seq >= $from AND seq < $to AND ($name IS NULL OR name_key = $name)", { from, to: from + wide, name }),
      );
    await store.read(async (tx) => {
      expect(await tx.all(HELD)).toEqual(await tx.all(HELD_TRULY));
      for (const { name, environment, from, wide } of questions)
        for (const [what, sql] of Object.entries(ASKED)) {
          const starts = JSON.stringify([0, from, from + BLOCK]);
          const all = { name, environment, from, to: from + wide, width: wide, starts };
          const values = Object.fromEntries(Object.entries(all).filter(([key]) => sql.includes(`$${key}`)));
          const plainly = await tx.all(sql.replaceAll("INDEXED BY event_of_relay", "NOT INDEXED"), values);
          expect([what, await tx.all(sql, values)]).toEqual([what, plainly]);
        }
    });
  }

  test.each(Object.entries(ASKED).filter(([what]) => !what.includes("environment")))("answer %s without a scan or a sort", (_, sql) => {
    using database = new Database(join(folder, "relay.db"), { readonly: true });
    const steps = database.query<{ detail: string }, []>(`EXPLAIN QUERY PLAN ${followBlocks(sql)}`).all();
    const plan = steps.map(({ detail }) => detail).join("; ");
    expect(plan).toMatch(/SEARCH event_block USING PRIMARY KEY \(of_name=\?/);
    expect(plan).toMatch(/SEARCH event USING (COVERING )?INDEX event_of_relay \(<expr>=\? AND name_key=\?/);
    expect(plan).not.toMatch(/SCAN event|TEMP B-TREE/);
  });

  test("are in their blocks after the migration that created these", () => {
    using database = new Database(":memory:");
    const apply = (from: number, to: number) => {
      for (const { number, sql } of SQLITE_MIGRATIONS) if (number >= from && number <= to) database.exec(sql);
    };
    apply(1, 45);
    const rows = Array.from({ length: 3 * BLOCK }, (_, at) => [at * 2 + 1, at % 500 === 0 ? 2 : at < BLOCK ? 1 : 3]);
    database.query(INSERT.replaceAll("$rows", "?1")).run(JSON.stringify(rows));
    apply(46, 46);
    const held = database.query(HELD).all();
    expect(held).toEqual(database.query(HELD_TRULY).all());
    expect(held).toHaveLength(2 + 6 + 4);
  });
});

test("a statement that uses the index without a name is refused, and one without the index is unchanged", () => {
  expect(() => followBlocks("SELECT seq FROM event INDEXED BY event_of_relay WHERE seq > ?1")).toThrow("no name_key is compared");
  expect(() => followBlocks("SELECT seq FROM event INDEXED BY event_of_relay WHERE name_key = ?1 AND state = ?2 OR seq > ?3")).toThrow(
    "whatever else is",
  );
  expect(() => followBlocks("SELECT seq FROM event INDEXED BY event_of_relay WHERE name_key = ? AND seq > ?")).toThrow("with a number or a name");
  const other = "SELECT seq FROM event INDEXED BY event_unhappy WHERE environment_id = ?1 AND seq > ?2";
  expect(followBlocks(other)).toBe(other);
});
