/**
 * Which test files run on which database, in which order, and which of them share a process. A file that takes long begins before shorter ones,
 * because a long file at the very end would run by itself. Files that mostly wait have lanes of their own, because several of them at once would
 * leave the processors idle. Short files share processes, because loading the service costs as much as most of them compute.
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
/** A file that computes for less than this shares a process, with others until they compute for so long together. */
const SHARES_BELOW_CORE_SECONDS = 6;
const SHARED_CORE_SECONDS = 24;
/** These start processes of their own, load one module or count what a whole process does. */
const OWN_PROCESS = ["test/crash/", "test/house/", "test/soak/", "test/upgrade/"];

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

/**
 * Groups jobs of one order into those that share a process. Files of different folders or databases never share one. `isShared`: false gives each
 * file a process of its own.
 */
export function planBatches(jobs: readonly Job[], isShared: boolean): Job[][] {
  const batches: Job[][] = [];
  const open = new Map<string, { jobs: Job[]; coreSeconds: number }>();
  for (const job of jobs) {
    const own = OWN_PROCESS.some((folder) => job.file.startsWith(folder));
    if (!isShared || own || job.coreSeconds >= SHARES_BELOW_CORE_SECONDS || mostlyWaits(job)) {
      batches.push([job]);
      continue;
    }
    const key = `${job.store} ${job.file.split("/").slice(0, 2).join("/")}`;
    let batch = open.get(key);
    if (batch === undefined || batch.coreSeconds + job.coreSeconds > SHARED_CORE_SECONDS) {
      batch = { jobs: [], coreSeconds: 0 };
      open.set(key, batch);
      batches.push(batch.jobs);
    }
    batch.jobs.push(job);
    batch.coreSeconds += job.coreSeconds;
  }
  const secondsOf = (batch: readonly Job[]): number => batch.reduce((sum, { seconds }) => sum + seconds, 0);
  return batches.toSorted((one, other) => secondsOf(other) - secondsOf(one));
}
