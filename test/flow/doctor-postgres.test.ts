/** Tests `relay doctor` and the messages about SQLite's copies when the rows are in PostgreSQL. */
import { afterAll, expect, test } from "bun:test";
import { rmSync } from "node:fs";
import { type AddressInfo, connect, createServer } from "node:net";
import { SQL } from "bun";
import { systemClock } from "../../src/base/clock.ts";
import { Input } from "../../src/interfaces/cli/command.ts";
import type { Io } from "../../src/interfaces/cli/io.ts";
import { readServiceConfig, SERVER_OPTIONS } from "../../src/interfaces/cli/service-option.ts";
import { openPostgres } from "../../src/store/postgres/postgres.ts";
import { runCommand } from "../kit/cli-io.ts";
import { makeFolder } from "../kit/data-directory.ts";
import { freshDatabase } from "../kit/postgres.ts";

const folder = makeFolder();
afterAll(() => rmSync(folder, { recursive: true }));

test("reports the state of a database and its problems", async () => {
  await using database = await freshDatabase();
  const look = async (url = database.url) => {
    const { code, said } = await runCommand(["doctor", "--json"], { cwd: folder, env: { RELAY_DATABASE: url }, clock: systemClock });
    const { items } = JSON.parse(said) as { items: { check: string; state: string; message: string }[] };
    return { code, items, state: Object.fromEntries(items.map(({ check, state }) => [check, state])) };
  };
  const sound = await look();
  // The tests' own server does not survive a power cut.
  expect({ ...sound.state, durability: "-" }).toMatchObject({
    connection: "ok",
    pooler: "ok",
    version: "ok",
    encoding: "ok",
    privileges: "ok",
    "clock offset": "ok",
    "time zone": "ok",
    limits: "ok",
    "notification queue": "ok",
    schema: "ok",
    collation: "ok",
    nodes: "ok",
    writers: "ok",
    queue: "ok",
    backups: "ok",
    // The database belongs to a server although it has no app yet.
    "base URL": "warn",
  });
  expect(Object.keys(sound.state)).not.toContain("disk space");
  const told = (check: string) => sound.items.find((item) => item.check === check)?.message;
  expect(told("distance")).toMatch(/^A round trip to the server takes \d+\.\d ms\. An event by itself waits for one to three\.$/);
  expect(told("version")).toMatch(/^PostgreSQL \d+\.\d+.*\. Relay is tested on 15 to 18\.$/);
  expect(told("writers")).toBe("0 environments, with one writer each. More nodes record no more events; a node writes for up to 4 of them.");
  await using sql = new SQL({ url: database.url, max: 1 });
  await sql.unsafe('ALTER TABLE app ALTER COLUMN name TYPE text COLLATE "default"');
  expect(await look()).toMatchObject({ code: 1, state: { collation: "fail" } });
  const away = await look("postgres://relay:hunter2@127.0.0.1:1/none");
  expect(away).toMatchObject({ code: 1, state: { connection: "fail" } });
  expect(JSON.stringify(away)).not.toContain("hunter2");
});

test("a user with a tiny limit on temporary files still gets every check, and migrates", async () => {
  await using database = await freshDatabase({ empty: true });
  await using sql = new SQL({ url: database.url, max: 1 });
  const name = new URL(database.url).pathname.slice(1);
  for (const setting of ["temp_file_limit", "work_mem"]) await sql.unsafe(`ALTER DATABASE ${name} SET ${setting} = '64kB'`);
  // The second start compares the tables.
  for (const _ of [1, 2]) await (await openPostgres(database.place, { clock: systemClock })).close();
  const { said } = await runCommand(["doctor", "--json"], { cwd: folder, env: { RELAY_DATABASE: database.url }, clock: systemClock });
  const { items } = JSON.parse(said) as { items: { check: string; state: string; message: string }[] };
  expect(items.filter(({ check }) => check === "database")).toEqual([]);
  expect(items.map(({ check }) => check)).toEqual(expect.arrayContaining(["version", "connections", "schema", "collation", "nodes", "queue"]));
});

test("differences between nodes are reported, without stopped nodes and without values that an earlier version does not store", async () => {
  await using database = await freshDatabase();
  await using sql = new SQL({ url: database.url, max: 1 });
  let started = 0;
  const add = (host: string, baseUrl: string | null, aheadMs: number | null, { version = "1.0.0", agoMs = 0 } = {}) =>
    sql.unsafe(
      `INSERT INTO node (id, host, pid, version, schema_version, started_at, seen_at, base_url, clock_at)
       SELECT $1, $1, 7, $4, 1, $6, now_ms() - $5::bigint, $2, now_ms() - $5::bigint + $3::bigint`,
      [host, baseUrl, aheadMs, version, agoMs, ++started],
    );
  const look = async () => {
    const { said } = await runCommand(["doctor", "--json"], { cwd: folder, env: { RELAY_DATABASE: database.url }, clock: systemClock });
    const { items } = JSON.parse(said) as { items: { check: string; state: string; message: string }[] };
    return items.filter(({ check }) => check.startsWith("nodes")).map(({ check, state, message }) => `${check} ${state}: ${message}`);
  };
  await add("gone", "https://c.example", 900_000, { agoMs: 60_000 });
  await add("one", "https://a.example", 200);
  expect(await look()).toEqual(["nodes ok: 1 node serves: one (1.0.0)."]);
  await add("two", "https://a.example", -300);
  expect((await look())[1]).toBe("nodes' base URLs ok: Every node has https://a.example.");
  await add("old", null, null, { version: "0.9.0" });
  expect((await look()).slice(1)).toEqual([
    "nodes' base URLs ok: Every node that reports its base URL has https://a.example.",
    "nodes' clocks ok: They say the same time, to a minute.",
  ]);
  await add("three", "https://b.example", 180_000);
  await add("four", "", 0);
  const told = await look();
  expect(told[0]).toStartWith("nodes warn: 5 nodes serve: one (1.0.0), two (1.0.0), old (0.9.0), three");
  expect(told.slice(1)).toEqual([
    "nodes' base URLs warn: They differ: one (process 7) and two (process 7): https://a.example; three (process 7): https://b.example; four (process 7): none.",
    "nodes' clocks warn: That of three (process 7) is 3 minutes ahead of that of two (process 7).",
  ]);
});

/** Simulates a pooler in transaction mode: it drops every notification that the database sends. */
async function startDeafPooler(to: URL): Promise<{ port: number; close: () => void }> {
  const server = createServer((client) => {
    const there = connect(Number(to.port), to.hostname);
    const end = () => void [client.destroy(), there.destroy()];
    for (const socket of [client, there]) socket.on("error", end).on("close", end);
    client.on("data", (said) => there.write(said));
    let bytes = Buffer.alloc(0);
    there.on("data", (more: Buffer) => {
      bytes = Buffer.concat([bytes, more]);
      const passed: Buffer[] = [];
      // A message is one letter and a length, which counts itself.
      while (bytes.length >= 5 && bytes.length > bytes.readInt32BE(1)) {
        const size = 1 + bytes.readInt32BE(1);
        if (bytes[0] !== "A".charCodeAt(0)) passed.push(bytes.subarray(0, size));
        bytes = bytes.subarray(size);
      }
      client.write(Buffer.concat(passed));
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return { port: (server.address() as AddressInfo).port, close: () => server.close() };
}

test("a pooler that drops notifications is reported, and no further check runs", async () => {
  await using database = await freshDatabase();
  const url = new URL(database.url);
  const pooler = await startDeafPooler(new URL(database.url));
  url.port = String(pooler.port);
  url.searchParams.set("sslmode", "disable");
  const { code, said } = await runCommand(["doctor", "--json"], { cwd: folder, env: { RELAY_DATABASE: url.href }, clock: systemClock });
  pooler.close();
  const { items } = JSON.parse(said) as { items: { check: string; state: string; message: string }[] };
  expect({ code, checks: items.map(({ check, state }) => `${check} ${state}`) }).toEqual({
    code: 1,
    checks: ["connection ok", "pooler fail"],
  });
  expect(items[1]?.message).toContain("a pooler in transaction mode is in use");
});

test.each([
  ["backup", /copy them with pg_dump while servers run/],
  ["restore", /with pg_restore/],
])("relay %s names the tool to use instead", async (word, sentence) => {
  const env = { RELAY_DATABASE: "postgres://relay:hunter2@h/d" };
  const { code, told } = await runCommand([word, "file.db"], { cwd: folder, env });
  expect({ code, told }).toEqual({ code: 1, told: expect.stringMatching(sentence) });
  expect(told).not.toContain("hunter2");
});

test("the start rejects scheduled backups", () => {
  const env = { RELAY_DATABASE: "postgres://relay@h/d", RELAY_BACKUP_EVERY: "1d" };
  const input = new Input([], new Map(), SERVER_OPTIONS, env);
  expect(() => readServiceConfig("server", input, { env, cwd: folder } as unknown as Io)).toThrow(/--backup-every .* leave it out/);
});
