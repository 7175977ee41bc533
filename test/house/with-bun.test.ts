/**
 * Tests the launcher of the package scripts. It passes on arguments, exit codes and signals, and does not reinstall. It leaves no process behind,
 * however the package runner or the launcher ends.
 */
import { expect, test } from "bun:test";
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { isBuiltin } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startCli } from "../kit/cli-process.ts";
import { poll } from "../kit/patience.ts";
import { PROJECT_ROOT } from "./source-tree.ts";

const LAUNCHER = join(PROJECT_ROOT, "scripts", "with-bun.mjs");
const node = Bun.which("node");
const RUNTIMES = [["Bun", process.execPath] as const, ...(node === null ? [] : [["Node", node] as const])];

test.each(RUNTIMES)("under %s it runs Bun with the arguments and exits with Bun's code", async (_name, runtime) => {
  const script = "console.log(process.versions.bun, process.argv.slice(1).join(' ')); process.exit(7)";
  await using run = startCli(["-e", script, "one", "two words"], {
    cwd: PROJECT_ROOT,
    command: [runtime, LAUNCHER],
  });
  expect(await run.line("one")).toBe(`${Bun.version} one two words`);
  expect(await run.exited).toBe(7);
});

test.each(RUNTIMES)("under %s a signal reaches Bun, and Bun's exit code is returned", async (_name, runtime) => {
  const script = "process.on('SIGTERM', () => process.exit(3)); setInterval(() => {}, 1000); console.log('up')";
  await using run = startCli(["-e", script], { cwd: PROJECT_ROOT, command: [runtime, LAUNCHER] });
  await run.line("up");
  run.kill("SIGTERM");
  expect(await run.exited).toBe(3);
});

/** Starts a child process like many tests do, and prints all process ids. */
const SCRIPT =
  "const child = Bun.spawn([process.execPath, '-e', 'setInterval(String, 1000)']); setInterval(() => {}, 1000); console.log('pids', process.ppid, process.pid, child.pid)";

/** Imitates npm: a process that can be killed, with a shell that starts the launcher and stays. */
const RUNNER =
  "const { spawn } = require('node:child_process'); spawn('sh', ['-c', process.argv.at(-1) + '; exit $?'], { stdio: 'inherit', env: { ...process.env, npm_lifecycle_event: 'test' } }); setInterval(() => {}, 1000)";

const pidsOf = (line: string): number[] => line.split(" ").slice(1).map(Number);

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

/** Lists processes that remain after a wait, and kills them so that a failed test leaves none. */
async function listLeft(pids: readonly number[]): Promise<number[]> {
  const left = await poll(
    () => pids.filter(isAlive),
    (all) => all.length === 0,
  );
  for (const pid of left) process.kill(pid, "SIGKILL");
  return left;
}

const onLinux = process.platform === "linux" ? RUNTIMES : [];

test.each(onLinux)("under %s no process remains after the package runner is killed before its shell", async (_name, runtime) => {
  const line = `'${runtime}' '${LAUNCHER}' -e "${SCRIPT}"`;
  await using run = startCli(["-e", RUNNER, line], { cwd: PROJECT_ROOT, command: [runtime] });
  const pids = pidsOf(await run.line("pids"));
  expect(pids).toHaveLength(3);
  run.kill("SIGKILL");
  expect(await listLeft(pids)).toEqual([]);
});

test.each(onLinux)("under %s no process remains after the launcher is killed", async (_name, runtime) => {
  await using run = startCli(["-e", SCRIPT], { cwd: PROJECT_ROOT, command: [runtime, LAUNCHER] });
  const pids = pidsOf(await run.line("pids"));
  expect(pids).toHaveLength(3);
  run.kill("SIGKILL");
  expect(await listLeft(pids)).toEqual([]);
});

test("a service whose launcher is killed stops like after a signal, and deletes its address file", async () => {
  const cwd = mkdtempSync(join(tmpdir(), "relay-launched-"));
  try {
    await using run = startCli(["src/main.ts", "dev", "--port", "0", "--data-dir", cwd, "--service-dir", cwd], {
      cwd: PROJECT_ROOT,
      command: [process.execPath, LAUNCHER],
      // The test command sets this variable, and a user's start does not.
      env: { BUN_FEATURE_FLAG_NO_ORPHANS: "" },
    });
    await run.line("Press Ctrl+C");
    expect(readdirSync(cwd)).toContain("running.json");
    run.kill("SIGKILL");
    await run.line("Stopping");
    // Waits for the remaining processes before the folder is deleted.
    await run.silent;
    expect(readdirSync(cwd)).not.toContain("running.json");
  } finally {
    rmSync(cwd, { recursive: true });
  }
});

test("the package scripts without the tools of development import only what running needs", async () => {
  const { scripts, dependencies } = await Bun.file(join(PROJECT_ROOT, "package.json")).json();
  const entrypoints = Object.values<string>(scripts).flatMap((line) => /^node scripts\/with-bun\.mjs (\S+\.ts)/.exec(line)?.[1] ?? []);
  expect(entrypoints).toContain("scripts/build.ts");
  for (const entry of new Set(entrypoints)) {
    const built = await Bun.build({ entrypoints: [join(PROJECT_ROOT, entry)], packages: "external", target: "bun", splitting: true });
    const files = await Promise.all(built.outputs.filter(({ path }) => path.endsWith(".js")).map((output) => output.text()));
    const named = files.flatMap((code) => new Bun.Transpiler({ loader: "js" }).scanImports(code).map(({ path }) => path));
    const packages = named
      .filter((path) => /^[a-z@]/.test(path) && !/^(node:|bun(:|$))/.test(path) && !isBuiltin(path))
      .map((path) => path.split("/", path.startsWith("@") ? 2 : 1).join("/"));
    expect([entry, [...new Set(packages)].filter((name) => !(name in dependencies))]).toEqual([entry, []]);
  }
});
