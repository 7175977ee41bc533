/** A disk without space, a lock that another process holds, a start that is killed. The service reports it, continues, and recovers without help. */

import { Database } from "bun:sqlite";
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DEFAULT_LIMITS } from "../../src/base/limit.ts";
import { startService } from "../../src/service.ts";
import { runCommand } from "../kit/cli-io.ts";
import { LIMITED_DISK_SPACE, NO_DISK_SPACE, setDiskSpace } from "../kit/disk-space.ts";
import { until } from "../kit/event-flow.ts";
import { requireExecutable } from "../kit/executable-build.ts";
import { holdRealClock } from "../kit/moved-clock.ts";
import { makeOrders, receiverDefinition, saveRelay, signedCall } from "../kit/relay-definition.ts";
import { startRunningService } from "../kit/running-service.ts";

const limits = { ...DEFAULT_LIMITS, verifiedEventsPerMinute: 1_000_000 };

let folder: string;
let dataDir: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "relay-full-"));
  dataDir = join(folder, "data");
  mkdirSync(dataDir);
});

afterEach(() => rmSync(folder, { recursive: true, force: true }));

const send = (url: string, id: string) => {
  const { headers, body } = signedCall({ id, amount: 1 });
  return fetch(`${url}/hooks/app_test/orders`, { method: "POST", headers, body });
};

/** Fills a data directory with a server's data. */
async function fill(): Promise<void> {
  const running = await startRunningService({ config: { dataDir, limits } });
  await makeOrders(running);
  await saveRelay(running, receiverDefinition({}));
  expect((await send(running.service.url, "before")).status).toBe(200);
  await running.drain();
  await running.service[Symbol.asyncDispose]();
}

/** Starts the command line's server in a separate process. */
function serve(wrap: readonly string[] = []) {
  const child = Bun.spawn([...wrap, requireExecutable("relay"), "serve", "--port", "0", "--data-dir", dataDir], {
    cwd: folder,
    stdout: "pipe",
    stderr: "pipe",
    env: { PATH: process.env["PATH"] ?? "", HOME: folder },
  });
  let told = "";
  const read = async (): Promise<void> => {
    for await (const bytes of child.stderr) told += new TextDecoder().decode(bytes);
  };
  const reading = read();
  return {
    child,
    /** Resolves with the exit code and everything that it wrote to standard error. */
    ended: async () => {
      const code = await child.exited;
      await reading;
      return { code, told };
    },
    told: () => told,
  };
}

describe("a start on a full disk", () => {
  test("answers on its port with 503 for receivers, reports it once, and continues when there is space", async () => {
    await fill();
    const server = serve(NO_DISK_SPACE);
    const told = (what: string) => server.told().split(what).length - 1;
    await until("it waits", () => told("the start waits for the disk") === 1);
    const url = `http://127.0.0.1:${/ port=(\d+)/.exec(server.told())?.[1]}`;
    await Bun.sleep(2_500);
    const answers = [await send(url, "a"), await fetch(`${url}/readyz`), await fetch(`${url}/healthz`)];
    expect(answers.map(({ status }) => status)).toEqual([503, 503, 200]);
    expect(await answers[0]?.json()).toMatchObject({ code: "not_recorded" });
    expect(told("\n")).toBe(1);
    setDiskSpace(server.child.pid, "any");
    await until("it runs", () => told(`service started url=${url}`) === 1);
    expect((await send(url, "a")).status).toBe(200);
    expect((await fetch(`${url}/readyz`)).status).toBe(200);
    server.child.kill("SIGTERM");
    expect((await server.ended()).code).toBe(0);
    using database = new Database(join(dataDir, "relay.db"));
    expect(database.query("SELECT count(*) AS count FROM event").get()).toEqual({ count: 2 });
  });

  test("exits at once with code 0 if it is asked to stop while it waits", async () => {
    await fill();
    using other = new Database(join(dataDir, "relay.db"));
    other.run("BEGIN IMMEDIATE");
    const server = serve();
    await until("it waits", () => server.told().includes("the start waits for the disk"));
    server.child.kill("SIGTERM");
    expect((await server.ended()).code).toBe(0);
  });
});

describe("while the service runs", () => {
  test("a full disk writes two lines a minute to the log for any number of requests", async () => {
    await using running = await startRunningService({ config: { dataDir, limits } });
    await makeOrders(running);
    await saveRelay(running, receiverDefinition({}));
    const pages = (await running.rows<{ page_count: number }>("PRAGMA page_count"))[0]?.page_count ?? 0;
    const leave = (room: number) => running.service.store.write("app", (tx) => tx.get(`PRAGMA max_page_count = ${room}`));
    await leave(pages);
    const big = (id: string) => running.hook("orders", signedCall({ id, pad: "x".repeat(30_000) }));
    const statuses: number[] = [];
    for (let n = 0; n < 100; n++) statuses.push((await big(`e${n}`)).status);
    expect(statuses.filter((status) => status === 503).length).toBeGreaterThan(90);
    const lines = () => running.logged.filter((line) => line.includes("event not recorded"));
    expect(lines()).toHaveLength(1);
    await running.clock.advance(60_000);
    expect(lines()).toHaveLength(2);
    expect(lines()[1]).toMatch(/event not recorded: \d+ more in the last minute/);
    await leave(1_000_000);
  });

  test("a disk that becomes full makes it not ready without any request, and SIGTERM still ends it with code 0", async () => {
    await fill();
    const server = serve(LIMITED_DISK_SPACE);
    await until("it runs", () => server.told().includes("service started"));
    const url = / url=(\S+)/.exec(server.told())?.[1];
    const ready = async () => (await fetch(`${url}/readyz`)).status;
    expect(await ready()).toBe(200);
    setDiskSpace(server.child.pid, "none");
    await until("it is not ready", async () => (await ready()) === 503);
    setDiskSpace(server.child.pid, "any");
    await until("it is ready again", async () => (await ready()) === 200);
    setDiskSpace(server.child.pid, "none");
    server.child.kill("SIGTERM");
    expect((await server.ended()).code).toBe(0);
    expect(server.told()).not.toMatch(/An error happened|An internal error/);
  });

  test("a disk with space for a probe and not for an event makes it not ready until a group succeeds again", async () => {
    await fill();
    const server = serve(LIMITED_DISK_SPACE);
    await until("it runs", () => server.told().includes("service started"));
    const url = / url=(\S+)/.exec(server.told())?.[1] ?? "";
    const ready = async () => (await fetch(`${url}/readyz`)).status;
    const big = async (id: string) => {
      const { headers, body } = signedCall({ id, pad: "x".repeat(30_000) });
      return (await fetch(`${url}/hooks/app_test/orders`, { method: "POST", headers, body })).status;
    };
    expect(await ready()).toBe(200);
    setDiskSpace(server.child.pid, statSync(join(dataDir, "relay.db-wal")).size + 12_000);
    const seen: { sent: number; ready: number }[] = [];
    for (let round = 0; seen.filter(({ sent }) => sent === 503).length < 5; round++) {
      const sent = await big(`big-${round}`);
      // The service reuses a readiness result for a second.
      await Bun.sleep(1_100);
      seen.push({ sent, ready: await ready() });
    }
    expect(seen.filter(({ sent, ready }) => sent === 503 && ready !== 503)).toEqual([]);
    setDiskSpace(server.child.pid, "any");
    await until("it is ready again", async () => (await ready()) === 200);
    expect(await big("after")).toBe(200);
    expect(server.told().split("the disk is full").length - 1).toBeGreaterThan(0);
    server.child.kill("SIGTERM");
    expect((await server.ended()).code).toBe(0);
    expect(readdirSync(dataDir).filter((name) => name.endsWith(".part"))).toEqual([]);
  });

  test("a readiness check writes to the database and syncs", async () => {
    await using running = await startRunningService({ config: { dataDir } });
    const probes = () => running.rows<{ probes: number }>("SELECT probes FROM runner_lease");
    const [before] = await probes();
    for (let n = 0; n < 3; n++) {
      expect((await fetch(`${running.service.url}/readyz`)).status).toBe(200);
      await running.clock.advance(1_000);
    }
    expect((await probes())[0]?.probes).toBe((before?.probes ?? 0) + 3);
  });

  test("another process's write lock blocks no read, and a write waits for it and succeeds", async () => {
    await using running = await startRunningService({ config: { dataDir } });
    await makeOrders(running);
    await saveRelay(running, receiverDefinition({}));
    // A write fails after a second, so the clock must not move.
    using _ = holdRealClock();
    using other = new Database(join(dataDir, "relay.db"));
    other.run("BEGIN IMMEDIATE");
    const waiting = Array.from({ length: 20 }, (_, n) => send(running.service.url, `e${n}`));
    for (let n = 0; n < 20; n++) {
      const answers = await Promise.all([fetch(`${running.service.url}/healthz`), running.api("GET", "/events")]);
      expect(answers.map(({ status }) => status)).toEqual([200, 200]);
    }
    expect(waiting.map((one) => Bun.peek.status(one))).toEqual(Array(20).fill("pending"));
    other.run("ROLLBACK");
    expect((await Promise.all(waiting)).map(({ status }) => status)).toEqual(Array(20).fill(200));
  });
});

describe("another process's write lock right after the port has opened", () => {
  for (const { rule, owner, said } of [
    { rule: "costs the set-up link alone, and says what to do", owner: false, said: "there is no link, because" },
    { rule: "costs nothing where there is an owner", owner: true, said: null },
  ]) {
    test(rule, async () => {
      const place = ["--data-dir", dataDir];
      if (owner) {
        const made = ["admin", "create", "--email", "owner@example.com", "--base-url", "https://r.example"];
        expect(await runCommand([...made, ...place], { cwd: folder })).toMatchObject({ code: 0 });
      }
      let other: Database | null = null;
      const ran = await runCommand(["serve", "--port", "0", ...place], {
        cwd: folder,
        async startService(config) {
          const service = await startService(config);
          other = new Database(join(dataDir, "relay.db"));
          other.run("BEGIN IMMEDIATE");
          return service;
        },
      });
      (other as Database | null)?.close();
      expect(ran.code).toBe(0);
      expect(ran.said.split("\n").filter((line) => line.startsWith("Set-up"))).toEqual(said === null ? [] : [expect.stringContaining(said)]);
      expect(ran.told).toContain("service started");
    });
  }
});

describe("a first start that was killed", () => {
  for (const { rule, leave } of [
    { rule: "before it had made anything", leave: () => undefined },
    {
      rule: "when the database was an empty file",
      leave: () => writeFileSync(join(dataDir, "relay.db"), ""),
    },
    {
      rule: "when the database had its modes and no table",
      leave: () => {
        using database = new Database(join(dataDir, "relay.db"));
        for (const pragma of ["auto_vacuum = INCREMENTAL", "journal_mode = WAL"]) database.run(`PRAGMA ${pragma}`);
        database.run("CREATE TABLE schema_migration (number INTEGER PRIMARY KEY, name TEXT NOT NULL, applied_at INTEGER NOT NULL)");
      },
    },
    {
      rule: "while it made the master key",
      leave: () => {
        writeFileSync(join(dataDir, "relay.db"), "");
        writeFileSync(join(dataDir, ".master.key.0123456789ab.part"), "00");
      },
    },
  ]) {
    test(`${rule} leaves nothing that blocks the next start, and no temporary file`, async () => {
      leave();
      await using running = await startRunningService({ config: { dataDir } });
      await makeOrders(running);
      await saveRelay(running, receiverDefinition({}));
      expect((await send(running.service.url, "a")).status).toBe(200);
      expect(await running.rows("PRAGMA auto_vacuum")).toEqual([{ auto_vacuum: 2 }]);
      const names = readdirSync(dataDir).filter((name) => !/^(relay\.db(-wal|-shm)?|master\.key|runner\.(lock|txt))$/.test(name));
      expect(names).toEqual([]);
    });
  }

  test("at any moment lets the next one start", async () => {
    for (const afterMs of [120, 180, 240, 300, 380, 480]) {
      const server = serve();
      await Bun.sleep(afterMs);
      server.child.kill("SIGKILL");
      await server.ended();
    }
    const server = serve();
    await until("it runs", () => server.told().includes("service started"));
    server.child.kill("SIGTERM");
    expect((await server.ended()).code).toBe(0);
    expect(readdirSync(dataDir).sort()).toEqual(["master.key", "relay.db", "runner.lock", "runner.txt"]);
  });
});

describe("the master key of a database that was used", () => {
  for (const { rule, change, sentence } of [
    {
      rule: "missing",
      change: (file: string) => rmSync(file),
      sentence: "is missing, and it is needed to open the secrets of this database",
    },
    {
      rule: "another one",
      change: (file: string) => writeFileSync(file, `${"ab".repeat(32)}\n`),
      sentence: "is not the master key of this database",
    },
    {
      rule: "a folder, as a container's mount makes one,",
      change: (file: string) => {
        rmSync(file);
        mkdirSync(file);
      },
      sentence: "cannot be read (EISDIR): it must be the key file of this data",
    },
  ]) {
    test(`${rule} is refused with one clear message, and nothing is replaced`, async () => {
      // The only sealed value in this database is the proof of its key.
      const running = await startRunningService({ config: { dataDir } });
      await running.service[Symbol.asyncDispose]();
      const file = join(dataDir, "master.key");
      const key = readFileSync(file, "utf8");
      change(file);
      const isFile = () => statSync(file, { throwIfNoEntry: false })?.isFile() === true;
      const left = isFile() ? readFileSync(file, "utf8") : null;
      const { code, told } = await serve().ended();
      expect(code).toBe(1);
      expect(told.split("\n")[0]).toContain(`${file} ${sentence}`);
      expect(told).not.toMatch(/An error happened|An internal error/);
      expect(isFile() ? readFileSync(file, "utf8") : null).toBe(left);
      rmSync(file, { recursive: true, force: true });
      writeFileSync(file, key);
      const again = serve();
      await until("it runs with its own key", () => again.told().includes("service started"));
      again.child.kill("SIGTERM");
      expect((await again.ended()).code).toBe(0);
    });
  }
});
