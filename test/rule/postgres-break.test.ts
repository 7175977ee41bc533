/** The PostgreSQL store with connections that break at a commit or during the next transaction, and with notices that no node wrote. */
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { SQL } from "bun";
import { systemClock } from "../../src/base/clock.ts";
import { type DatabaseUrl, readDatabaseUrl } from "../../src/base/database-url.ts";
import { OutcomeUnknown, type Store, StoreUnavailable, type Writer } from "../../src/store/port.ts";
import type { PostgresConnection } from "../../src/store/postgres/connection.ts";
import { NotReached } from "../../src/store/postgres/error.ts";
import { PostgresLiveness } from "../../src/store/postgres/liveness.ts";
import { CHANGES_CHANNEL } from "../../src/store/postgres/notification.ts";
import { openPostgres } from "../../src/store/postgres/postgres.ts";
import { Readers } from "../../src/store/postgres/reader-pool.ts";
import { MOST_WRITERS, WriterPool } from "../../src/store/postgres/writer-pool.ts";
import { until } from "../kit/event-flow.ts";
import { freshDatabase } from "../kit/postgres.ts";
import { openPostgresProxy } from "../kit/postgres-proxy.ts";
import { addApp, listApps } from "../kit/store-conformance.ts";

let database: Awaited<ReturnType<typeof freshDatabase>>;
let proxy: Awaited<ReturnType<typeof openPostgresProxy>>;
let store: Store;
let admin: SQL;
let troubles: (string | null)[];

beforeEach(async () => {
  database = await freshDatabase();
  proxy = await openPostgresProxy(database.url);
  const place = readDatabaseUrl(proxy.url);
  if (typeof place === "string") throw new Error(place);
  troubles = [];
  store = await openPostgres(place, { clock: systemClock, onTrouble: (trouble) => troubles.push(trouble) });
  admin = new SQL(database.url, { max: 1 });
});

afterEach(async () => {
  proxy.isClosed = false;
  await store.close();
  await admin.close();
  proxy[Symbol.dispose]();
  await database[Symbol.asyncDispose]();
});

const terminate = (kind: string): Promise<unknown> =>
  admin.unsafe("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND application_name = $1", [
    `relay ${kind}`,
  ]);

for (const loss of ["unsent", "unheard"] as const)
  test(`a connection that is lost at a commit, ${loss}: all of the group is stored once`, async () => {
    await store.write("app", addApp("first"));
    let losses = 2;
    proxy.loseCommit = (said) => (said.includes("lost-") && losses-- > 0 ? loss : null);
    await Promise.all(["lost-a", "lost-b", "lost-c"].map((id) => store.write("app", addApp(id))));
    expect(losses).toBeLessThan(2);
    expect(await store.read(listApps)).toEqual(["first", "lost-a", "lost-b", "lost-c"]);
  });

for (const loss of [null, "unheard"] as const)
  test(`a slow commit${loss === null ? "" : ", whose answer is lost"}: other nodes hear of changes once they can see them`, async () => {
    await admin.unsafe("CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_sleep(0.5); RETURN NULL; END $$");
    await admin.unsafe("CREATE CONSTRAINT TRIGGER slow AFTER INSERT ON app DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION slow()");
    const place = readDatabaseUrl(database.url);
    if (typeof place === "string") throw new Error(place);
    const other = await openPostgres(place, { clock: systemClock });
    try {
      const seen: Promise<string[]>[] = [];
      other.listen(() => void seen.push(other.read(listApps)), ["call"]);
      let losses = 0;
      proxy.loseCommit = (said) => {
        if (loss === null || !said.includes("slow")) return null;
        losses += 1;
        return loss;
      };
      await store.write("app", async (tx) => {
        await addApp("slow")(tx);
        tx.notify("call");
      });
      await until("the other node is told", () => seen.length > 0, 20);
      expect(await seen[0]).toEqual(["slow"]);
      expect(losses).toBe(loss === null ? 0 : 1);
    } finally {
      await other.close();
    }
  });

test("a connection that broke before the commit, while others wait: each group runs in a separate transaction under the writer lock", async () => {
  const locks = new Set<number>();
  // The order of two connections is random, so the test runs several rounds.
  for (let round = 0; round < 8; round++) {
    let runs = 0;
    let other: Promise<unknown> | undefined;
    await store.write("app", async (tx) => {
      await tx.post("INSERT INTO app (id, name, created_at) VALUES (?1, ?1, 1)", `one-${round}`);
      runs += 1;
      if (runs === 1) {
        other = store.write("app", addApp(`two-${round}`));
        await terminate("writer");
        // The next statement sends the posted one, over a connection that is closed.
        tx.shared?.suppressCapture();
        await Bun.sleep(50);
        return;
      }
      const held = "SELECT count(*) AS locks FROM pg_locks WHERE locktype = ?1 AND granted AND pid = pg_backend_pid()";
      locks.add((await tx.get<{ locks: number }>(held, "advisory"))?.locks ?? 0);
    });
    await other;
    expect(runs).toBeGreaterThan(1);
  }
  expect([...locks]).toEqual([1]);
  expect((await store.read(listApps)).length).toBe(16);
});

test("a commit with an unknown outcome: its writer gets that error, and every cache reloads", async () => {
  await store.write("app", addApp("first"));
  const seen: boolean[] = [];
  store.watch(({ foreignChange }) => seen.push(foreignChange));
  proxy.loseCommit = (said) => {
    if (!said.includes("there")) return null;
    proxy.isClosed = true;
    // The flusher must not be able to ask for the outcome.
    proxy.drop("relay flusher");
    return "unheard";
  };
  const error: unknown = await store.write("app", addApp("there")).catch((thrown: unknown) => thrown);
  expect(error).toBeInstanceOf(OutcomeUnknown);
  expect((error as OutcomeUnknown).cause).toMatchObject({ message: expect.stringContaining("The database cannot be reached") });
  await until("everything is looked at anew", () => seen.includes(true));
  proxy.isClosed = false;
  proxy.loseCommit = () => null;
  expect(await store.read(listApps)).toEqual(["first", "there"]);
});

test("a store whose server is cut off silently closes once its answers are overdue", async () => {
  await store.write("app", addApp("first"));
  proxy.cut();
  const written = store.write("app", addApp("second")).catch((error: unknown) => error);
  await store.close();
  expect(await written).toBeInstanceOf(StoreUnavailable);
});

/** Makes the server end a connection with another code. */
const endWith = (state: string) => (said: Buffer) => Buffer.from(said.toString("latin1").replace("C57P01", `C${state}`), "latin1");

for (const state of ["53100", "58030", "XX000", "53200", "42501"])
  test(`a server that ends a connection permanently with ${state}, in a statement or between two: the next write uses another`, async () => {
    await store.write("app", addApp("first"));
    proxy.rewrite = endWith(state);
    let runs = 0;
    await store.write("app", async (tx) => {
      runs += 1;
      const slept = tx.get("SELECT pg_sleep(?1)", runs === 1 ? 60 : 0);
      // The promise may reject before the test awaits it.
      slept.catch(() => undefined);
      if (runs === 1) await terminate("writer");
      await slept;
      await addApp("second")(tx);
    });
    await terminate("writer");
    await store.write("app", addApp("third"));
    await terminate("reader");
    expect(await store.read(listApps)).toEqual(["first", "second", "third"]);
    expect(runs).toBe(2);
    expect(store.trouble === null).toBe(state !== "53100");
  });

test("a write that hits a full disk after its first statement is refused as unavailable, in its own group and with others", async () => {
  await admin.unsafe(
    `CREATE FUNCTION take_none() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
       IF NEW.id LIKE 'full%' THEN RAISE EXCEPTION 'could not extend file' USING ERRCODE = '53100'; END IF; RETURN NEW; END $$`,
  );
  await admin.unsafe("CREATE TRIGGER take_none BEFORE INSERT ON app FOR EACH ROW EXECUTE FUNCTION take_none()");
  // The test does not await the row, so the next statement reports the error first.
  const post = (id: string) => async (tx: Writer) => {
    const posted = tx.post("INSERT INTO app (id, name, created_at) VALUES (?1, ?1, 1)", id);
    await tx.get("SELECT count(*) AS count FROM app WHERE id = ?1", id);
    await posted;
  };
  // Awaits the later of two statements that were sent together first.
  const askBehind = (id: string) => async (tx: Writer) => {
    const [row, behind] = [tx.run("INSERT INTO app (id, name, created_at) VALUES (?1, ?1, 1)", id), tx.get("SELECT ?1 AS one", 1)];
    row.catch(() => undefined);
    await behind;
    await row;
  };
  for (const [at, write] of [post, askBehind].entries()) {
    await expect(store.write("app", write(`full-${at}`))).rejects.toBeInstanceOf(StoreUnavailable);
    const together = [`a-${at}`, `full-${at}`, `b-${at}`].map((id) => store.write("app", write(id)).catch((error: unknown) => error));
    expect((await Promise.all(together))[1]).toBeInstanceOf(StoreUnavailable);
  }
});

test("an unreachable database with a full disk: the store reports the current trouble, and neither hides the other", async () => {
  const goAway = async (): Promise<void> => {
    proxy.isClosed = true;
    proxy.drop("relay writer");
    await store.write("app", addApp("away")).catch(() => undefined);
    proxy.isClosed = false;
  };
  await admin.unsafe(
    `CREATE FUNCTION take_no_big() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
       IF NEW.id = 'big' THEN RAISE EXCEPTION 'could not extend file' USING ERRCODE = '53100'; END IF; RETURN NEW; END $$`,
  );
  await admin.unsafe("CREATE TRIGGER take_no_big BEFORE INSERT ON app FOR EACH ROW EXECUTE FUNCTION take_no_big()");
  // The check of the disk cannot connect, so it never finds the disk's free space.
  proxy.closedTo = "relay reader";
  const away = expect.stringContaining("The database cannot be reached");
  const full = "The database's disk is full: free space there, and writes continue automatically.";
  await goAway();
  expect(store.trouble).toEqual(away);
  await expect(store.write("app", addApp("big"))).rejects.toThrow("could not extend file");
  expect(store.trouble).toBe(full);
  await store.write("app", addApp("small"));
  expect(store.trouble).toBe(full);
  await expect(store.write("app", addApp("big"))).rejects.toThrow("could not extend file");
  await goAway();
  expect(store.trouble).toEqual(away);
  await store.write("app", addApp("smaller"));
  expect(store.trouble).toBe(full);
  proxy.closedTo = null;
  await admin.unsafe("DROP TRIGGER take_no_big ON app");
  // The store first checks the disk, and then a group must succeed.
  const writes = async (): Promise<boolean> => {
    await store.write("app", async (tx) => void (await tx.run("UPDATE app SET created_at = created_at + 1")));
    return store.trouble === null;
  };
  await until("nothing stands against it", writes, 50);
  await store.write("app", addApp("big"));
  expect(troubles.filter((one) => one === null || one === full)).toEqual([full, full, null]);
});

const readerPid = (): Promise<{ pid: number } | null> => store.read((tx) => tx.get("SELECT pg_backend_pid() AS pid WHERE 1 = ?1", 1));

test("writers leave a read-only server: a new connection writes if a writable server answers, and long reads continue", async () => {
  const name = new URL(database.url).pathname.slice(1);
  await store.write("app", addApp("first"));
  await admin.unsafe(`ALTER DATABASE ${name} SET default_transaction_read_only = on`);
  for (const kind of ["writer", "flusher", "reader"]) await terminate(kind);
  const reader = await readerPid();
  const long = store.read((tx) => tx.get("SELECT pg_sleep(?1)", 2.5));
  const refused: unknown = await store.write("app", addApp("refused")).catch((error: unknown) => error);
  expect(refused).toBeInstanceOf(StoreUnavailable);
  expect(String(refused)).toContain("read-only");
  await admin.unsafe(`ALTER DATABASE ${name} RESET default_transaction_read_only`);
  const write = (): Promise<boolean> =>
    store.write("app", addApp("second")).then(
      () => true,
      () => false,
    );
  await until("it is written again", write, 100);
  await long;
  expect((await readerPid())?.pid).toBe(reader?.pid ?? 0);
  expect(await store.read(listApps)).toEqual(["first", "second"]);
});

test("a standby serves one read at a time while it answers under the name, and the next read connects again", async () => {
  const name = new URL(database.url).pathname.slice(1);
  await store.write("app", addApp("first"));
  // Makes the server report that it is a standby.
  await admin.unsafe("CREATE SCHEMA said");
  await admin.unsafe("CREATE FUNCTION said.pg_is_in_recovery() RETURNS boolean LANGUAGE sql AS 'SELECT true'");
  await admin.unsafe(`ALTER DATABASE ${name} SET search_path = said, pg_catalog, public`);
  for (const kind of ["writer", "flusher", "reader"]) await terminate(kind);
  const pids = [await readerPid(), await readerPid(), await readerPid()].map((one) => one?.pid);
  expect(new Set(pids).size).toBe(3);
  const refused: unknown = await store.write("app", addApp("refused")).catch((error: unknown) => error);
  expect(refused).toBeInstanceOf(StoreUnavailable);
  expect(String(refused)).toContain("a standby answers, which takes no writes");
  await admin.unsafe(`ALTER DATABASE ${name} RESET search_path`);
  await store.write("app", addApp("second"));
  const after = await readerPid();
  expect(await readerPid()).toEqual(after);
  expect(await store.read(listApps)).toEqual(["first", "second"]);
});

test("a server that lost all readers is read from at once", async () => {
  const all = [1, 2, 3, 4].map(() => store.read((tx) => tx.get("SELECT pg_sleep(?1)", 0.2)));
  await Promise.all(all);
  await terminate("reader");
  await Bun.sleep(100);
  for (let turn = 0; turn < 4; turn++) expect(await store.read(listApps)).toEqual([]);
});

test("reads share the existing connections if the server accepts no more", async () => {
  const role = `relay_few_${process.pid}`;
  await admin.unsafe(`CREATE ROLE ${role} LOGIN PASSWORD 'few' CONNECTION LIMIT 2`);
  const url = Object.assign(new URL(database.url), { username: role, password: "few" });
  const readers = new Readers(new PostgresLiveness(readDatabaseUrl(url.href) as DatabaseUrl));
  const read = (): Promise<unknown> => readers.read((tx) => tx.get("SELECT pg_sleep(?1)", 0.1));
  try {
    const ends = await Promise.allSettled(Array.from({ length: 12 }, read));
    expect(ends.map(({ status }) => status)).toEqual(Array.from({ length: 12 }, () => "fulfilled"));
    await admin.unsafe(`ALTER ROLE ${role} CONNECTION LIMIT 0`);
    const ended = Promise.allSettled(Array.from({ length: 12 }, read));
    await terminate("reader");
    expect((await ended).filter(({ status }) => status === "rejected").length).toBeGreaterThan(0);
    await admin.unsafe(`ALTER ROLE ${role} CONNECTION LIMIT 2`);
    await Promise.all(Array.from({ length: 12 }, read));
  } finally {
    await readers.close();
    await admin.unsafe(`DROP ROLE ${role}`);
  }
});

test.each(["no JSON", "null", "[]", '{"topics":null}', '{"node":"other","topics":{"relay":5}}'])(
  "a notice that no node wrote, %j, breaks nothing and counts as a foreign change",
  async (notice) => {
    const touched: string[] = [];
    store.listen((topics) => touched.push(...topics.keys()));
    const seen: boolean[] = [];
    store.watch(({ foreignChange }) => seen.push(foreignChange));
    await admin.unsafe("SELECT pg_notify($1, $2)", [CHANGES_CHANNEL, notice]);
    await admin.unsafe("SELECT pg_notify($1, $2)", [CHANGES_CHANNEL, '{"node":"other","topics":{"relay":["1"]}}']);
    while (seen.length < 2) await Bun.sleep(50);
    expect(touched).toEqual(["relay"]);
    expect(seen).toContain(true);
  },
);

describe("a group that needs a connection when no further one can be opened", () => {
  const refusals = [
    ["closes it", new NotReached("Connection closed.")],
    ["has no more", new NotReached("Full.", { cause: Object.assign(new Error("too many connections"), { errno: "53300" }) })],
  ] as const;

  /** Opens a pool with one connection. `onRefuse` runs before the server refuses each further one. */
  async function openPool(refusal: NotReached, onRefuse: (only: { lost: boolean }) => void) {
    const only = { lost: false, unanswered: 0 };
    const opened = [only as PostgresConnection];
    const connect = async (): Promise<PostgresConnection> => {
      const next = opened.pop();
      if (next !== undefined) return next;
      onRefuse(only);
      throw refusal;
    };
    const nothing = (): void => undefined;
    const pool = new WriterPool({ server: { connect }, onRefused: nothing, onOpen: nothing, onLost: nothing });
    return { pool, writer: await pool.take(), only };
  }

  test.each(refusals)("waits for the open one (the server %s)", async (_, refusal) => {
    const { pool, writer } = await openPool(refusal, () => undefined);
    const next = pool.take();
    await until("it waits", () => pool.groups.waiting === 1);
    pool.giveBack(writer);
    expect(await next).toBe(writer);
  });

  test.each(refusals)("begins behind the flush on the open one (the server %s)", async (_, refusal) => {
    const { pool, writer, only } = await openPool(refusal, () => undefined);
    only.unanswered = 1;
    pool.giveBack(writer);
    expect(await pool.take()).toBe(writer);
  });

  test.each(refusals)("is refused if the open one is lost meanwhile (the server %s)", async (_, refusal) => {
    const { pool, writer, only } = await openPool(refusal, (one) => Object.assign(one, { lost: true }));
    only.unanswered = 1;
    pool.giveBack(writer);
    await expect(pool.take()).rejects.toBe(refusal);
  });
});

test("a write does not fail because all connections for writes were lost while they were free", async () => {
  let began = 0;
  const holdUntilAllBegan = async (tx: Writer): Promise<void> => {
    began += 1;
    while (began < MOST_WRITERS) await tx.get("SELECT 1 AS one");
  };
  await Promise.all(Array.from({ length: MOST_WRITERS }, (_, at) => store.write("app", holdUntilAllBegan, at + 1)));
  await terminate("writer");
  await store.write("app", addApp("a"));
  expect(await store.read(listApps)).toEqual(["a"]);
});
