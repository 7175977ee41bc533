/**
 * Runs the tests (`npm test`) or the long rounds (`npm run test:soak`). It prints a line for each completed file, then each failure in full with
 * the command that runs only that test. The last line is `N passed, N failed`.
 *
 *     npm test                                     every file, many a second time on PostgreSQL (test/kit/postgres-suite.ts)
 *     npm test -- test/rule/template.test.ts       one file
 *     npm test -- test/rule -t "empty"             the tests of a folder whose names match
 *     npm test -- --postgres test/flow/sync        only on PostgreSQL (--sqlite: only on SQLite)
 *     npm run test:soak -- --long                  as many rounds as take an hour
 *     npm test -- --record-timings                 writes what each file took to scripts/test/timings.json
 *
 * A run of all files runs a failed browser file again at the end, with no other file beside it. It counts the second result and prints the first
 * failure, too. Files of other folders get no second run, because a failure there that comes and goes is a fault of the service.
 *
 * Without a browser, the browser tests do not run and count as skipped. With CI=true that is a failure. The tests share one PostgreSQL, which starts
 * when the first test needs it. SIGINT and SIGTERM print the failures so far, end all processes and remove all files.
 */
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { availableParallelism } from "node:os";
import { join } from "node:path";
import { BROWSER_VARIABLE, findBrowser } from "../test/kit/browser-program.ts";
import { ASK_VARIABLE, answerForServer } from "../test/kit/postgres.ts";
import { LONG_POSTGRES_SUITES, POSTGRES_SUITES } from "../test/kit/postgres-suite.ts";
import { readArguments } from "./test/arguments.ts";
import { makePlace, removePlace } from "./test/place.ts";
import {
  type Job,
  mostlyWaits,
  nameJob,
  planBatches,
  planJobs,
  readTimings,
  type Timings,
} from "./test/plan.ts";
import { formatDuration, Progress } from "./test/progress.ts";
import { endJobs, type JobResult, runBatch } from "./test/run-batch.ts";
import { isSoakFile, SOAK_FOLDER } from "./test/soak-files.ts";

const BROWSER_TESTS = "test/browser/";
/** A file of `npm test` that has its own rounds in the soak imports this module. */
const ROUNDS = "kit/rounds.ts";
const TIMINGS = join(import.meta.dir, "test", "timings.json");
/** Lanes that prefer files that mostly wait, in addition to one lane for each processor. Files that compute also wait, for disks and databases. */
const WAITING_LANES = 2;
/** The assumed time of a file with long rounds, because its recorded timing excludes them. It starts first, in its own process. */
const LONG_ROUNDS = [120, 120] as const;
/** A shorter run gets no summary of its time. */
const SUMMARY_FROM_MS = 60_000;
const LONGEST = 10;

const beganMs = performance.now();
const read = readArguments(process.argv.slice(2), process.env);
/** True for the plain command, which leaves out the files of the soak. */
const isShort = !read.soak && read.store === null && read.files.length === 0;
const timings = readTimings(TIMINGS);
const { jobs, leftOut, browser, why } = await chooseJobs();
const place = makePlace();
// Servers that the test kit starts for all tests, such as PostgreSQL, write to this folder too.
process.env.TMPDIR = place;
const socket = join(place, "postgres.ask");
const postgres = answerForServer(socket);
let isStopped = false;
/** The results of completed files. */
const finished: JobResult[] = [];
/** The first results of browser files that ran again. */
const repeated: JobResult[] = [];
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(signal, () => void stop(signal));

const terminal = process.stderr.isTTY === true;
const work = (job: Job): number => Math.max(job.coreSeconds, 0.1);
const progress = new Progress(
  jobs.length,
  jobs.reduce((sum, job) => sum + work(job), 0),
  terminal,
  (text) => process.stderr.write(text),
);
const results = await runAll();
progress.finish();
await postgres[Symbol.asyncDispose]();
removePlace(place);
report();

/** Selects the files of the arguments that can run here. */
async function chooseJobs(): Promise<{
  jobs: Job[];
  leftOut: string[];
  browser: Record<string, string>;
  why: string;
}> {
  const files = [...new Bun.Glob("test/**/*.test.ts").scanSync()]
    .map((file) => file.replaceAll("\\", "/"))
    .filter((file) => read.files.length === 0 || read.files.some((part) => file.includes(part)))
    .filter((file) => isOfThisRun(file))
    .sort();
  const pages = files.filter((file) => file.startsWith(BROWSER_TESTS));
  const found = pages.length === 0 ? null : await findBrowser();
  const leftOut = found?.ok === false ? pages : [];
  const chosen = planJobs({
    files: files.filter((file) => !leftOut.includes(file)),
    onPostgres: POSTGRES_SUITES.filter((file) => !(isShort && LONG_POSTGRES_SUITES.includes(file))),
    store: read.store,
    timings: read.soak
      ? { ...timings, ...Object.fromEntries(files.filter(hasRounds).flatMap(assumeLong)) }
      : timings,
  });
  return {
    // The soak does not repeat files that `npm test` ran.
    jobs: read.soak ? chosen.filter(isOfSoak) : chosen,
    leftOut,
    browser: found?.ok === true ? { [BROWSER_VARIABLE]: JSON.stringify(found.browser) } : {},
    why: found?.ok === false ? found.why : "",
  };
}

/** `npm test` runs all files except the soak's, unless the arguments name files or a database. */
function isOfThisRun(file: string): boolean {
  if (read.soak) return hasRounds(file) || isSoakFile(file) || LONG_POSTGRES_SUITES.includes(file);
  return !isSoakFile(file) || (!isShort && !file.startsWith(SOAK_FOLDER)) || read.files.includes(file);
}

/** True if the soak runs the file on this database, because `npm test` runs none or only some of its rounds. */
function isOfSoak({ file, store }: Job): boolean {
  if (hasRounds(file)) return true;
  return store === "postgres" ? LONG_POSTGRES_SUITES.includes(file) : isSoakFile(file);
}

function hasRounds(file: string): boolean {
  return file.startsWith(SOAK_FOLDER) || (existsSync(file) && readFileSync(file, "utf8").includes(ROUNDS));
}

function assumeLong(file: string): [name: string, took: typeof LONG_ROUNDS][] {
  return (["sqlite", "postgres"] as const).map((store) => [nameJob({ file, store }), LONG_ROUNDS]);
}

/** Returns the file of a job's name. */
function fileOf(name: string): string {
  return name.replace(/ \(PostgreSQL\)$/, "");
}

async function runAll(): Promise<JobResult[]> {
  // A recorded timing includes loading the service, so each file then has its own process.
  const batches = planBatches(jobs, !read.recordTimings);
  const waiting = batches.filter(([first]) => first !== undefined && mostlyWaits(first));
  const computing = batches.filter((batch) => !waiting.includes(batch));
  const options = {
    words: read.passedOn,
    env: {
      ...browser,
      TMPDIR: place,
      [ASK_VARIABLE]: socket,
      ...(read.soak ? { TEST_SOAK: read.long ? "long" : "1" } : {}),
    },
    onBegan: (job: Job) => progress.began(nameJob(job)),
    onEnded(result: JobResult) {
      const { job, passed, failures, skipped, seconds } = result;
      progress.ended({ name: nameJob(job), passed, failed: failures.length, skipped, seconds }, work(job));
      finished.push(result);
    },
    isStopped: () => isStopped,
  };
  // A lane that has completed its own batches takes batches of the other kind.
  const lane = async (first: Job[][], then: Job[][]): Promise<void> => {
    for (
      let batch = first.shift() ?? then.shift();
      batch !== undefined && !isStopped;
      batch = first.shift() ?? then.shift()
    )
      await runBatch(batch, options);
  };
  const computingLanes = Array.from({ length: availableParallelism() }, () => lane(computing, waiting));
  const waitingLanes = Array.from({ length: WAITING_LANES }, () => lane(waiting, computing));
  await Promise.all([...computingLanes, ...waitingLanes]);
  if (read.files.length > 0) return finished;
  for (const first of finished.filter(isFailedPage)) {
    if (isStopped) break;
    finished.splice(finished.indexOf(first), 1);
    repeated.push(first);
    await runBatch([first.job], { ...options, onBegan() {}, onEnded: (result) => finished.push(result) });
  }
  return finished;
}

function isFailedPage({ job, failures }: JobResult): boolean {
  return failures.length > 0 && job.file.startsWith(BROWSER_TESTS);
}

/** Prints the failures of browser files that passed when they ran again. */
function printPassedAgain(): void {
  for (const { job, failures } of repeated) {
    if (finished.some((result) => result.job === job && isFailedPage(result))) continue;
    for (const { test, text } of failures) {
      console.log(`\nFailed at first and passed again: ${nameJob(job)} > ${test ?? "outside a test"}`);
      console.log(text.replace(/^/gm, "    "));
    }
  }
}

/** Prints the failures so far, ends running tests, removes their files, and exits with the code of the signal. */
async function stop(signal: "SIGINT" | "SIGTERM" | "SIGHUP"): Promise<void> {
  if (isStopped) return;
  isStopped = true;
  progress.finish();
  printFailures(finished);
  console.error(`Stopped by ${signal}: ending the tests.`);
  await endJobs();
  await postgres[Symbol.asyncDispose]();
  removePlace(place);
  process.exit(128 + { SIGHUP: 1, SIGINT: 2, SIGTERM: 15 }[signal]);
}

/** Prints each failure in full, with the command that runs only that test. Returns the number of failures. */
function printFailures(ended: readonly JobResult[]): number {
  let failed = 0;
  for (const { job, failures } of ended) {
    for (const { test, text } of failures) {
      failed += 1;
      console.log(`\n✗ ${nameJob(job)} > ${test ?? "outside a test"}`);
      console.log(text.replace(/^/gm, "    "));
      console.log(`    Run only this: ${commandFor(job, test)}`);
    }
  }
  return failed;
}

/** Prints the failures, the summary of time, the skipped tests and the last line with the counts. Exits. */
function report(): void {
  let skipped = results.reduce((sum, result) => sum + result.skipped, 0);
  printPassedAgain();
  let failed = printFailures(results);
  if (leftOut.length > 0) {
    const count = leftOut.reduce((sum, file) => sum + countTests(file), 0);
    skipped += count;
    console.log(`\nSkipped: the ${count} browser tests, because there is no browser (${why}).`);
    console.log("Install Chrome, Chromium or Edge, or set CHROMIUM to the path of one.");
    if (process.env.CI === "true") {
      failed += 1;
      console.log("With CI=true a missing browser is a failure.");
    }
  }
  if (jobs.length === 0 && leftOut.length === 0) {
    failed += 1;
    console.log(`No test file matches ${read.files.join(" ")}.`);
  }
  const passed = results.reduce((sum, result) => sum + result.passed, 0);
  if (results.length > 0 && passed + failed + skipped === 0) {
    failed += 1;
    console.log("No test matches the pattern.");
  }
  const notRun = new Set(results.flatMap((result) => result.notRun));
  if (notRun.size > 0) console.log(`\n${[...notRun].join("\n")}`);
  if (performance.now() - beganMs > SUMMARY_FROM_MS) console.log(`\n${summarize()}`);
  if (read.recordTimings) recordTimings();
  console.log(`${passed} passed, ${failed} failed${skipped === 0 ? "" : `, ${skipped} skipped`}`);
  process.exit(failed === 0 ? 0 : 1);
}

/** Returns the command that runs one test of a file, or the whole file for an error outside a test. */
function commandFor({ file, store }: Job, test: string | null): string {
  const name = test?.split(" > ").at(-1) ?? "";
  const pattern = test === null || name.startsWith("a hook (") ? "" : ` -t '${escapePattern(name)}'`;
  const script = read.soak ? "npm run test:soak" : "npm test";
  return `${script} -- ${store === "postgres" ? "--postgres" : "--sqlite"} ${file}${pattern}`;
}

/** Escapes a test's name for a regular expression between single quotes of a shell. */
function escapePattern(name: string): string {
  return name.replace(/[.*+?^${}()|[\]\\]/g, "\\$&").replaceAll("'", ".");
}

function countTests(file: string): number {
  return readFileSync(file, "utf8").match(/^\s*test(\.each)?\(/gm)?.length ?? 0;
}

/** Returns the duration of the run, the core-seconds by folder, and the longest files. */
function summarize(): string {
  const folders = new Map<string, number>();
  for (const { job, coreSeconds } of results) {
    const folder = `${job.file.split("/").slice(0, 2).join("/")}${job.store === "postgres" ? " (PostgreSQL)" : ""}`;
    folders.set(folder, (folders.get(folder) ?? 0) + coreSeconds);
  }
  const sum = results.reduce((all, { coreSeconds }) => all + coreSeconds, 0);
  const parts = [...folders]
    .toSorted(([, one], [, other]) => other - one)
    .map(([folder, seconds]) => `${folder} ${Math.round(seconds)}`);
  const longest = results.toSorted((one, other) => other.seconds - one.seconds).slice(0, LONGEST);
  return [
    `The run took ${formatDuration(performance.now() - beganMs)} and ${Math.round(sum)} core-seconds: ${parts.join(", ")}.`,
    `The longest files: ${longest.map(({ job, seconds }) => `${nameJob(job)} ${formatDuration(seconds * 1_000)}`).join(", ")}.`,
  ].join("\n");
}

/** Updates the timings of files that ran. It leaves those of other files and removes those of deleted files. */
function recordTimings(): void {
  const all: Timings = {};
  for (const [name, took] of Object.entries(timings)) if (existsSync(fileOf(name))) all[name] = took;
  for (const { job, seconds, coreSeconds } of results)
    all[nameJob(job)] = [Number(seconds.toFixed(1)), Number(coreSeconds.toFixed(1))];
  const sorted = Object.fromEntries(Object.entries(all).toSorted(([one], [other]) => (one < other ? -1 : 1)));
  writeFileSync(
    TIMINGS,
    `${JSON.stringify(sorted, null, 2).replace(/\[\s+([\d.]+),\s+([\d.]+)\s+\]/g, "[$1, $2]")}\n`,
  );
}
