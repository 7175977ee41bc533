/**
 * The npm packages with the executable of this machine, laid out as npm installs them in a path with a space. The launcher starts the executable
 * under Node and under Bun, and says what to do where it cannot. test/soak/npm-install.test.ts installs the packages of all systems from a registry.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import packageJson from "../../package.json";
import { writeNpmPackages } from "../../scripts/release/npm.ts";
import { executableFile, RELEASED, type ReleasedSystem } from "../../scripts/release/systems.ts";
import { startCli } from "../kit/cli-process.ts";
import { copyExecutable } from "../kit/executable-build.ts";
import { tellNotRun } from "../kit/not-run.ts";

const node = Bun.which("node");
if (node === null) tellNotRun("the npm launcher in Node", "this machine has no node");
const RUNTIMES = [["Bun", process.execPath] as const, ...(node === null ? [] : [["Node", node] as const])];

let place: string;
/** A folder from which no package of `place` is found. */
let others: string;
let launcher: string;

/** Returns the system of this machine. */
function requireOwnSystem(): ReleasedSystem {
  const own = RELEASED.find(({ os, cpu, libc }) => os === process.platform && cpu === process.arch && (libc === null || existsSync(libc.loader)));
  if (own === undefined) throw new Error(`The table of released systems has no ${process.platform} ${process.arch}.`);
  return own;
}

/** Writes the launcher's package into another folder without any executable, with a change of the systems that it reads. */
function writeOtherLauncher(name: string, change: (system: Record<string, unknown>) => Record<string, unknown>): string {
  const out = join(others, name, "node_modules");
  writeNpmPackages({ built: place, out, systems: [] });
  const file = join(out, "relay-service/systems.json");
  const systems = JSON.parse(readFileSync(file, "utf8")) as Record<string, unknown>[];
  writeFileSync(file, JSON.stringify(systems.map(change)));
  return join(out, "relay-service/relay.cjs");
}

beforeAll(() => {
  place = mkdtempSync(join(tmpdir(), "relay npm "));
  others = mkdtempSync(join(tmpdir(), "relay-npm-others-"));
  const own = requireOwnSystem();
  mkdirSync(join(place, "built"));
  copyExecutable(join(place, "built", executableFile(own)), "relay");
  writeNpmPackages({ built: join(place, "built"), out: join(place, "node_modules"), systems: [own] });
  launcher = join(place, "node_modules/relay-service/relay.cjs");
});

afterAll(() => {
  for (const folder of [place, others]) rmSync(folder, { recursive: true, force: true });
});

function start(line: readonly string[], options: { runtime: string; cwd?: string; file?: string; env?: Record<string, string> }) {
  const { runtime, cwd = place, file = launcher, env } = options;
  // These tests may themselves run under a package runner, which the launcher must not notice.
  return startCli(line, { cwd, command: [runtime, file], env: { npm_config_user_agent: "", ...env } });
}

/** Lists the child processes of a process. A bare Linux machine has no `ps`. */
function listChildren(pid: number): number[] {
  if (!existsSync("/proc/self/stat")) {
    const text = Bun.spawnSync(["ps", "-o", "pid=", "--ppid", String(pid)]).stdout.toString();
    return text.trim().split(/\s+/).map(Number);
  }
  const processes = readdirSync("/proc").filter((name) => /^\d+$/.test(name));
  return processes.filter((name) => readParent(name) === pid).map(Number);
}

/** Returns the parent of a process on Linux: the second field behind the program's name. null: the process ended. */
function readParent(pid: string): number | null {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "latin1");
    return Number(stat.slice(stat.lastIndexOf(")") + 2).split(" ")[1]);
  } catch {
    return null;
  }
}

describe.each(RUNTIMES)("the launcher under %s", (name, runtime) => {
  const startIn = (folder: string, line: readonly string[], env?: Record<string, string>) => {
    const cwd = join(place, `${name} ${folder}`);
    mkdirSync(cwd, { recursive: true });
    return start(line, { runtime, cwd, ...(env === undefined ? {} : { env }) });
  };

  test.each([
    [["--version"], 0, packageJson.version],
    [["validate"], 1, "There is nothing to check"],
    [["no-such-command"], 2, "no-such-command"],
  ] as const)("passes %j to the executable, and exits with its code %i", async (line, code, shown) => {
    await using run = startIn("codes", line);
    expect(await run.line(shown)).toContain(shown);
    expect(await run.exited).toBe(code);
  });

  test.each([
    ["", "relay"],
    ["npm/11.0.0 node/v22.0.0 linux x64 workspaces/false", "npx relay-service"],
    ["pnpm/10.0.0 npm/? node/v22.0.0 linux x64", "npx relay-service"],
    ["bun/1.4.5 npm/? node/v24.3.0 linux x64", "bunx relay-service"],
  ])("with the user agent %j the printed commands begin with %s", async (agent, word) => {
    // A script `start` of a user's own package must not look like the script of this repository.
    await using run = startIn("words", ["dev", "--port", "0"], { npm_config_user_agent: agent, npm_lifecycle_event: "start" });
    expect(await run.line("There is no folder")).toEndWith(`or run ${word} init for a working example.`);
    await run.line("Press Ctrl+C to stop");
    run.kill("SIGTERM");
    expect(await run.exited).toBe(0);
  });

  test.each(["SIGINT", "SIGTERM"] as const)("passes %s on, and the service stops gracefully", async (signal) => {
    await using run = startIn("signals", ["dev", "--port", "0"]);
    await run.line("Press Ctrl+C to stop");
    run.kill(signal);
    expect(await run.exited).toBe(0);
    expect(run.lines().join("\n")).toContain("Stopping");
  });

  test("without the package of this system it names the package and the cause", async () => {
    await using run = start(["--version"], { runtime, file: writeOtherLauncher("missing", (system) => system) });
    expect(await run.line("is missing")).toContain(`@relay-service/${requireOwnSystem().name}`);
    expect(run.lines().join("\n")).toContain("install again without --omit=optional");
    expect(await run.exited).toBe(127);
  });

  test("on a system without an executable it lists the systems that have one", async () => {
    await using run = start(["--version"], { runtime, file: writeOtherLauncher("other", (system) => ({ ...system, cpu: "mips" })) });
    const line = await run.line("there is no executable for");
    for (const { title } of RELEASED) expect(line).toContain(title);
    expect(await run.exited).toBe(127);
  });

  test("on a system with musl it names the library that Alpine lacks", async () => {
    const loader = join(others, `ld-musl of ${name}`);
    writeFileSync(loader, "");
    const file = writeOtherLauncher(`musl ${name}`, (system) => ({ ...system, loader }));
    const folder = join(others, `musl ${name}/node_modules/@relay-service`, requireOwnSystem().name);
    mkdirSync(folder, { recursive: true });
    writeFileSync(join(folder, "relay"), "#!/bin/sh\nexit 127\n", { mode: 0o755 });
    await using run = start(["--version"], { runtime, file });
    expect(await run.line("did not start")).toContain("apk add libstdc++");
    expect(await run.exited).toBe(127);
  });

  test("on a system without a known C library it names the missing files", async () => {
    const file = writeOtherLauncher("library", (system) => ({ ...system, loader: `/no-such-library-of-${system.cpu}` }));
    await using run = start(["--version"], { runtime, file });
    expect(await run.line("no executable starts")).toContain(`/no-such-library-of-${process.arch}`);
    expect(await run.exited).toBe(127);
  });
});

const onLinux = process.platform === "linux" ? RUNTIMES : [];

test.each(onLinux)("under %s it dies by the signal that ended the executable", async (_name, runtime) => {
  await using run = start(["dev", "--port", "0"], { runtime });
  await run.line("Press Ctrl+C to stop");
  const [child = 0] = listChildren(run.pid);
  process.kill(child, "SIGKILL");
  expect(await run.exited).toBe(137);
});

test.each(onLinux)(
  "under %s it tells the executable its process id, so that a killed launcher stops the service, and switches FTL off",
  async (_name, runtime) => {
    await using run = start(["dev", "--port", "0"], { runtime });
    await run.line("Press Ctrl+C to stop");
    const [child = 0] = listChildren(run.pid);
    const variables = readFileSync(`/proc/${child}/environ`, "utf8").split("\0");
    expect(variables).toEqual(expect.arrayContaining([`RELAY_PARENT_PID=${run.pid}`, "BUN_JSC_useFTLJIT=0"]));
    run.kill("SIGTERM");
    expect(await run.exited).toBe(0);
  },
);

test.each(onLinux)("under %s one Ctrl+C in a terminal, which reaches both processes, stops the service gracefully", async (_name, runtime) => {
  await using run = start(["dev", "--port", "0"], { runtime });
  await run.line("Press Ctrl+C to stop");
  for (const pid of [run.pid, ...listChildren(run.pid)]) process.kill(pid, "SIGINT");
  expect(await run.exited).toBe(0);
  expect(run.lines().join("\n")).toContain("Stopping");
});

/** Imitates npx: a process with a shell that starts the launcher and stays. */
const RUNNER =
  "require('node:child_process').spawn('sh', ['-c', process.argv.at(-1) + '; exit $?'], { stdio: 'inherit' }); setInterval(() => {}, 1000)";

test.each(onLinux)("under %s the service stops after its package runner was ended", async (_name, runtime) => {
  const env = { npm_lifecycle_event: "npx", BUN_FEATURE_FLAG_NO_ORPHANS: "" };
  const command = [node ?? process.execPath, "-e", RUNNER];
  await using run = startCli([`'${runtime}' '${launcher}' dev --port 0`], { cwd: place, command, env });
  await run.line("Press Ctrl+C to stop");
  run.kill("SIGKILL");
  await run.line("Stopping");
  await run.silent;
});

test("no manifest has a script, and the launcher depends on every executable of the same version", () => {
  const out = join(place, "manifests");
  const packages = writeNpmPackages({ built: join(place, "built"), out, systems: [requireOwnSystem()] });
  const manifests = packages.map(({ folder }) => JSON.parse(readFileSync(join(folder, "package.json"), "utf8")));
  for (const manifest of manifests) {
    expect(manifest).toMatchObject({ version: packageJson.version, license: "MIT" });
    expect(Object.keys(manifest).filter((key) => ["scripts", "dependencies", "private"].includes(key))).toEqual([]);
  }
  const names = RELEASED.map(({ name }) => [`@relay-service/${name}`, packageJson.version]);
  expect(manifests.at(-1)).toMatchObject({ name: "relay-service", bin: { relay: "relay.cjs" }, optionalDependencies: Object.fromEntries(names) });
});
