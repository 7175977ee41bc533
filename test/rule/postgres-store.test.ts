/** The PostgreSQL store: the rules of every store, and the effects of other nodes and of a database in another process. */
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { SQL } from "bun";
import { systemClock } from "../../src/base/clock.ts";
import { createLog } from "../../src/base/log.ts";
import { createApp } from "../../src/platform/account/app.ts";
import { yieldToEventLoop } from "../../src/store/index-scan.ts";
import { ALL_ENVIRONMENTS } from "../../src/store/lease/lease-holder.ts";
import { hasLease, type LeaseRow, lookAtLeases, takeLease } from "../../src/store/lease/node-lease.ts";
import { NodeLeaseManager } from "../../src/store/lease/node-lease-holder.ts";
import { MigrationRefused } from "../../src/store/migrate/migrations.ts";
import {
  type ChangedTopics,
  EVERYTHING,
  type PrefetchReader,
  type Reader,
  SERVICE_ROWS,
  type Store,
  StoreUnavailable,
  type Writer,
} from "../../src/store/port.ts";
import { openPostgres } from "../../src/store/postgres/postgres.ts";
import { holdRealClock } from "../kit/moved-clock.ts";
import { poll } from "../kit/patience.ts";
import { freshDatabase } from "../kit/postgres.ts";
import { addApp, listApps, testStore } from "../kit/store-conformance.ts";

async function versionOf(tx: Reader, environmentId: number): Promise<number> {
  return (await tx.get<{ version: number }>("SELECT version FROM environment WHERE id = ?1", environmentId))?.version ?? 0;
}

let database: Awaited<ReturnType<typeof freshDatabase>>;
let store: Store;
let groups: number[];
let troubles: (string | null)[];
let admin: SQL;

const open = (): Promise<Store> =>
  openPostgres(database.place, {
    clock: systemClock,
    onGroup: (size) => groups.push(size),
    onTrouble: (trouble) => troubles.push(trouble),
  });

beforeEach(async () => {
  database = await freshDatabase();
  groups = [];
  troubles = [];
  store = await open();
  admin = new SQL(database.url, { max: 1 });
});

afterEach(async () => {
  await store.close();
  await admin.close();
  await database[Symbol.asyncDispose]();
});

/** Ends connections as a restarting server or a broken network does. `kind` is the service's name for them. */
const terminate = (kind: string): Promise<unknown> =>
  admin.unsafe("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND application_name = $1", [
    `relay ${kind}`,
  ]);
/** Makes the server run this statement inside the COMMIT that adds the app with this name. */
async function commitWith(app: string, statement: string): Promise<void> {
  await admin.unsafe(`CREATE FUNCTION ${app}() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN ${statement}; RETURN NULL; END $$`);
  await admin.unsafe(
    `CREATE CONSTRAINT TRIGGER ${app} AFTER INSERT ON app DEFERRABLE INITIALLY DEFERRED FOR EACH ROW WHEN (NEW.id = '${app}') EXECUTE FUNCTION ${app}()`,
  );
}
const CUT = "PERFORM pg_terminate_backend(pg_backend_pid())";
/** Notices that can wait are gathered for this long. */
const GATHER_MS = 50;

/** Waits for a notice of another process. */
async function until(isSo: () => boolean): Promise<void> {
  expect(await poll(isSo, Boolean)).toBe(true);
}

testStore({ store: () => ({ store, groups }) });

describe("a write that names an environment", () => {
  const environments = async (tx: Writer) => {
    await addApp("shop")(tx);
    for (const name of ["development", "production"]) await tx.run("INSERT INTO environment (app_id, name, created_at) VALUES ('shop', ?1, 0)", name);
    return (await tx.all<{ id: number }>("SELECT id FROM environment ORDER BY id")).map(({ id }) => id);
  };
  const addCollection = (environmentId: number) => (tx: Writer) =>
    tx.run(
      "INSERT INTO collection (environment_id, name, kind, fields, created_at, updated_at) VALUES (?1, 'notes', 'shared', '[]', 0, 0)",
      environmentId,
    );
  const held = () => store.read((tx) => tx.all<{ id: number }>("SELECT environment_id AS id FROM collection ORDER BY environment_id"));

  test("changes rows of this environment, and the tests refuse it other rows", async () => {
    const [one = 0, other = 0] = await store.write("app", environments);
    const fenced = store.withFence(async () => undefined, one);
    const add = store.batchWrites("app", async (tx, ids: readonly number[]) => Promise.all(ids.map((id) => addCollection(id)(tx))), {
      scopeOf: () => one,
    });
    const refused = [
      () => store.write("app", addCollection(other), one),
      () => fenced.write("app", addCollection(other)),
      () => add(other),
      () => store.write("app", addApp("second"), one),
      () => fenced.write("app", (tx) => tx.run("UPDATE environment SET held_at = 1 WHERE id = ?1", other)),
    ];
    for (const write of refused) await expect(write()).rejects.toThrow();
    expect(await held()).toEqual([]);
    await store.write("app", addCollection(one), one);
    await fenced.write("app", (tx) => tx.run("UPDATE environment SET held_at = 1 WHERE id = ?1", one));
    // A write that names another scope has that one.
    await fenced.write("app", addCollection(other), EVERYTHING);
    expect(await held()).toEqual([{ id: one }, { id: other }]);
  });
});

describe("a connection that breaks", () => {
  test("between two writes is replaced for the next, without a message", async () => {
    await store.write("app", addApp("a"));
    await terminate("writer");
    await store.write("app", addApp("b"));
    expect(await store.read(listApps)).toEqual(["a", "b"]);
  });

  test("during a write makes the write run again, once", async () => {
    let runs = 0;
    await store.write("app", async (tx) => {
      runs += 1;
      await addApp("a")(tx);
      if (runs === 1) await tx.get("SELECT pg_terminate_backend(pg_backend_pid())");
    });
    expect(runs).toBe(2);
    expect(await store.read(listApps)).toEqual(["a"]);
  });

  test("during a read makes the read run again", async () => {
    let runs = 0;
    const apps = await store.read(async (tx) => {
      runs += 1;
      if (runs === 1) await tx.get("SELECT pg_terminate_backend(pg_backend_pid())");
      return await listApps(tx);
    });
    expect([runs, apps]).toEqual([2, []]);
  });

  test("with each run of a write refuses it, stores none of it, and does not affect the next write", async () => {
    const broken = store.write("app", async (tx) => {
      await addApp("a")(tx);
      await tx.get("SELECT pg_terminate_backend(pg_backend_pid())");
    });
    await expect(broken).rejects.toBeInstanceOf(StoreUnavailable);
    await store.write("app", addApp("b"));
    expect(await store.read(listApps)).toEqual(["b"]);
  });

  test("during COMMIT makes the store ask the server for the outcome, and a rolled back write runs again", async () => {
    await commitWith("cut", CUT);
    let runs = 0;
    const cut = store.write("app", async (tx) => {
      runs += 1;
      await addApp(runs === 1 ? "cut" : "whole")(tx);
    });
    await cut;
    expect(runs).toBe(2);
    expect(await store.read(listApps)).toEqual(["whole"]);
  });
});

describe("a query sent ahead", () => {
  const COUNT = "SELECT count(*) AS count FROM app";
  const AUDITED = "SELECT count(*) AS count FROM audit WHERE environment_id = ?1";
  const audit = "INSERT INTO audit (environment_id, at, actor, action, target) VALUES (?1, 0, 'a', 'b', 'c')";
  const within = (work: (tx: Writer, ahead: PrefetchReader) => Promise<unknown>) =>
    store.write("app", (tx) => work(tx, tx.prefetch ?? expect.unreachable("A PostgreSQL transaction takes reads ahead.")));

  test("is answered without a second query, with separate rows each time", async () => {
    await within(async (tx, ahead) => {
      void ahead.get(COUNT);
      const first = await tx.get<{ count: number }>(COUNT);
      // No other writer can write between two queries of a real group, but here one does.
      await admin.unsafe("INSERT INTO app (id, name, created_at) VALUES ('between', 'b', 0)");
      if (first !== null) first.count = 7;
      expect(await tx.all(COUNT)).toEqual([{ count: 0 }]);
    });
    expect(await store.read((tx) => tx.get(COUNT))).toEqual({ count: 1 });
  });

  test("is sent again after a write that affects it, or whose effect is unknown", async () => {
    const seen = await within(async (tx, ahead) => {
      const seen: unknown[] = [];
      const look = async () => seen.push((await tx.get<{ count: number }>(AUDITED, 1))?.count);
      void ahead.get(AUDITED, 1);
      await tx.post(audit, 1);
      await look();
      void ahead.get(AUDITED, 1);
      await tx.run("DELETE FROM audit");
      await look();
      await tx.post(audit, 1);
      // The posted row is not stored yet, so the query waits for it.
      void ahead.get(AUDITED, 1);
      await look();
      await tx
        .attempt(async () => {
          await tx.post(audit, 1);
          void ahead.get(AUDITED, 1);
          await look();
          throw new Error("undone");
        })
        .catch(() => undefined);
      await look();
      return seen;
    });
    // Writes of one group share a transaction, so a rolled back part makes this write run again in its own.
    expect(seen).toEqual([1, 0, 1, 2, 1]);
  });

  test("with other values is a different query", async () => {
    await within(async (tx, ahead) => {
      void ahead.get(AUDITED, 1);
      await tx.post(audit, 2);
      expect([await tx.get(AUDITED, 2), await tx.get(AUDITED, 1)]).toEqual([{ count: 1 }, { count: 0 }]);
    });
  });
});

describe("a transaction that begins during the previous commit", () => {
  test("is not lost if that commit is rolled back, which runs again behind it or with it, once", async () => {
    await commitWith("late", "RAISE EXCEPTION 'no' USING ERRCODE = '40001'");
    let runs = 0;
    const later: Promise<string>[] = [];
    const first = store.write("app", async (tx) => {
      runs += 1;
      // These writes wait while this one commits.
      if (runs === 1) for (const id of ["b", "c"]) later.push(store.write("app", addApp(id)));
      return await addApp(runs === 1 ? "late" : "a")(tx);
    });
    expect(await first).toBe("a");
    expect(await Promise.all(later)).toEqual(["b", "c"]);
    expect([runs, await store.read(listApps)]).toEqual([2, ["a", "b", "c"]]);
  });

  test("is lost if the connection breaks in that commit, and both run again", async () => {
    let runs = 0;
    const later: Promise<string>[] = [];
    await commitWith("cut", CUT);
    const first = store.write("app", async (tx) => {
      runs += 1;
      if (runs === 1) for (const id of ["b", "c"]) later.push(store.write("app", addApp(id)));
      return await addApp(runs === 1 ? "cut" : "a")(tx);
    });
    expect(await first).toBe("a");
    expect(await Promise.all(later)).toEqual(["b", "c"]);
    expect([runs, await store.read(listApps)]).toEqual([2, ["a", "b", "c"]]);
  });
});

describe("a posted statement", () => {
  const post = (tx: Parameters<Parameters<Store["write"]>[1]>[0], id: string) =>
    tx.post("INSERT INTO app (id, name, created_at) VALUES (?1, ?1, 0)", id);

  test("fails only the write that posted it, although no caller waited for it", async () => {
    await store.write("app", addApp("a"));
    const ends = await Promise.allSettled(["b", "a", "c"].map((id) => store.write("app", (tx) => post(tx, id))));
    expect(ends.map(({ status }) => status)).toEqual(["fulfilled", "rejected", "fulfilled"]);
    expect(await store.read(listApps)).toEqual(["a", "b", "c"]);
  });

  test("in a part that is rolled back is rolled back too, and fails no later statement", async () => {
    await store.write("app", addApp("a"));
    await store.write("app", async (tx) => {
      await post(tx, "before");
      const undone = tx.attempt(async () => {
        await post(tx, "a");
        throw new Error("undone");
      });
      await undone.catch(() => undefined);
      await post(tx, "after");
    });
    await store
      .write("app", async (tx) => {
        await post(tx, "a");
        throw new Error("undone");
      })
      .catch(() => undefined);
    await store.write("app", addApp("last"));
    expect(await store.read(listApps)).toEqual(["a", "after", "before", "last"]);
  });

  test("keeps its place in the order of many", async () => {
    const ids = Array.from({ length: 75 }, (_, at) => `a${String(at).padStart(2, "0")}`);
    await store.write("app", async (tx) => {
      for (const id of ids) await post(tx, id);
    });
    expect(await store.read(listApps)).toEqual(ids);
  });
});

describe("a database that is unavailable", () => {
  test("refuses writes and reads in one sentence, is logged once, and continues automatically when it is back", async () => {
    const name = new URL(database.url).pathname.slice(1);
    const other = new SQL(new URL("/postgres", database.url).href, { max: 1 });
    await admin.close();
    await other.unsafe(`ALTER DATABASE ${name} ALLOW_CONNECTIONS false`);
    await other.unsafe("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = $1", [name]);
    await expect(store.write("app", addApp("a"))).rejects.toThrow("The database cannot be reached");
    await expect(store.write("app", addApp("b"))).rejects.toBeInstanceOf(StoreUnavailable);
    await expect(store.read(listApps)).rejects.toBeInstanceOf(StoreUnavailable);
    expect(store.trouble).toContain("cannot be reached");
    await other.unsafe(`ALTER DATABASE ${name} ALLOW_CONNECTIONS true`);
    await store.write("app", addApp("c"));
    expect([await store.read(listApps), store.trouble]).toEqual([["c"], null]);
    expect(troubles.map((trouble) => trouble === null)).toEqual([false, true]);
    await other.close();
    admin = new SQL(database.url, { max: 1 });
  });
});

describe("another node", () => {
  test("writes in turn: only one of both is in a transaction at a time", async () => {
    const other = await open();
    let inside = 0;
    let most = 0;
    const work = (id: string) => async (tx: Parameters<Parameters<Store["write"]>[1]>[0]) => {
      inside += 1;
      most = Math.max(most, inside);
      await addApp(id)(tx);
      inside -= 1;
    };
    for (let at = 0; at < 10; at++) await Promise.all([store.write("app", work(`a${at}`)), other.write("app", work(`b${at}`))]);
    expect(most).toBe(1);
    expect((await store.read(listApps)).length).toBe(20);
    await other.close();
  });

  test("hears of what a commit changes but not of a rollback, and the writer hears of it once", async () => {
    const other = await open();
    const heard: [string, ChangedTopics][] = [];
    store.listen((changes) => heard.push(["own", changes]));
    other.listen((changes) => heard.push(["other", changes]));
    await store
      .write("app", async (tx) => {
        tx.notify("record", 7);
        throw new Error("undone");
      })
      .catch(() => undefined);
    await store.write("app", async (tx) => {
      tx.notify("relay", 7);
      tx.notify("event", "rly_1");
    });
    await until(() => heard.length === 2);
    await Bun.sleep(50);
    expect(heard.map(([who]) => who).toSorted()).toEqual(["other", "own"]);
    for (const [, changes] of heard)
      expect([...changes].map(([topic, ids]) => [topic, [...ids]])).toEqual([
        ["relay", ["7"]],
        ["event", ["rly_1"]],
      ]);
    await other.close();
  });

  test("hears of changes that nodes only show a moment later, many writes at once", async () => {
    const other = await open();
    const heard: ChangedTopics[] = [];
    other.listen((changes) => heard.push(changes));
    const touch = (environmentId: number) => store.write("app", async (tx) => tx.notify("event_moved", environmentId));
    {
      // The timer fires after all are written, however long that takes.
      using _ = holdRealClock();
      const { after } = systemClock;
      const due: (() => void)[] = [];
      systemClock.after = (ms, work) => {
        if (ms !== GATHER_MS) return after(ms, work);
        due.push(work);
        return () => undefined;
      };
      for (let at = 0; at < 20; at++) await touch(at % 4);
      systemClock.after = after;
      expect(due).toHaveLength(1);
      for (const work of due) work();
    }
    await until(() => heard.length > 0);
    expect(heard.map((changes) => [...(changes.get("event_moved") ?? [])].toSorted())).toEqual([["0", "1", "2", "3"]]);
    // A node that ends sends the rest of its notices.
    await touch(7);
    await store.close();
    await until(() => heard.at(-1)?.get("event_moved")?.has("7") === true);
    await other.close();
  });

  test("hears of a very large change as of any other", async () => {
    const other = await open();
    const heard: ChangedTopics[] = [];
    other.listen((changes) => heard.push(changes));
    await store.write("app", async (tx) => {
      for (let at = 0; at < 1_000; at++) tx.notify("event", `rly_${at}_of_many`);
    });
    await until(() => heard.length === 1);
    expect([...(heard[0]?.get("event") ?? [])]).toEqual([""]);
    await other.close();
  });

  test("that wrote in the meantime is noticed by the next transaction, but a node's own writes are not", async () => {
    const other = await open();
    // A write of everything expects that others wrote each environment. The row of an environment that does not exist may be deleted meanwhile.
    const version = () => store.write("app", async (tx) => tx.foreignVersion, SERVICE_ROWS);
    const first = await version();
    await store.write("app", addApp("own"));
    expect(await version()).toBe(first);
    await other.write("app", addApp("a"));
    const second = await version();
    expect(second).not.toBe(first);
    expect(await version()).toBe(second);
    await other.close();
  });

  test("takes a lease after the last write of its former holder, in each of two environments", async () => {
    const other = await open();
    const environments = ["development", "production"] as const;
    await store.write("app", (tx) => createApp(tx, { id: "app_a", name: "A", environments, nowMs: 1 }));
    const looking = { id: "nod_one", url: null, baseUrl: "", clockAt: 0, known: false, held: new Map(), leaving: new Map() };
    const { own } = await store.write("app", (tx) => lookAtLeases(tx, looking));
    const rows = await store.read((tx) =>
      tx.all<LeaseRow>("SELECT environment_id AS environmentId, node, epoch, until FROM node_lease WHERE environment_id > 0 ORDER BY 1"),
    );
    expect(rows.map(({ environmentId }) => own.get(environmentId))).toEqual([1, 1]);
    const raced = rows.map(async (lease) => {
      const { environmentId } = lease;
      const holder = store.withFence(async (tx) => {
        if (!(await hasLease(tx, environmentId, lease.epoch, "nod_one"))) throw new StoreUnavailable("lost");
      }, environmentId);
      const count = async (tx: Writer): Promise<number> => {
        await tx.run("UPDATE environment SET version = version + 1 WHERE id = ?1", environmentId);
        return await versionOf(tx, environmentId);
      };
      const writes = Array.from({ length: 30 }, async () => {
        await yieldToEventLoop();
        return await holder.write("app", count).catch(() => null);
      });
      const taken = await other.write(
        "app",
        async (tx) => ({ lease: await takeLease(tx, "nod_other", lease, lease.until + 1), version: await versionOf(tx, environmentId) }),
        environmentId,
      );
      expect(taken.lease).toEqual({ epoch: 2, isTakeover: true });
      for (const version of await Promise.all(writes)) expect(version ?? 0).toBeLessThanOrEqual(taken.version);
      // A renewal that began before the takeover changes nothing, and no node takes the lease by its former row.
      const late = await other.write("app", (tx) => takeLease(tx, "nod_third", lease, lease.until + 1), environmentId);
      expect(late).toBeNull();
    });
    await Promise.all(raced);
    const renewed = await store.write("app", (tx) => lookAtLeases(tx, { ...looking, known: true, held: own }, undefined, SERVICE_ROWS), SERVICE_ROWS);
    expect([...renewed.own.keys()]).toEqual([ALL_ENVIRONMENTS]);
    await other.close();
  });

  test("causes no reload by renewing its leases or checking the disk, but does by taking and returning a lease", async () => {
    const other = await open();
    const version = () => store.write("app", async (tx) => tx.foreignVersion, SERVICE_ROWS);
    let held = new Map<number, number>();
    const look = async (leaving: [number, boolean][] = []) => {
      const known = held.size > 0;
      const looking = { id: "nod_other", url: null, baseUrl: "", nowMs: 1_000_000, clockAt: 0, known, held, leaving: new Map(leaving) };
      held = (await other.write("app", (tx) => lookAtLeases(tx, looking))).own;
    };
    const first = await version();
    await look();
    const taken = await version();
    expect([held.get(ALL_ENVIRONMENTS), taken === first]).toEqual([1, false]);
    await look();
    const log = createLog({ clock: systemClock, format: "json", sink: () => undefined });
    const node = new NodeLeaseManager({ store: other, clock: systemClock, log, baseUrl: null });
    await other.write("app", (tx) => node.probe(tx));
    expect(await version()).toBe(taken);
    // A node that wrote in the same transaction is noticed.
    await Promise.all([look(), other.write("app", addApp("a"))]);
    const written = await version();
    expect(written).not.toBe(taken);
    await look([[ALL_ENVIRONMENTS, true]]);
    expect(await version()).not.toBe(written);
    await other.close();
  });
});

test("SQL of another session is noticed within the next checks", async () => {
  let changes = 0;
  const stop = store.watch(({ foreignChange }) => {
    if (foreignChange) changes += 1;
  });
  await store.write("app", addApp("a"));
  await admin.unsafe("INSERT INTO environment (app_id, name, created_at) VALUES ('a', 'local', 0)");
  await until(() => changes > 0);
  stop();
});

test("a listening connection that was cut listens again, and every cache reloads", async () => {
  let changes = 0;
  const stop = store.watch(({ foreignChange }) => {
    if (foreignChange) changes += 1;
  });
  await terminate("listener");
  await until(() => changes > 0);
  const heard: ChangedTopics[] = [];
  store.listen((changes) => heard.push(changes));
  const other = await open();
  await other.write("app", async (tx) => tx.notify("record", 1));
  await until(() => heard.length === 1);
  stop();
  await other.close();
});

test("a newer version's schema is refused and unchanged", async () => {
  await admin.unsafe("INSERT INTO schema_migration (number, name, applied_at) VALUES (9999, 'future', 0)");
  await expect(open()).rejects.toBeInstanceOf(MigrationRefused);
  expect((await admin.unsafe("SELECT count(*)::int AS count FROM schema_migration WHERE number = 9999"))[0].count).toBe(1);
});

test("values are read as SQLite returns them", async () => {
  const bytes = new Uint8Array([0, 1, 255]);
  const row = await store.write("app", async (tx) => {
    await tx.run("INSERT INTO app (id, name, created_at) VALUES ($id, $name, $createdAt)", {
      id: "a",
      name: "half \ud800 and \0",
      createdAt: 1_768_478_400_000,
    });
    return await tx.get<{ bytes: Uint8Array }>(
      "SELECT name, created_at AS createdAt, created_at > 0 AS isThere, CAST(?1 AS BLOB) AS bytes, sum(created_at) AS sum, max(created_at, 5) AS most FROM app GROUP BY name, created_at",
      bytes,
    );
  });
  const plain: Record<string, unknown> = { ...row, bytes: [...(row?.bytes ?? [])] };
  expect(plain).toEqual({
    name: "half � and �",
    createdAt: 1_768_478_400_000,
    isThere: 1,
    bytes: [0, 1, 255],
    sum: 1_768_478_400_000,
    most: 1_768_478_400_000,
  });
});
