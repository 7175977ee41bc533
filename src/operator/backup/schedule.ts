/**
 * Makes backups on a schedule into the data directory's backups/, and keeps the newest few. The name of a backup has its time, so a
 * restart neither skips nor repeats one. This file starts the copy in another process, and removes only scheduled backups.
 */
import { rmSync } from "node:fs";
import { constants, setPriority } from "node:os";
import { type Clock, Loop } from "../../base/clock.ts";
import { MINUTE_MS } from "../../base/limit.ts";
import type { Log } from "../../base/log.ts";
import { ownCommand } from "../../base/own-executable.ts";
import { backupFile, listPartialScheduled, listScheduledBackups, type ScheduledBackup } from "./backup.ts";

/** A start has more urgent work. */
const FIRST_LOOK_MS = MINUTE_MS;
/** The wall clock may jump, so it is checked more often than backups are due. */
const LOOK_EVERY_MS = 15 * MINUTE_MS;

/** The period of scheduled backups, and how many of them stay. */
export interface BackupPlan {
  everyMs: number;
  /** The number of scheduled backups to keep, including the new one. */
  keep: number;
}

interface BackupScheduleDeps {
  dataDir: string;
  /** Returns the plan in force, or null while automatic backups are off. Each turn reads it. */
  readPlan: () => Promise<BackupPlan | null>;
  clock: Clock;
  log: Log;
  start: StartBackup;
  /** Gets the result of each backup, for metrics. */
  onBackup?: (made: boolean) => void;
}

export class BackupSchedule {
  readonly #deps: BackupScheduleDeps;
  readonly #loop: Loop;
  #process: BackupProcess | null = null;

  /** Begins at once. */
  constructor(deps: BackupScheduleDeps) {
    this.#deps = deps;
    this.#loop = new Loop({
      clock: deps.clock,
      everyMs: LOOK_EVERY_MS,
      turn: () => this.#turn(),
      onError: (error) =>
        deps.log.error("the scheduled backup was not made", { cause: (error as Error).message }),
    });
    void this.#loop.start(FIRST_LOOK_MS);
  }

  /** Reads the plan again, and makes a backup if one is due. */
  wake(): void {
    this.#loop.wake();
  }

  /** Ends the schedule and a running backup. */
  async stop(): Promise<void> {
    const stopped = this.#loop.stop();
    this.#process?.stop();
    await stopped;
  }

  async #turn(): Promise<number | undefined> {
    const plan = await this.#deps.readPlan();
    if (plan === null) return undefined;
    const waitMs = this.#dueInMs(plan, this.#deps.clock.now());
    if (waitMs > 0) return waitMs;
    await this.#makeOne(plan);
  }

  #dueInMs({ everyMs }: BackupPlan, nowMs: number): number {
    const [newest] = listNewestFirst(this.#deps.dataDir, nowMs);
    return newest === undefined || newest.atMs > nowMs ? 0 : newest.atMs + everyMs - nowMs;
  }

  async #makeOne(plan: BackupPlan): Promise<void> {
    const { dataDir, clock, log, start, onBackup } = this.#deps;
    const startedMs = clock.monotonicMs();
    this.#removePartialFiles();
    this.#process = start(backupFile(dataDir, "scheduled", clock.now()));
    try {
      await this.#process.done;
    } catch (error) {
      if (this.#loop.running) onBackup?.(false);
      else this.#removePartialFiles();
      throw error;
    } finally {
      this.#process = null;
    }
    if (!this.#loop.running) return;
    log.info("backup made", { tookMs: Math.round(clock.monotonicMs() - startedMs) });
    this.#prune(plan);
    onBackup?.(true);
  }

  #prune({ keep }: BackupPlan): void {
    const { dataDir, clock, log } = this.#deps;
    for (const { file } of listNewestFirst(dataDir, clock.now()).slice(keep)) {
      try {
        rmSync(file, { force: true });
      } catch (error) {
        log.warn("an old backup could not be removed", { cause: (error as Error).message });
      }
    }
  }

  /** Leaves files that the disk does not let it remove; the next backup removes them. */
  #removePartialFiles(): void {
    for (const file of listPartialScheduled(this.#deps.dataDir)) {
      try {
        rmSync(file, { force: true });
      } catch {}
    }
  }
}

/** A backup with a time in the future was made before the clock was set back, so it counts as the oldest. */
function listNewestFirst(dataDir: string, nowMs: number): ScheduledBackup[] {
  const all = listScheduledBackups(dataDir);
  return [...all.filter(({ atMs }) => atMs <= nowMs), ...all.filter(({ atMs }) => atMs > nowMs)];
}

/** A running backup. */
export interface BackupProcess {
  /** Resolves when the backup is made. Rejects with the process's message. */
  done: Promise<void>;
  /** Ends it at once. */
  stop(): void;
}

export type StartBackup = (file: string) => BackupProcess;

/** Starts `relay backup <file>` on the data directory. `command` is how to call this program. */
export function makeBackupStarter(dataDir: string, command: readonly string[] = ownCommand()): StartBackup {
  return (file) => {
    const { RELAY_MASTER_KEY: _key, RELAY_DATABASE: _database, ...env } = process.env;
    return startProcess([...command, "backup", file, "--data-dir", dataDir, "--json"], env);
  };
}

/** Starts a command with the lowest processor priority. */
export function startProcess(
  command: readonly string[],
  env: Readonly<Record<string, string | undefined>>,
): BackupProcess {
  const child = Bun.spawn([...command], {
    stdin: "ignore",
    stdout: "ignore",
    stderr: "pipe",
    env: { ...env },
  });
  lowerPriority(child.pid);
  return { done: waitForExit(child), stop: () => child.kill() };
}

async function waitForExit(child: Bun.Subprocess<"ignore", "ignore", "pipe">): Promise<void> {
  const output = await new Response(child.stderr).text();
  const code = await child.exited;
  if (code === 0) return;
  throw new Error(
    output.trim().split("\n")[0] || `the backup's process ended with ${child.signalCode ?? code}`,
  );
}

function lowerPriority(pid: number): void {
  try {
    setPriority(pid, constants.priority.PRIORITY_LOW);
  } catch {
    // The process has ended, or the system does not allow it. Then the priority stays.
  }
}
