/** Multi-row INSERTs on PostgreSQL: rows arrive unchanged and in order, and the server keeps no extra statement for each mix of them. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import type { SqlNames, Store } from "../../src/store/port.ts";
import { RowWriter } from "../../src/store/postgres/bulk-insert.ts";
import { type BothStores, openBothStores } from "../kit/both-stores.ts";

let both: BothStores;
let sqlite: Store;
let postgres: Store;

beforeAll(async () => {
  both = await openBothStores();
  ({ sqlite, postgres } = both);
});

afterAll(() => both[Symbol.asyncDispose]());

const INSERT = `INSERT INTO event (seq, environment_id, name_key, relay_key, trigger, state, created_at, payload, reason, dedupe_hash, person_id, preview)
  VALUES ($seq, $environmentId, $nameKey, $relayKey, $trigger, $state, $at, $payload, $reason, $hash, $person, $preview)`;

let last = 0;

const eventOf = (given: SqlNames): SqlNames => {
  last += 1;
  const base = {
    seq: last,
    environmentId: 1,
    nameKey: 1,
    relayKey: 1,
    trigger: "receiver",
    state: "done",
    at: 5,
    payload: "{}",
    reason: null,
    hash: null,
    person: null,
    preview: null,
  };
  return { ...base, ...given };
};

/** Several rows of one statement, by their special feature. */
const ROWS: readonly (readonly [what: string, rows: readonly SqlNames[]])[] = [
  ["numbers as the only difference", [{}, {}, {}]],
  ["a value that some of them lack", [{ reason: "late" }, {}, { reason: null, person: "per_1" }, { person: "per_2" }]],
  [
    "empty texts",
    [
      { payload: "", preview: "" },
      { payload: "", preview: "" },
      { payload: "", preview: null },
    ],
  ],
  ["an empty first row", [{ payload: "" }, { payload: "x" }]],
  [
    "texts with quotes, backslashes and braces",
    [{ payload: '{"a":"b\\"c\\\\d"}' }, { payload: "'\\x00', {NULL,\"\"}" }, { payload: "NULL", reason: "null" }],
  ],
  ["texts of any characters", [{ payload: "é€😀" }, { payload: "line\nline\ttab\r" }, { payload: " spaced " }]],
  ["U+0000, which PostgreSQL cannot store", [{ payload: "a\u0000b" }, { payload: "\u0000" }]],
  ["the character that separates values", [{ payload: "a\u0001b" }, { payload: "\u0001" }, { payload: "\u0001\u0001", preview: null }]],
  ["the character that stands for NULL", [{ preview: "\u0002" }, { preview: null }, { preview: "\u0002x" }]],
  ["the same in their common values", [{ reason: "\u0002" }, { reason: "\u0002" }]],
  ["both", [{ payload: "\u0002" }, { payload: "\u0001" }, { payload: "" }]],
  ["bytes", [{ hash: new Uint8Array() }, { hash: new Uint8Array([0, 1, 2, 255, 92]) }, { hash: null }]],
  ["large and small numbers", [{ at: Number.MAX_SAFE_INTEGER }, { at: -1 }, { at: 0 }, { at: 2 ** 31 }]],
  ["truth", [{ relayKey: true }, { relayKey: false }]],
  ["one row more than a statement takes, and the last one empty", Array.from({ length: 129 }, () => ({ payload: "", preview: "" }))],
  ["more rows than one statement takes", Array.from({ length: 300 }, (_, at) => ({ payload: `p${at}`, reason: at % 3 === 0 ? null : `r${at}` }))],
];

for (const [what, given] of ROWS)
  test(`rows with ${what} are stored as in SQLite`, async () => {
    const rows = given.map(eventOf);
    const first = Number(rows[0]?.seq);
    const [there, here] = await Promise.all(
      [sqlite, postgres].map(async (store) => {
        await store.write("app", (tx) => tx.postEach(INSERT, rows));
        return await store.read((tx) => tx.all<{ dedupe_hash: Uint8Array | null }>("SELECT * FROM event WHERE seq >= ?1 ORDER BY seq", first));
      }),
    );
    const plain = (read: typeof there) => read?.map((row) => ({ ...row, dedupe_hash: row.dedupe_hash && Buffer.from(row.dedupe_hash).toHex() }));
    const asThere = plain(there)?.map((row) => JSON.parse(JSON.stringify(row).replaceAll("\\u0000", "\ufffd")));
    expect(plain(here)).toEqual(asThere ?? []);
    expect(here).toHaveLength(given.length);
  });

test("rows get their numbers in order", async () => {
  const sql = "INSERT INTO audit (environment_id, actor, at, action, target) VALUES ($environmentId, $actor, $at, $action, $target)";
  const names = Array.from({ length: 200 }, (_, at) => `act.${at}`);
  await postgres.write("app", (tx) =>
    tx.postEach(
      sql,
      names.map((action) => ({ environmentId: 1, actor: "key:k", at: 5, action, target: "x" })),
    ),
  );
  const rows = await postgres.read((tx) => tx.all<{ action: string }>("SELECT action FROM audit WHERE action LIKE 'act.%' ORDER BY seq"));
  expect(rows.map(({ action }) => action)).toEqual(names);
});

test("a row that exists already fails its whole transaction, and is skipped if the statement allows it", async () => {
  const rows = [eventOf({}), eventOf({})];
  await postgres.write("app", (tx) => tx.postEach(INSERT, rows));
  const again = postgres.write("app", async (tx) => {
    await tx.post("INSERT INTO app (id, name, created_at) VALUES ('undone', 'x', 1)");
    await tx.postEach(INSERT, [eventOf({}), ...rows]);
  });
  expect(again).rejects.toThrow();
  await again.catch(() => undefined);
  expect(await postgres.read((tx) => tx.get("SELECT 1 FROM app WHERE id = 'undone'"))).toBeNull();
  const kept = await postgres.write("app", (tx) => tx.runEach(`${INSERT} ON CONFLICT DO NOTHING`, [eventOf({}), ...rows, eventOf({})]));
  expect(kept).toBe(2);
});

test("any mix of missing values needs only a few statements on the server", async () => {
  const isGiven = (at: number, bit: number): boolean => ((at * 2_654_435_761) >>> bit) % 2 === 0;
  for (let group = 0; group < 40; group++) {
    const rows = Array.from({ length: 5 + (group % 7) }, (_, row) => {
      const at = group * 16 + row;
      return eventOf({ reason: isGiven(at, 3) ? "r" : null, person: isGiven(at, 5) ? `per_${at}` : null, preview: isGiven(at, 7) ? "p" : null });
    });
    await postgres.write("app", (tx) => tx.postEach(INSERT, rows));
  }
  const kept = await postgres.write("app", (tx) =>
    tx.get<{ count: number }>("SELECT count(*) AS count FROM pg_prepared_statements WHERE statement LIKE 'INSERT INTO event %'"),
  );
  expect(kept?.count).toBeLessThan(20);
});

const TYPES = [
  { name: "a.b", type: "bigint" },
  { name: "a.c", type: "text" },
];

/** The number of statements for three rows. */
const STATEMENTS: readonly (readonly [what: string, sql: string, statements: number])[] = [
  ["an INSERT of one row", "INSERT INTO a (b, c) VALUES ($b, $c)", 1],
  ["one with text after its row", "INSERT INTO a (b, c) VALUES ($b, $c) ON CONFLICT (b) DO UPDATE SET c = excluded.c", 1],
  ["one with values after its row too", "INSERT INTO a (b) VALUES ($b) ON CONFLICT (b) DO UPDATE SET c = $c", 3],
  ["one that computes with a value", "INSERT INTO a (b, c) VALUES ($b + 1, $c)", 3],
  ["one with a text that may contain a parenthesis", "INSERT INTO a (b, c) VALUES ($b, ')')", 3],
  ["one of an unknown table", "INSERT INTO other (b, c) VALUES ($b, $c)", 3],
  ["another statement", "UPDATE a SET c = $c WHERE b = $b", 3],
];

for (const [what, sql, statements] of STATEMENTS)
  test(`number of statements for three rows of ${what}: ${statements}`, () => {
    const rows = [1, 2, 3].map((b): [SqlNames] => [{ b, c: "same" }]);
    const written = new RowWriter(TYPES).write(sql, rows);
    expect(written).toHaveLength(statements);
    expect(new RowWriter().write(sql, rows)).toHaveLength(3);
  });

test("a missing value is reported before any statement is sent", () => {
  const sql = "INSERT INTO a (b, c) VALUES ($b, $c)";
  expect(() => new RowWriter(TYPES).write(sql, [[{ b: 1, c: "x" }], [{ b: 2 }]])).toThrow('Missing parameter "c"');
});
