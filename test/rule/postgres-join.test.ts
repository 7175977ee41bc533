/** INSERTs into several tables that go to PostgreSQL as one statement. The tests check which ones combine, and that the rows equal SQLite's. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import type { SqlNames, Store, Writer } from "../../src/store/port.ts";
import { UniqueViolation } from "../../src/store/port.ts";
import { joinInserts } from "../../src/store/postgres/combined-insert.ts";
import { type BothStores, openBothStores } from "../kit/both-stores.ts";

const into = (table: string, values: unknown[] = ["x"], from = "unnest($1)") => ({ text: `INSERT INTO ${table} (a) SELECT $1 FROM ${from}`, values });
const textsOf = (...statements: { text: string; values: unknown[] }[]) => joinInserts(statements).map(({ text }) => text);

describe("one statement combines", () => {
  test("INSERTs into several tables, each with its values, and with another statement's WITH part", () => {
    const turn = {
      text: "WITH turn AS (UPDATE writer_turn SET node = $1) INSERT INTO writer_commit (connection, number) VALUES ($2, $3)",
      values: ["n", "c", 7],
    };
    expect(joinInserts([into("event", ["e"]), { text: "INSERT INTO run (a, b) VALUES ($2, $1)", values: ["r", 1] }, turn])).toEqual([
      {
        text: `WITH turn AS (UPDATE writer_turn SET node = $4), part0 AS (INSERT INTO event (a) SELECT $1 FROM unnest($1)), part1 AS (INSERT INTO run (a, b) VALUES ($3, $2)) INSERT INTO writer_commit (connection, number) VALUES ($5, $6)`,
        values: ["e", "r", 1, "n", "c", 7],
      },
    ]);
  });

  test("the same INSERTs in any order into one text, each with its own values", () => {
    const [event, run, record] = [into("event", ["e"]), into("run", ["r"]), into("record", ["c"])];
    const texts = new Set<string>();
    for (const posted of [
      [event, run, record],
      [event, record, run],
      [run, event, record],
      [run, record, event],
      [record, event, run],
      [record, run, event],
    ]) {
      const [one, ...others] = joinInserts(posted);
      expect([one?.values, others]).toEqual([["e", "c", "r"], []]);
      texts.add(one?.text ?? "");
    }
    expect([...texts]).toEqual([
      "WITH part0 AS (INSERT INTO event (a) SELECT $1 FROM unnest($1)), part1 AS (INSERT INTO record (a) SELECT $2 FROM unnest($2)) INSERT INTO run (a) SELECT $3 FROM unnest($3)",
    ]);
  });

  test("a single INSERT into itself", () => {
    const [event, none] = [into("event"), joinInserts([])];
    expect([joinInserts([event]), none]).toEqual([[event], []]);
  });

  const apart: readonly (readonly [what: string, ...Parameters<typeof textsOf>])[] = [
    ["two INSERTs into one table", into("event"), into("event")],
    ["INSERTs of which one reads what the other writes", into("event"), into("run", ["x"], "event")],
    ["INSERTs of which one reads what the other's triggers write", into("record"), into("audit", ["x"], "record_change")],
    ["INSERTs in the reverse order of such a read", into("run", ["x"], "event"), into("event")],
    ["an INSERT whose table has unknown triggers", into("event"), into("relay")],
    ["a value that the next INSERT may lack", into("event", [null]), into("run")],
    ["bytes, which the next may lack too", into("event"), into("run", [new Uint8Array(2)])],
    ["a statement that is no INSERT", into("event"), { text: "UPDATE run SET a = $1", values: ["x"] }],
  ];
  for (const [what, ...statements] of apart)
    test(`not ${what}`, () => {
      expect(textsOf(...statements)).toEqual(statements.map(({ text }) => text));
    });

  test("only adjacent INSERTs, so that the order stays", () => {
    const update = { text: "UPDATE run SET a = $1", values: ["x"] };
    expect(textsOf(into("event"), into("run"), update, into("run"), into("event")).map((text) => text.slice(0, 6))).toEqual([
      "WITH p",
      "UPDATE",
      "WITH p",
    ]);
    expect(textsOf(into("event"), into("run"), into("event"), into("run")).length).toBe(2);
  });
});

describe("rows of several tables in one transaction", () => {
  let both: BothStores;
  let sqlite: Store;
  let postgres: Store;
  let last = 0;

  beforeAll(async () => {
    both = await openBothStores();
    ({ sqlite, postgres } = both);
    for (const store of [sqlite, postgres])
      await store.write("app", async (tx) => {
        await tx.run("INSERT INTO app (id, name, created_at) VALUES ('shop', 'Shop', 1)");
        await tx.run("INSERT INTO environment (app_id, name, created_at) VALUES ('shop', 'development', 1)");
        const trigger = { kind: "data_change", collection: "orders", on: ["created"] };
        await tx.run(
          `INSERT INTO relay (id, environment_id, name, definition, origin_kind, origin_at, active_since, created_at, updated_at)
           VALUES ('rel_orders', 1, 'orders', ?1, 'file', 1, 1, 1, 1)`,
          JSON.stringify({ trigger, actions: [] }),
        );
      });
  });

  afterAll(() => both[Symbol.asyncDispose]());

  const EVENT = `INSERT INTO event (seq, environment_id, name_key, relay_key, trigger, state, created_at, payload)
    VALUES ($seq, $one, $one, $one, $trigger, $state, $at, $payload)`;
  const RUN = `INSERT INTO run (event_seq, number, started_at, finished_at, outcome, results) VALUES ($seq, $one, $at, $at, $outcome, $results)`;
  const RECORD = `INSERT INTO record (id, environment_id, collection, data, written_by, created_at, updated_at)
    VALUES ($id, $one, $collection, $data, $by, $at, $at)`;
  const AUDIT = `INSERT INTO audit (environment_id, at, actor, action, target) VALUES ($one, $at, $by, $action, $id)`;

  const rowsOf = (count: number): SqlNames[] =>
    Array.from({ length: count }, () => {
      last += 1;
      const texts = {
        trigger: "receiver",
        state: "done",
        payload: `{"n":${last}}`,
        outcome: "ok",
        results: "[]",
        by: "key:k",
        action: "record.create",
      };
      return {
        ...texts,
        seq: last,
        one: 1,
        at: 5 + last,
        id: `rec_${last}`,
        collection: last % 3 === 0 ? "notes" : "orders",
        data: `{"amount":${last}}`,
      };
    });
  const write = async (tx: Writer, rows: readonly SqlNames[]): Promise<void> => {
    for (const sql of [RECORD, EVENT, RUN, AUDIT]) await tx.postEach(sql, rows);
  };
  const TABLES = ["event", "run", "record", "record_change", "stored_bytes"];
  const left = (store: Store) =>
    store.read(async (tx) => {
      const all = await Promise.all(TABLES.map((table) => tx.all<Record<string, unknown>>(`SELECT * FROM ${table}`)));
      const audits = await tx.all("SELECT environment_id, at, actor, action, target FROM audit ORDER BY at, target");
      return [...all.map((rows) => rows.map((row) => JSON.stringify(row)).toSorted()), audits];
    });

  for (const count of [1, 2, 40, 130])
    test(`are stored with what their triggers write, as in SQLite: ${count}`, async () => {
      const rows = rowsOf(count);
      for (const store of [sqlite, postgres]) await store.write("app", (tx) => write(tx, rows));
      const [there, here] = [await left(sqlite), await left(postgres)];
      expect(here).toEqual(there);
      expect(here[0]?.length).toBe(last);
      expect(here[3]?.length).toBe(rowsOfOrders());
    });

  /** Each row that a relay watches is one change. */
  const rowsOfOrders = (): number => last - Math.floor(last / 3);

  test("are visible to the next query of the same transaction", async () => {
    const rows = rowsOf(12);
    for (const store of [sqlite, postgres]) {
      const seen = await store.write("app", async (tx) => {
        await write(tx, rows);
        return await tx.get(
          "SELECT (SELECT count(*) FROM event) AS events, (SELECT count(*) FROM run) AS runs, (SELECT count(*) FROM record_change) AS changes",
        );
      });
      expect(seen).toEqual({ events: last, runs: last, changes: rowsOfOrders() });
    }
  });

  test("are all missing if one existed before, while the other writes of the group are stored", async () => {
    const [rows, others] = [rowsOf(5), rowsOf(5)];
    const twice = rows.map((row) => ({ ...row, seq: 1 }));
    for (const store of [sqlite, postgres]) {
      const before = (await left(store))[0]?.length ?? 0;
      const [refused, kept] = await Promise.allSettled([store.write("app", (tx) => write(tx, twice)), store.write("app", (tx) => write(tx, others))]);
      expect(refused).toMatchObject({ status: "rejected", reason: expect.any(UniqueViolation) });
      expect(kept.status).toBe("fulfilled");
      expect((await left(store))[0]?.length).toBe(before + others.length);
    }
    expect(await left(postgres)).toEqual(await left(sqlite));
  });
});
