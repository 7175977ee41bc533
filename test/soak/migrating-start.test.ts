/**
 * A start on a large database of an earlier version. Its port answers while the database is copied and migrated, and the process ends when it is
 * asked to.
 */
import { Database } from "bun:sqlite";
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "bun:test";
import { copyFileSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { SQLITE_MIGRATIONS } from "../../src/store/migrate/migrations.ts";
import { startCli } from "../kit/cli-process.ts";
import { until } from "../kit/event-flow.ts";
import { placeExecutable } from "../kit/executable.ts";

const EVENTS = 150_000;
const OLD_SCHEMA = 24;
/** The database that every test copies. */
let filled: string;
let dataDir: string;

beforeAll(() => {
  filled = mkdtempSync(join(tmpdir(), "relay-migrating-"));
  using old = new Database(join(filled, "relay.db"), { create: true, readwrite: true });
  for (const pragma of ["auto_vacuum = INCREMENTAL", "journal_mode = WAL", "synchronous = OFF"]) old.run(`PRAGMA ${pragma}`);
  old.run("CREATE TABLE schema_migration (number INTEGER PRIMARY KEY, name TEXT NOT NULL, applied_at INTEGER NOT NULL)");
  for (const { number, name, sql } of SQLITE_MIGRATIONS.filter((one) => one.number <= OLD_SCHEMA)) {
    old.run(sql);
    old.run("INSERT INTO schema_migration VALUES (?1, ?2, 0)", [number, name]);
  }
  old.run("INSERT INTO app (id, name, created_at) VALUES ('shop', 'Shop', 0)");
  old.run("INSERT INTO environment (id, app_id, name, created_at) VALUES (1, 'shop', 'production', 0)");
  old.run(
    `INSERT INTO event (id, environment_id, relay_id, relay_name, trigger, state, payload, created_at)
     WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?1)
     SELECT printf('evt_%032x', i), 1, 'rly_gone', 'gone', 'receiver', 'done', json_object('event', hex(zeroblob(200))), ?2 + i FROM n`,
    [EVENTS, Date.now() - 1_000_000],
  );
  old.run("PRAGMA wal_checkpoint(TRUNCATE)");
});

afterAll(() => rmSync(filled, { recursive: true, force: true }));

beforeEach(() => {
  dataDir = mkdtempSync(join(tmpdir(), "relay-migrating-"));
  copyFileSync(join(filled, "relay.db"), join(dataDir, "relay.db"));
});

afterEach(() => rmSync(dataDir, { recursive: true, force: true }));

/** Each of the two starts a separate process for the migration, by a different command. */
const FROM_SOURCES = [process.execPath, join(import.meta.dir, "../../src/main.ts")];
const serve = (env: Record<string, string> = {}, command?: readonly string[]) =>
  startCli(["serve", "--port", "0", "--data-dir", dataDir], { cwd: dataDir, env, ...(command === undefined ? {} : { command }) });
const readSchema = (): unknown => {
  using database = new Database(join(dataDir, "relay.db"), { readwrite: true });
  return database.query("SELECT max(number) AS schema FROM schema_migration").get();
};

test.each(["the sources", "the executable"])(
  "a start from %s answers on its port during the migration and reports progress, and the next start continues a migration that was stopped",
  async (from) => {
    using executable = from === "the executable" ? placeExecutable() : null;
    const command = executable === null ? FROM_SOURCES : [executable.file];
    await using first = serve({}, command);
    const url = await portOf(first);
    // A fast machine would migrate these few rows before it prints a line.
    const child = findChild(first.pid);
    const slow = slowDown(child);
    await first.line("rows=");
    // Stops the migration in the middle while the test asks.
    slow.end();
    process.kill(child, "SIGSTOP");
    const answers = await Promise.all(["/healthz", "/readyz", "/hooks/shop/gone"].map((path) => fetch(url + path)));
    expect(answers.map(({ status }) => status)).toEqual([200, 503, 503]);
    expect(await answers[1]?.json()).toEqual({
      ready: false,
      problem: expect.stringMatching(/from 24 to \d+\)\. \d+ of about 150000 rows are moved\.$/),
    });
    expect(await answers[2]?.json()).toMatchObject({ code: "not_recorded" });
    first.kill("SIGTERM");
    process.kill(child, "SIGCONT");
    expect(await first.exited).toBe(0);

    await using second = serve({}, command);
    const again = await portOf(second);
    const statuses = new Set<number>();
    const isReady = async (): Promise<boolean> => {
      // Between the migration and the service, no process listens for a moment.
      const answer = await fetch(`${again}/readyz`).catch(() => null);
      if (answer !== null) statuses.add(answer.status);
      return answer?.status === 200;
    };
    await until("it is ready", isReady, 20);
    expect([...statuses].filter((status) => status !== 503)).toEqual([200]);
    second.kill("SIGTERM");
    expect(await second.exited).toBe(0);
    using database = new Database(join(dataDir, "relay.db"), { readwrite: true });
    expect(database.query("SELECT count(*) AS events, count(DISTINCT former_id) AS ids FROM event").get()).toEqual({ events: EVENTS, ids: EVENTS });
    // The start that continued the migration made no second backup.
    expect(readdirSync(join(dataDir, "backups"))).toHaveLength(1);
  },
);

test("a start reports a slow copy or statement every few seconds, in the log and to clients", async () => {
  await using server = serve();
  const url = await portOf(server);
  const child = findChild(server.pid);
  const backups = join(dataDir, "backups");
  const slow = slowDown(child);
  await until("its copy is begun", () => existsSync(backups) && readdirSync(backups).length > 0, 2);
  slow.end();
  // Stops the process in the middle of the copy, as a slow disk does.
  process.kill(child, "SIGSTOP");
  const line = await server.line("still migrating the database to this version's schema");
  expect(line).toMatch(
    / of \d+ MiB are copied into backups\/ first\.|rows are moved\.|Its step [a-z-]+ has taken \d+ s so far; a large database takes a minute or more\./,
  );
  const { problem } = (await (await fetch(`${url}/readyz`)).json()) as { problem: string };
  expect(problem).toMatch(/\(from 24 to \d+\)\. (\d+ MiB of|\d+ of about|Its step)/);
  process.kill(child, "SIGCONT");
  await server.line("service started");
  server.kill("SIGTERM");
  expect(await server.exited).toBe(0);
});

test("a start refuses another database's key before it copies anything and before it opens a port", async () => {
  using database = new Database(join(dataDir, "relay.db"), { readwrite: true });
  database.run("INSERT INTO master_key_proof (sealed) VALUES (randomblob(61))");
  database.close();
  await using server = serve({ RELAY_MASTER_KEY: "ab".repeat(32) });
  expect(await server.exited).toBe(1);
  expect(server.lines().join("\n")).toContain("is not the master key of this database");
  expect(server.lines().join("\n")).not.toContain("port=");
  expect([readSchema(), existsSync(join(dataDir, "backups"))]).toEqual([{ schema: OLD_SCHEMA }, false]);
});

/** Finds a child process. Linux lists them without a program, which a bare machine may lack. */
function findChild(pid: number): number {
  const list = `/proc/${pid}/task/${pid}/children`;
  const children = existsSync(list) ? readFileSync(list, "utf8") : Bun.spawnSync(["pgrep", "-P", String(pid)]).stdout.toString();
  return Number.parseInt(children, 10);
}

/** Lets the process run a tenth of the time. */
function slowDown(pid: number): { end(): void } {
  const signal = (name: NodeJS.Signals): void => {
    try {
      process.kill(pid, name);
    } catch {
      clearInterval(held);
    }
  };
  let goesOn: ReturnType<typeof setTimeout>;
  const held = setInterval(() => {
    signal("SIGSTOP");
    goesOn = setTimeout(signal, 27, "SIGCONT");
  }, 30);
  return {
    end: () => {
      clearInterval(held);
      clearTimeout(goesOn);
      signal("SIGCONT");
    },
  };
}

async function portOf(server: ReturnType<typeof serve>): Promise<string> {
  const line = await server.line("migrating the database to this version's schema");
  return `http://127.0.0.1:${/ port=(\d+)/.exec(line)?.[1]}`;
}
