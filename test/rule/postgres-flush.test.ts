/** The moment at which a PostgreSQL write is answered. Its commit must be on disk, and a commit that a crash lost is never answered. */
import { afterEach, beforeEach, expect, test } from "bun:test";
import { connect, createServer, type Socket } from "node:net";
import { SQL } from "bun";
import { systemClock } from "../../src/base/clock.ts";
import { EVERYTHING, type Store, type Writer, type WriteScope } from "../../src/store/port.ts";
import { openPostgres } from "../../src/store/postgres/postgres.ts";
import { WRITER_LOCK } from "../../src/store/postgres/writer-lock.ts";
import { MOST_WRITERS } from "../../src/store/postgres/writer-pool.ts";
import { until } from "../kit/event-flow.ts";
import { holdRealClock } from "../kit/moved-clock.ts";
import { makeTenants, type Node, saveReceiver, startNode, type Tenant } from "../kit/node.ts";
import { poll } from "../kit/patience.ts";
import { placeOf, startPostgres } from "../kit/postgres.ts";
import { openPostgresProxy } from "../kit/postgres-proxy.ts";
import { receiverDefinition, TOKEN_RECIPE, tokenCall } from "../kit/relay-definition.ts";
import { addApp, listApps } from "../kit/store-conformance.ts";

let ended: AsyncDisposableStack;
let server: Awaited<ReturnType<typeof startPostgres>>;
let admin: SQL;

beforeEach(async () => {
  ended = new AsyncDisposableStack();
  server = ended.use(await startPostgres());
  admin = ended.adopt(new SQL(server.url, { max: 1 }), (sql) => sql.close());
});

afterEach(() => ended.disposeAsync());

async function openStore(url: string): Promise<Store> {
  return ended.adopt(await openPostgres(placeOf(url), { clock: systemClock }), (store) => store.close());
}

async function findProcess(condition: string): Promise<number> {
  const find = () => admin.unsafe(`SELECT pid FROM pg_stat_activity WHERE ${condition}`);
  const [row] = await poll(find, (rows) => rows.length > 0, 5);
  if (row === undefined) throw new Error(`No process of the server's is one of ${condition}.`);
  return row.pid;
}
const FLUSHER = "application_name = 'relay flusher'";

/** Adds an app with this id. `runs` counts the attempts, and `meanwhile` runs in the first attempt's transaction. */
function add(
  store: Store,
  id: string,
  meanwhile: (tx: Writer) => unknown = () => undefined,
  scope: WriteScope = EVERYTHING,
): { runs: () => number; ended: Promise<string>; isAnswered: () => boolean } {
  let runs = 0;
  let answered = false;
  const written = store.write(
    "app",
    async (tx) => {
      runs += 1;
      if (runs === 1) await meanwhile(tx);
      return await addApp(id)(tx);
    },
    scope,
  );
  written.then(
    () => {
      answered = true;
    },
    () => undefined,
  );
  return { runs: () => runs, ended: written, isAnswered: () => answered };
}

const SCOPE = 9;

/** Keeps the other connections for writes busy, so that the writer of SCOPE leaves its flushes to the second connection. */
async function occupyOthers(store: Store): Promise<() => Promise<void>> {
  let isFree = false;
  const began: Promise<void>[] = [];
  const held: Promise<unknown>[] = [];
  for (let scope = 1; scope < MOST_WRITERS; scope++) {
    const { promise, resolve } = Promise.withResolvers<void>();
    began.push(promise);
    const work = async (tx: Writer): Promise<void> => {
      await tx.get("SELECT 1 AS one");
      resolve();
      while (!isFree) await tx.get("SELECT pg_sleep(0.005) IS NULL AS one");
    };
    held.push(store.write("app", work, scope));
  }
  await Promise.all(began);
  return async () => {
    isFree = true;
    // The server refuses them while it starts.
    await Promise.allSettled(held);
  };
}

async function untilThere(store: Store, id: string): Promise<void> {
  while (!(await store.read(listApps)).includes(id)) await Bun.sleep(5);
}

/** Opens another session that takes the writer lock after the given transaction, and releases it. */
async function openRival() {
  const sql = ended.adopt(new SQL(server.url, { max: 1 }), (one) => one.close().catch(() => undefined));
  const [{ pid }] = await sql`SELECT pg_backend_pid() AS pid`;
  let taken: Promise<unknown> = Promise.resolve();
  return {
    async takeLockNext(tx: Writer): Promise<void> {
      taken = sql.unsafe(`SELECT pg_advisory_lock(${WRITER_LOCK})`).execute();
      taken.catch(() => undefined);
      while ((await tx.get("SELECT 1 AS waits FROM pg_locks WHERE pid = ?1 AND NOT granted", pid)) === null);
    },
    /** Locks the table of commit numbers, so that the flush after the commit waits. */
    async takeTableNext(tx: Writer): Promise<void> {
      await tx.all("SELECT number FROM writer_commit WHERE connection = ?1", "nobody");
      await sql.unsafe("BEGIN");
      taken = sql.unsafe("LOCK TABLE writer_commit IN ACCESS EXCLUSIVE MODE").execute();
      taken.catch(() => undefined);
      while ((await tx.get("SELECT 1 AS waits FROM pg_locks WHERE pid = ?1 AND NOT granted", pid)) === null);
    },
    giveBack: () => taken.then(() => sql.unsafe("SELECT pg_advisory_unlock_all()")),
  };
}

test("a write that others can see is answered only once it is on disk, and is written again, once, after a crash", async () => {
  const store = await openStore(server.url);
  await store.write("app", addApp("a"));
  const processes = [await findProcess(FLUSHER), await findProcess("backend_type = 'walwriter'")];
  for (const pid of processes) process.kill(pid, "SIGSTOP");
  const rival = await openRival();
  let second: ReturnType<typeof add> | undefined;
  const freeOthers = await occupyOthers(store);
  const holdNext = async (tx: Writer): Promise<void> => {
    await rival.takeLockNext(tx);
    second = add(store, "c", undefined, SCOPE);
  };
  const first = add(store, "b", holdNext, SCOPE);
  await untilThere(store, "b");
  await Bun.sleep(300);
  expect([first.isAnswered(), second?.isAnswered()]).toEqual([false, false]);
  // The server restarts with the data on its disk.
  for (const pid of processes) process.kill(pid, "SIGKILL");
  await freeOthers();
  expect([await first.ended, first.runs()]).toEqual(["b", 2]);
  // The write that waited for the lock left no data. It is refused if the server starts slowly.
  const others = (await second?.ended.catch(() => null)) === "c" ? ["c"] : [];
  expect(await store.read(listApps)).toEqual(["a", "b", ...others]);
});

test("a flush whose connection breaks is requested again, and its write does not run again", async () => {
  const store = await openStore(server.url);
  await store.write("app", addApp("a"));
  const flusher = await findProcess(FLUSHER);
  process.kill(flusher, "SIGSTOP");
  const rival = await openRival();
  let second: ReturnType<typeof add> | undefined;
  const freeOthers = await occupyOthers(store);
  const holdNext = async (tx: Writer): Promise<void> => {
    await rival.takeLockNext(tx);
    second = add(store, "c", undefined, SCOPE);
  };
  const write = add(store, "b", holdNext, SCOPE);
  await untilThere(store, "b");
  process.kill(flusher, "SIGCONT");
  await admin`SELECT pg_terminate_backend(${flusher})`;
  await freeOthers();
  await rival.giveBack();
  expect([await write.ended, write.runs(), await second?.ended]).toEqual(["b", 1, "c"]);
  expect(await store.read(listApps)).toEqual(["a", "b", "c"]);
});

/**
 * Makes the server wait for an absent standby before it confirms a commit as durable. Commits that do not wait are answered. Resolves with a function
 * that ends this.
 */
async function holdFlushes(): Promise<() => Promise<void>> {
  const set = async (names: string): Promise<void> => {
    await admin.unsafe(`ALTER SYSTEM SET synchronous_standby_names = '${names}'`);
    await admin`SELECT pg_reload_conf()`;
    while ((await admin`SELECT current_setting('synchronous_standby_names') AS names`)[0].names !== names) await Bun.sleep(5);
  };
  await set("nobody");
  await Bun.sleep(200);
  return () => set("");
}

test("a write is flushed by its writer, and answered only then", async () => {
  const store = await openStore(server.url);
  await store.write("app", addApp("a"));
  process.kill(await findProcess(FLUSHER), "SIGSTOP");
  {
    // The clock does not move here, so the silent flusher is not replaced.
    using _ = holdRealClock();
    expect(await add(store, "b").ended).toBe("b");
  }
  process.kill(await findProcess(FLUSHER), "SIGCONT");
  const letGo = await holdFlushes();
  const held = add(store, "c");
  await untilThere(store, "c");
  await Bun.sleep(300);
  expect(held.isAnswered()).toBe(false);
  await letGo();
  expect([await held.ended, held.runs()]).toEqual(["c", 1]);
});

test("a writer whose connection breaks during its flush is asked about over another one, and its write does not run again", async () => {
  const store = await openStore(server.url);
  await store.write("app", addApp("a"));
  const letGo = await holdFlushes();
  const held = add(store, "b");
  await untilThere(store, "b");
  await admin`SELECT pg_terminate_backend(${await findProcess("application_name = 'relay writer' AND wait_event = 'SyncRep'")})`;
  await Bun.sleep(300);
  expect(held.isAnswered()).toBe(false);
  await letGo();
  expect([await held.ended, held.runs(), await store.read(listApps)]).toEqual(["b", 1, ["a", "b"]]);
  expect(await add(store, "c").ended).toBe("c");
});

test("a commit that a crash loses before its writer's own flush is not answered, and is written again, once", async () => {
  const store = await openStore(server.url);
  await store.write("app", addApp("a"));
  const walwriter = await findProcess("backend_type = 'walwriter'");
  process.kill(walwriter, "SIGSTOP");
  const rival = await openRival();
  const held = add(store, "b", (tx) => rival.takeTableNext(tx));
  await findProcess("application_name = 'relay writer' AND wait_event_type = 'Lock' AND query LIKE '%pg_logical_emit_message%'");
  await Bun.sleep(200);
  expect(held.isAnswered()).toBe(false);
  process.kill(walwriter, "SIGKILL");
  expect([await held.ended, held.runs(), await store.read(listApps)]).toEqual(["b", 2, ["a", "b"]]);
});

test("a write does not wait for the flush of the one before, although the other connections are busy", async () => {
  const store = await openStore(server.url);
  await store.write("app", addApp("a"));
  const freeOthers = await occupyOthers(store);
  const letGo = await holdFlushes();
  const waits = [];
  for (const id of ["b", "c", "d"]) {
    waits.push(add(store, id, undefined, SCOPE));
    await untilThere(store, id);
  }
  expect(waits.map((one) => one.isAnswered())).toEqual([false, false, false]);
  await letGo();
  expect(await Promise.all(waits.map((one) => one.ended))).toEqual(["b", "c", "d"]);
  await freeOthers();
});

test("more writes than connections do not wait for the flushes before them", async () => {
  const store = await openStore(server.url);
  await store.write("app", addApp("a"));
  const letGo = await holdFlushes();
  const ids = Array.from({ length: 2 * MOST_WRITERS }, (_, at) => `app-${at}`);
  const waits = [];
  for (const id of ids) {
    waits.push(add(store, id));
    await untilThere(store, id);
  }
  expect(waits.some((one) => one.isAnswered())).toBe(false);
  await letGo();
  expect(await Promise.all(waits.map((one) => one.ended))).toEqual(ids);
});

test("a write answers soon after the connection of the one before it breaks at its commit, although its own transaction has begun", async () => {
  const store = await openStore(server.url);
  await store.write("app", addApp("a"));
  // The first write commits slowly, so that the transaction of the second begins meanwhile.
  await admin.unsafe(`CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    PERFORM pg_sleep(1.5); PERFORM pg_terminate_backend(pg_backend_pid()); RETURN NULL; END $$`);
  await admin.unsafe(
    "CREATE CONSTRAINT TRIGGER slow AFTER INSERT ON app DEFERRABLE INITIALLY DEFERRED FOR EACH ROW WHEN (NEW.id = 'b') EXECUTE FUNCTION slow()",
  );
  const first = add(store, "b", undefined, SCOPE);
  const refused = first.ended.catch((error: Error) => error);
  while ((await admin`SELECT 1 FROM pg_stat_activity WHERE wait_event = 'PgSleep'`).length === 0) await Bun.sleep(5);
  const second = add(store, "c", undefined, SCOPE);
  await findProcess(`wait_event = 'advisory' AND application_name = 'relay writer'`);
  expect([await refused, await second.ended]).toMatchObject([{ name: "StoreUnavailable" }, "c"]);
  expect(await store.read(listApps)).toEqual(["a", "c"]);
  // The server ends a transaction that is idle for five seconds. It counts these sessions apart from those that a function ends.
  const [{ idle, killed }] = await poll(
    () => admin`SELECT sessions_fatal::int AS idle, sessions_killed::int AS killed FROM pg_stat_database WHERE datname = current_database()`,
    ([row]) => row.killed > 0,
    5,
  );
  expect({ idle, isKilled: killed > 0 }).toEqual({ idle: 0, isKilled: true });
});

/** Forwards bytes to the server until it is cut. Then the store notices at once, and the server does not. */
async function passThrough(url: string): Promise<{ url: string; cut: () => void }> {
  const { port, hostname } = new URL(url);
  const sockets: Socket[] = [];
  const passing = createServer((socket) => {
    const on = connect(Number(port), hostname);
    sockets.push(socket);
    socket.on("data", (bytes) => on.write(bytes)).on("error", () => undefined);
    on.on("data", (bytes) => socket.write(bytes)).on("error", () => undefined);
    on.on("close", () => socket.destroy());
  });
  await new Promise<void>((resolve) => passing.listen(0, "127.0.0.1", resolve));
  ended.defer(() => void passing.close());
  const passed = new URL(url);
  passed.port = String((passing.address() as { port: number }).port);
  const cut = (): void => {
    for (const socket of sockets.splice(0)) socket.destroy();
  };
  return { url: passed.href, cut };
}

test("a commit whose answer was lost while it runs is waited for, and does not run again", async () => {
  const { url, cut } = await passThrough(server.url);
  const store = await openStore(url);
  await admin.unsafe("CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_sleep(1.5); RETURN NULL; END $$");
  await admin.unsafe("CREATE CONSTRAINT TRIGGER slow AFTER INSERT ON app DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION slow()");
  const write = add(store, "a");
  while ((await admin`SELECT 1 FROM pg_stat_activity WHERE wait_event = 'PgSleep'`).length === 0) await Bun.sleep(10);
  cut();
  expect([await write.ended, write.runs(), await store.read(listApps)]).toEqual(["a", 1, ["a"]]);
});

/** Starts nodes with a receiver that accepts each signature once. */
async function startReceiving(): Promise<[Node, Node]> {
  begunS = Math.floor(Date.now() / 1_000);
  const nodes: [Node, Node] = [ended.use(await startNode(server.url)), ended.use(await startNode(server.url))];
  const [tenant] = (await makeTenants(nodes[0], "shop", ["development"])) as [Tenant];
  await saveReceiver(nodes[0], tenant, receiverDefinition({ name: "mails", verify: TOKEN_RECIPE, map: { event_id: "event.id" } }));
  return nodes;
}

/** Sends the request of this token, the same each time. */
async function post(node: Node, token: string) {
  const answer = await fetch(`${node.service.url}/hooks/shop/mails`, {
    method: "POST",
    ...tokenCall(token, { event: { id: token } }, begunS),
  });
  return [answer.status, await answer.json()];
}
let begunS = 0;

test("a duplicate of a request whose commit is not on disk yet is answered with it, not before", async () => {
  const [node] = await startReceiving();
  const call = (token: string) => post(node, token);
  expect(await call("before")).toMatchObject([200, { received: true }]);
  const letGo = await holdFlushes();
  const answered: string[] = [];
  const first = call("once");
  void first.then(() => answered.push("first"));
  while ((await admin`SELECT 1 FROM signature_memory`).length < 2) await Bun.sleep(5);
  const second = call("once");
  void second.then(() => answered.push("second"));
  await Bun.sleep(300);
  expect(answered).toEqual([]);
  await letGo();
  const [[, { eventId }]] = (await Promise.all([first, second])) as [[number, { eventId: string }], unknown];
  expect([await first, await second]).toEqual([
    [200, { received: true, eventId }],
    [200, { received: true, duplicate: true, eventId }],
  ]);
});

test("a request known to be on disk is answered as a duplicate by each node once it has asked", async () => {
  const [taker, other] = await startReceiving();
  const [, first] = (await post(taker, "once")) as [number, { eventId: string }];
  const duplicate = [200, { received: true, duplicate: true, eventId: first.eventId }];
  await until("the other knows the relay", async () => (await post(other, "once"))[0] === 200);
  await admin.unsafe(`SELECT pg_advisory_lock(${WRITER_LOCK})`);
  for (const node of [taker, other, taker, other]) expect(await post(node, "once")).toEqual(duplicate);
  await admin.unsafe("SELECT pg_advisory_unlock_all()");
});

test("a commit whose answer is lost in a failover to a server without it is written there, although another transaction has its number", async () => {
  await admin.close();
  using proxy = await openPostgresProxy(server.url);
  const store = await openStore(proxy.url);
  await store.write("app", addApp("a"));
  await server.copy();
  await store.write("app", async (tx) => tx.suppressWakeups());
  let number = 0n;
  proxy.loseCommit = (said) => {
    if (!said.includes("lost")) return null;
    proxy.isClosed = true;
    proxy.drop("relay flusher");
    return "unheard";
  };
  let runs = 0;
  const write = store.write("app", async (tx) => {
    runs += 1;
    const row = await tx.get<{ number: string }>("SELECT pg_current_xact_id()::text AS number WHERE ?1 = 1", 1);
    if (runs === 1) number = BigInt(row?.number ?? 0);
    return await addApp("lost")(tx);
  });
  while (!proxy.isClosed) await Bun.sleep(5);
  await server.failOver();
  admin = ended.adopt(new SQL(server.url, { max: 1 }), (sql) => sql.close());
  const given = async (): Promise<bigint> => BigInt((await admin`SELECT pg_current_xact_id()::text AS number`)[0].number);
  expect(await given()).toBeLessThan(number);
  while ((await given()) < number);
  proxy.isClosed = false;
  proxy.loseCommit = () => null;
  expect([await write, runs, await store.read(listApps)]).toEqual(["lost", 2, ["a", "lost"]]);
});
