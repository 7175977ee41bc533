/** Starts a node while its database is unavailable. The node says so, answers that no request is recorded, and recovers without a restart. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { rmSync } from "node:fs";
import { SQL } from "bun";
import { systemClock } from "../../src/base/clock.ts";
import { describeError } from "../../src/interfaces/cli/refusal-text.ts";
import type { Service } from "../../src/service.ts";
import type { Reader } from "../../src/store/port.ts";
import { isAway } from "../../src/store/postgres/error.ts";
import { requireFitServer } from "../../src/store/postgres/inspection.ts";
import { runCommand } from "../kit/cli-io.ts";
import { makeFolder } from "../kit/data-directory.ts";
import { until } from "../kit/event-flow.ts";
import { makeTenants, post, saveReceiver, serveNode } from "../kit/node.ts";
import { type FreshDatabase, freshDatabase } from "../kit/postgres.ts";
import { openPostgresProxy } from "../kit/postgres-proxy.ts";
import { receiver } from "../kit/relay-kit.ts";

let database: FreshDatabase;

beforeAll(async () => {
  database = await freshDatabase();
});
afterAll(() => database[Symbol.asyncDispose]());

/** Returns a URL on which no server listens. */
async function findAway(): Promise<string> {
  using proxy = await openPostgresProxy(database.url);
  return proxy.url;
}

interface Starting extends AsyncDisposable {
  /** Resolves to the service, or to the error of the start. */
  ended: Promise<Service | Error>;
  stop(): void;
  lines(): { message: string; cause?: string }[];
  slow(): { port?: number; cause?: string; todo: string } | undefined;
  waits(): { level: string; message: string; cause: string; todo: string; port: number }[];
}

function start(databaseUrl: string): Starting {
  const dataDir = makeFolder();
  const logged: string[] = [];
  const { promise: stopped, resolve: stop } = Promise.withResolvers<void>();
  const ended = serveNode({ dataDir, databaseUrl }, { stopped, logSink: (line) => logged.push(line) }).catch((error: Error) => error);
  return {
    ended,
    stop,
    lines: () => logged.map((line) => JSON.parse(line)),
    slow: () => logged.map((line) => JSON.parse(line)).find(({ message }) => message.startsWith("the start takes its time")),
    waits: () => logged.map((line) => JSON.parse(line)).filter(({ message }) => message.startsWith("the start waits")),
    async [Symbol.asyncDispose]() {
      stop();
      const service = await ended;
      if (!(service instanceof Error)) await service[Symbol.asyncDispose]();
      rmSync(dataDir, { recursive: true });
    },
  };
}

test("waits and logs the reason, asks senders to retry, and serves once the database is available", async () => {
  const away = await findAway();
  await using node = start(away);
  await until("it waits", () => node.waits().length > 0);
  const [told] = node.waits();
  expect(told).toMatchObject({
    level: "error",
    message: "the start waits for the database; receivers answer 503 until then",
    cause: `The database cannot be reached: no server accepts connections at ${new URL(away).host}.`,
    todo: "check that PostgreSQL runs there and accepts connections from this machine",
  });
  const ask = (path: string) => fetch(`http://127.0.0.1:${told?.port}${path}`);
  const ready = await ask("/readyz");
  expect({ status: ready.status, body: await ready.json() }).toEqual({
    status: 503,
    body: { ready: false, problem: "The service waits for its database before it can start: the server's log shows the reason." },
  });
  const call = await ask("/hooks/app/orders");
  expect({ status: call.status, after: call.headers.get("retry-after"), body: await call.json() }).toMatchObject({
    status: 503,
    after: "5",
    body: { code: "not_recorded" },
  });
  expect((await ask("/healthz")).status).toBe(200);
  await Bun.sleep(2_500);
  expect(node.waits()).toHaveLength(1);
  using _proxy = await openPostgresProxy(database.url, { near: Number(new URL(away).port) });
  const service = await node.ended;
  if (service instanceof Error) throw service;
  expect(service.port).toBe(told?.port as number);
  expect((await ask("/readyz")).status).toBe(200);
});

test("a disconnected node says so to senders, also if the connection hangs without a byte", async () => {
  await using own = await freshDatabase();
  using proxy = await openPostgresProxy(own.url);
  await using node = start(proxy.url);
  const service = await node.ended;
  if (service instanceof Error) throw service;
  const [tenant] = await makeTenants({ service }, "shop", ["production"]);
  if (tenant === undefined) throw new Error("no tenant");
  await saveReceiver({ service }, tenant, receiver("orders", undefined, undefined, { map: { event_id: "id" } }));
  await post({ service }, tenant, "orders", "before");
  proxy.cut();
  const refused = await post({ service }, tenant, "orders", "meanwhile").catch((error: Error) => error.message);
  expect(refused).toStartWith('meanwhile: 503 {"code":"not_recorded"');
  const causes = node.lines().map(({ cause }) => cause);
  expect(causes).toContain("The database answers neither open requests nor new connections.");
  proxy.reconnect();
  await until("it records again", () =>
    post({ service }, tenant, "orders", "after").then(
      () => true,
      () => false,
    ),
  );
});

test("a lock on the leases during the start is logged with a remedy", async () => {
  await using admin = new SQL(database.url, { max: 1 });
  await using node = start(database.url);
  await admin.begin(async (tx) => {
    await tx.unsafe("LOCK TABLE node_lease IN ACCESS EXCLUSIVE MODE");
    await until("it is told", () => node.slow() !== undefined);
  });
  expect(node.slow()).toMatchObject({ cause: expect.stringContaining("another session may hold a lock"), todo: expect.stringContaining("pg_locks") });
  const service = await node.ended;
  if (service instanceof Error) throw service;
});

test("waits if the database goes away at the last step of opening it, and leaves no connection open", async () => {
  using proxy = await openPostgresProxy(database.url);
  proxy.closedTo = "relay listener";
  await using admin = new SQL(database.url, { max: 1 });
  await using node = start(proxy.url);
  await until("it waits", () => node.waits().length > 0);
  expect(node.waits()[0]?.cause).toStartWith("The database cannot be listened to: ");
  // Waits for two more attempts.
  await Bun.sleep(4_500);
  const open = "SELECT count(*)::int AS count FROM pg_stat_activity WHERE datname = current_database() AND application_name LIKE 'relay %'";
  await until("nothing is open", async () => (await admin.unsafe(open))[0].count === 0);
  proxy.closedTo = null;
  const service = await node.ended;
  if (service instanceof Error) throw service;
  expect(node.waits()).toHaveLength(1);
});

test("exits on a permanent failure once the database answers", async () => {
  const away = new URL(await findAway());
  away.password = "none";
  await using node = start(away.href);
  await until("it waits", () => node.waits().length > 0);
  using _proxy = await openPostgresProxy(database.url, { near: Number(away.port) });
  const ended = await node.ended;
  expect(describeError(ended).message).toMatch(/password authentication failed .*To do: check the user and the password in the URL/);
});

test("waits for a read-only database, whether it is empty or has rows", async () => {
  await using empty = await freshDatabase({ empty: true });
  for (const { url } of [database, empty]) {
    await using admin = new SQL(url, { max: 1 });
    const name = new URL(url).pathname.slice(1);
    await admin.unsafe(`ALTER DATABASE ${name} SET default_transaction_read_only = on`);
    await using node = start(url);
    await until("it waits", () => node.waits().length > 0);
    expect(node.waits()[0]).toMatchObject({
      cause: expect.stringContaining("read-only transaction"),
      todo: expect.stringMatching(/^connect to the primary, or let the database accept writes/),
    });
    await admin.unsafe(`ALTER DATABASE ${name} RESET default_transaction_read_only`);
    const service = await node.ended;
    if (service instanceof Error) throw service;
    expect((await fetch(`http://127.0.0.1:${service.port}/readyz`)).status).toBe(200);
  }
});

test("waits for a standby too", async () => {
  const standby = { version: "18.1", number: 180_001, encoding: "UTF8", standby: true };
  const asked = { get: async () => standby, all: async () => [standby] } as unknown as Reader;
  const refused = await requireFitServer(asked).catch((error: unknown) => error);
  expect(isAway(refused)).toBe(true);
  expect(describeError(refused)).toEqual({
    code: "store_unavailable",
    message:
      "The database cannot be used. This server is a standby, which accepts no writes. To do: connect to the primary, or let the database accept writes: a standby accepts none, and neither does a read-only database.",
  });
});

test("reports the required connections to a user with three, and serves with four", async () => {
  await using own = await freshDatabase({ empty: true });
  await using admin = new SQL(own.url, { max: 1 });
  const user = `relay_few_${process.pid}`;
  const url = new URL(own.url);
  [url.username, url.password] = [user, "few"];
  await admin.unsafe(`CREATE ROLE ${user} LOGIN PASSWORD 'few' CONNECTION LIMIT 3`);
  try {
    await admin.unsafe(`ALTER DATABASE ${url.pathname.slice(1)} OWNER TO ${user}`);
    const cwd = makeFolder();
    const { said } = await runCommand(["doctor", "--json"], { cwd, env: { RELAY_DATABASE: url.href }, clock: systemClock });
    rmSync(cwd, { recursive: true });
    const found = (JSON.parse(said) as { items: { check: string }[] }).items.find(({ check }) => check === "connections");
    expect(found).toMatchObject({ state: "fail", message: "3 at most: no node starts with fewer than 4, and one takes up to 11." });
    {
      await using node = start(url.href);
      await until("it waits", () => node.waits().length > 0);
      expect(node.waits()[0]?.todo).toMatch(
        /^allow eleven connections for each node, and at least four: raise max_connections or the CONNECTION LIMIT/,
      );
      await admin.unsafe(`ALTER ROLE ${user} CONNECTION LIMIT 4`);
      const service = await node.ended;
      if (service instanceof Error) throw service;
      expect((await fetch(`http://127.0.0.1:${service.port}/readyz`)).status).toBe(200);
    }
  } finally {
    await admin.unsafe(`REASSIGN OWNED BY ${user} TO CURRENT_USER`);
    await admin.unsafe(`DROP OWNED BY ${user}; DROP ROLE ${user}`).simple();
  }
});

test("waits for a lock on the schema: the port says so within seconds, the log names the cause, and the node serves after its release", async () => {
  await using admin = new SQL(database.url, { max: 1 });
  const holder = await admin.reserve();
  using _ = { [Symbol.dispose]: () => holder.release() };
  await holder.unsafe("BEGIN; LOCK TABLE app IN ACCESS EXCLUSIVE MODE").simple();
  await using node = start(database.url);
  await until("it says that it is slow", () => node.slow() !== undefined);
  const ready = () => fetch(`http://127.0.0.1:${node.slow()?.port}/readyz`);
  expect(await (await ready()).json()).toEqual({
    ready: false,
    problem: "The service is starting and waits for an answer of its database: another session may hold a lock, or the database is busy.",
  });
  await until("it waits", () => node.waits().length > 0);
  expect(node.waits()).toEqual([
    expect.objectContaining({
      cause: "canceling statement due to lock timeout (55P03).",
      todo: "end the session that holds a lock or slows the server, such as one that is idle in a transaction: the views pg_stat_activity and pg_locks show it",
    }),
  ]);
  await holder.unsafe("COMMIT");
  const service = await node.ended;
  if (service instanceof Error) throw service;
  expect((await ready()).status).toBe(200);
});

test("ends a waiting start after a stop request", async () => {
  await using node = start(await findAway());
  await until("it waits", () => node.waits().length > 0);
  node.stop();
  expect(await node.ended).toBeInstanceOf(Error);
});
