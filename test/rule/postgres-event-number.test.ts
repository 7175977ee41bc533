/** Numbers of events on PostgreSQL: two writers at a time, gaps, and nodes of 0.17, which store the largest number plus one. */
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { SQL } from "bun";
import { systemClock } from "../../src/base/clock.ts";
import { EventInserter, insertEvent, makeReceiverPayload } from "../../src/engine/event/insert.ts";
import { findNewestArrival } from "../../src/shop/people/access-order.ts";
import { POSTGRES_MIGRATIONS } from "../../src/store/migrate/migrations.ts";
import type { Store, Writer } from "../../src/store/port.ts";
import { PostgresConnection } from "../../src/store/postgres/connection.ts";
import { DrawnNumbers } from "../../src/store/postgres/event-number.ts";
import { openPostgres } from "../../src/store/postgres/postgres.ts";
import { relayOf } from "../kit/event-sql.ts";
import { freshDatabase } from "../kit/postgres.ts";

let database: Awaited<ReturnType<typeof freshDatabase>>;
let store: Store;
let writers: PostgresConnection[];

beforeEach(async () => {
  database = await freshDatabase();
  store = await openPostgres(database.place, { clock: systemClock });
  writers = [];
});
afterEach(async () => {
  for (const writer of writers) await writer.close();
  await store.close();
  await database[Symbol.asyncDispose]();
});

const draftOf = async (tx: Writer, environmentId: number) => ({
  ...(await relayOf(tx, environmentId, `rly_${environmentId}`, "orders")),
  trigger: "receiver" as const,
  payload: makeReceiverPayload("{}", {}),
  unsigned: false,
  dedupe: null,
  nowMs: 1_000,
});

const insert = (environmentId = 1) => store.write("app", async (tx) => (await insertEvent(tx, await draftOf(tx, environmentId))).seq);

/** Stores an event as a node of 0.17 does. */
const insertAsFormerNode = (seq = "greatest(event_last.seq, (SELECT max(seq) FROM event)) + 1") =>
  store.write("relay", async (tx) => {
    const { nameKey, relayKey } = await draftOf(tx, 1);
    const row = await tx.get<{ seq: number }>(
      `INSERT INTO event (seq, environment_id, name_key, relay_key, trigger, state, created_at, payload)
       SELECT ${seq}, 1, ?1, ?2, 'receiver', 'done', 1000, '{}' FROM event_last RETURNING seq`,
      nameKey,
      relayKey,
    );
    return row?.seq ?? 0;
  });

const listNumbers = async (environmentId: number) =>
  (await store.read((tx) => tx.all<{ seq: number }>("SELECT seq FROM event WHERE environment_id = ?1 ORDER BY seq", environmentId))).map(
    ({ seq }) => seq,
  );

/** Opens a transaction next to the store's, as the writer of another environment. It takes no lock. */
async function begin(): Promise<{ tx: Writer; end: (how: "COMMIT" | "ROLLBACK") => Promise<unknown> }> {
  const connection = await PostgresConnection.open(database.place, "relay test", { writes: "rows" });
  writers.push(connection);
  connection.exec("BEGIN");
  const unused = () => undefined;
  const tx = {
    get: connection.get.bind(connection),
    run: connection.run.bind(connection),
    post: connection.post.bind(connection),
    numbers: connection.numbers,
    notify: unused,
    afterCommit: unused,
  } as unknown as Writer;
  return {
    tx,
    end: async (how) => {
      await connection.settle();
      return await connection.script(how);
    },
  };
}

describe("writers of two environments at the same time", () => {
  test("get different numbers, which rise in the order of each environment's commits", async () => {
    const seen: number[][] = [[], []];
    const draw = async (environmentId: number, way: "COMMIT" | "ROLLBACK") => {
      const { tx, end } = await begin();
      const inserter = new EventInserter(tx);
      const draft = await draftOf(tx, environmentId);
      const seqs: number[] = [];
      return {
        store: async () => seqs.push((await inserter.insert(draft)).seq),
        end: async () => {
          await end(way);
          if (way === "COMMIT") seen[environmentId - 1]?.push(...seqs);
        },
      };
    };
    for (const way of ["COMMIT", "ROLLBACK", "COMMIT"] as const) {
      const [one, other] = [await draw(1, way), await draw(2, "COMMIT")];
      for (let time = 0; time < 5; time++) {
        await one.store();
        await other.store();
      }
      await other.end();
      await one.end();
    }
    for (const [at, numbers] of seen.entries()) {
      expect(numbers).toEqual(numbers.toSorted((a, b) => a - b));
      expect(await listNumbers(at + 1)).toEqual(numbers);
    }
    const all = seen.flat();
    expect([all.length, new Set(all).size]).toEqual([25, 25]);
  });

  test("give a change by hand a place between the earlier and the later events of the environment", async () => {
    const before = await insert();
    const places = await store.write("app", async (tx) => {
      await tx.prefetch?.numbers?.prefetch(3, 0);
      const { tx: other, end } = await begin();
      for (let time = 0; time < 9; time++) await insertEvent(other, await draftOf(other, 2));
      await end("COMMIT");
      const draft = await draftOf(tx, 1);
      const first = await insertEvent(tx, draft);
      const place = await findNewestArrival(tx);
      return [first.seq, place, (await insertEvent(tx, draft)).seq];
    });
    const [first = 0, place = 0, next = 0] = places;
    expect([first > before, place >= first, next > place]).toEqual([true, true, true]);
    expect(Math.max(...(await listNumbers(2)))).toBeGreaterThan(next);
  });
});

describe("an event of a node of 0.17", () => {
  const STEPS: readonly (readonly [rule: string, former: () => Promise<unknown>])[] = [
    ["that takes the next number", () => insertAsFormerNode()],
    ["and more of them", async () => await Promise.all(Array.from({ length: 20 }, () => insertAsFormerNode()))],
    ["that was deleted since", async () => await remove(await insertAsFormerNode())],
    ["far behind the sequence, after a restore without it", () => insertAsFormerNode("90000000")],
    ["behind the sequence by a few thousand", () => insertAsFormerNode("15000")],
  ];
  const remove = (seq: number) => store.write("app", (tx) => tx.run("DELETE FROM event WHERE seq = ?1", seq));
  const newest = async () => (await store.read((tx) => tx.get<{ seq: number }>("SELECT max(seq) AS seq FROM event")))?.seq ?? 0;

  test.each(STEPS)("%s: a later event gets a larger number", async (_rule, former) => {
    const first = await insert();
    await former();
    const before = Math.max(await newest(), first);
    const [second, third] = [await insert(), await insert()];
    await former().catch(() => undefined);
    expect([second > before, third > second, (await insert()) > third]).toEqual([true, true, true]);
  });

  test("is before those of a later group, whose inline runs get the numbers of their rows", async () => {
    const ran: number[] = [];
    const storeAll = store.batchWrites<number, number>(
      "app",
      async (tx, drafts) => {
        const runInline = async ({ event }: { event: { seq: number } }) => {
          ran.push(event.seq);
          return null;
        };
        const inserter = new EventInserter(tx, { runInline, enqueue: () => undefined });
        const seqs: number[] = [];
        const draft = await draftOf(tx, 1);
        for (const _ of drafts) {
          const dispatch = { relayName: "orders", payload: draft.payload };
          seqs.push((await inserter.insert({ ...draft, dispatch: dispatch as never })).seq);
        }
        return seqs;
      },
      { prefetch: (reader, drafts) => [reader.numbers?.prefetch(drafts.length, 0) ?? Promise.resolve()] },
    );
    const groups: number[][] = [];
    for (let time = 0; time < 3; time++) {
      groups.push(await Promise.all(Array.from({ length: 30 }, (_, at) => storeAll(at))));
      groups.push([await insertAsFormerNode(), await insertAsFormerNode()]);
    }
    const all = groups.flat();
    expect(all).toEqual(all.toSorted((a, b) => a - b));
    expect(await listNumbers(1)).toEqual(all);
    expect(ran).toEqual(groups.filter((_, at) => at % 2 === 0).flat());
  });

  test("from before the migration has a smaller number than all later ones", async () => {
    await using earlier = await freshDatabase({ empty: true });
    await using direct = new SQL(earlier.url, { max: 1 });
    await direct.unsafe('CREATE TABLE schema_migration (number bigint PRIMARY KEY, name text COLLATE "C" NOT NULL, applied_at bigint NOT NULL)');
    for (const { number, name, sql } of POSTGRES_MIGRATIONS.filter((one) => one.name !== "event-number")) {
      await direct.unsafe(sql).simple();
      await direct`INSERT INTO schema_migration (number, name, applied_at) VALUES (${number}, ${name}, 0)`;
    }
    await direct`UPDATE event_last SET seq = 700`;
    const sequence = POSTGRES_MIGRATIONS.find(({ name }) => name === "event-number");
    await direct.unsafe(sequence?.sql ?? "").simple();
    expect([...(await direct`SELECT nextval('event_number')::int AS next`)]).toEqual([{ next: 701 }]);
  });
});

describe("the numbers of a transaction", () => {
  test("that were announced cost one statement, and others fewer and fewer", async () => {
    let last = 0;
    const counts: number[] = [];
    const connection = {
      get: async (_sql: string, count: number) => {
        counts.push(count);
        return { numbers: Array.from({ length: count }, () => ++last).join(",") };
      },
    };
    const numbers = new DrawnNumbers(connection as never);
    await numbers.prefetch(0, 0);
    await Promise.all([numbers.prefetch(4, 0), numbers.prefetch(2, 0)]);
    const given: number[] = [];
    while (given.length < 100) given.push(await numbers.next());
    expect(given).toEqual(Array.from({ length: 100 }, (_, at) => at + 1));
    expect(counts).toEqual([4, 2, 7, 14, 28, 56]);
  });

  test("are not kept for the next one", async () => {
    const first = await store.write("app", async (tx) => {
      await tx.prefetch?.numbers?.prefetch(5, 0);
      return await tx.numbers?.next();
    });
    expect(await store.write("app", async (tx) => await tx.numbers?.next())).toBe((first ?? 0) + 5);
  });
});
