/** Tests a node that migrates its PostgreSQL schema: its port answers during the migration, a stop ends it, and it resumes after an interruption. */
import { afterEach, beforeEach, expect, test } from "bun:test";
import { rmSync } from "node:fs";
import { type ReservedSQL, SQL } from "bun";
import type { Service } from "../../src/service.ts";
import { SCHEMA_VERSION } from "../../src/store/migrate/migrations.ts";
import { WRITER_LOCK } from "../../src/store/postgres/writer-lock.ts";
import { makeFolder } from "../kit/data-directory.ts";
import { until } from "../kit/event-flow.ts";
import { serveNode } from "../kit/node.ts";
import { olderDatabase } from "../kit/older-postgres.ts";
import type { FreshDatabase } from "../kit/postgres.ts";
import { openPostgresProxy } from "../kit/postgres-proxy.ts";

const OLD_SCHEMA = 42;
/** Locks the table that the step after this version changes. */
const HOLD = "BEGIN; LOCK TABLE node IN ACCESS SHARE MODE";
const HOLD_MIGRATIONS = "BEGIN; SELECT pg_advisory_xact_lock(1919249506)";
const MIGRATING = "SELECT count(*)::int AS count FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'relay migration'";

let database: FreshDatabase;
let admin: SQL;
/** Holds a lock that blocks the migration, like a large table does. */
let holder: ReservedSQL;

beforeEach(async () => {
  database = await olderDatabase(OLD_SCHEMA);
  admin = new SQL(database.url, { max: 2 });
  holder = await admin.reserve();
});
afterEach(async () => {
  holder.release();
  await admin.close();
  await database[Symbol.asyncDispose]();
});

const readSchema = async (): Promise<number> => (await admin.unsafe("SELECT max(number)::int AS number FROM schema_migration"))[0].number;
const isMigrating = async (): Promise<boolean> => (await admin.unsafe(MIGRATING))[0].count > 0;

interface Starting extends AsyncDisposable {
  url: string;
  /** Resolves to the service, or to the error of the start. */
  ended: Promise<Service | Error>;
  stop(): void;
  logged(message: string): Record<string, unknown>[];
  problem(): Promise<string>;
}

async function start(databaseUrl: string, masterKey?: string): Promise<Starting> {
  const dataDir = makeFolder();
  const lines: string[] = [];
  const { promise: stopped, resolve: stop } = Promise.withResolvers<void>();
  const free = Bun.serve({ port: 0, fetch: () => new Response() });
  const port = free.port as number;
  await free.stop(true);
  const ended = serveNode(
    { dataDir, databaseUrl, config: { port, ...(masterKey === undefined ? {} : { masterKey }) } },
    { stopped, logSink: (line) => lines.push(line) },
  ).catch((error: Error) => error);
  const url = `http://127.0.0.1:${port}`;
  return {
    url,
    ended,
    stop,
    logged: (message) => lines.map((line) => JSON.parse(line)).filter((line) => line.message.startsWith(message)),
    async problem() {
      const response = await fetch(`${url}/readyz`).catch(() => null);
      return response === null ? "" : (((await response.json()) as { problem?: string }).problem ?? "");
    },
    async [Symbol.asyncDispose]() {
      stop();
      const service = await ended;
      if (!(service instanceof Error)) await service[Symbol.asyncDispose]();
      rmSync(dataDir, { recursive: true });
    },
  };
}

const untilItSays = (node: Starting, what: RegExp) => until(`it says ${what}`, async () => what.test(await node.problem()), 50);

async function serves(node: Starting): Promise<void> {
  const service = await node.ended;
  if (service instanceof Error) throw service;
  expect(await readSchema()).toBe(SCHEMA_VERSION);
  expect((await fetch(`${node.url}/readyz`)).status).toBe(200);
}

test("the port reports the progress and that no request is recorded, until the node serves", async () => {
  await holder.unsafe(HOLD).simple();
  await using node = await start(database.url);
  await untilItSays(node, /node-compared/);
  expect(await node.problem()).toMatch(
    new RegExp(
      `^The service migrates its database to this version's schema before it starts \\(from ${OLD_SCHEMA} to ${SCHEMA_VERSION}\\)\\. Its step node-compared has taken \\d s so far; a large database takes a minute or more\\.$`,
    ),
  );
  const answers = await Promise.all(["/healthz", "/readyz", "/hooks/shop/gone"].map((path) => fetch(node.url + path)));
  expect(answers.map(({ status }) => status)).toEqual([200, 503, 503]);
  expect(await answers[2]?.json()).toMatchObject({ code: "not_recorded" });
  await until("its log says it too", () => node.logged("still migrating the database").length > 0);
  await holder.unsafe("COMMIT");
  await serves(node);
  expect(node.logged("migrating the database")).toEqual([
    expect.objectContaining({ from: OLD_SCHEMA, to: SCHEMA_VERSION, port: Number(new URL(node.url).port) }),
  ]);
});

test("the migration starts after open writers have ended, including a reader that becomes a writer", async () => {
  await holder.unsafe(`BEGIN; SELECT pg_advisory_xact_lock(${WRITER_LOCK}); SELECT 1 FROM event`).simple();
  await using node = await start(database.url);
  await until("it waits for a lock", async () => (await admin.unsafe(`${MIGRATING} AND wait_event_type = 'Lock'`))[0].count > 0);
  await holder.unsafe("LOCK TABLE event IN ROW EXCLUSIVE MODE");
  await holder.unsafe("COMMIT");
  await serves(node);
  expect(node.logged("the start waits")).toEqual([]);
});

test("a node that waits for another node's migration says so", async () => {
  await holder.unsafe(HOLD_MIGRATIONS).simple();
  await using node = await start(database.url);
  await untilItSays(node, /It waits for another node, which migrates the database\.$/);
  await holder.unsafe("COMMIT");
  await serves(node);
});

test.each([
  ["while it waits for another node", HOLD_MIGRATIONS],
  ["in the middle of a statement", HOLD],
])("a stop %s ends the wait and the database statement", async (_, hold) => {
  await holder.unsafe(hold).simple();
  await using node = await start(database.url);
  await untilItSays(node, /from 42/);
  await until("it is under way", isMigrating);
  node.stop();
  // The blocking lock is still held.
  expect(await node.ended).toMatchObject({ message: "The start was stopped before the migration of the database ended." });
  await until("its statement has ended", async () => !(await isMigrating()));
  await holder.unsafe("COMMIT");
  expect(await readSchema()).toBe(OLD_SCHEMA);
});

test("an interrupted connection makes it wait, and it resumes the migration", async () => {
  await holder.unsafe(HOLD).simple();
  using proxy = await openPostgresProxy(database.url);
  await using node = await start(proxy.url);
  await untilItSays(node, /node-compared/);
  proxy.isClosed = true;
  proxy.drop("relay migration");
  await untilItSays(node, /^The service waits for its database/);
  await holder.unsafe("COMMIT");
  proxy.isClosed = false;
  await serves(node);
  expect(node.logged("the start waits")).toHaveLength(1);
});

test("a silent database makes it give up the connection, wait, and resume the migration", async () => {
  await holder.unsafe(HOLD).simple();
  using proxy = await openPostgresProxy(database.url);
  await using node = await start(proxy.url);
  await untilItSays(node, /node-compared/);
  proxy.cut();
  await untilItSays(node, /^The service waits for its database/);
  expect(node.logged("the start waits")).toEqual([
    expect.objectContaining({ cause: expect.stringMatching(/^The database gave no answer for \d+ s\.$/) }),
  ]);
  await holder.unsafe("COMMIT");
  proxy.reconnect();
  await serves(node);
});

test("another database's key is rejected before any change", async () => {
  await admin`INSERT INTO master_key_proof (one, sealed) VALUES (1, ${Buffer.alloc(61, 7)})`;
  await using node = await start(database.url, "c3".repeat(32));
  expect(await node.ended).toMatchObject({ message: expect.stringMatching(/^RELAY_MASTER_KEY is not the master key/) });
  expect(await readSchema()).toBe(OLD_SCHEMA);
});
