/**
 * Optimistic transactions on PostgreSQL after faults: a connection that breaks while the server still gets what it carried, writers that do not
 * count their writes, works that fail, and more scopes than connections.
 */
import { afterEach, beforeEach, expect, test } from "bun:test";
import { SQL } from "bun";
import { systemClock } from "../../src/base/clock.ts";
import { insertEvent, makeReceiverPayload } from "../../src/engine/event/insert.ts";
import type { Store, Writer } from "../../src/store/port.ts";
import { openPostgres, type PostgresStore } from "../../src/store/postgres/postgres.ts";
import { WRITER_LOCK } from "../../src/store/postgres/writer-lock.ts";
import { MOST_WRITERS } from "../../src/store/postgres/writer-pool.ts";
import { until } from "../kit/event-flow.ts";
import { relayOf } from "../kit/event-sql.ts";
import { poll } from "../kit/patience.ts";
import { freshDatabase, placeOf } from "../kit/postgres.ts";
import { openPostgresProxy } from "../kit/postgres-proxy.ts";

const ENVIRONMENT = 1;
/** Enough writes for the next one to be optimistic, whatever disturbed the ones before. */
const CALM = 70;

let database: Awaited<ReturnType<typeof freshDatabase>>;
let proxy: Awaited<ReturnType<typeof openPostgresProxy>>;
let store: PostgresStore;
let other: Store;
let admin: SQL;

beforeEach(async () => {
  database = await freshDatabase();
  proxy = await openPostgresProxy(database.url);
  store = await openPostgres(placeOf(proxy.url), { clock: systemClock });
  other = await openPostgres(database.place, { clock: systemClock });
  admin = new SQL(database.url, { max: 1 });
  await admin.unsafe("CREATE TABLE made (name text, number bigserial)");
});
afterEach(async () => {
  await Promise.all([store.close(), other.close(), admin.close()]);
  proxy[Symbol.dispose]();
  await database[Symbol.asyncDispose]();
});

/** Stores a row that no key protects. */
const make = (of: Store, name: string, environmentId = ENVIRONMENT) =>
  of.write("app", (tx) => tx.post("INSERT INTO made (name) VALUES (?1)", name), environmentId);

const calm = async (of: Store = store): Promise<void> => {
  for (let at = 0; at < CALM; at++) await make(of, "calm");
};

/** Waits until the whole transaction was sent. */
async function untilKept({ count }: ReturnType<typeof proxy.delay>): Promise<void> {
  await until("the transaction was sent", () => count() > 0);
  for (let turn = 0; turn < 9; turn++) await new Promise((resolve) => setImmediate(resolve));
}

/** Makes a row. The transaction that was sent first reaches the server when it is delivered, after its connection broke and its work ran again. */
async function makeLate(): Promise<ReturnType<typeof proxy.delay>> {
  await calm();
  const delayed = proxy.delay("relay writer");
  const making = make(store, "late");
  await untilKept(delayed);
  delayed.drop();
  await making;
  return delayed;
}

const listMade = async (): Promise<string[]> =>
  (await admin`SELECT name FROM made WHERE name <> 'calm' ORDER BY number`).map(({ name }: { name: string }) => name);

test("a transaction that reaches the server after this process ran its works again is undone", async () => {
  const delayed = await makeLate();
  expect(await listMade()).toEqual(["late"]);
  await delayed.deliver();
  expect(await listMade()).toEqual(["late"]);
  await calm();
  expect(store.pool.runningGroups).toBe(0);
});

test("a transaction that reaches the server after the next one of this process is undone", async () => {
  const delayed = await makeLate();
  await make(store, "next");
  await delayed.deliver();
  expect(await listMade()).toEqual(["late", "next"]);
});

test.each(["read committed", "repeatable read", "serializable"])(
  "a transaction sees what another process wrote while it waited for the lock, also if the database's default isolation is %s",
  async (isolation) => {
    await admin.unsafe(`ALTER DATABASE ${new URL(database.url).pathname.slice(1)} SET default_transaction_isolation = '${isolation}'`);
    await using fresh = { store: await openPostgres(database.place, { clock: systemClock }), [Symbol.asyncDispose]: () => fresh.store.close() };
    await calm(fresh.store);
    const counts: number[] = [];
    const count = async (tx: Writer): Promise<void> => {
      counts.push(Number((await tx.get<{ all: number }>("SELECT count(*) AS all FROM made WHERE name = 'foreign'"))?.all));
    };
    let counting: Promise<void> | null = null;
    await admin.begin(async (tx) => {
      await tx`SELECT pg_advisory_xact_lock(${WRITER_LOCK}::int, ${ENVIRONMENT}::int)`;
      counting = fresh.store.write("app", count, ENVIRONMENT);
      const waits = async () =>
        (await other.read((tx) => tx.all("SELECT 1 AS one FROM pg_stat_activity WHERE wait_event = 'advisory' AND query LIKE '%begin_expected%'")))
          .length > 0;
      while (!(await waits())) await Bun.sleep(5);
      await tx`UPDATE writer_scope SET node = 'n:other' WHERE scope = ${ENVIRONMENT}`;
      await tx`INSERT INTO made (name) VALUES ('foreign')`;
    });
    await counting;
    expect(counts.at(-1)).toBe(1);
  },
);

test("another process notices what was written before a lost commit was asked for", async () => {
  await calm(other);
  const versions: number[] = [];
  const look = (of: Store) => of.write("app", async (tx) => void versions.push(tx.foreignVersion), ENVIRONMENT);
  await calm();
  await look(store);
  const delayed = proxy.delay("relay writer");
  const making = make(store, "late");
  await untilKept(delayed);
  await make(other, "foreign");
  delayed.drop();
  await making;
  await look(store);
  expect(versions.at(-1)).not.toBe(versions[0]);
});

test("a commit whose answer was lost is found days later, because a process can be suspended with its machine", async () => {
  await calm();
  const countMade = async () => (await listMade()).length;
  proxy.loseCommit = (said) => {
    if (!said.includes("found")) return null;
    proxy.closedTo = "relay flusher";
    proxy.loseCommit = () => null;
    return "unheard";
  };
  const making = make(store, "found");
  await poll(countMade, (count) => count === 1);
  await admin.unsafe("UPDATE writer_commit SET at = at - 6 * 86400000; INSERT INTO writer_commit (connection, number, at) VALUES ('ended', 1, 0)");
  await using fresh = { store: await openPostgres(database.place, { clock: systemClock }), [Symbol.asyncDispose]: () => fresh.store.close() };
  await make(fresh.store, "calm", 2);
  await poll(
    () => admin.unsafe("SELECT 1 FROM writer_commit WHERE connection = 'ended'"),
    (rows) => rows.length === 0,
  );
  proxy.closedTo = null;
  await making;
  expect(await listMade()).toEqual(["found"]);
});

test("each write of a program that does not count its writes is noticed, also if this process wrote nothing in between that others must notice", async () => {
  await calm();
  const versions: number[] = [];
  const look = async (tx: Writer): Promise<void> => {
    tx.suppressWakeups();
    versions.push(tx.foreignVersion);
  };
  for (let at = 0; at < 3; at++) {
    await admin.unsafe("UPDATE writer_turn SET node = ''");
    for (let quiet = 0; quiet < 8; quiet++) await store.write("app", look, ENVIRONMENT);
    const before = versions.at(-1) as number;
    await admin.unsafe("UPDATE writer_turn SET node = ''");
    await store.write("app", look, ENVIRONMENT);
    expect(versions.at(-1)).not.toBe(before);
  }
});

test.each([
  ["of now", Date.now()],
  ["of an earlier time", 1_000],
])("an event %s that nothing announced is recorded as a step back from an event of another environment", async (_, nowMs) => {
  const insert = (of: Store, environmentId: number, nowMs: number) =>
    of.write(
      "app",
      async (tx) => {
        const relay = await relayOf(tx, environmentId, `rly_${environmentId}`, "orders");
        const payload = makeReceiverPayload("{}", {});
        return await insertEvent(tx, { ...relay, trigger: "schedule", payload, unsigned: false, dedupe: null, nowMs });
      },
      environmentId,
    );
  for (let at = 0; at < 9; at++) await insert(store, ENVIRONMENT, nowMs);
  await insert(other, 2, nowMs + 10_000_000);
  const { seq } = await insert(store, ENVIRONMENT, nowMs);
  expect(await other.read((tx) => tx.all<{ seq: number }>("SELECT seq FROM clock_rollback"))).toEqual([{ seq }]);
});

test("works of two groups that are undone run again in their order", async () => {
  await calm();
  await admin`SELECT pg_advisory_lock(${WRITER_LOCK}::int, ${ENVIRONMENT}::int)`;
  const ran: string[] = [];
  const makeNext = async (name: string): Promise<void> => {
    const making = store.write(
      "app",
      async (tx) => {
        ran.push(name);
        await tx.post("INSERT INTO made (name) VALUES (?1)", name);
      },
      ENVIRONMENT,
    );
    made.push(making);
    await until(`${name} ran`, () => ran.includes(name));
  };
  const made: Promise<void>[] = [];
  await makeNext("first");
  await makeNext("second");
  await admin.unsafe("UPDATE writer_turn SET node = ''");
  await admin`SELECT pg_advisory_unlock(${WRITER_LOCK}::int, ${ENVIRONMENT}::int)`;
  await Promise.all(made);
  expect(ran).toEqual(["first", "second", "first", "second"]);
  expect(await listMade()).toEqual(["first", "second"]);
});

test("a work that fails does not fail the others if another process writes before its group runs again", async () => {
  await using fresh = { store: await openPostgres(database.place, { clock: systemClock }), [Symbol.asyncDispose]: () => fresh.store.close() };
  await make(fresh.store, "calm");
  let elsewhere: Promise<unknown> | null = null;
  const fail = async () => {
    elsewhere ??= make(other, "foreign");
    throw new Error("refused");
  };
  const results = await Promise.allSettled([fresh.store.write("app", fail, ENVIRONMENT), make(fresh.store, "one"), make(fresh.store, "two")]);
  await elsewhere;
  expect(results.map((one) => (one.status === "rejected" ? one.reason.message : "stored"))).toEqual(["refused", "stored", "stored"]);
  expect((await listMade()).toSorted()).toEqual(["foreign", "one", "two"]);
});

test("groups of more scopes than connections all make progress", async () => {
  const scopes = Array.from({ length: MOST_WRITERS + 2 }, (_, at) => at + 1);
  const made = new Map(scopes.map((scope) => [scope, 0]));
  const isDone = () => [...made.values()].every((count) => count >= 200);
  const most = () => Math.max(...made.values());
  const write = async (scope: number): Promise<void> => {
    while (!isDone() && most() < 20_000) {
      await make(store, "calm", scope);
      made.set(scope, (made.get(scope) as number) + 1);
    }
  };
  await Promise.all(scopes.flatMap((scope) => Array.from({ length: 8 }, () => write(scope))));
  expect(Math.min(...made.values())).toBeGreaterThanOrEqual(200);
  expect(store.pool).toMatchObject({ runningGroups: 0, waitingGroups: 0 });
});
