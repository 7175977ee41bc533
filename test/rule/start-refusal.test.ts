/** Each obstacle to a start has its own message with what to do, a code and exit code 1. A full disk waits instead (attack/full-disk). */
import { afterAll, beforeEach, expect, test } from "bun:test";
import { chmodSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Io } from "../../src/interfaces/cli/io.ts";
import { explainDirectory, explainListening } from "../../src/interfaces/cli/server/start-refusal.ts";
import { startService } from "../../src/service.ts";
import { lockDataDirectory } from "../../src/store/sqlite/directory-lock.ts";
import { openSqlite } from "../../src/store/sqlite/sqlite.ts";
import { runCommand } from "../kit/cli-io.ts";
import { VirtualClock } from "../kit/virtual-clock.ts";

/** Rows about permissions run as a user other than root. */
const NOBODY = 65_534;
const isRoot = process.geteuid?.() === 0;

const cwd = mkdtempSync(join(tmpdir(), "relay-start-"));
chmodSync(cwd, 0o755);
afterAll(() => rmSync(cwd, { recursive: true, force: true }));

let home: string;
let data: string;
let taken = 0;
let ending: (() => unknown)[] = [];
beforeEach(() => {
  home = mkdtempSync(join(cwd, "case-"));
  chmodSync(home, 0o755);
  data = join(home, "data");
  ending = [];
});

function serve(line: readonly string[]) {
  return run(["serve", "--data-dir", data, ...line.map((word) => (word === "TAKEN" ? String(taken) : word))]);
}

async function run(line: readonly string[]) {
  if (isRoot) process.seteuid?.(NOBODY);
  try {
    return await runCommand(line, {
      cwd: home,
      startService,
      untilStopped: () => new Promise(() => undefined),
    });
  } finally {
    if (isRoot) process.seteuid?.(0);
    for (const end of ending) await end();
  }
}

async function makeDatabase(sql = "SELECT 1"): Promise<void> {
  mkdirSync(data, { recursive: true, mode: 0o700 });
  const store = await openSqlite(join(data, "relay.db"), { clock: new VirtualClock(Date.now()) });
  await store.write("app", (tx) => tx.run(sql));
  await store.close();
}

/** Opens a folder as root does for the service's user. */
function open(path: string): void {
  chmodSync(path, 0o777);
}

const FREE = ["--port", "0"];
const ROWS: readonly [what: string, make: () => unknown, line: string[], code: string, says: RegExp][] = [
  [
    "a folder that cannot be created",
    () => chmodSync(home, 0o555),
    FREE,
    "file_unusable",
    /^The data directory \S+\/data does not exist, and \S+ may not create it: \S+ belongs to \w+.*\. Create it once with sudo install -d -m 700 -o \S+ \S+\/data, or name another folder with --data-dir\.$/,
  ],
  [
    "a folder that is not writable",
    () => mkdirSync(data, { mode: 0o555 }),
    FREE,
    "file_unusable",
    isRoot
      ? /belongs to root, and 65534 may not write there: give it to 65534 with sudo chown -R 65534 \S+, or/
      : /ann owns the data directory \S+ but may not write there: .*chmod u\+rwx/,
  ],
  [
    "a database that another user made",
    async () => {
      await makeDatabase();
      open(data);
      chmodSync(join(data, "relay.db"), isRoot ? 0o600 : 0o000);
    },
    FREE,
    "file_unusable",
    isRoot
      ? /relay\.db belongs to root, and 65534 may not read and write it\. .*sudo chown -R 65534/
      : /owns \S+relay\.db but may not read and write it: .*chmod u\+rw/,
  ],
  [
    "a master key that another user made",
    () => {
      mkdirSync(data);
      open(data);
      writeFileSync(join(data, "master.key"), "", { mode: isRoot ? 0o600 : 0o000 });
    },
    FREE,
    "invalid_input",
    /master\.key cannot be read \(EACCES\): it must be the key file of this data/,
  ],
  [
    "a file at its path",
    () => writeFileSync(data, ""),
    FREE,
    "file_unusable",
    /data is a file, but the data directory must be a folder: move the file away, or/,
  ],
  [
    "a file at a parent's path",
    () => {
      writeFileSync(data, "");
      data = join(data, "below");
    },
    FREE,
    "file_unusable",
    /data\/below cannot be created, because \S+\/data is a file: /,
  ],
  [
    "a link to a missing target",
    () => symlinkSync(join(home, "disk"), data),
    FREE,
    "file_unusable",
    /data is a link to a path that does not exist: mount or restore/,
  ],
  [
    "a file that is no database",
    () => {
      mkdirSync(data);
      open(data);
      writeFileSync(join(data, "relay.db"), "no database at all ".repeat(500), { mode: 0o666 });
      chmodSync(join(data, "relay.db"), 0o666);
    },
    FREE,
    "database_refused",
    /relay\.db is damaged or not a database: .* relay doctor, and .* relay restore/,
  ],
  [
    "a database of a newer release",
    async () => {
      await makeDatabase("INSERT INTO schema_migration (number, name, applied_at) VALUES (9999, 'later', 0)");
      for (const path of [data, join(data, "relay.db")]) open(path);
    },
    FREE,
    "newer_schema",
    /written by a newer version \(schema 9999, .*\): start that version, or use relay restore with the copy that its migration stored in backups\//,
  ],
  [
    "another server",
    () => {
      mkdirSync(data);
      open(data);
      const lock = lockDataDirectory(data, "relay serve", 0);
      open(join(data, "runner.lock"));
      ending.push(() => lock.release());
    },
    FREE,
    "directory_taken",
    /data is in use by relay serve, process \d+, since 1970.*; stop it first, or give this one another --data-dir\.$/,
  ],
  [
    "a port that is in use",
    () => {
      mkdirSync(data);
      open(data);
      const other = Bun.serve({ hostname: "127.0.0.1", port: 0, reusePort: false, fetch: () => new Response("") });
      taken = other.port ?? 0;
      ending.push(() => other.stop(true));
    },
    ["--port", "TAKEN"],
    "address_taken",
    /^Port \d+ of 127\.0\.0\.1 is in use: stop the program that listens there, or choose another port with --port\.$/m,
  ],
  [
    "an address that does not belong to this machine",
    () => {
      mkdirSync(data);
      open(data);
    },
    ["--host", "192.0.2.7", ...FREE],
    "address_taken",
    /^192\.0\.2\.7 is not an address of this machine: .* 127\.0\.0\.1 behind a proxy .*0\.0\.0\.0/m,
  ],
];

test.each(ROWS)("%s", async (_what, make, line, code, says) => {
  await make();
  const { code: exit, told } = await serve(line);
  chmodSync(home, 0o755);
  const lines = told.split("\n").filter((one) => !/^\d{4}-\d\d-\d\dT/.test(one));
  expect(lines[0]).toMatch(says);
  expect([exit, lines[1]?.split("  ")[0], lines.length]).toEqual([1, code, 2]);
});

test("a database that can only be read is listed, and a command that writes says how it can", async () => {
  await makeDatabase();
  open(data);
  chmodSync(join(data, "relay.db"), 0o444);
  const target = ["--data-dir", data];
  const listed = await run(["apps", "list", ...target]);
  expect([listed.code, listed.told]).toEqual([0, expect.stringMatching(/^There are no apps yet/)]);
  const { code, told } = await run(["apps", "create", "Shop", ...target]);
  expect([code, told]).toEqual([1, expect.stringMatching(/relay\.db.* may not read and write it.*\nfile_unusable/)]);
});

const failed = (code: string, syscall: string): Error => Object.assign(new Error(code), { code, syscall });
const io = { machine: { name: "vps", account: "ann" } } as Io;

test("a read-only file system has its own message", () => {
  const said = explainDirectory(failed("EROFS", "mkdir"), "/var/lib/relay", io);
  expect([said?.code, said?.message]).toEqual([
    "file_unusable",
    expect.stringMatching(/read-only file system\. .*volume.*ReadWritePaths=.*--data-dir/),
  ]);
});

test("a port below 1024 needs a right, and EACCES of a folder never blames the port or the reverse", () => {
  const place = { host: "127.0.0.1", port: 80 };
  const said = explainListening(failed("EACCES", "listen"), place, io);
  expect([said?.code, said?.message]).toEqual([
    "address_taken",
    expect.stringMatching(/^\S+ may not listen on port 80 of 127\.0\.0\.1, .*--port .*CAP_NET_BIND_SERVICE/),
  ]);
  expect(explainListening(failed("EACCES", "mkdir"), place, io)).toBeNull();
  expect(explainDirectory(failed("EACCES", "listen"), data, io)).toBeNull();
});

test("a command that creates the data directory prints the same message", async () => {
  chmodSync(home, 0o555);
  if (isRoot) process.seteuid?.(NOBODY);
  const { code, told } = await runCommand(["apps", "create", "Shop", "--data-dir", data], { cwd: home });
  if (isRoot) process.seteuid?.(0);
  expect([code, told]).toEqual([1, expect.stringMatching(/data does not exist, and \S+ may not create it: /)]);
});
