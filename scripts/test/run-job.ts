/** Runs one test file in a process of its own, and ends whatever it started. */

import { type Outcome, readOutcome } from "./outcome.ts";
import type { Job } from "./plan.ts";

/**
 * A function is compiled anew in every process, and few are called as often there as would pay for the optimizing compiler, which takes a tenth of what
 * most files cost. It begins after ten times as many calls as by default; without it, files that compute much take a fifth longer.
 */
const LATE_COMPILER = Object.fromEntries(
  ["AfterWarmUp", "AfterLongWarmUp", "Soon"].map((when) => [`BUN_JSC_thresholdForOptimize${when}`, "10000"]),
);
/** One test may take so long, on the slowest machine. */
const TEST_TIMEOUT_MS = 600_000;
/** A process that printed nothing for so long does not end by itself. */
const SILENCE_MS = 900_000;
const RELEVANT_OUTPUT_LINES = 30;

export interface JobResult extends Outcome {
  job: Job;
  seconds: number;
  coreSeconds: number;
}

interface JobOptions {
  /** Words for `bun test`. */
  words: readonly string[];
  env: Readonly<Record<string, string | undefined>>;
  color: boolean;
}

const running = new Set<Bun.Subprocess>();

/** Resolves with the outcome; `seconds` by the clock, `coreSeconds` of all its processes. */
export async function runJob(job: Job, { words, env, color }: JobOptions): Promise<JobResult> {
  const beganMs = performance.now();
  const child = Bun.spawn(
    [process.execPath, "test", "--no-orphans", `--timeout=${TEST_TIMEOUT_MS}`, ...words, `./${job.file}`],
    {
      env: {
        ...LATE_COMPILER,
        ...process.env,
        ...env,
        ...(color ? { FORCE_COLOR: "1" } : {}),
        ...(job.store === "postgres" ? { TEST_STORE: "postgres" } : { TEST_STORE: undefined }),
      },
      stdin: "ignore",
      stdout: "pipe",
      stderr: "pipe",
    },
  );
  running.add(child);
  let silence = setTimeout(() => undefined, 0);
  const watch = (): void => {
    clearTimeout(silence);
    silence = setTimeout(() => child.kill("SIGKILL"), SILENCE_MS);
  };
  watch();
  const [output, said] = await Promise.all([readAll(child.stdout, watch), readAll(child.stderr, watch)]);
  const code = await child.exited;
  clearTimeout(silence);
  running.delete(child);
  const outcome = readOutcome(
    Bun.stripANSI(said),
    child.signalCode === null ? null : String(child.signalCode),
  );
  if (code !== 0 && child.signalCode === null && outcome.failures.length === 0 && !isNothingToRun(said)) {
    outcome.failures.push({ test: null, text: `The process ended with code ${code}.\n${said.trim()}` });
  }
  const printed = output
    .split("\n")
    .slice(2)
    .join("\n")
    .trim()
    .split("\n")
    .slice(-RELEVANT_OUTPUT_LINES)
    .join("\n");
  for (const failure of outcome.failures.slice(0, 1))
    if (printed !== "") failure.text += `\n\nThe file printed:\n${printed}`;
  const used = child.resourceUsage()?.cpuTime;
  return {
    job,
    ...outcome,
    seconds: (performance.now() - beganMs) / 1_000,
    coreSeconds: used === undefined ? 0 : Number(used.total) / 1e6,
  };
}

/** Ends every process that runs, with whatever it started; a signal handler calls it. */
export function endJobs(): void {
  for (const child of running) child.kill("SIGTERM");
}

/** A pattern of names that matches no test of a file is no failure of that file. */
function isNothingToRun(said: string): boolean {
  return /matched 0 tests|did not match any test/.test(said);
}

async function readAll(stream: ReadableStream<Uint8Array>, heard: () => void): Promise<string> {
  let text = "";
  const decoder = new TextDecoder();
  for await (const chunk of stream) {
    heard();
    text += decoder.decode(chunk, { stream: true });
  }
  return text + decoder.decode();
}
