/**
 * Checks that no test has a time limit: no assertion compares a time with a number, and no wait ends before two minutes. Only scripts/bench measures
 * times.
 */
import { describe, expect, test } from "bun:test";
import { readSources } from "./source-tree.ts";
import { findTimeLimits } from "./time-limit.ts";

/** Lists text that looks like a limit but is none, by file and words of the line. */
const NONE: readonly (readonly [file: string, words: string, why: string])[] = [
  ["test/crash/cluster.ts", "AbortSignal.timeout(TRY_FOR_MS)", "a sender leaves a node that hangs, and tries another one"],
];

const isNone = (path: string, text: string): boolean => NONE.some(([file, words]) => file === path && text.includes(words));
/** Excludes this file, because it contains the examples. */
const sources = readSources("test").filter(({ path }) => path !== "test/house/time-limit.test.ts");

test("no test compares a time with a number or waits for less than two minutes", () => {
  const found = sources.flatMap(({ path, text }) =>
    findTimeLimits(text)
      .filter((one) => !isNone(path, one.text))
      .map((one) => `${path}:${one.line}: ${one.text}\n  To do: ${one.todo}.`),
  );
  expect(found.join("\n")).toBe("");
});

test("each exception still exists", () => {
  const gone = NONE.filter(([file, words]) => !sources.some(({ path, text }) => path === file && text.includes(words)));
  expect(gone).toEqual([]);
});

describe("finds", () => {
  const LIMITS: readonly (readonly [what: string, code: string])[] = [
    ["a measured time", "const from = performance.now();\nawait work();\nexpect(performance.now() - from).toBeLessThan(500);"],
    ["a measured time against a constant", "const begun = performance.now();\nexpect(performance.now() - begun).toBeLessThan(ENDS_WITHIN_MS);"],
    ["a lower bound", "expect(performance.now() - beganMs).toBeGreaterThan(2_000);"],
    ["a comparison inside expect", "expect(performance.now() - begun < 5_000).toBe(true);"],
    ["a variable with a measured time", "const took = performance.now() - begun;\nexpect(took).toBeLessThan(MOST_MS);"],
    ["several measured times", "took.push(performance.now() - startMs);\nexpect(Math.min(...took)).toBeLessThan(SOON_MS);"],
    [
      "differences of measured times",
      "const answered = [0];\nanswered.push(performance.now());\nconst gaps = answered.map((at, nth) => at - (answered[nth - 1] ?? 0));\nexpect(Math.max(...gaps)).toBeLessThan(1_000);",
    ],
    ["wall time", "const nowMs = Date.now();\nexpect(Date.now() - nowMs).toBeLessThan(100);"],
    ["CPU time", "const { user } = process.cpuUsage(before);\nexpect(user / 1_000).toBeLessThan(5_000);"],
    ["time of the real clock", "expect(systemClock.monotonicMs() - before).toBeLessThan(120);"],
    ["milliseconds by their name", "const { tookMs } = await open();\nexpect(tookMs).toBeLessThan(2_500);"],
    ["seconds by their name", "expect(seconds).toBeLessThan(25);"],
    ["a rate", "expect(asked / (tookMs / 1000)).toBeLessThan(15);"],
    ["a deadline", "const deadline = performance.now() + 20_000;"],
    ["a deadline by its constant", "const REST_MS = 45_000;\nconst deadline = performance.now() + REST_MS;"],
    ["a deadline of the real clock", "const endMs = systemClock.monotonicMs() + 20_000;"],
    ["a constant deadline", "const STARTS_WITHIN_MS = 20_000;"],
    ["a deadline as a product", "const GIVE_UP_AFTER_MS = 2 * 10_000;"],
    ["a deadline in seconds", "const STOPS_WITHIN_S = 22;"],
    ["a browser's time-out", "await button.click({ timeout: 1_000 });"],
    ["a browser's default", "const LIMIT_MS = 25_000;\ncontext.setDefaultTimeout(LIMIT_MS);"],
    ["a process's time-out", "Bun.spawnSync(command, { cwd, timeout: 20_000 });"],
    ["a request's time-out", "await fetch(url, { signal: AbortSignal.timeout(5_000) });"],
    ["a wait's option", 'await until("it waits", isSo, { withinMs: 20_000 });'],
    ["a file's limit for its tests", "setDefaultTimeout(30_000);"],
    ["a test's own limit", 'test("it works", async () => {\n  await work();\n}, 60_000);'],
    ["a test's own limit on a separate line", 'test(\n  "it works",\n  async () => {\n    await work();\n  },\n  60_000,\n);'],
    ["a test's own limit that one wait can use up", 'test("it works", async () => {\n  await work();\n}, 120_000);'],
    ["a hook's own limit", "beforeAll(async () => {\n  await work();\n}, 90_000);"],
    ["the limit of a table of tests", 'test.each(ROWS)("%s", async (row) => {\n  await work(row);\n}, 60_000);'],
    ["a loop that sleeps", "for (let turn = 0; turn < 400 && !isSo(); turn++) await Bun.sleep(50);"],
    ["a loop that counts down", "for (let left = 200; !isSo() && left > 0; left--) {\n  await Bun.sleep(50);\n}"],
    ["a loop that sleeps and returns", "for (let turn = 0; turn < 400; turn++) {\n  if (await isSo()) return;\n  await Bun.sleep(50);\n}"],
  ];
  test.each(LIMITS)("%s", (_what, code) => expect(findTimeLimits(code)).toHaveLength(1));

  test("the limit's line, with what to do", () => {
    expect(findTimeLimits("const from = performance.now();\n\nexpect(performance.now() - from).toBeLessThan(500);")).toEqual([
      { line: 3, text: "expect(performance.now() - from).toBeLessThan(500);", todo: expect.stringContaining("measure times in scripts/bench") },
    ]);
  });
});

describe("ignores", () => {
  const RIGHT: readonly (readonly [what: string, code: string])[] = [
    ["a count", "expect(calls.length).toBeLessThan(5);"],
    ["a ratio within one run", "expect(entries / names).toBeLessThan(50);"],
    ["a time of the virtual clock", "expect(clock.monotonicMs() - startMs).toBe(20_000);"],
    ["a stored time", "const nowMs = Date.now();\nexpect(row.createdAt).toBe(nowMs);"],
    ["an order of times", "const [first, last] = [beganMs, Date.now()];\nexpect(times.filter((ms) => ms < first || ms > last)).toEqual([]);"],
    ["a patient deadline", "const deadline = performance.now() + PATIENCE_MS;"],
    ["a patient constant", "const PATIENCE_MS = 120_000;"],
    ["a patient time-out", "context.setDefaultTimeout(PATIENCE_MS);"],
    ["an immediate close", "await sql.close({ timeout: 0 });"],
    ["a timer that limits no test", "setTimeout(() => {\n  socket.destroy();\n}, 1_100);"],
    ["a loop that always completes", "for (let turn = 0; turn < 3; turn++) {\n  await Bun.sleep(1_100);\n  expect(await ready()).toEqual(full);\n}"],
    ["words and comments", '// performance.now() + 500\nconst words = "expect(tookMs).toBeLessThan(5)";'],
  ];
  test.each(RIGHT)("%s", (_what, code) => expect(findTimeLimits(code)).toEqual([]));
});
