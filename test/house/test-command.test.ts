/** The test command's last lines: every failed test and every error outside a test is listed and counted, and what is left out is skipped. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { BROWSER_VARIABLE } from "../kit/browser-program.ts";
import { PROJECT_ROOT } from "./source-tree.ts";

const COMMAND = join(PROJECT_ROOT, "scripts", "test.ts");
const USES = 'import { afterAll, beforeAll, expect, test } from "bun:test";\n';

/** A project that fails in every way. The names of its tests' functions are put together, so that they are no tests here. */
const FILES: Readonly<Record<string, string>> = {
  "test/right.test.ts": 'test("right", () => expect(1).toBe(1));',
  "test/wrong.test.ts": 'test("right", () => expect(1).toBe(1));\ntest("wrong <&>", () => expect(1).toBe(2));',
  "test/hook.test.ts": 'beforeAll(() => { throw new Error("no hook") });\ntest("never", () => {});',
  "test/import.test.ts": 'import "./nothing.ts";\ntest("never", () => {});',
  "test/top.test.ts": 'throw new Error("at the top");',
  "test/after.test.ts": 'test("right", () => {});\nafterAll(() => { throw new Error("afterwards") });',
  "test/crash.test.ts": 'test("right", () => {});\ntest("kills", () => process.kill(process.pid, "SIGKILL"));',
  "test/started.test.ts": `test("as shipped", () => {
    const { stdout } = Bun.spawnSync([process.execPath, "-e", "console.log(...Object.keys(process.env))"], { env: process.env });
    expect(stdout.toString()).toContain("TMPDIR");
    expect(stdout.toString()).not.toContain("BUN_JSC_");
  });`,
  "bunfig.toml": `[test]\npreload = ["${PROJECT_ROOT}/test/kit/as-shipped.ts"]`,
  "test/browser/page.test.ts": 'test("one", () => {});\ntest("two", () => {});',
};

let project: string;

beforeAll(() => {
  project = mkdtempSync(join(tmpdir(), "relay-test-command-"));
  for (const [file, text] of Object.entries(FILES)) {
    mkdirSync(dirname(join(project, file)), { recursive: true });
    writeFileSync(join(project, file), `${file.endsWith(".ts") ? USES : ""}${text}\n`);
  }
});

afterAll(() => rmSync(project, { recursive: true }));

async function run(words: readonly string[], env: Record<string, string>) {
  const child = Bun.spawn([process.execPath, COMMAND, ...words], {
    cwd: project,
    env: { ...process.env, CI: "", [BROWSER_VARIABLE]: undefined, ...env },
    stdout: "pipe",
    stderr: "ignore",
  });
  const lines = (await new Response(child.stdout).text()).trimEnd().split("\n");
  return { code: await child.exited, lines };
}

test("each failure is listed by file and name before the line that counts them", async () => {
  const { code, lines } = await run([], { CHROMIUM: "none" });
  const listed = lines.filter((line) => line.startsWith("  test/")).sort();
  expect(listed).toEqual([
    "  test/after.test.ts > a hook (beforeAll, afterAll, beforeEach or afterEach): afterwards",
    "  test/crash.test.ts > (worker crashed): worker process crashed before reporting results",
    "  test/hook.test.ts > a hook (beforeAll, afterAll, beforeEach or afterEach): no hook",
    expect.stringMatching(/^ {2}test\/import\.test\.ts > outside a test: Cannot find module '\.\/nothing\.ts'/),
    "  test/top.test.ts > outside a test: at the top",
    "  test/wrong.test.ts > wrong <&>: expect(received).toBe(expected)",
  ]);
  expect(lines.at(-1)).toBe("5 passed, 6 failed, 2 skipped");
  expect(code).toBe(1);
});

test("nothing but the plain line ends a run without failures", async () => {
  const { code, lines } = await run(["test/right.test.ts"], { CHROMIUM: "none" });
  expect(lines.at(-1)).toBe("1 passed, 0 failed");
  expect(code).toBe(0);
});

test("a test's process compiles late, and what it starts as it is shipped", async () => {
  const { code, lines } = await run(["test/started.test.ts"], { CHROMIUM: "none" });
  expect([lines.at(-1), code]).toEqual(["1 passed, 0 failed", 0]);
});

test("without a browser its tests are counted as skipped, and the reason is said", async () => {
  const { code, lines } = await run(["./test/browser/page.test.ts"], { CHROMIUM: "none" });
  expect(lines.join("\n")).toContain("The 2 browser tests were left out, for there is no browser: CHROMIUM=none");
  expect(lines.at(-1)).toBe("0 passed, 0 failed, 2 skipped");
  expect(code).toBe(0);
});

test("in CI a browser that is missing is a failure", async () => {
  const { code, lines } = await run(["./test/browser/page.test.ts"], { CHROMIUM: "none", CI: "true" });
  expect(lines.at(-1)).toBe("0 passed, 1 failed, 2 skipped");
  expect(code).toBe(1);
});
