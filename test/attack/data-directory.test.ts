/** The data directory, or a file of it, is taken away from a running server. No acknowledged event is lost, and nothing happens twice. */
import { Database } from "bun:sqlite";
import { afterEach, beforeEach, describe, expect, spyOn, test } from "bun:test";
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Clock, systemClock } from "../../src/base/clock.ts";
import { examine } from "../../src/operator/doctor/examine.ts";
import { DirectoryLease } from "../../src/store/lease/directory-lease.ts";
import { DataDirectoryTaken, lockDataDirectory } from "../../src/store/sqlite/directory-lock.ts";
import { openSqlite } from "../../src/store/sqlite/sqlite.ts";
import { startCli } from "../kit/cli-process.ts";
import { until } from "../kit/event-flow.ts";
import { requireExecutable } from "../kit/executable-build.ts";
import { FakeCaller } from "../kit/fake-caller.ts";
import { makeOrders, receiverDefinition, saveRelay, signedCall } from "../kit/relay-definition.ts";
import { type RunningService, startRunningService } from "../kit/running-service.ts";
import { VirtualClock } from "../kit/virtual-clock.ts";

/** Runs in a separate process, because closing the file would release all locks that this process has on it. */
const SPOIL_AND_TAKE = `
  import { writeFileSync } from "node:fs";
  import { lockDataDirectory } from ${JSON.stringify(join(import.meta.dir, "../../src/store/sqlite/directory-lock.ts"))};
  writeFileSync(process.argv[1] + "/runner.lock", Buffer.alloc(5_000, 7));
  try { lockDataDirectory(process.argv[1], "another", 0); console.log("taken"); } catch (error) { console.log(error.message); }
`;

let folder: string;
let dataDir: string;
let running: RunningService | null;
let caller: FakeCaller;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "relay-taken-"));
  dataDir = join(folder, "data");
  running = null;
  caller = new FakeCaller();
});

afterEach(async () => {
  await running?.service[Symbol.asyncDispose]();
  rmSync(folder, { recursive: true, force: true });
});

async function start(): Promise<RunningService> {
  mkdirSync(dataDir, { recursive: true });
  running = await startRunningService({ config: { dataDir }, ports: { caller } });
  await makeOrders(running);
  await saveRelay(running, receiverDefinition({}));
  return running;
}

const send = (service: RunningService, id: string) => service.hook("orders", signedCall({ id, amount: 1 }));
const ready = async ({ service }: RunningService) => (await fetch(`${service.url}/readyz`)).status;
const told = ({ logged }: RunningService, what: string) => logged.filter((line) => line.includes(what)).length;

const listNames = (directory: string) => (existsSync(directory) ? readdirSync(directory).sort() : null);

/** Lists names and sizes of files. */
const listFiles = (directory: string) => listNames(directory)?.map((name) => `${name} ${statSync(join(directory, name)).size}`);

describe("under a running server", () => {
  for (const { rule, take } of [
    {
      rule: "a data directory that is deleted",
      take: () => rmSync(dataDir, { recursive: true }),
    },
    {
      rule: "a data directory that is replaced by an empty one",
      take: () => {
        rmSync(dataDir, { recursive: true });
        mkdirSync(dataDir);
      },
    },
    { rule: "a database that is deleted", take: () => rmSync(join(dataDir, "relay.db")) },
    { rule: "a log that is deleted", take: () => rmSync(join(dataDir, "relay.db-wal")) },
    { rule: "a log's index that is deleted", take: () => rmSync(join(dataDir, "relay.db-shm")) },
    {
      rule: "a database that is replaced by an older copy",
      take: () => {
        const copy = join(folder, "copy.db");
        using database = new Database(join(dataDir, "relay.db"));
        database.query("VACUUM INTO ?1").run(copy);
        renameSync(copy, join(dataDir, "relay.db"));
      },
    },
  ]) {
    test(`${rule} makes receivers answer 503 at once and readiness fail, with one line in the log and no new file`, async () => {
      const service = await start();
      expect((await send(service, "before")).status).toBe(200);
      take();
      const left = listNames(dataDir);
      for (let number = 0; number < 20; number++) {
        const { status, body } = await send(service, `after-${number}`);
        expect([status, body.code]).toEqual([503, "not_recorded"]);
      }
      expect(await ready(service)).toBe(503);
      await service.clock.advance(5_000);
      expect(told(service, "the database is not where it was opened")).toBe(1);
      expect((await fetch(`${service.service.url}/healthz`)).status).toBe(200);
      expect(listNames(dataDir)).toEqual(left);
      await service.service[Symbol.asyncDispose]();
      running = null;
      expect(listNames(dataDir)).toEqual(left);
    });
  }

  test("a missing directory is noticed within a second without any request, and the server continues when it is back", async () => {
    const service = await start();
    renameSync(dataDir, `${dataDir}-moved`);
    await service.clock.advance(1_000);
    expect(told(service, "the database is not where it was opened")).toBe(1);
    expect(await ready(service)).toBe(503);
    renameSync(`${dataDir}-moved`, dataDir);
    await service.clock.advance(2_000);
    expect(told(service, "the database file exists again")).toBe(1);
    expect((await send(service, "a")).status).toBe(200);
    await service.drain();
    expect(await ready(service)).toBe(200);
    expect(await service.rows("SELECT state FROM event")).toEqual([{ state: "done" }]);
  });

  test("another server's directory in its place loses nothing, even when this server stops", async () => {
    const service = await start();
    renameSync(dataDir, `${dataDir}-moved`);
    mkdirSync(dataDir);
    const other = await openSqlite(join(dataDir, "relay.db"), { clock: systemClock });
    await other.write("app", (tx) => tx.run("INSERT INTO app (id, name, created_at) VALUES ('o', 'o', 0)"));
    expect((await send(service, "a")).status).toBe(503);
    const files = listFiles(dataDir);
    await service.service[Symbol.asyncDispose]();
    running = null;
    expect(listFiles(dataDir)).toEqual(files);
    using reader = new Database(join(dataDir, "relay.db"), { readonly: true });
    expect(reader.query("SELECT id FROM app").all()).toEqual([{ id: "o" }]);
    await other.close();
  });
});

describe("a start", () => {
  for (const name of ["master.key", "relay.db-wal"]) {
    test(`next to ${name} without its database is refused with one message and creates nothing`, async () => {
      mkdirSync(dataDir);
      writeFileSync(join(dataDir, name), `${"ab".repeat(32)}\n`);
      await expect(startRunningService({ config: { dataDir } })).rejects.toThrow(
        `${join(dataDir, name)} is here without its relay.db: put the database back`,
      );
      expect(readdirSync(dataDir).filter((file) => !file.startsWith("runner."))).toEqual([name]);
      rmSync(join(dataDir, name));
      await start();
    });
  }
});

describe("a start with a database that contains nothing", () => {
  /** Leaves the directory of a killed server, with its rows only in the log, and damages the database by `lose`. */
  async function loseRows(lose: (file: string) => void): Promise<string> {
    const service = await start();
    const killed = join(folder, "killed");
    cpSync(dataDir, killed, { recursive: true });
    await service.service[Symbol.asyncDispose]();
    running = null;
    rmSync(dataDir, { recursive: true });
    renameSync(killed, dataDir);
    const file = join(dataDir, "relay.db");
    lose(file);
    return file;
  }

  for (const { rule, lose, left } of [
    { rule: "emptied, its log left", lose: (file: string) => truncateSync(file), left: "relay.db-wal" },
    {
      rule: "emptied, its log gone",
      lose: (file: string) => {
        truncateSync(file);
        rmSync(`${file}-wal`);
      },
      left: "master.key",
    },
    {
      rule: "copied without its log, which held every row",
      lose: (file: string) => rmSync(`${file}-wal`),
      left: "master.key",
    },
    {
      rule: "its log's beginning overwritten",
      lose: (file: string) => writeFileSync(`${file}-wal`, Buffer.alloc(5_000, 7)),
      left: "master.key",
    },
  ]) {
    test(`${rule}: the start and doctor refuse it with one message, and nothing is deleted`, async () => {
      const file = await loseRows(lose);
      const before = listFiles(dataDir)?.filter((name) => !/^runner|-shm/.test(name));
      const said = `${file} is empty, and ${join(dataDir, left)} next to it does not belong to it: put the database back`;
      await expect(startRunningService({ config: { dataDir } })).rejects.toThrow(said);
      expect(listFiles(dataDir)?.filter((name) => !/^runner|-shm/.test(name))).toEqual(before);
      const found = await examine({
        dataDir,
        database: null,
        masterKey: null,
        baseUrl: null,
        backupEveryMs: null,
        quick: false,
        allowPrivate: [],
        readMetrics: async () => null,
        builtAt: null,
        clock: systemClock,
      });
      expect(found.map(({ state, message }) => [state, message.slice(0, said.length)])).toEqual([["fail", said]]);
    });
  }

  test("after a first start that was killed before it created the schema succeeds", async () => {
    mkdirSync(dataDir);
    writeFileSync(join(dataDir, "relay.db"), "");
    const service = await start();
    expect((await send(service, "a")).status).toBe(200);
  });
});

test("a runner.lock full of noise can be taken, and is refused while a process holds it", async () => {
  mkdirSync(dataDir);
  const file = join(dataDir, "runner.lock");
  writeFileSync(file, Buffer.alloc(5_000, 7));
  const lock = lockDataDirectory(dataDir, "relay serve", 0);
  expect(statSync(file).size).toBe(0);
  expect(lock.stands()).toBe(true);
  lock.release();
  await start();
  const other = Bun.spawnSync([process.execPath, "-e", SPOIL_AND_TAKE, dataDir]);
  expect(statSync(file).size).toBe(5_000);
  expect(other.stdout.toString()).toContain("is in use by relay serve");
});

describe("runner.lock removed from a running server", () => {
  test("refuses a second start, names the first server, and is created again", async () => {
    const service = await start();
    rmSync(join(dataDir, "runner.lock"));
    const second = startRunningService({ config: { dataDir, clock: systemClock } });
    const refused = second.then(
      () => "started",
      (error: unknown) => error,
    );
    // The first server checks its lock by the clock, and answers a process that asks.
    while (Bun.peek.status(refused) === "pending") {
      await service.clock.advance(1_000);
      await Bun.sleep(50);
    }
    const error = await refused;
    expect(error).toBeInstanceOf(DataDirectoryTaken);
    expect((error as Error).message).toContain(`relay serve, process ${process.pid}`);
    await service.clock.advance(2_000);
    await until("the lock stands again", () => existsSync(join(dataDir, "runner.lock")));
    expect(() => lockDataDirectory(dataDir, "relay serve", 0)).toThrow(DataDirectoryTaken);
    expect((await send(service, "a")).status).toBe(200);
    await service.drain();
    expect(await service.rows("SELECT state FROM event")).toEqual([{ state: "done" }]);
  });

  test("does not let a frozen server that lost its lease run anything, but it still records", async () => {
    const service = await start();
    await saveRelay(service, { ...receiverDefinition({}), name: "second" } as never);
    using other = new Database(join(dataDir, "relay.db"));
    other.run("UPDATE runner_lease SET epoch = epoch + 1, holder = 'relay serve, process 7'");
    expect((await send(service, "a")).status).toBe(200);
    await until("it says so", () => told(service, "this server has stopped running events") === 1);
    await service.clock.advance(60_000);
    expect(await service.rows("SELECT state, runs FROM event")).toEqual([{ state: "queued", runs: 0 }]);
    expect(await service.rows("SELECT id FROM record")).toEqual([]);
    const answer = await fetch(`${service.service.url}/readyz`);
    expect([answer.status, ((await answer.json()) as { problem: string }).problem]).toEqual([
      503,
      expect.stringContaining("Another server took over this data directory"),
    ]);
    expect(told(service, "this server has stopped running events")).toBe(1);
  });

  test("is not affected by a clock that is set years ahead or back", async () => {
    const service = await start();
    for (const years of [1, -2]) {
      service.clock.jump(years * 365 * 86_400_000);
      await service.clock.advance(2_000);
      expect((await send(service, `year ${years}`)).status).toBe(200);
      await service.drain();
    }
    expect(await service.rows("SELECT DISTINCT state FROM event")).toEqual([{ state: "done" }]);
    expect(await ready(service)).toBe(200);
  });
});

test("a lock file that is removed while it is being taken is taken again, so the file of a held lock exists", () => {
  const { exec } = Database.prototype;
  const file = join(folder, "runner.lock");
  let turns = 0;
  const spy = spyOn(Database.prototype, "exec").mockImplementation(function (this: Database, sql: string) {
    const answer = exec.call(this, sql);
    if (sql === "BEGIN EXCLUSIVE" && turns++ < 2) rmSync(file);
    return answer;
  });
  try {
    const lock = lockDataDirectory(folder, "relay serve", 0);
    expect({ turns, stands: lock.stands(), there: existsSync(file) }).toEqual({
      turns: 3,
      stands: true,
      there: true,
    });
    lock.release();
  } finally {
    spy.mockRestore();
  }
});

describe("runner.lock removed from a server in a separate process", () => {
  const PID_KEPT = 'echo $$ > "$0" && exec "$@"';
  const serve = (name: string) =>
    startCli(["serve", "--port", "0", "--data-dir", dataDir], {
      cwd: folder,
      command: ["sh", "-c", PID_KEPT, join(folder, name), requireExecutable("relay")],
    });
  const pidOf = (name: string) => Number(readFileSync(join(folder, name), "utf8"));

  test("ends a second server with code 1, which names the first, and the first continues", async () => {
    await using first = serve("first");
    await first.line("service started");
    rmSync(join(dataDir, "runner.lock"));
    await using second = serve("second");
    expect(await second.line("is in use by")).toContain(`relay serve, process ${pidOf("first")}, since`);
    expect(await second.exited).toBe(1);
    await first.line("runner.lock was removed while the server runs, and was made again");
  });

  test("lets a second server start while the first is frozen, and the first runs nothing more", async () => {
    await using first = serve("first");
    await first.line("service started");
    process.kill(pidOf("first"), "SIGSTOP");
    rmSync(join(dataDir, "runner.lock"));
    await using second = serve("second");
    await second.line("service started");
    process.kill(pidOf("first"), "SIGCONT");
    expect(await first.line("this server has stopped running events")).toContain(`process ${pidOf("second")}`);
  });

  test("does not delay the next start after a kill", async () => {
    await using first = serve("first");
    await first.line("service started");
    rmSync(join(dataDir, "runner.lock"));
    first.kill("SIGKILL");
    await first.exited;
    await using second = serve("second");
    await second.line("service started");
    using database = new Database(join(dataDir, "relay.db"), { readonly: true });
    expect(database.query("SELECT epoch, asked FROM runner_lease").get()).toEqual({ epoch: 2, asked: 0 });
  });
});

describe("the lease of a killed server is taken", () => {
  const openLease = async (change: string | null, clock: Clock = systemClock) => {
    const lock = lockDataDirectory(folder, "relay serve", 0);
    const file = join(folder, "relay.db");
    const store = await openSqlite(file, { clock: systemClock });
    if (change !== null) await store.write("app", (tx) => tx.run(`UPDATE runner_lease SET ${change}`));
    try {
      await DirectoryLease.take({ store, file, lock, clock });
      return await store.read((tx) => tx.get<{ epoch: number }>("SELECT epoch FROM runner_lease"));
    } finally {
      lock.release();
      await store.close();
    }
  };

  test("but not the lease of a server that is asked while it starts, because it answers once it runs", async () => {
    const file = join(folder, "relay.db");
    const lock = lockDataDirectory(folder, "relay serve", 0);
    const store = await openSqlite(file, { clock: systemClock });
    const lease = await DirectoryLease.take({ store, file, lock, clock: systemClock });
    rmSync(join(folder, "runner.lock"));
    const asking = openLease(null).then(
      () => "taken",
      (error: unknown) => error,
    );
    const asked = () => store.read((tx) => tx.get<{ asked: number }>("SELECT asked FROM runner_lease"));
    while ((await asked())?.asked !== 1) await Bun.sleep(5);
    lease.watch({ begin: async () => undefined, lost: () => undefined, renewed: () => undefined });
    expect(await asking).toBeInstanceOf(DataDirectoryTaken);
    expect(lease.lostTo).toBeNull();
    await lease.release();
    lock.release();
    await store.close();
  });

  for (const { rule, change, asks } of [
    { rule: "at once where its lock file is still there", change: null, asks: false },
    {
      rule: "at once where its process is gone",
      change: `lock_file = 'removed', pid = ${Bun.spawnSync([process.execPath, "--version"]).pid}`,
      asks: false,
    },
    {
      rule: "at once where the database is a copy",
      change: "lock_file = 'removed', database_file = 'other'",
      asks: false,
    },
    {
      rule: "after three seconds where nothing tells but that it does not answer",
      change: "lock_file = 'removed', host = 'elsewhere'",
      asks: true,
    },
  ]) {
    test(rule, async () => {
      expect(await openLease(null)).toMatchObject({ epoch: 1 });
      const clock = new VirtualClock(0);
      const taking = openLease(change, clock);
      if (asks) {
        await until("it asks", () => clock.pending.length > 0);
        await clock.advance(2_900);
        expect(Bun.peek.status(taking)).toBe("pending");
        await clock.advance(200);
      }
      // The clock does not move, so the start waits for nothing more.
      expect(await taking).toEqual({ epoch: 2 });
    });
  }
});
