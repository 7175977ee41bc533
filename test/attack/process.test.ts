/** The service as a process on an unsuitable machine: files instead of folders, damaged databases, permissions that are too wide. */
import { afterEach, beforeEach, expect, test } from "bun:test";
import { chmodSync, mkdirSync, mkdtempSync, readdirSync, rmSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startCli } from "../kit/cli-process.ts";
import { requireExecutable } from "../kit/executable-build.ts";
import { PATIENCE_MS } from "../kit/patience.ts";
import { makePipe } from "../kit/pipe.ts";

let cwd: string;

beforeEach(() => {
  cwd = mkdtempSync(join(tmpdir(), "relay-against-"));
});

afterEach(() => rmSync(cwd, { recursive: true, force: true }));

const STARTS: readonly [name: string, make: () => void, line: string[], says: RegExp][] = [
  [
    "a data directory that is a file",
    () => writeFileSync(join(cwd, "data"), ""),
    ["serve"],
    /data is a file, but the data directory must be a folder/,
  ],
  [
    "a data directory below a file",
    () => writeFileSync(join(cwd, "below"), ""),
    ["serve", "--data-dir", "below/data"],
    /below\/data cannot be created, because .*below is a file: /,
  ],
  [
    "a database that is none",
    () => {
      mkdirSync(join(cwd, "data"));
      writeFileSync(join(cwd, "data", "relay.db"), "no database at all ".repeat(500));
    },
    ["serve"],
    /relay\.db is damaged or not a database: .* relay doctor, .* relay restore/,
  ],
  [
    "a database that is a folder",
    () => mkdirSync(join(cwd, "data", "relay.db"), { recursive: true }),
    ["serve"],
    /relay\.db is a folder, but must be a file/,
  ],
  [
    "a lock that is a folder",
    () => mkdirSync(join(cwd, "data", "runner.lock"), { recursive: true }),
    ["serve"],
    /runner\.lock is a folder, but must be a file/,
  ],
  [
    "a master key that is none",
    () => {
      mkdirSync(join(cwd, "data"));
      writeFileSync(join(cwd, "data", "master.key"), "hi");
    },
    ["serve"],
    /is not a master key/,
  ],
  ["a service directory that is a file", () => writeFileSync(join(cwd, "service"), ""), ["dev"], /cannot be used \(ENOTDIR/],
];

test.each(STARTS)("%s ends the start with one message", (_name, make, line, says) => {
  make();
  const all = [requireExecutable("relay"), ...line, "--port", "0", ...(line.includes("--data-dir") ? [] : ["--data-dir", "data"])];
  const run = Bun.spawnSync(all, { cwd, timeout: PATIENCE_MS });
  const told = run.stderr.toString().trim().split("\n");
  // The message, and below it the code with the page that explains it.
  expect({ code: run.exitCode, lines: told.length }).toEqual({ code: 1, lines: 2 });
  expect(told[0]).toMatch(says);
  expect(told[0]).not.toMatch(/An error happened|An internal error/);
});

test("only its user can read the files that the service creates, even in a folder that everyone can read", async () => {
  const data = join(cwd, "data");
  mkdirSync(data);
  chmodSync(data, 0o755);
  await using serve = startCli(["serve", "--port", "0", "--data-dir", data], { cwd });
  await serve.line("Set-up");
  const open = readdirSync(data, { recursive: true, withFileTypes: true })
    .map((entry) => join(entry.parentPath, entry.name))
    .filter((path) => (statSync(path).mode & 0o077) !== 0);
  expect(open).toEqual([]);
  serve.kill("SIGTERM");
  expect(await serve.exited).toBe(0);
});

test("development continues next to files that are pipes, devices and loops, and runs the good one", async () => {
  const relays = join(cwd, "service", "relays");
  mkdirSync(relays, { recursive: true });
  makePipe(join(relays, "pipe.json"));
  symlinkSync("/dev/zero", join(relays, "device.json"));
  symlinkSync("loop.json", join(relays, "loop.json"));
  const trigger = { kind: "receiver", verify: { scheme: "hooks" }, map: {} };
  const actions = [{ type: "call_url", url: "https://example.com/" }];
  writeFileSync(join(relays, "good.json"), JSON.stringify({ name: "good", trigger, actions }));
  await using dev = startCli(["dev", "--port", "0"], { cwd });
  expect(await dev.line("Receiver")).toEndWith("/hooks/local/good");
  expect(await dev.line("device.json")).toContain("no file but a pipe, a device or a folder");
  expect(await dev.line("pipe.json")).toContain("no file but a pipe, a device or a folder");
  expect(await dev.line("loop.json")).toContain("ELOOP");
  dev.kill("SIGTERM");
  expect(await dev.exited).toBe(0);
});
