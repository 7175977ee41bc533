/** Connections with overdue answers: which ones the store abandons, when, and which ones it waits for. */
import { expect, test } from "bun:test";
import { SQL } from "bun";
import { systemClock } from "../../src/base/clock.ts";
import { type Store, StoreUnavailable } from "../../src/store/port.ts";
import { openPostgres } from "../../src/store/postgres/postgres.ts";
import { poll } from "../kit/patience.ts";
import { freshDatabase, placeOf } from "../kit/postgres.ts";
import { openPostgresProxy } from "../kit/postgres-proxy.ts";
import { addApp, listApps } from "../kit/store-conformance.ts";

interface Io extends AsyncDisposable {
  store: Store;
  proxy: Awaited<ReturnType<typeof openPostgresProxy>>;
  admin: SQL;
}

async function makeIo(): Promise<Io> {
  const stack = new AsyncDisposableStack();
  const database = stack.use(await freshDatabase());
  const proxy = stack.use(await openPostgresProxy(database.url));
  const admin = stack.adopt(new SQL(database.url, { max: 1 }), (sql) => sql.close());
  const store = stack.adopt(await openPostgres(placeOf(proxy.url), { clock: systemClock }), (one) => one.close());
  await store.write("app", addApp("first"));
  await store.read(listApps);
  return { store, proxy, admin, [Symbol.asyncDispose]: () => stack.disposeAsync() };
}

/** While the server is cut off, each attempt is refused at once. */
async function untilDone(work: () => Promise<unknown>): Promise<void> {
  const isDone = () =>
    work().then(
      () => true,
      () => false,
    );
  expect(await poll(isDone, Boolean)).toBe(true);
}

const LONG_S = 13;
/** A time longer than a statement can take there. */
const NEVER_S = 600;
const CUT_OFF = "The database answers neither open requests nor new connections.";
/** The connection that asks about the other end of overdue connections. */
const ASKS = "relay silence";

/** The cases run concurrently, because each takes time. */
const CASES: Record<string, (io: Io) => Promise<void>> = {
  async "waits for a slow statement, and for one that waits for another's lock"({ store, admin }) {
    const pids: unknown[] = [];
    const work = (id: string) => async (tx: Parameters<Parameters<Store["write"]>[1]>[0]) => {
      pids.push(await tx.get("SELECT pg_backend_pid() AS pid WHERE ?1 = 1", 1));
      await addApp(id)(tx);
    };
    await store.write("app", work("a"));
    const held = Promise.withResolvers<void>();
    const holds = admin.begin(async (tx) => {
      await tx.unsafe("LOCK TABLE app IN EXCLUSIVE MODE");
      held.resolve();
      await tx.unsafe(`SELECT pg_sleep(${LONG_S})`);
    });
    await held.promise;
    const [read, written] = await Promise.all([
      store.read((tx) => tx.get("SELECT 1 AS one, pg_sleep(?1)", LONG_S)),
      store.write("app", work("b")),
      holds,
    ]);
    expect([read, written]).toEqual([expect.objectContaining({ one: 1 }), undefined]);
    // Each ran once, on the same connection.
    expect(pids).toEqual([pids[0], pids[0]]);
  },
  async "waits for a statement on a server that briefly accepts no connection"({ store, proxy }) {
    proxy.closedTo = ASKS;
    let runs = 0;
    const read = store.read((tx) => {
      runs += 1;
      return tx.get("SELECT 1 AS one, pg_sleep(?1)", LONG_S);
    });
    // The first question gets no answer.
    await poll(
      () => proxy.count(ASKS),
      (count) => count === 1,
    );
    proxy.closedTo = null;
    expect(await read).toMatchObject({ one: 1 });
    expect(runs).toBe(1);
  },
  async "abandons a statement on a server that accepts no more connections"({ store, proxy }) {
    proxy.closedTo = ASKS;
    let runs = 0;
    const result = await store.read((tx) => {
      runs += 1;
      return tx.get("SELECT 1 AS one, pg_sleep(?1)", runs === 1 ? NEVER_S : 0);
    });
    expect({ result, runs }).toEqual({ result: expect.objectContaining({ one: 1 }), runs: 2 });
  },
  async "abandons a server that became unreachable"({ store, proxy }) {
    proxy.cut();
    expect(await store.write("app", addApp("a")).catch((error: unknown) => error)).toBeInstanceOf(StoreUnavailable);
    proxy.reconnect();
    await untilDone(() => store.write("app", addApp("b")));
    expect(await store.read(listApps)).toEqual(["b", "first"]);
  },
  async "refuses waiting callers if no byte arrives, and later callers at once"({ store, proxy }) {
    // Opens an idle connection, as a node has.
    await store.read(listApps);
    proxy.cut();
    const ended = (one: Promise<unknown>) =>
      one.then(
        () => "done",
        (error: Error) => error.message,
      );
    const both = (id: string) => Promise.all([ended(store.write("app", addApp(id))), ended(store.read(listApps))]);
    expect([await both("a"), await both("b")]).toEqual(Array(2).fill(Array(2).fill(CUT_OFF)));
    proxy.reconnect();
    await untilDone(() => store.write("app", addApp("c")));
  },
  async "abandons at once a connection whose other end is gone, as after a takeover of the address"({ store, proxy, admin }) {
    proxy.cut("relay writer");
    const writer = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'relay writer'";
    await admin.unsafe(writer);
    await store.write("app", addApp("a"));
    // The first question suffices. If no sign of the end arrived, the store would ask several times in ten seconds.
    expect(proxy.count(ASKS)).toBe(1);
    expect(await store.read(listApps)).toEqual(["a", "first"]);
  },
  async "abandons a silent connection to a server that answers others"({ store, proxy }) {
    proxy.cut("relay writer");
    await store.write("app", addApp("a"));
    expect(await store.read(listApps)).toEqual(["a", "first"]);
  },
};

test("the store abandons or waits for overdue connections", async () => {
  const ended = await Promise.all(
    Object.entries(CASES).map(async ([name, check]) => {
      await using io = await makeIo();
      const error = await check(io).then(
        () => "as it says",
        (thrown: Error) => thrown.message,
      );
      return [name, error];
    }),
  );
  expect(ended).toEqual(Object.keys(CASES).map((name) => [name, "as it says"]));
});
