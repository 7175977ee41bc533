/** Many rows of one INSERT on PostgreSQL: they arrive as they were given, in their order, and the server keeps no statement more for each mix of them. */
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

/** Several rows of one statement, by what is odd in them. */
const ROWS: readonly (readonly [what: string, rows: readonly SqlNames[]])[] = [
  ["all alike but for their number", [{}, {}, {}]],
  ["a value that some of them lack", [{ reason: "late" }, {}, { reason: null, person: "per_1" }, { person: "per_2" }]],
  [
    "texts that are empty",
    [
      { payload: "", preview: "" },
      { payload: "", preview: "" },
      { payload: "", preview: null },
    ],
  ],
  ["the first of which is empty", [{ payload: "" }, { payload: "x" }]],
  [
    "texts with quotes, backslashes and braces",
    [{ payload: '{"a":"b\\"c\\\\d"}' }, { payload: "'\\x00', {NULL,\"\"}" }, { payload: "NULL", reason: "null" }],
  ],
  ["texts of any letters", [{ payload: "é€😀" }, { payload: "line\nline\ttab\r" }, { payload: " spaced " }]],
  ["U+0000, which is none there", [{ payload: "a\u0000b" }, { payload: "\u0000" }]],
  ["the letter that stands between values", [{ payload: "a\u0001b" }, { payload: "\u0001" }, { payload: "\u0001\u0001", preview: null }]],
  ["the letter that stands for nothing", [{ preview: "\u0002" }, { preview: null }, { preview: "\u0002x" }]],
  ["the same in what they have in common", [{ reason: "\u0002" }, { reason: "\u0002" }]],
  ["both", [{ payload: "\u0002" }, { payload: "\u0001" }, { payload: "" }]],
  ["bytes", [{ hash: new Uint8Array() }, { hash: new Uint8Array([0, 1, 2, 255, 92]) }, { hash: null }]],
  ["large numbers and small ones", [{ at: Number.MAX_SAFE_INTEGER }, { at: -1 }, { at: 0 }, { at: 2 ** 31 }]],
  ["truth", [{ relayKey: true }, { relayKey: false }]],
  ["one more than a statement takes, the last of them empty", Array.from({ length: 129 }, () => ({ payload: "", preview: "" }))],
  ["more of them than one statement takes", Array.from({ length: 300 }, (_, at) => ({ payload: `p${at}`, reason: at % 3 === 0 ? null : `r${at}` }))],
];

for (const [what, given] of ROWS)
  test(`rows with ${what} are there as in SQLite`, async () => {
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

test("rows get their numbers in their order", async () => {
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

test("a row that is there already fails all of its transaction, and is counted out where it may be there", async () => {
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

test("whatever is there or not in rows, the server keeps a few statements for all of them", async () => {
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

/** How many statements three rows are. */
const STATEMENTS: readonly (readonly [what: string, sql: string, statements: number])[] = [
  ["an INSERT of one row", "INSERT INTO a (b, c) VALUES ($b, $c)", 1],
  ["one with what follows its row", "INSERT INTO a (b, c) VALUES ($b, $c) ON CONFLICT (b) DO UPDATE SET c = excluded.c", 1],
  ["one whose values stand behind the row too", "INSERT INTO a (b) VALUES ($b) ON CONFLICT (b) DO UPDATE SET c = $c", 3],
  ["one that reckons with a value", "INSERT INTO a (b, c) VALUES ($b + 1, $c)", 3],
  ["one with a text that may hold a parenthesis", "INSERT INTO a (b, c) VALUES ($b, ')')", 3],
  ["one of a table that nobody knows", "INSERT INTO other (b, c) VALUES ($b, $c)", 3],
  ["another statement", "UPDATE a SET c = $c WHERE b = $b", 3],
];

for (const [what, sql, statements] of STATEMENTS)
  test(`of three rows ${what} makes ${statements}`, () => {
    const rows = [1, 2, 3].map((b): [SqlNames] => [{ b, c: "same" }]);
    const written = new RowWriter(TYPES).write(sql, rows);
    expect(written).toHaveLength(statements);
    expect(new RowWriter().write(sql, rows)).toHaveLength(3);
  });

test("a value that is missing is told before anything is sent", () => {
  const sql = "INSERT INTO a (b, c) VALUES ($b, $c)";
  expect(() => new RowWriter(TYPES).write(sql, [[{ b: 1, c: "x" }], [{ b: 2 }]])).toThrow('Missing parameter "c"');
});
