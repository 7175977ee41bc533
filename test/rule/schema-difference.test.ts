/** A database whose tables differ from its version. Opening it reports the difference and changes nothing, and doctor reports the same. */
import { Database } from "bun:sqlite";
import { afterAll, describe, expect, test } from "bun:test";
import { existsSync, mkdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { SQL } from "bun";
import type { DatabaseUrl } from "../../src/base/database-url.ts";
import { examine } from "../../src/operator/doctor/examine.ts";
import { SCHEMA_VERSION, SQLITE_MIGRATIONS } from "../../src/store/migrate/migrations.ts";
import { openPostgres } from "../../src/store/postgres/postgres.ts";
import { openSqlite } from "../../src/store/sqlite/sqlite.ts";
import { runCommand } from "../kit/cli-io.ts";
import { dumpTables, makeFolder, openFilled } from "../kit/data-directory.ts";
import { olderDatabase } from "../kit/older-postgres.ts";
import { freshDatabase } from "../kit/postgres.ts";
import { VirtualClock } from "../kit/virtual-clock.ts";

const folder = makeFolder();
afterAll(() => rmSync(folder, { recursive: true }));
const clock = new VirtualClock(Date.UTC(2030, 0, 1));
const ADVICE = "Nothing was changed. To do: start the version that wrote the database, or restore a backup that a released version made.";
/** Makes the newest migration's hash differ, as if another text had been applied. */
const OTHER_TEXT = `UPDATE schema_migration SET hash = 'other' WHERE number = ${SCHEMA_VERSION}`;
const OTHER_TEXT_IS = new RegExp(`migration ${SCHEMA_VERSION} \\(\\S+\\) has another text here`);

const DIFFERENCES = [
  { what: "a column that is missing", sql: ["ALTER TABLE relay DROP COLUMN promoted_version"], says: "relay has no column promoted_version" },
  { what: "a table that is missing", sql: ["DROP TABLE bulk_replay"], says: "there is no table bulk_replay" },
  {
    what: "a column of another type",
    sql: ["ALTER TABLE relay DROP COLUMN promoted_version", "ALTER TABLE relay ADD COLUMN promoted_version DOUBLE PRECISION"],
    says: /relay\.promoted_version is (DOUBLE PRECISION|double precision) and must be (INTEGER|bigint)/,
  },
  { what: "a migration with another text", sql: [OTHER_TEXT], says: OTHER_TEXT_IS },
] as const;

function patient(dataDir: string, database: DatabaseUrl | null) {
  return {
    dataDir,
    database,
    masterKey: null,
    baseUrl: "https://relay.example.com",
    backupEveryMs: null,
    quick: false,
    allowPrivate: [],
    readMetrics: async () => null,
    builtAt: null,
    clock,
  };
}

async function tablesFinding(dataDir: string, database: DatabaseUrl | null): Promise<{ state: string; message: string }> {
  const { state, message } = (await examine(patient(dataDir, database))).find(({ check }) => check === "tables") ?? { state: "none", message: "" };
  return { state, message };
}

let made = 0;
async function newDirectory(): Promise<string> {
  const dataDir = join(folder, `data-${made++}`);
  mkdirSync(dataDir, { mode: 0o700 });
  await (await openFilled(dataDir, clock, 3)).close();
  return dataDir;
}

function change(file: string, sql: readonly string[]): void {
  using database = new Database(file, { readwrite: true });
  for (const one of sql) database.run(one);
}

const refusalOf = (work: Promise<unknown>): Promise<string> =>
  work.then(
    () => "",
    (error: Error) => error.message,
  );

describe("a database file", () => {
  test.each([...DIFFERENCES])("with $what is refused and unchanged, and doctor fails", async ({ sql, says }) => {
    const dataDir = await newDirectory();
    const file = join(dataDir, "relay.db");
    change(file, sql);
    const before = dumpTables(file);
    const refused = await refusalOf(openSqlite(file, { clock }));
    expect(refused).toMatch(says);
    expect(refused).toEndWith(ADVICE);
    const { code, told } = await runCommand(["apps", "list", "--data-dir", dataDir], { cwd: folder });
    expect({ code, isRefused: told.includes("database_refused"), namesDisk: told.includes("disk") }).toEqual({
      code: 1,
      isRefused: true,
      namesDisk: false,
    });
    expect(dumpTables(file)).toEqual(before);
    expect(await tablesFinding(dataDir, null)).toMatchObject({ state: "fail", message: expect.stringMatching(says) });
  });

  test("of an older schema that no step fits is refused before its copy and before any step", async () => {
    const dataDir = join(folder, `data-${made++}`);
    mkdirSync(dataDir, { mode: 0o700 });
    const file = join(dataDir, "relay.db");
    using old = new Database(file, { create: true, readwrite: true });
    old.run("CREATE TABLE schema_migration (number INTEGER PRIMARY KEY, name TEXT NOT NULL, applied_at INTEGER NOT NULL)");
    for (const { number, name, sql } of SQLITE_MIGRATIONS.filter((one) => one.number <= 40)) {
      old.run(sql);
      old.run("INSERT INTO schema_migration VALUES (?1, ?2, 0)", [number, name]);
    }
    old.run("ALTER TABLE subscription ADD COLUMN ended_event_id TEXT");
    old.run("DROP TABLE sync_minute");
    const before = dumpTables(file);
    expect(await refusalOf(openSqlite(file, { clock }))).toContain('step 49 (plan-end) fails with "duplicate column name: ended_event_id"');
    old.run("ALTER TABLE subscription DROP COLUMN ended_event_id");
    expect(await refusalOf(openSqlite(file, { clock }))).toContain("there is no table sync_minute");
    expect(dumpTables(file)).toEqual(before);
    expect(existsSync(join(dataDir, "backups"))).toBe(false);
    expect(await tablesFinding(dataDir, null)).toMatchObject({ state: "fail", message: expect.stringContaining("sync_minute") });
  });

  test("with the operator's own tables, columns and indexes opens", async () => {
    const dataDir = await newDirectory();
    change(join(dataDir, "relay.db"), [
      "CREATE TABLE report (day TEXT)",
      "ALTER TABLE person ADD COLUMN note TEXT",
      "CREATE INDEX own ON person (note)",
    ]);
    await (await openSqlite(join(dataDir, "relay.db"), { clock })).close();
    expect(await tablesFinding(dataDir, null)).toMatchObject({ state: "ok" });
  });

  test("without an index or a trigger fails doctor", async () => {
    const dataDir = await newDirectory();
    change(join(dataDir, "relay.db"), ["DROP INDEX event_ready", "DROP TRIGGER record_change_created"]);
    const { message } = await tablesFinding(dataDir, null);
    expect(message).toContain("event has no index event_ready");
    expect(message).toContain("record has no trigger record_change_created");
  });
});

describe("PostgreSQL", () => {
  test.each([...DIFFERENCES])("with $what is refused and unchanged, and doctor fails", async ({ sql, says }) => {
    await using fresh = await freshDatabase();
    await using direct = new SQL(fresh.url, { max: 1 });
    for (const one of sql) await direct.unsafe(one);
    const refused = await refusalOf(openPostgres(fresh.place, { clock }));
    expect(refused).toMatch(says);
    expect(refused).toEndWith(ADVICE);
    expect(await tablesFinding(folder, fresh.place)).toMatchObject({ state: "fail", message: expect.stringMatching(says) });
  });

  test("of an older schema that no step fits is refused and unchanged", async () => {
    await using older = await olderDatabase(40, ["ALTER TABLE subscription ADD COLUMN ended_event_id text"]);
    await using direct = new SQL(older.url, { max: 1 });
    const state = () => direct`SELECT (SELECT max(number) FROM schema_migration)::int AS number, (SELECT count(*) FROM pg_attribute)::int AS columns`;
    const before = [...(await state())];
    expect(await refusalOf(openPostgres(older.place, { clock }))).toMatch(/step 49 \(plan-end\) fails with ".*ended_event_id.*already exists"/);
    await direct`ALTER TABLE subscription DROP COLUMN ended_event_id`;
    await direct`ALTER TABLE email DROP COLUMN left_at`;
    expect(await refusalOf(openPostgres(older.place, { clock }))).toContain("email has no column left_at");
    expect([...(await state())].map(({ number }) => number)).toEqual(before.map(({ number }) => number));
  });
});
