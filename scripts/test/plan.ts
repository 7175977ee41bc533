/**
 * Which test files run on which database, and in which order. A file that takes long begins before shorter ones, because a long file at the very end
 * would run by itself. Files that mostly wait have lanes of their own, because several of them at once would leave the processors idle.
 */
import { readFileSync } from "node:fs";

type TestStore = "sqlite" | "postgres";

export interface Job {
  file: string;
  store: TestStore;
  /** As measured: seconds of the clock and of the processors. */
  seconds: number;
  coreSeconds: number;
}

/** What each job took, by `file` or `file (PostgreSQL)`: seconds of the clock, seconds of the processors. */
export type Timings = Record<string, readonly [seconds: number, coreSeconds: number]>;

/** A file that was never measured. */
const UNKNOWN: readonly [number, number] = [3, 2];
/** From so many seconds on, a file whose processors are busy for less than this share mostly waits. */
const WAITS_FROM_SECONDS = 5;
const WAITING_SHARE = 0.35;

export function nameJob({ file, store }: Pick<Job, "file" | "store">): string {
  return store === "postgres" ? `${file} (PostgreSQL)` : file;
}

/** Reads the recorded timings; none where the file is absent. */
export function readTimings(path: string): Timings {
  try {
    return JSON.parse(readFileSync(path, "utf8")) as Timings;
  } catch {
    return {};
  }
}

/** The jobs of a run, the longest first. `onPostgres`: the files that run a second time, on PostgreSQL. */
export function planJobs(options: {
  files: readonly string[];
  onPostgres: readonly string[];
  store: TestStore | null;
  timings: Timings;
}): Job[] {
  const { files, onPostgres, store, timings } = options;
  const jobs: Pick<Job, "file" | "store">[] = [];
  if (store !== "postgres") jobs.push(...files.map((file) => ({ file, store: "sqlite" as const })));
  if (store !== "sqlite") {
    jobs.push(
      ...files
        .filter((file) => onPostgres.includes(file))
        .map((file) => ({ file, store: "postgres" as const })),
    );
  }
  return jobs
    .map((job) => {
      const [seconds, coreSeconds] = timings[nameJob(job)] ?? UNKNOWN;
      return { ...job, seconds, coreSeconds };
    })
    .toSorted((one, other) => other.seconds - one.seconds);
}

/** Whether the job mostly waits for timers, processes or a network. */
export function mostlyWaits({ seconds, coreSeconds }: Job): boolean {
  return seconds >= WAITS_FROM_SECONDS && coreSeconds < WAITING_SHARE * seconds;
}
