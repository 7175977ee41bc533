/**
 * Runs the test suite, lists every failed test and every error outside a test, and ends with one plain line, `N passed, N failed`.
 * Arguments are passed on to `bun test`, so that `npm test -- test/rule/template.test.ts` runs one file. It decides once which browser
 * the browser tests drive; where there is none it leaves them out, says why and counts them as skipped, which in CI is a failure. The tests
 * share one PostgreSQL, which starts when the first of them asks for it; the suites of test/kit/postgres-suite.ts run a second time with their
 * stores on it, one at a time beside all others and several once those have ended, and are told behind them, unless TEST_STORE says where all
 * of them stand. What the tests write stands in memory where the system has a place for that, so that no test's commit waits for what another
 * one copies; all of it is gone afterwards. Their processes compile with less zeal (LATE); what they start runs as shipped.
 */
import {
  chmodSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statfsSync,
  writeFileSync,
} from "node:fs";
import { cpus, tmpdir } from "node:os";
import { join } from "node:path";
import { BROWSER_VARIABLE, findBrowser } from "../test/kit/browser-program.ts";
import { ASK_VARIABLE, answerForServer } from "../test/kit/postgres.ts";
import { POSTGRES_SUITES } from "../test/kit/postgres-suite.ts";
import { longestFirst, orderFiles } from "./test-order.ts";
import { type Outcome, readOutcome, sayTimes } from "./test-report.ts";

const BROWSER_TESTS = "test/browser";
/** Many tests wait, for a process, a clock or a browser: three files at once, and one on PostgreSQL beside them, keep two cores busy. */
const FILES_AT_ONCE = 3;
/** A run of a few files: short enough that none is long alone at the end, long enough that beginning it costs little. */
const FILES_A_RUN = 5;
/**
 * A function is compiled anew for every file, and few are called as often there as would pay for the optimizing compiler, which takes a tenth of
 * what most files cost: it begins after ten times as many calls as by default. Where it never does, files that compute much take a fifth longer.
 */
const LATE = Object.fromEntries(
  ["AfterWarmUp", "AfterLongWarmUp", "Soon"].map((when) => [`BUN_JSC_thresholdForOptimize${when}`, "10000"]),
);
/** Where Linux keeps files in memory, and how much has to be free there: clones with all they install, and a dozen stores. */
const IN_MEMORY = "/dev/shm";
const ROOM_BYTES = 8 * 2 ** 30;

/** A shorter run is not told where its time went. */
const TOLD_FROM_MS = 60_000;

const words = process.argv.slice(2);
const begun = { ms: performance.now(), ...readProcessors() };
const browserFiles = listBrowserFiles(words);
const found = browserFiles.length === 0 ? null : await findBrowser();
const leftOut = found?.ok === false ? browserFiles : [];
const folder = mkdtempSync(join(isRoomInMemory() ? IN_MEMORY : tmpdir(), "relay-tests-"));
// As /tmp is: a test that is somebody else for a moment finds the way to its own.
chmodSync(folder, 0o711);
const timings = join(folder, "timings.json");
const suites = [...new Bun.Glob("test/**/*.test.ts").scanSync()];
writeFileSync(timings, JSON.stringify({ version: 1, files: orderFiles(suites) }));
const socket = join(folder, "postgres.ask");
// What the kit starts for the tests' processes stands where they write.
process.env.TMPDIR = folder;
const postgres = answerForServer(socket);
const first = runTests(words, {
  report: join(folder, "report.xml"),
  filesAtOnce: FILES_AT_ONCE,
  leaveOut: leftOut.length > 0,
  env: found?.ok === true ? { [BROWSER_VARIABLE]: JSON.stringify(found.browser) } : {},
  tell: (chunk) => process.stderr.write(chunk),
});
const again = longestFirst(listAgain(words));
const told: Uint8Array[] = [];
const left = cutInRuns(again);
const beside = runAgain(left);
const readyMs = performance.now();
const outcome = await first;
const firstMs = performance.now();
const second = await Promise.all([
  beside,
  ...Array.from({ length: FILES_AT_ONCE - 1 }, () => runAgain(left)),
]);
if (again.length > 0) {
  process.stderr.write(`\n${again.length} suites again, on PostgreSQL:\n`);
  for (const chunk of told) process.stderr.write(chunk);
}
const ended = { ms: performance.now(), ...readProcessors() };
for (const { passed, skipped, failures, files } of second.flat()) {
  outcome.files.push(...files.map(({ file, seconds }) => ({ file: `${file} (on PostgreSQL)`, seconds })));
  outcome.passed += passed;
  outcome.skipped += skipped;
  outcome.failures.push(...failures.map((failure) => `${failure} (on PostgreSQL)`));
}
await postgres[Symbol.asyncDispose]();
rmSync(folder, { recursive: true, force: true, maxRetries: 3 });
if (found?.ok === false) {
  const count = leftOut.reduce((sum, file) => sum + countTests(file), 0);
  outcome.skipped += count;
  console.log(`\nThe ${count} browser tests were left out, for there is no browser: ${found.why}.`);
  console.log("Install Chrome, Chromium or Edge, or name one by CHROMIUM.");
  if (process.env.CI === "true") outcome.failures.push(`${BROWSER_TESTS} > left out: ${found.why}`);
}
if (outcome.failures.length > 0) {
  console.log(`\n${outcome.failures.length} failed:`);
  for (const failure of outcome.failures) console.log(`  ${failure}`);
  console.log("");
}
if (ended.ms - begun.ms > TOLD_FROM_MS) {
  const parts = [
    { what: "to begin", ms: readyMs - begun.ms },
    { what: "for the suites, with some on PostgreSQL beside them", ms: firstMs - readyMs },
    { what: "for the others on PostgreSQL", ms: ended.ms - firstMs },
  ];
  const busy = 1 - (ended.idleMs - begun.idleMs) / (ended.allMs - begun.allMs);
  console.log(sayTimes(parts, busy, outcome.files));
}
const skipped = outcome.skipped === 0 ? "" : `, ${outcome.skipped} skipped`;
console.log(`${outcome.passed} passed, ${outcome.failures.length} failed${skipped}`);
process.exit(outcome.failures.length === 0 ? 0 : 1);

/** What all processors of this machine did since it started. */
function readProcessors(): { idleMs: number; allMs: number } {
  const times = cpus().map(({ times }) => times);
  const idleMs = times.reduce((sum, { idle }) => sum + idle, 0);
  return {
    idleMs,
    allMs: idleMs + times.reduce((sum, { user, nice, sys, irq }) => sum + user + nice + sys + irq, 0),
  };
}

/** The files of browser tests that these arguments mean: all of them, or those that hold one as `bun test` reads it. */
function listBrowserFiles(args: readonly string[]): string[] {
  if (!existsSync(BROWSER_TESTS)) return [];
  const named = args.filter(isFile);
  return readdirSync(BROWSER_TESTS)
    .filter((name) => name.endsWith(".test.ts"))
    .map((name) => `${BROWSER_TESTS}/${name}`)
    .filter((file) => named.length === 0 || named.some((word) => file.includes(word.replace(/^\.\//, ""))));
}

function isFile(word: string): boolean {
  return !word.startsWith("-") && /[./]/.test(word);
}

/** The suites that these arguments mean and that run on PostgreSQL too. */
function listAgain(args: readonly string[]): string[] {
  if (process.env.TEST_STORE !== undefined) return [];
  const named = args.filter(isFile).map((word) => word.replace(/^\.\//, ""));
  return POSTGRES_SUITES.filter(
    (file) => existsSync(file) && (named.length === 0 || named.some((word) => file.includes(word))),
  );
}

/** A few files each. */
function cutInRuns(files: readonly string[]): string[][] {
  const runs: string[][] = [];
  for (let at = 0; at < files.length; at += FILES_A_RUN) runs.push(files.slice(at, at + FILES_A_RUN));
  return runs;
}

/** Takes runs, one after another, until none is left. */
async function runAgain(runs: string[][]): Promise<Outcome[]> {
  const outcomes: Outcome[] = [];
  for (let files = runs.shift(); files !== undefined; files = runs.shift()) {
    const said: Uint8Array[] = [];
    outcomes.push(
      await runTests([...files, ...words.filter((word) => !isFile(word))], {
        report: join(folder, `report-again-${runs.length}.xml`),
        filesAtOnce: 1,
        leaveOut: false,
        env: { TEST_STORE: "postgres" },
        tell: (chunk) => said.push(chunk),
      }),
    );
    told.push(...said);
  }
  return outcomes;
}

function countTests(file: string): number {
  return readFileSync(file, "utf8").match(/^\s*test(\.each)?\(/gm)?.length ?? 0;
}

interface Pass {
  /** The file that Bun writes its report to. */
  report: string;
  filesAtOnce: number;
  /** Whether the browser tests are left out. */
  leaveOut: boolean;
  env: Record<string, string>;
  /** Takes what the tests say, as it is said. */
  tell(chunk: Uint8Array): void;
}

async function runTests(
  args: readonly string[],
  { report, filesAtOnce, leaveOut, env, tell }: Pass,
): Promise<Outcome> {
  const child = Bun.spawn(
    [
      process.execPath,
      "test",
      "--no-orphans",
      `--parallel=${filesAtOnce}`,
      `--timings=${timings}`,
      "--timeout=60000",
      "--reporter=junit",
      `--reporter-outfile=${report}`,
      ...(leaveOut ? [`--path-ignore-patterns=${BROWSER_TESTS}/**`, "--pass-with-no-tests"] : []),
      ...args,
    ],
    {
      env: {
        ...LATE,
        ...process.env,
        ...(process.stderr.isTTY ? { FORCE_COLOR: "1" } : {}),
        ...env,
        TMPDIR: folder,
        [ASK_VARIABLE]: socket,
      },
      stdin: "ignore",
      stdout: "inherit",
      stderr: "pipe",
    },
  );
  const talk = await passOn(child.stderr, tell);
  const code = await child.exited;
  const outcome = readOutcome(existsSync(report) ? readFileSync(report, "utf8") : "", talk);
  if (code !== 0 && outcome.failures.length === 0)
    outcome.failures.push(`the test run itself ended with ${child.signalCode ?? `code ${code}`}`);
  return outcome;
}

/** Whether enough is free, and programs may be started there. */
function isRoomInMemory(): boolean {
  if (!existsSync(IN_MEMORY)) return false;
  const { bavail, bsize } = statfsSync(IN_MEMORY);
  if (bavail * bsize < ROOM_BYTES) return false;
  try {
    const folder = mkdtempSync(join(IN_MEMORY, "relay-tests-"));
    const program = join(folder, "program");
    writeFileSync(program, "#!/bin/sh\n", { mode: 0o755 });
    const { success } = Bun.spawnSync([program]);
    rmSync(folder, { recursive: true });
    return success;
  } catch {
    return false;
  }
}

/** What the tests say is told at once, and kept to be read. */
async function passOn(stream: ReadableStream<Uint8Array>, tell: Pass["tell"]): Promise<string> {
  let text = "";
  const decoder = new TextDecoder();
  for await (const chunk of stream) {
    tell(chunk);
    text += decoder.decode(chunk, { stream: true });
  }
  return Bun.stripANSI(text);
}
