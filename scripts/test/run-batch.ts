/** Runs test files in one process, one after another, and ends all processes that they started. */

import { readFileSync } from "node:fs";
import { type Outcome, readOutcome } from "./outcome.ts";
import type { Job } from "./plan.ts";

/**
 * Each process compiles its functions again, and calls few of them often enough to justify the optimizing compiler. That compiler takes a tenth of
 * the time of most files. With these values it starts after ten times as many calls as by default. If it never started, files that compute much would
 * take a fifth longer.
 */
const LATE_COMPILER = Object.fromEntries(
  ["AfterWarmUp", "AfterLongWarmUp", "Soon"].map((when) => [`BUN_JSC_thresholdForOptimize${when}`, "10000"]),
);
/** The limit of one test, on the slowest machine. */
const TEST_TIMEOUT_MS = 600_000;
/** A process that printed nothing for this long is hung. On a machine with a load of ten for each core, a build of all releases prints nothing for 20 minutes. */
const SILENCE_MS = 2_400_000;
const RELEVANT_OUTPUT_LINES = 30;
/** The message that the pattern of names matches no test of a file, which is not a failure. */
const NOTHING_TO_RUN = /matched 0 tests|did not match any test/;
/** Index in /proc/<pid>/stat after the name where utime, stime, cutime and cstime begin (proc(5)). */
const USER_TIME = 11;
const TICKS_PER_SECOND = 100;
const HEADING = /^(\S+\.test\.tsx?):$/;
/** The output repeats the failures after this line. */
const REPEATED = /^\d+ tests? failed:$/;

export interface JobResult extends Outcome {
  job: Job;
  seconds: number;
  /** Core-seconds of all processes that the file started. If there is no /proc, the last file of a shared process has those of all its files. */
  coreSeconds: number;
  /** The sentences about tests that do not run on this machine (test/kit/not-run.ts). */
  notRun: string[];
}

interface BatchOptions {
  /** Arguments for `bun test`. */
  words: readonly string[];
  env: Readonly<Record<string, string | undefined>>;
  onBegan(job: Job): void;
  onEnded(result: JobResult): void;
  isStopped(): boolean;
}

const running = new Set<Bun.Subprocess>();

/** Runs files of one database in one process, one after another. If a file ends the process, the files after it run in another one. */
export async function runBatch(jobs: readonly Job[], options: BatchOptions): Promise<void> {
  for (let left = jobs; left.length > 0 && !options.isStopped(); ) {
    const ran = await runProcess(left, options);
    left = left.filter((job) => !ran.has(job));
  }
}

/** Runs files in one process. Resolves with the files that ran: all, or those up to the one that ended the process. */
async function runProcess(jobs: readonly Job[], options: BatchOptions): Promise<Set<Job>> {
  const child = startProcess(jobs, options);
  running.add(child);
  let silence: Timer | undefined;
  const resetSilence = (): void => {
    clearTimeout(silence);
    silence = setTimeout(() => child.kill("SIGKILL"), SILENCE_MS);
  };
  resetSilence();
  const results = new Map<Job, JobResult>();
  let current = jobs[0] as Job;
  let printed = "";
  let output = "";
  let isRepeating = false;
  let beganMs = performance.now();
  let used = 0;
  const begin = (job: Job): void => {
    current = job;
    printed = "";
    output = "";
    beganMs = performance.now();
    options.onBegan(job);
  };
  /** `total` is the core-seconds of the process so far. */
  const end = (total: number, signal: string | null, failure: string | null): void => {
    const outcome = readOutcome(printed, signal);
    if (failure !== null) outcome.failures.push({ test: null, text: failure });
    addOutput(outcome, output, jobs.slice(0, jobs.indexOf(current)));
    const result = {
      job: current,
      ...outcome,
      seconds: (performance.now() - beganMs) / 1_000,
      coreSeconds: total - used,
      notRun: output.split("\n").filter((line) => line.startsWith("Not run: ")),
    };
    used = total;
    results.set(current, result);
    if (!options.isStopped()) options.onEnded(result);
  };
  const readLine = (line: string): void => {
    isRepeating ||= REPEATED.test(line);
    const file = isRepeating ? null : HEADING.exec(line)?.[1];
    const job = jobs.find((one) => one.file === file);
    if (job !== undefined && job !== current) {
      end(readCoreSeconds(child.pid) ?? used, null, null);
      begin(job);
    }
    printed += `${line}\n`;
  };
  options.onBegan(current);
  await Promise.all([
    readText(child.stdout, (text) => {
      resetSilence();
      output += text;
    }),
    readLines(child.stderr, (line) => {
      resetSilence();
      readLine(Bun.stripANSI(line));
    }),
  ]);
  const code = await child.exited;
  clearTimeout(silence);
  running.delete(child);
  const signal = child.signalCode === null ? null : String(child.signalCode);
  const isExplained =
    code === 0 ||
    signal !== null ||
    NOTHING_TO_RUN.test(printed) ||
    readOutcome(printed, null).failures.length > 0 ||
    [...results.values()].some(({ failures }) => failures.length > 0);
  end(
    Number(child.resourceUsage()?.cpuTime.total ?? 0) / 1e6,
    signal,
    isExplained ? null : `The process ended with code ${code}.\n${printed.trim()}`,
  );
  if (signal === null && isExplained) {
    // Bun prints nothing about a file in which the pattern of names matches no test.
    for (const job of jobs.filter((one) => !results.has(one))) {
      begin(job);
      end(used, null, null);
    }
  }
  return new Set(results.keys());
}

function startProcess(jobs: readonly Job[], { words, env }: BatchOptions) {
  const files = jobs.map(({ file }) => `./${file}`);
  return Bun.spawn(
    [process.execPath, "test", "--no-orphans", `--timeout=${TEST_TIMEOUT_MS}`, ...words, ...files],
    {
      env: {
        ...LATE_COMPILER,
        ...process.env,
        ...env,
        TEST_STORE: jobs[0]?.store === "postgres" ? "postgres" : undefined,
      },
      stdin: "ignore",
      stdout: "pipe",
      stderr: "pipe",
    },
  );
}

/** Adds the output of the file to the first failure, and the files that ran before it in the same process. */
function addOutput({ failures }: Outcome, output: string, before: readonly Job[]): void {
  const [first] = failures;
  if (first === undefined) return;
  const printed = output
    .split("\n")
    .filter((line) => !line.startsWith("bun test v"))
    .join("\n")
    .trim()
    .split("\n")
    .slice(-RELEVANT_OUTPUT_LINES)
    .join("\n");
  if (printed !== "") first.text += `\n\nThe file printed:\n${printed}`;
  if (before.length > 0)
    first.text += `\n\nIn the same process ran before: ${before.map(({ file }) => file).join(" ")}`;
}

/** Returns the core-seconds so far of a process and of its ended children, or null if the system does not report them. */
function readCoreSeconds(pid: number): number | null {
  try {
    const fields = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1]?.split(" ") ?? [];
    const ticks = fields.slice(USER_TIME, USER_TIME + 4).map(Number);
    return ticks.reduce((sum, one) => sum + one, 0) / TICKS_PER_SECOND;
  } catch {
    return null;
  }
}

/** Ends every running process and all processes that it started. A signal handler calls it. */
export function endJobs(): void {
  for (const child of running) child.kill("SIGTERM");
}

async function readText(stream: ReadableStream<Uint8Array>, onText: (text: string) => void): Promise<void> {
  const decoder = new TextDecoder();
  for await (const chunk of stream) onText(decoder.decode(chunk, { stream: true }));
}

async function readLines(stream: ReadableStream<Uint8Array>, onLine: (line: string) => void): Promise<void> {
  let rest = "";
  await readText(stream, (text) => {
    const lines = (rest + text).split("\n");
    rest = lines.pop() ?? "";
    lines.forEach(onLine);
  });
  if (rest !== "") onLine(rest);
}
