/**
 * Plans which test files run on which database, in which order, and which of them share a process. A file that takes long begins before shorter
 * ones, because a long file at the very end would run by itself. Files that mostly wait have their own lanes, because several of them at once
 * would leave the processors idle. Short files share processes, because loading the service costs as much as most of them compute.
 */
import { readFileSync } from "node:fs";

type TestStore = "sqlite" | "postgres";

export interface Job {
  file: string;
  store: TestStore;
  /** Measured wall-clock time. `coreSeconds` is the measured CPU time. */
  seconds: number;
  coreSeconds: number;
}

/** The timings of each job by `file` or `file (PostgreSQL)`. */
export type Timings = Record<string, readonly [seconds: number, coreSeconds: number]>;

/** The assumed timing of a file that was never measured. */
const UNKNOWN: readonly [number, number] = [3, 2];
/** A file that takes at least this long mostly waits if its processors are busy for less than the share below. */
const WAITS_FROM_SECONDS = 5;
const WAITING_SHARE = 0.35;
/** A file that computes for less than this shares a process. The files of one process together compute for at most the value below. */
const SHARES_BELOW_CORE_SECONDS = 6;
const SHARED_CORE_SECONDS = 24;
/** Folders whose files start processes, load one module or count what a whole process does. Each such file needs its own process. */
const OWN_PROCESS = ["test/crash/", "test/house/", "test/soak/", "test/upgrade/"];

export function nameJob({ file, store }: Pick<Job, "file" | "store">): string {
  return store === "postgres" ? `${file} (PostgreSQL)` : file;
}

/** Reads the recorded timings. Returns none if the file is missing. */
export function readTimings(path: string): Timings {
  try {
    return JSON.parse(readFileSync(path, "utf8")) as Timings;
  } catch {
    return {};
  }
}

/** Plans the jobs of a run, longest first. `onPostgres` lists the files that also run on PostgreSQL. */
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

/** Returns true if the job mostly waits for timers, processes or a network. */
export function mostlyWaits({ seconds, coreSeconds }: Job): boolean {
  return seconds >= WAITS_FROM_SECONDS && coreSeconds < WAITING_SHARE * seconds;
}

/**
 * Groups ordered jobs into those that share a process. Files of different folders or databases never share one. If `isShared` is false, each file
 * has its own process.
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
