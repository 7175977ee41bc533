/**
 * Tests the output of the test command: a line per finished file, each failure with the command that repeats only it, and the final counts. Also
 * tests skipped tests, and the cleanup after a stop.
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { BROWSER_VARIABLE } from "../kit/browser-program.ts";
import { PROJECT_ROOT } from "./source-tree.ts";

const COMMAND = join(PROJECT_ROOT, "scripts", "test.ts");
const USES = 'import { afterAll, beforeAll, expect, test } from "bun:test";\n';

/** Describes a project that fails in every way. The files of test/rule share a process until one of them ends it. */
const FILES: Readonly<Record<string, string>> = {
  "test/rule/right.test.ts": 'test("right", () => expect(1).toBe(1));',
  "test/rule/lacking.test.ts": 'console.log("Not run: the code in go, because this machine has no go.");\ntest("right", () => {});',
  "test/rule/wrong.test.ts": 'test("right", () => expect(1).toBe(1));\ntest("wrong <&>", () => expect(1).toBe(2));',
  "test/rule/hook.test.ts": 'beforeAll(() => { throw new Error("no hook") });\ntest("never", () => {});',
  "test/rule/import.test.ts": 'import "./nothing.ts";\ntest("never", () => {});',
  "test/rule/top.test.ts": 'throw new Error("at the top");',
  "test/rule/after.test.ts": 'test("right", () => {});\nafterAll(() => { throw new Error("afterwards") });',
  "test/rule/crash.test.ts": 'test("right", () => {});\ntest("kills", () => process.kill(process.pid, "SIGKILL"));',
  "test/rule/started.test.ts": `test("as shipped", () => {
    const { stdout } = Bun.spawnSync([process.execPath, "-e", "console.log(...Object.keys(process.env))"], { env: process.env });
    expect(stdout.toString()).toContain("TMPDIR");
    expect(stdout.toString()).not.toContain("BUN_JSC_");
  });`,
  "test/soak/stays.test.ts": `test("stays", async () => {
    const started = Bun.spawn([process.execPath, "-e", "setTimeout(() => undefined, 100_000_000)"]);
    await Bun.write(process.env.TEST_PLACE + "/folder", process.env.TMPDIR);
    await Bun.write(process.env.TEST_PLACE + "/pids", process.pid + " " + started.pid);
    await started.exited;
  });`,
  "bunfig.toml": `[test]\npreload = ["${PROJECT_ROOT}/test/kit/child-environment.ts"]`,
  "test/browser/page.test.ts": 'test("one", () => {});\ntest("two", () => {});',
};

let project: string;

beforeAll(() => {
  project = makeProject(FILES);
});

function makeProject(files: Readonly<Record<string, string>>): string {
  const folder = mkdtempSync(join(tmpdir(), "relay-test-command-"));
  for (const [file, text] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, file)), { recursive: true });
    writeFileSync(join(folder, file), `${file.endsWith(".ts") ? USES : ""}${text}\n`);
  }
  return folder;
}

afterAll(() => rmSync(project, { recursive: true }));

function start(words: readonly string[], env: Record<string, string>, cwd = project) {
  return Bun.spawn([process.execPath, COMMAND, ...words], {
    cwd,
    env: { ...process.env, CI: "", TEST_STORE: undefined, [BROWSER_VARIABLE]: undefined, ...env },
    stdout: "pipe",
    stderr: "pipe",
  });
}

async function run(words: readonly string[], env: Record<string, string> = {}, cwd = project) {
  const child = start(words, { CHROMIUM: "none", ...env }, cwd);
  const [output, progress] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text()]);
  return { code: await child.exited, lines: output.trimEnd().split("\n"), progress: progress.trimEnd().split("\n") };
}

const FAILURES: readonly (readonly [place: string, why: RegExp, command: string])[] = [
  ["test/rule/after.test.ts > a hook (beforeAll, afterAll, beforeEach or afterEach)", /error: afterwards/, "test/rule/after.test.ts"],
  ["test/rule/crash.test.ts > outside a test", /The process ended with SIGKILL/, "test/rule/crash.test.ts"],
  ["test/rule/hook.test.ts > a hook (beforeAll, afterAll, beforeEach or afterEach)", /error: no hook/, "test/rule/hook.test.ts"],
  ["test/rule/import.test.ts > outside a test", /Cannot find module '\.\/nothing\.ts'/, "test/rule/import.test.ts"],
  ["test/rule/top.test.ts > outside a test", /error: at the top/, "test/rule/top.test.ts"],
  ["test/rule/wrong.test.ts > wrong <&>", /Expected: 2/, "test/rule/wrong.test.ts -t 'wrong <&>'"],
];

test("each failure is printed completely with the command that runs only it, before the final counts", async () => {
  const { code, lines, progress } = await run([]);
  const text = lines.join("\n");
  const blocks = text.split("\n✗ ").slice(1);
  expect(blocks.map((block) => block.split("\n")[0]).sort()).toEqual(FAILURES.map(([place]) => place).sort());
  for (const [place, why, command] of FAILURES) {
    const block = blocks.find((one) => one.startsWith(place)) ?? "";
    expect(block).toMatch(why);
    expect(block).toContain(`Run only this: npm test -- --sqlite ${command}\n`);
  }
  expect(text).toContain("Skipped: the 2 browser tests, because there is no browser (CHROMIUM=none asks for none).");
  expect(lines.at(-1)).toBe("6 passed, 6 failed, 2 skipped");
  expect(code).toBe(1);
  const files = Object.keys(FILES).filter((file) => /^test\/rule\/[a-z]+\.test\.ts$/.test(file));
  const told = progress.map((line) => /^\[ *(\d+)\/(\d+)\] (\S+):/.exec(line) ?? []);
  expect(told.map(([, nth]) => Number(nth))).toEqual(files.map((_, at) => at + 1));
  expect(told.map(([, , , file]) => file ?? "").sort()).toEqual(files.sort());
});

test("the command that a failure names runs only that test", async () => {
  const { lines } = await run(["--sqlite", "test/rule/wrong.test.ts", "-t", "wrong <&>"]);
  expect(lines.at(-1)).toBe("0 passed, 1 failed");
});

test("a run without failures prints only the final counts", async () => {
  const { code, lines } = await run(["test/rule/right.test.ts"]);
  expect(lines).toEqual(["1 passed, 0 failed"]);
  expect(code).toBe(0);
});

test.each([
  [["test/rule/absent.test.ts"], "No test file matches test/rule/absent.test.ts."],
  [["test/rule/right.test.ts", "-t", "absent"], "No test matches the pattern."],
])("%j fails, because no test would run", async (words, sentence) => {
  const { code, lines } = await run(words);
  expect(lines).toEqual([sentence, "0 passed, 1 failed"]);
  expect(code).toBe(1);
});

test("tests that this machine cannot run are named with the reason, before the final counts", async () => {
  const { code, lines } = await run(["test/rule/lacking.test.ts"]);
  expect([code, lines.slice(-2)]).toEqual([0, ["Not run: the code in go, because this machine has no go.", "1 passed, 0 failed"]]);
});

test("a test's process delays compilation, and processes that it starts do not", async () => {
  const { code, lines } = await run(["test/rule/started.test.ts"]);
  expect([lines.at(-1), code]).toEqual(["1 passed, 0 failed", 0]);
});

test("without a browser, browser tests count as skipped with the reason", async () => {
  const { code, lines } = await run(["./test/browser/page.test.ts"]);
  expect(lines.join("\n")).toContain("because there is no browser (CHROMIUM=none");
  expect(lines.at(-1)).toBe("0 passed, 0 failed, 2 skipped");
  expect(code).toBe(0);
});

test("in CI, a missing browser is a failure", async () => {
  const { code, lines } = await run(["./test/browser/page.test.ts"], { CI: "true" });
  expect(lines.at(-1)).toBe("0 passed, 1 failed, 2 skipped");
  expect(code).toBe(1);
});

/** A test that passes in its second run. */
const PASSES_LATER = `test("later", async () => {
  const ran = import.meta.path + ".ran";
  const isFirst = !(await Bun.file(ran).exists());
  await Bun.write(ran, "");
  expect(isFirst).toBe(false);
});`;

test("a run of all files runs failed browser files again, and counts and prints both results", async () => {
  const folder = makeProject({
    "test/browser/later.test.ts": PASSES_LATER,
    "test/browser/wrong.test.ts": 'test("wrong", () => expect(1).toBe(2));',
    "test/rule/later.test.ts": PASSES_LATER,
  });
  const browser = { [BROWSER_VARIABLE]: JSON.stringify({ path: process.execPath, env: {} }) };
  const { code, lines } = await run([], browser, folder);
  const text = lines.join("\n");
  expect([lines.at(-1), code]).toEqual(["1 passed, 2 failed", 1]);
  expect(text).toContain("Failed at first and passed again: test/browser/later.test.ts > later\n");
  expect(text.match(/^✗ .*/gm)?.sort()).toEqual(["✗ test/browser/wrong.test.ts > wrong", "✗ test/rule/later.test.ts > later"]);
  rmSync(join(folder, "test/browser/later.test.ts.ran"));
  const named = await run(["test/browser/later.test.ts"], browser, folder);
  expect([named.lines.at(-1), named.code]).toEqual(["0 passed, 1 failed", 1]);
  rmSync(folder, { recursive: true });
});

test.each(["SIGINT", "SIGTERM"] as const)("%s ends every process and leaves no file", async (signal) => {
  const place = mkdtempSync(join(tmpdir(), "relay-test-stop-"));
  const child = start(["test/soak/stays.test.ts"], { CHROMIUM: "none", TEST_PLACE: place });
  // The test writes the process ids of itself and of the process it started.
  while (!existsSync(join(place, "pids")) || readFileSync(join(place, "pids"), "utf8") === "") await Bun.sleep(20);
  const pids = (await Bun.file(join(place, "pids")).text()).trim().split(" ").map(Number);
  const folder = await Bun.file(join(place, "folder")).text();
  expect(existsSync(folder)).toBe(true);
  child.kill(signal);
  expect(await child.exited).toBe(signal === "SIGINT" ? 130 : 143);
  expect(existsSync(folder)).toBe(false);
  for (const pid of pids) while (isRunning(pid)) await Bun.sleep(20);
  expect(readdirSync(place).sort()).toEqual(["folder", "pids"]);
  rmSync(place, { recursive: true });
});

test("the next run removes the folder of a killed run", async () => {
  const gone = Bun.spawn([process.execPath, "-e", "1"]);
  await gone.exited;
  const left = join(tmpdir(), `relay-tests-${gone.pid}-left`);
  mkdirSync(join(left, "deep"), { recursive: true });
  await run(["test/rule/right.test.ts"]);
  expect(existsSync(left)).toBe(false);
});

/** Checks that the process exists and is not a zombie. */
function isRunning(pid: number): boolean {
  try {
    return !/^\d+ \(.*\) Z/s.test(readFileSync(`/proc/${pid}/stat`, "utf8"));
  } catch {
    return false;
  }
}
