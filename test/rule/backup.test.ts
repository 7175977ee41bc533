/** The rules of backup and restore, on real files. */
import { Database } from "bun:sqlite";
import { afterAll, describe, expect, test } from "bun:test";
import { chmodSync, copyFileSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { systemClock } from "../../src/base/clock.ts";
import { type BackupRequest, makeBackup } from "../../src/operator/backup/backup.ts";
import { type RestoreRequest, restoreBackup } from "../../src/operator/backup/restore.ts";
import { SCHEMA_VERSION, SQLITE_MIGRATIONS } from "../../src/store/migrate/migrations.ts";
import type { Store } from "../../src/store/port.ts";
import { lockDataDirectory } from "../../src/store/sqlite/directory-lock.ts";
import { openSqlite, type SqliteOptions } from "../../src/store/sqlite/sqlite.ts";
import { runCommand } from "../kit/cli-io.ts";
import { addEvent, dumpTables, isWhole, makeFolder, openFilled } from "../kit/data-directory.ts";
import { requireExecutable } from "../kit/executable-build.ts";
import { startRunningService } from "../kit/running-service.ts";

const folder = makeFolder();
afterAll(() => rmSync(folder, { recursive: true }));
const clock = systemClock;

let made = 0;
/** Creates a data directory, fills it and closes it. */
async function newDirectory(events = 20): Promise<string> {
  const dataDir = join(folder, `data-${made++}`);
  mkdirSync(dataDir);
  await (await openFilled(dataDir, clock, events)).close();
  return dataDir;
}

function backUp(dataDir: string, more: Partial<BackupRequest> = {}) {
  const file = join(folder, `backup-${made++}.db`);
  return makeBackup({ dataDir, file, replace: false, withKey: false, masterKey: null, ...more });
}

function restoreFrom(file: string, dataDir: string, more: Partial<RestoreRequest> = {}) {
  return restoreBackup({ file, dataDir, keyFile: null, masterKey: null, clock, ...more });
}

/** Returns the message of the error that `work` throws. */
async function refusalOf(work: () => Promise<unknown>): Promise<string> {
  try {
    await work();
  } catch (error) {
    return (error as Error).message;
  }
  throw new Error("It was not refused.");
}

const listFiles = (dataDir: string): string[] => readdirSync(dataDir).sort();

describe("a backup", () => {
  test("holds every row of every table, in one file that only its owner can read", async () => {
    const dataDir = await newDirectory();
    const before = dumpTables(join(dataDir, "relay.db"));
    const { file, rows, schema, bytes, keyFile } = await backUp(dataDir);
    expect(dumpTables(file)).toEqual(before);
    expect({ events: rows.event, schema, keyFile }).toEqual({
      events: 20,
      schema: SCHEMA_VERSION,
      keyFile: null,
    });
    expect(statSync(file).size).toBe(bytes);
    expect(statSync(file).mode & 0o777).toBe(0o600);
  });

  test("runs while others write, without pausing them, and shows one consistent moment", async () => {
    const dataDir = await newDirectory(50);
    const store = await openFilled(dataDir, clock, 0);
    let stop = false;
    let written = 0;
    const writing = (async () => {
      while (!stop) await addEvent(store, 1_000 + written++, clock.now());
    })();
    const backups: number[] = [];
    for (let turn = 0; turn < 5; turn++) {
      const child = Bun.spawn([requireExecutable("relay"), "backup", join(folder, `live-${made}-${turn}.db`), "--data-dir", dataDir, "--json"], {
        stdout: "pipe",
        stderr: "inherit",
      });
      const before = written;
      const result = JSON.parse(await new Response(child.stdout).text());
      expect(written).toBeGreaterThan(before);
      backups.push(result.rows.event);
      expect(isWhole(result.file)).toBe(true);
      const seqs = readSeqs(result.file);
      expect(seqs).toEqual(seqs.map((_, index) => index + 1));
    }
    stop = true;
    await writing;
    await store.close();
    expect(backups).toEqual([...backups].sort((one, other) => one - other));
    expect(backups[0]).toBeGreaterThanOrEqual(50);
    expect(written + 50).toBe(readSeqs(join(dataDir, "relay.db")).length);
  });

  test("replaces a file only with `replace`, and leaves no file when it is refused", async () => {
    const dataDir = await newDirectory();
    const target = join(folder, `taken-${made++}`);
    mkdirSync(target);
    const file = join(target, "backup.db");
    writeFileSync(file, "something else");
    expect(await refusalOf(() => backUp(dataDir, { file }))).toMatch(/exists already.*--force/);
    expect(readFileSync(file, "utf8")).toBe("something else");
    expect(listFiles(target)).toEqual(["backup.db"]);
    await backUp(dataDir, { file, replace: true });
    expect(isWhole(file)).toBe(true);
    expect(listFiles(target)).toEqual(["backup.db"]);
  });

  test("never overwrites the data directory's own files, not even with `replace`", async () => {
    const dataDir = await newDirectory();
    const before = dumpTables(join(dataDir, "relay.db"));
    for (const name of ["relay.db", "master.key", "another.db"]) {
      const work = () => backUp(dataDir, { file: join(dataDir, name), replace: true });
      expect(await refusalOf(work)).toMatch(/own files.*backups/);
    }
    expect(dumpTables(join(dataDir, "relay.db"))).toEqual(before);
  });

  test("omits the master key, and --with-key writes it to a second file that only the owner can read", async () => {
    const dataDir = await newDirectory();
    const { file, keyFile } = await backUp(dataDir, { withKey: true });
    const key = readFileSync(join(dataDir, "master.key"), "utf8");
    expect(keyFile).toBe(`${file}.key`);
    expect(readFileSync(keyFile ?? "", "utf8")).toBe(key);
    expect(statSync(keyFile ?? "").mode & 0o777).toBe(0o600);
    expect(readFileSync(file).includes(key.trim())).toBe(false);
    expect(readFileSync(file).includes(Buffer.from(key.trim(), "hex"))).toBe(false);
  });

  test("of a damaged database is refused and makes no file", async () => {
    const dataDir = await newDirectory(200);
    damage(join(dataDir, "relay.db"));
    const file = join(folder, `never-${made++}.db`);
    expect(await refusalOf(() => backUp(dataDir, { file }))).toMatch(/damaged/);
    expect(existsSync(file)).toBe(false);
  });
});

describe("a restore", () => {
  test("restores every row, and keeps the previous database as a backup", async () => {
    const dataDir = await newDirectory();
    const { file } = await backUp(dataDir);
    const wanted = dumpTables(file);
    const store = await openFilled(dataDir, clock, 7);
    await store.close();
    const replaced = dumpTables(join(dataDir, "relay.db"));
    const restored = await restoreFrom(file, dataDir);
    expect(dumpTables(join(dataDir, "relay.db"))).toEqual(wanted);
    expect(restored).toMatchObject({ keptAsItLay: false, waitingEvents: 0, rows: { event: 20 } });
    expect(dumpTables(restored.kept ?? "")).toEqual(replaced);
    await (await openFilled(dataDir, clock, 0)).close();
  });

  test("works into a folder that does not exist, with the key that was backed up", async () => {
    const dataDir = await newDirectory();
    const { file, keyFile } = await backUp(dataDir, { withKey: true });
    const parent = join(folder, `empty-${made++}`);
    const empty = join(parent, "data");
    expect(await refusalOf(() => restoreFrom(file, empty))).toMatch(/has no master\.key.*--key/);
    expect(existsSync(parent)).toBe(false);
    const restored = await restoreFrom(file, empty, { keyFile });
    expect(restored).toMatchObject({ kept: null, keyPlaced: true });
    expect(dumpTables(join(empty, "relay.db"))).toEqual(dumpTables(file));
    expect(statSync(join(empty, "master.key")).mode & 0o777).toBe(0o600);
  });

  const refused: {
    rule: string;
    arrange: (dataDir: string, file: string) => Partial<RestoreRequest>;
    says: RegExp;
  }[] = [
    {
      rule: "a file that is no database is refused",
      arrange: (_, file) => {
        writeFileSync(file, "not a database at all, but long enough to be read");
        return {};
      },
      says: /is not a database/,
    },
    {
      rule: "a database of something else is refused",
      arrange: (_, file) => {
        rmSync(file);
        using other = new Database(file, { create: true, readwrite: true });
        other.run("CREATE TABLE other (id INTEGER)");
        return {};
      },
      says: /not a database of this service/,
    },
    {
      rule: "a backup that was cut short is refused",
      arrange: (_, file) => {
        const bytes = readFileSync(file);
        writeFileSync(file, bytes.subarray(0, bytes.length - 8_192));
        return {};
      },
      says: /damaged/,
    },
    {
      rule: "a backup with a damaged page is refused",
      arrange: (_, file) => {
        damage(file);
        return {};
      },
      says: /damaged/,
    },
    {
      rule: "a backup of a newer version is refused",
      arrange: (_, file) => {
        using newer = new Database(file, { readwrite: true });
        newer.run("INSERT INTO schema_migration VALUES (?1, 'later', 0, NULL)", [SCHEMA_VERSION + 1]);
        return {};
      },
      says: /newer version/,
    },
    {
      rule: "a backup sealed under another master key is refused",
      arrange: (dataDir) => {
        chmodSync(join(dataDir, "master.key"), 0o600);
        writeFileSync(join(dataDir, "master.key"), `${"ab".repeat(32)}\n`);
        return {};
      },
      says: /does not open the secrets of this backup/,
    },
    {
      rule: "a given key never replaces another key",
      arrange: (dataDir) => {
        const keyFile = join(dataDir, "..", `other-${made++}.key`);
        writeFileSync(keyFile, `${"ab".repeat(32)}\n`);
        return { keyFile };
      },
      says: /another key/,
    },
    {
      rule: "a file that does not exist is refused",
      arrange: (_, file) => {
        rmSync(file);
        return {};
      },
      says: /There is no file/,
    },
    {
      rule: "the directory's own database is refused as a backup",
      arrange: (dataDir) => ({ file: join(dataDir, "relay.db") }),
      says: /own database/,
    },
  ];
  for (const { rule, arrange, says } of refused) {
    test(`${rule}, and the directory is unchanged`, async () => {
      const dataDir = await newDirectory(200);
      const { file } = await backUp(dataDir);
      const more = arrange(dataDir, file);
      const before = dumpTables(join(dataDir, "relay.db"));
      const key = readFileSync(join(dataDir, "master.key"), "utf8");
      const files = listFiles(dataDir);
      expect(await refusalOf(() => restoreFrom(file, dataDir, more))).toMatch(says);
      expect(dumpTables(join(dataDir, "relay.db"))).toEqual(before);
      expect(readFileSync(join(dataDir, "master.key"), "utf8")).toBe(key);
      expect(listFiles(dataDir)).toEqual(files);
    });
  }

  test("refuses a directory with a running server, and names the server", async () => {
    const dataDir = await newDirectory();
    const { file } = await backUp(dataDir);
    const lock = lockDataDirectory(dataDir, "relay serve", clock.now());
    expect(await refusalOf(() => restoreFrom(file, dataDir))).toMatch(/in use by relay serve/);
    lock.release();
  });

  test("refuses a directory whose database another command has open", async () => {
    const dataDir = await newDirectory();
    const { file } = await backUp(dataDir);
    const store = await openFilled(dataDir, clock, 1);
    expect(await refusalOf(() => restoreFrom(file, dataDir))).toMatch(/in use by another command/);
    await store.close();
    expect((await restoreFrom(file, dataDir)).rows.event).toBe(20);
  });

  test("replaces a damaged database, and keeps a copy of its bytes", async () => {
    const dataDir = await newDirectory(200);
    const { file } = await backUp(dataDir);
    damage(join(dataDir, "relay.db"));
    const lay = readFileSync(join(dataDir, "relay.db"));
    const restored = await restoreFrom(file, dataDir);
    expect(restored.keptAsItLay).toBe(true);
    expect(readFileSync(restored.kept ?? "").length).toBe(lay.length);
    expect(dumpTables(join(dataDir, "relay.db"))).toEqual(dumpTables(file));
  });

  test("replaces a file that is no database, and keeps a copy of its bytes", async () => {
    const dataDir = await newDirectory();
    const { file } = await backUp(dataDir);
    const lay = "nothing that SQLite could read, though it is long enough for a header";
    writeFileSync(join(dataDir, "relay.db"), lay);
    const restored = await restoreFrom(file, dataDir);
    expect(readFileSync(restored.kept ?? "", "utf8")).toBe(lay);
    expect(dumpTables(join(dataDir, "relay.db"))).toEqual(dumpTables(file));
  });

  test("replaces a database of a newer version, so that a user can return to an older one", async () => {
    const dataDir = await newDirectory();
    const { file } = await backUp(dataDir);
    {
      using newer = new Database(join(dataDir, "relay.db"), { readwrite: true });
      newer.run("INSERT INTO schema_migration VALUES (?1, 'later', 0, NULL)", [SCHEMA_VERSION + 1]);
    }
    const restored = await restoreFrom(file, dataDir);
    expect(restored.keptAsItLay).toBe(true);
    await (await openFilled(dataDir, clock, 0)).close();
  });

  test("deletes the partial copy of a killed migration before the next migration makes one", async () => {
    const dataDir = await newDirectory();
    mkdirSync(join(dataDir, "backups"), { recursive: true });
    writeFileSync(join(dataDir, "backups", ".before-migration-20300101T120000000Z.db.0123456789ab.part"), "half of it");
    {
      using refused = new Database(join(dataDir, "relay.db"), { readwrite: true });
      refused.run("INSERT INTO schema_migration VALUES (?1, 'later', 0, NULL)", [SCHEMA_VERSION + 1]);
    }
    expect(await refusalOf(() => startRunningService({ config: { dataDir } }))).toContain("newer version");
    expect(readdirSync(join(dataDir, "backups"))).toEqual([]);
  });

  test("never applies the old log to the restored database", async () => {
    const dataDir = await newDirectory();
    const { file } = await backUp(dataDir);
    crashWithLog(dataDir);
    expect(statSync(join(dataDir, "relay.db-wal")).size).toBeGreaterThan(0);
    const restored = await restoreFrom(file, dataDir);
    expect(listFiles(dataDir).filter((name) => name.startsWith("relay.db"))).toEqual(["relay.db"]);
    expect(dumpTables(join(dataDir, "relay.db"))).toEqual(dumpTables(file));
    expect(dumpTables(restored.kept ?? "").app).toContainEqual(expect.stringContaining("only in the log"));
  });

  test("reads a backup together with the log file next to it", async () => {
    const dataDir = await newDirectory();
    const copied = await newDirectory();
    crashWithLog(copied);
    const file = join(folder, `raw-${made++}.db`);
    for (const ending of ["", "-wal"]) copyFileSync(join(copied, `relay.db${ending}`), file + ending);
    copyFileSync(join(copied, "master.key"), join(dataDir, "master.key"));
    await restoreFrom(file, dataDir);
    expect(dumpTables(join(dataDir, "relay.db")).app).toContainEqual(expect.stringContaining("only in the log"));
  });
});

describe("a migration", () => {
  const OLD_SCHEMA = 4;

  test("of a used database stores a copy first", async () => {
    const dataDir = newOldDirectory(OLD_SCHEMA);
    const before = dumpTables(join(dataDir, "relay.db"));
    await (await openSqlite(join(dataDir, "relay.db"), { clock })).close();
    const kept = listFiles(join(dataDir, "backups"));
    expect(kept).toEqual([`before-migration-to-${SCHEMA_VERSION}.db`]);
    expect(dumpTables(join(dataDir, "backups", kept[0] ?? ""))).toEqual(before);
    await (await openSqlite(join(dataDir, "relay.db"), { clock })).close();
    expect(listFiles(join(dataDir, "backups"))).toEqual(kept);
  });

  test("that was interrupted at any step and started again keeps one copy, from before the first step", async () => {
    const dataDir = newOldDirectory(OLD_SCHEMA);
    const file = join(dataDir, "relay.db");
    const before = dumpTables(file);
    const copy = join(dataDir, "backups", `before-migration-to-${SCHEMA_VERSION}.db`);
    const told: boolean[] = [];
    const onMigrate = (_: object, begun: boolean): void => void told.push(begun);
    for (const step of [OLD_SCHEMA + 1, OLD_SCHEMA + 1, OLD_SCHEMA + 4, SCHEMA_VERSION - 1]) {
      await expect(openInterrupted(file, step, onMigrate)).rejects.toThrow("interrupted");
      expect(listFiles(join(dataDir, "backups"))).toEqual([`before-migration-to-${SCHEMA_VERSION}.db`]);
    }
    await (await openSqlite(file, { clock, onMigrate })).close();
    expect(told).toEqual([false, false, false, true, true]);
    expect(listFiles(join(dataDir, "backups"))).toEqual([`before-migration-to-${SCHEMA_VERSION}.db`]);
    expect(dumpTables(copy)).toEqual(before);
  });

  test("after a return to the copy keeps what was written since", async () => {
    const dataDir = newOldDirectory(OLD_SCHEMA);
    const file = join(dataDir, "relay.db");
    await expect(openInterrupted(file, OLD_SCHEMA + 1)).rejects.toThrow("interrupted");
    {
      using older = new Database(file, { readwrite: true });
      older.run("INSERT INTO app (id, name, created_at) VALUES ('later', 'Later', 0)");
    }
    await (await openSqlite(file, { clock })).close();
    const kept = dumpTables(join(dataDir, "backups", `before-migration-to-${SCHEMA_VERSION}.db`));
    expect(kept.app).toContainEqual(expect.stringContaining("later"));
  });

  test("of a new database stores no copy", async () => {
    const dataDir = join(folder, `new-${made++}`);
    mkdirSync(dataDir);
    await (await openSqlite(join(dataDir, "relay.db"), { clock })).close();
    expect(existsSync(join(dataDir, "backups"))).toBe(false);
  });

  test("does not start if the copy cannot be stored", async () => {
    const dataDir = newOldDirectory(OLD_SCHEMA);
    writeFileSync(join(dataDir, "backups"), "a file where the folder should be");
    const before = dumpTables(join(dataDir, "relay.db"));
    const work = () => openSqlite(join(dataDir, "relay.db"), { clock });
    expect(await refusalOf(work)).toMatch(/not changed, because no copy/);
    const command = await runCommand(["apps", "list", "--data-dir", dataDir], { cwd: folder });
    expect(command).toMatchObject({ code: 1, told: expect.stringContaining("backup_refused") });
    expect(dumpTables(join(dataDir, "relay.db"))).toEqual(before);
  });

  test("is refused for a command while a server runs, and otherwise the command reports it", async () => {
    const dataDir = newOldDirectory(OLD_SCHEMA);
    const before = dumpTables(join(dataDir, "relay.db"));
    const list = () => runCommand(["apps", "list", "--data-dir", dataDir], { cwd: folder });
    const server = lockDataDirectory(dataDir, "relay serve", 0);
    const direct = await list();
    expect({ code: direct.code, said: direct.said }).toEqual({ code: 1, said: "" });
    expect(direct.told).toMatch(/in use by relay serve, process .* An older server must first be started with this version/);
    expect(dumpTables(join(dataDir, "relay.db"))).toEqual(before);
    expect(existsSync(join(dataDir, "backups"))).toBe(false);
    server.release();
    const continues = await list();
    expect({ code: continues.code, told: continues.told }).toEqual({
      code: 0,
      told: expect.stringContaining("after a copy into backups/"),
    });
    expect(listFiles(join(dataDir, "backups"))).toHaveLength(1);
    lockDataDirectory(dataDir, "relay serve", 0).release();
    expect(await list()).toMatchObject({ code: 0, told: "" });
  });

  test("at a server's start is logged before it begins", async () => {
    const dataDir = newOldDirectory(OLD_SCHEMA);
    await using running = await startRunningService({ config: { dataDir } });
    const [first = "{}"] = running.logged;
    expect(JSON.parse(first)).toMatchObject({
      message: "migrating the database to this version's schema, after a copy to backups/",
      from: OLD_SCHEMA,
      to: SCHEMA_VERSION,
    });
  });
});

/** Starts an upgrade that stops just before a step. */
function openInterrupted(file: string, step: number, onMigrate: SqliteOptions["onMigrate"] = () => undefined): Promise<Store> {
  const last = SQLITE_MIGRATIONS.find(({ number }) => number === step);
  const onMigrationProgress = ({ name, of }: { name: string; of: number | null }): void => {
    if (name === last?.name && of === null) throw new Error("interrupted");
  };
  return openSqlite(file, { clock, onMigrate, onMigrationProgress });
}

function readSeqs(file: string): number[] {
  using database = new Database(file, { readwrite: true });
  return database
    .query<{ seq: number }, []>("SELECT seq FROM event ORDER BY seq")
    .all()
    .map(({ seq }) => seq);
}

/** Overwrites enough pages in the middle of the file to hit a table, because a copy reads no index. */
function damage(file: string): void {
  const bytes = readFileSync(file);
  const from = Math.floor(bytes.length / 8_192) * 4_096;
  bytes.fill(0xa5, from, from + 24 * 4_096);
  writeFileSync(file, bytes);
}

/** Leaves the directory as a killed process does, with a row that is only in the log. */
function crashWithLog(dataDir: string): void {
  const script = `
    const { Database } = require("bun:sqlite");
    const database = new Database(process.argv[1], { readwrite: true });
    database.run("PRAGMA journal_mode = WAL");
    database.run("INSERT INTO app (id, name, created_at) VALUES ('late', 'only in the log', 0)");
    process.kill(process.pid, "SIGKILL");`;
  Bun.spawnSync([process.execPath, "-e", script, join(dataDir, "relay.db")]);
}

/** Creates a used directory of an earlier schema. */
function newOldDirectory(schema: number): string {
  const dataDir = join(folder, `old-${made++}`);
  mkdirSync(dataDir);
  using database = new Database(join(dataDir, "relay.db"), { create: true, readwrite: true });
  database.run("PRAGMA journal_mode = WAL");
  database.run("CREATE TABLE schema_migration (number INTEGER PRIMARY KEY, name TEXT NOT NULL, applied_at INTEGER NOT NULL)");
  for (const { number, name, sql } of SQLITE_MIGRATIONS.slice(0, schema)) {
    database.run(sql);
    database.run("INSERT INTO schema_migration VALUES (?1, ?2, 0)", [number, name]);
  }
  database.run("INSERT INTO app (id, name, created_at) VALUES ('shop', 'Shop', 0)");
  return dataDir;
}
