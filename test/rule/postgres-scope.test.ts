/** Writes of several scopes on PostgreSQL: which run at the same time, which wait, and what one that is stuck holds up. */
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { SQL } from "bun";
import { systemClock } from "../../src/base/clock.ts";
import { EVERYTHING, type Store, StoreUnavailable, type Writer, type WriteScope } from "../../src/store/port.ts";
import { openPostgres } from "../../src/store/postgres/postgres.ts";
import { WRITER_LOCK } from "../../src/store/postgres/writer-lock.ts";
import { poll } from "../kit/patience.ts";
import { freshDatabase, placeOf } from "../kit/postgres.ts";
import { addApp, listApps } from "../kit/store-conformance.ts";

type PostgresStore = Awaited<ReturnType<typeof openPostgres>>;

let database: Awaited<ReturnType<typeof freshDatabase>>;
let store: PostgresStore;
let admin: SQL;
let environments: number[];
let waits: string[];
const others: Store[] = [];

const open = (): Promise<PostgresStore> =>
  openPostgres(database.place, { clock: systemClock, onLock: (ms, level) => waits.push(`${level} ${ms >= 50 ? "waited" : "at once"}`) });

async function openOther(): Promise<PostgresStore> {
  const other = await open();
  others.push(other);
  return other;
}

beforeEach(async () => {
  database = await freshDatabase();
  waits = [];
  store = await open();
  admin = new SQL(database.url, { max: 1 });
  environments = await store.write("app", async (tx) => {
    for (const app of ["a", "b", "c"]) {
      await addApp(app)(tx);
      for (const name of ["development", "production"])
        await tx.run("INSERT INTO environment (app_id, name, created_at) VALUES (?1, ?2, 0)", app, name);
    }
    return (await tx.all<{ id: number }>("SELECT id FROM environment ORDER BY id")).map(({ id }) => id);
  });
});

afterEach(async () => {
  for (const other of others.splice(0)) await other.close();
  await store.close();
  await admin.close();
  await database[Symbol.asyncDispose]();
});

/** Adds a collection of this name to the environment. */
const add = (environmentId: number, name: string) => (tx: Writer) =>
  tx.run(
    "INSERT INTO collection (environment_id, name, kind, fields, created_at, updated_at) VALUES (?1, ?2, 'shared', '[]', 0, 0)",
    environmentId,
    name,
  );
const listNames = async (): Promise<string[]> =>
  (await store.read((tx) => tx.all<{ name: string }>("SELECT name FROM collection ORDER BY name"))).map(({ name }) => name);
const environment = (at: number): number => environments[at] ?? 0;

/** A write whose transaction stays open until `release`. It reads all the time, because a work may await only its transaction. */
function hold(of: Store, scope: WriteScope): { began: Promise<void>; isDone: () => boolean; release: () => Promise<void> } {
  const began = Promise.withResolvers<void>();
  let released = false;
  let done = false;
  const written = of.write(
    "app",
    async (tx) => {
      await tx.get("SELECT 1 AS one");
      began.resolve();
      while (!released) await tx.get("SELECT pg_sleep(0.005) IS NULL AS one");
    },
    scope,
  );
  written.then(
    () => {
      done = true;
    },
    () => undefined,
  );
  return {
    began: began.promise,
    isDone: () => done,
    async release() {
      released = true;
      await written;
    },
  };
}

/** Takes the locks of an environment in another session, as a node that hangs in a transaction. */
async function hangIn(environmentId: number): Promise<() => Promise<void>> {
  const hung = new SQL(database.url, { max: 1 });
  await hung.unsafe(`SELECT pg_advisory_lock_shared(${WRITER_LOCK}), pg_advisory_lock(${WRITER_LOCK}, ${environmentId})`);
  return () => hung.close();
}

describe("two writes of one process", () => {
  const cases: readonly [what: string, first: () => WriteScope, second: () => WriteScope, isConcurrent: boolean][] = [
    ["of two environments run at the same time", () => environment(0), () => environment(1), true],
    ["of an environment and of no environment run at the same time", () => environment(0), () => 0, true],
    ["of one environment run one after the other", () => environment(0), () => environment(0), false],
    ["of an environment and of everything run one after the other", () => environment(0), () => EVERYTHING, false],
    ["of everything and of an environment run one after the other", () => EVERYTHING, () => environment(0), false],
    ["of everything and of no environment run one after the other", () => EVERYTHING, () => 0, false],
  ];
  for (const [what, first, second, isConcurrent] of cases)
    test(what, async () => {
      const held = hold(store, first());
      await held.began;
      const order: string[] = [];
      const next = store.write("app", async (tx) => order.push(`second ${(await tx.get("SELECT 1 AS one")) !== null}`), second());
      if (isConcurrent) await next;
      else await Bun.sleep(100);
      order.push("released");
      await held.release();
      await next;
      expect(order).toEqual(isConcurrent ? ["second true", "released"] : ["released", "second true"]);
    });

  for (const [what, first, second, isConcurrent] of cases)
    test(`and of two processes: ${what}`, async () => {
      const other = await openOther();
      const held = hold(other, first());
      await held.began;
      const order: string[] = [];
      const next = store.write("app", async () => order.push("second"), second());
      if (isConcurrent) await next;
      else await Bun.sleep(100);
      order.push("released");
      await held.release();
      await next;
      expect(order).toEqual(isConcurrent ? ["second", "released"] : ["released", "second"]);
    });
});

test("writes of more environments than connections all end, and no more connections are opened", async () => {
  const held = environments.slice(0, 4).map((id) => hold(store, id));
  await Promise.all(held.map(({ began }) => began));
  const late = [4, 5].map((at) => store.write("app", add(environment(at), `late ${at}`), environment(at)));
  await poll(
    () => store.pool.waitingGroups,
    (waiting) => waiting === 2,
  );
  expect(store.pool).toMatchObject({ runningGroups: 4, waitingGroups: 2 });
  const [{ writers }] =
    await admin`SELECT count(*)::int AS writers FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'relay writer'`;
  expect(writers).toBe(4);
  await held[0]?.release();
  await Promise.all(late);
  for (const one of held.slice(1)) await one.release();
  expect((await listNames()).toSorted()).toEqual(["late 4", "late 5"]);
});

test("a user without another connection lets its environments share one", async () => {
  await using own = await freshDatabase({ empty: true });
  const user = `relay_scope_${process.pid}`;
  const url = new URL(own.url);
  [url.username, url.password] = [user, "few"];
  await admin.unsafe(`CREATE ROLE ${user} LOGIN PASSWORD 'few'`);
  await admin.unsafe(`ALTER DATABASE ${url.pathname.slice(1)} OWNER TO ${user}`);
  const few = await openPostgres(placeOf(url.href), { clock: systemClock });
  try {
    const held = hold(few, 1);
    await held.began;
    await poll(
      () => few.pool.connections,
      (connections) => connections === 2,
    );
    // The writer, the flusher and the listener.
    await admin.unsafe(`ALTER ROLE ${user} CONNECTION LIMIT 3`);
    const next = few.write("app", async (tx) => await tx.get("SELECT 2 AS two"), 2);
    await poll(
      () => few.pool.waitingGroups,
      (waiting) => waiting === 1,
    );
    await held.release();
    expect(await next).toEqual({ two: 2 });
    // The groups of one environment also share it: each begins while the commit of the one before is under way.
    const count = (at: number) => few.write("app", async (tx) => (await tx.get<{ at: number }>("SELECT ?1 AS at", at))?.at, 1 + (at % 2));
    const counted: Promise<number | undefined>[] = [];
    for (let at = 0; at < 40; at++) {
      counted.push(count(at));
      await Bun.sleep(1);
    }
    expect(await Promise.all(counted)).toEqual(Array.from({ length: 40 }, (_, at) => at));
    expect(few.pool.connections).toBe(2);
  } finally {
    await few.close();
    await using owner = new SQL(own.url, { max: 1 });
    await owner.unsafe(`REASSIGN OWNED BY ${user} TO CURRENT_USER`);
    await owner.unsafe(`DROP OWNED BY ${user}; DROP ROLE ${user}`).simple();
  }
});

describe("a transaction that hangs in an environment", () => {
  test("holds up only writes of this environment", async () => {
    const free = await hangIn(environment(0));
    const stuck = store.write("app", add(environment(0), "stuck"), environment(0));
    for (let at = 0; at < 20; at++) await store.write("app", add(environment(1), `n${at}`), environment(1));
    expect(await listNames()).toHaveLength(20);
    await free();
    await stuck;
    expect(await listNames()).toContain("stuck");
  });

  test("and a waiting write of everything hold up others only for moments", async () => {
    const free = await hangIn(environment(0));
    const all = store.write("app", addApp("late"));
    for (let at = 0; at < 20; at++) await store.write("app", add(environment(1), `n${at}`), environment(1));
    expect([await store.read(listApps), (await listNames()).length]).toEqual([["a", "b", "c"], 20]);
    await free();
    await all;
    expect(await store.read(listApps)).toEqual(["a", "b", "c", "late"]);
  });

  test("does not delay the answer about a lost commit of another environment", async () => {
    await store.write("app", add(environment(1), "first"), environment(1));
    const free = await hangIn(environment(0));
    await admin.unsafe(
      "CREATE FUNCTION cut() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_terminate_backend(pg_backend_pid()); RETURN NULL; END $$",
    );
    await admin.unsafe(
      "CREATE CONSTRAINT TRIGGER cut AFTER INSERT ON collection DEFERRABLE INITIALLY DEFERRED FOR EACH ROW WHEN (NEW.name = 'cut') EXECUTE FUNCTION cut()",
    );
    const broken = store.write("app", add(environment(1), "cut"), environment(1));
    await expect(broken).rejects.toBeInstanceOf(StoreUnavailable);
    await store.write("app", add(environment(1), "second"), environment(1));
    await free();
    expect(await listNames()).toEqual(["first", "second"]);
  });
});

describe("a row that another session locks in one environment", () => {
  test("holds up only writes of this environment", async () => {
    await store.write("app", add(environment(0), "locked"), environment(0));
    const locker = new SQL(database.url, { max: 1 });
    await locker.unsafe("BEGIN; SELECT 1 FROM collection WHERE name = 'locked' FOR UPDATE").simple();
    const rename = (tx: Writer) => tx.run("UPDATE collection SET name = 'renamed' WHERE name = 'locked'");
    const stuck = store.write("app", rename, environment(0));
    for (let at = 0; at < 20; at++) await store.write("app", add(environment(1), `n${at}`), environment(1));
    await locker.unsafe("ROLLBACK");
    await stuck;
    expect(await listNames()).toContain("renamed");
    await locker.close();
  });
});

describe("a transaction notices", () => {
  const version = (): Promise<number> => store.write("app", async (tx) => tx.foreignVersion, environment(0));
  const rows: readonly [what: string, write: () => Promise<unknown>, isNoticed: boolean][] = [
    ["another process's write of this environment", async () => (await openOther()).write("app", add(environment(0), "x"), environment(0)), true],
    ["another process's write of everything", async () => (await openOther()).write("app", addApp("x")), true],
    ["SQL of another program", () => admin.unsafe("UPDATE environment SET created_at = 1"), true],
    ["a node of an earlier version, which takes the turn", () => admin.unsafe("UPDATE writer_turn SET node = 'earlier'"), true],
    ["no write of another environment", async () => (await openOther()).write("app", add(environment(1), "x"), environment(1)), false],
    ["no write that suppresses wakeups", async () => (await openOther()).write("app", async (tx) => tx.suppressWakeups(), environment(0)), false],
    ["no write of its own environment by this process", () => store.write("app", add(environment(0), "x"), environment(0)), false],
    ["no write of everything by this process", () => store.write("app", addApp("x")), false],
  ];
  for (const [what, write, isNoticed] of rows)
    test(what, async () => {
      await version();
      const before = await version();
      await write();
      const after = await version();
      expect(after !== before).toBe(isNoticed);
      // It is noticed once.
      await store.write("app", async () => undefined, environment(0));
      expect(await version()).toBe(after);
    });

  test("a write of everything that another process repeats", async () => {
    const other = await openOther();
    const seen = new Set([await version()]);
    for (let at = 0; at < 5; at++) {
      await other.write("app", addApp(`other ${at}`));
      await store.write("app", addApp(`own ${at}`));
      seen.add(await version());
    }
    expect(seen.size).toBe(6);
  });
});

test("a lost connection of one environment does not undo the group of another", async () => {
  const held = hold(store, environment(0));
  await held.began;
  let runs = 0;
  await store.write(
    "app",
    async (tx) => {
      runs += 1;
      await add(environment(1), "again")(tx);
      if (runs === 1) await tx.get("SELECT pg_terminate_backend(pg_backend_pid())");
    },
    environment(1),
  );
  await held.release();
  expect([runs, await listNames()]).toEqual([2, ["again"]]);
});

test("closing waits for the writes of every scope", async () => {
  const writes = environments.map((id) => store.write("app", add(id, `of ${id}`), id));
  const all = store.write("app", addApp("last"));
  await store.close();
  await Promise.all([...writes, all]);
  await expect(store.write("app", addApp("late"), environment(0))).rejects.toBeInstanceOf(StoreUnavailable);
  store = await open();
  expect(await listNames()).toHaveLength(6);
});

test("the wait for each lock is reported by its level", async () => {
  const other = await openOther();
  waits = [];
  await store.write("app", async () => undefined, environment(0));
  expect(waits).toEqual(["everything at once", "environment at once"]);
  for (const [scope, expected] of [
    [environment(0), ["everything at once", "environment waited"]],
    [EVERYTHING, ["everything waited", "environment at once"]],
  ] as const) {
    const held = hold(other, scope);
    await held.began;
    waits = [];
    const write = store.write("app", async () => undefined, environment(0));
    await Bun.sleep(100);
    await held.release();
    await write;
    expect(waits).toEqual(expected as unknown as string[]);
  }
});
