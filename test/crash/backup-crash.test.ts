/**
 * SIGKILL during a backup, a restore and a migration leaves the old or the new state, never one in between. The default is some dozens of kills;
 * `RELAY_CRASH_KILLS=1000 bun test test/crash` runs the long loop.
 */
import { Database } from "bun:sqlite";
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { cpSync, existsSync, mkdirSync, readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { systemClock } from "../../src/base/clock.ts";
import { makeBackup } from "../../src/operator/backup/backup.ts";
import { restoreBackup } from "../../src/operator/backup/restore.ts";
import { SCHEMA_VERSION, SQLITE_MIGRATIONS } from "../../src/store/migrate/migrations.ts";
import { lockDataDirectory } from "../../src/store/sqlite/directory-lock.ts";
import { runMigration } from "../../src/store/sqlite/migration-rehearsal.ts";
import { openSqlite } from "../../src/store/sqlite/sqlite.ts";
import { addEvent, dumpTables, isWhole, makeFolder, openFilled } from "../kit/data-directory.ts";
import { PATIENCE_MS, TEST_MS } from "../kit/patience.ts";
import { rounds } from "../kit/rounds.ts";

const kills = Number(process.env.RELAY_CRASH_KILLS ?? rounds({ slice: 2, soak: 12, long: 40 }));
const timeout = TEST_MS + kills * PATIENCE_MS;
const folder = makeFolder();
afterAll(() => rmSync(folder, { recursive: true }));
const clock = systemClock;
/** backup-process.ts in one file, which starts in a fraction of the time. */
const PROCESS = join(folder, "program", "backup-process.js");
const OLD_SCHEMA = 3;

/** A directory as a killed server leaves it, with its last rows only in the write-ahead log, and a backup that differs from it. */
const template = join(folder, "template");
const backup = join(folder, "backup.db");

beforeAll(async () => {
  const entrypoints = [join(import.meta.dir, "backup-process.ts")];
  await Bun.build({ entrypoints, outdir: join(folder, "program"), target: "bun", minify: true });
  mkdirSync(template);
  const store = await openFilled(template, clock, 400);
  await makeBackup({ dataDir: template, file: backup, replace: false, withKey: false, masterKey: null });
  await addEvent(store, 9_999, clock.now());
  const crashed = join(folder, "crashed");
  cpSync(template, crashed, { recursive: true });
  await store.close();
  rmSync(template, { recursive: true });
  cpSync(crashed, template, { recursive: true });
});

/** Runs the process and kills it `afterMs` after it is ready. Returns whether it was done before, and how long it worked. */
async function runAndKill(line: readonly string[], afterMs: number | null): Promise<{ done: boolean; tookMs: number }> {
  const child = Bun.spawn([process.execPath, PROCESS, ...line], { env: process.env, stdout: "pipe", stderr: "pipe" });
  const reader = child.stdout.getReader();
  const decoder = new TextDecoder();
  let said = "";
  while (!said.includes("ready\n")) {
    const { value, done } = await reader.read();
    if (done) throw new Error(await new Response(child.stderr).text());
    said += decoder.decode(value);
  }
  const startedMs = clock.monotonicMs();
  if (afterMs !== null) {
    await Bun.sleep(afterMs);
    child.kill("SIGKILL");
  }
  for (;;) {
    const { value, done } = await reader.read();
    if (done) break;
    said += decoder.decode(value);
  }
  await child.exited;
  return { done: said.includes("done\n"), tookMs: clock.monotonicMs() - startedMs };
}

/** Returns moments that are spread over the whole work and slightly beyond. */
function momentsOver(workMs: number): number[] {
  return Array.from({ length: kills }, (_, index) => ((index + Math.random()) / kills) * workMs * 1.1);
}

let made = 0;
function copyOf(source: string): string {
  const copy = join(folder, `copy-${made++}`);
  cpSync(source, copy, { recursive: true });
  return copy;
}

/** Returns the tables of a file as one text. */
function contentOf(file: string): string {
  return JSON.stringify(dumpTables(file));
}

describe("a killed process leaves the old or the new state", () => {
  test(
    `after ${kills} kills during a restore`,
    async () => {
      const oldContent = contentOf(join(copyOf(template), "relay.db"));
      const newContent = contentOf(backup);
      expect(oldContent).not.toBe(newContent);
      const { tookMs, done } = await runAndKill(["restore", copyOf(template), backup], null);
      expect(done).toBe(true);
      const seen = { old: 0, new: 0 };
      const killAt = async (moment: number): Promise<void> => {
        const dataDir = copyOf(template);
        await runAndKill(["restore", dataDir, backup], moment);
        const found = contentOf(join(dataDir, "relay.db"));
        expect(found === oldContent || found === newContent).toBe(true);
        expect(isWhole(join(dataDir, "relay.db"))).toBe(true);
        seen[found === oldContent ? "old" : "new"] += 1;
        if (found === newContent) {
          const kept = listBackups(dataDir);
          expect(kept).toHaveLength(1);
          expect(contentOf(join(dataDir, "backups", kept[0] ?? ""))).toBe(oldContent);
        }
        lockDataDirectory(dataDir, "test", clock.now()).release();
        await restoreBackup({ file: backup, dataDir, keyFile: null, masterKey: null, clock: hastyClock });
        expect(contentOf(join(dataDir, "relay.db"))).toBe(newContent);
        expect(readdirSync(dataDir).filter((name) => name.includes(".part"))).toEqual([]);
        rmSync(dataDir, { recursive: true });
      };
      // In its last second and a half the restore only waits, with the new database in place.
      for (const moment of momentsOver(tookMs - 1_500)) await killAt(moment);
      // The measured run may have been slower than these runs, so none of them may have been killed early enough.
      while (seen.old === 0) await killAt(0);
    },
    timeout,
  );

  test(
    `after ${kills} kills during a backup that replaces an older one`,
    async () => {
      const dataDir = copyOf(template);
      const source = contentOf(join(dataDir, "relay.db"));
      const older = contentOf(backup);
      const target = join(folder, "target");
      mkdirSync(target);
      const file = join(target, "backup.db");
      cpSync(backup, file);
      const { tookMs } = await runAndKill(["backup", dataDir, file], null);
      expect(contentOf(file)).toBe(source);
      for (const moment of momentsOver(tookMs)) {
        cpSync(backup, file);
        await runAndKill(["backup", dataDir, file], moment);
        const found = contentOf(file);
        expect(found === older || found === source).toBe(true);
        expect(isWhole(file)).toBe(true);
        expect(readdirSync(target).filter((name) => !name.includes(".part"))).toEqual(["backup.db"]);
      }
      expect(contentOf(join(dataDir, "relay.db"))).toBe(source);
    },
    timeout,
  );

  test(
    `after ${kills} kills during a migration, which the next start completes`,
    async () => {
      const old = newOldDirectory();
      const schemas = schemasByNumber();
      const { tookMs } = await runAndKill(["migrate", copyOf(old)], null);
      for (const moment of momentsOver(tookMs)) {
        const dataDir = copyOf(old);
        await runAndKill(["migrate", dataDir], moment);
        const file = join(dataDir, "relay.db");
        expect(isWhole(file)).toBe(true);
        const { number, schema } = readSchema(file);
        expect(schema).toBe(schemas.get(number) ?? "no such schema");
        if (number > OLD_SCHEMA) expect(listBackups(dataDir).length).toBeGreaterThan(0);
        await (await openSqlite(file, { clock })).close();
        expect(readSchema(file)).toEqual({
          number: SCHEMA_VERSION,
          schema: schemas.get(SCHEMA_VERSION) ?? "",
        });
        expect(dumpTables(file).app).toEqual([expect.stringContaining("kept through it")]);
        expect(listBackups(dataDir)).toEqual([`before-migration-to-${SCHEMA_VERSION}.db`]);
        rmSync(dataDir, { recursive: true });
      }
    },
    timeout,
  );
});

/** The real clock without waits, because no other process opens these folders. */
const hastyClock = { ...systemClock, after: (_: number, work: () => void) => systemClock.after(0, work) };

function listBackups(dataDir: string): string[] {
  const backups = join(dataDir, "backups");
  return existsSync(backups) ? readdirSync(backups).filter((name) => name.endsWith(".db")) : [];
}

function newOldDirectory(): string {
  const dataDir = join(folder, "old-schema");
  mkdirSync(dataDir);
  using database = makeSchema(join(dataDir, "relay.db"), OLD_SCHEMA);
  database.run("PRAGMA journal_mode = WAL");
  database.run("INSERT INTO app (id, name, created_at) VALUES ('shop', 'kept through it', 0)");
  return dataDir;
}

/** Creates a database with only the first migrations. */
function makeSchema(file: string, schema: number): Database {
  const database = new Database(file, { create: true, readwrite: true });
  database.run("CREATE TABLE schema_migration (number INTEGER PRIMARY KEY, name TEXT NOT NULL, applied_at INTEGER NOT NULL)");
  for (const { number, name, sql } of SQLITE_MIGRATIONS.slice(0, schema)) {
    runMigration(database, sql);
    database.run("INSERT INTO schema_migration (number, name, applied_at) VALUES (?1, ?2, 0)", [number, name]);
  }
  return database;
}

const SCHEMA = "SELECT type, name, sql FROM sqlite_master WHERE sql IS NOT NULL ORDER BY type, name";

function schemasByNumber(): Map<number, string> {
  const schemas = new Map<number, string>();
  for (let number = OLD_SCHEMA; number <= SCHEMA_VERSION; number++) {
    using database = makeSchema(":memory:", number);
    schemas.set(number, normalize(database.query<{ sql: string }, []>(SCHEMA).all()));
  }
  return schemas;
}

function readSchema(file: string): { number: number; schema: string } {
  using database = new Database(file, { readwrite: true, create: false });
  const row = database.query<{ number: number }, []>("SELECT max(number) AS number FROM schema_migration").get();
  return { number: row?.number ?? 0, schema: normalize(database.query<{ sql: string }, []>(SCHEMA).all()) };
}

function normalize(rows: readonly { sql: string }[]): string {
  return rows.map(({ sql }) => sql).join("\n");
}
