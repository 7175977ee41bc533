/**
 * Backups by themselves: one every so often into the data directory's backups/, the newest few kept. When the last one was made stands in its
 * name, so that a restart neither skips one nor makes one too many. It copies nothing itself and removes no backup it did not make.
 */
import { rmSync } from "node:fs";
import type { Clock } from "../ground/clock.ts";
import type { Log } from "../ground/log.ts";
import type { BackupProcess, StartBackup } from "./child.ts";
import { backupFile, listScheduledBackups, listScheduledParts, type NamedBackup } from "./place.ts";

const MINUTE_MS = 60_000;
/** A start has other things to do. */
const FIRST_LOOK_MS = MINUTE_MS;
/** The wall clock may jump, so it is looked at more often than backups are due. */
const LOOK_EVERY_MS = 15 * MINUTE_MS;

export interface BackupScheduleRooms {
  dataDir: string;
  everyMs: number;
  /** How many scheduled ones are kept, the new one counted. */
  keep: number;
  clock: Clock;
  log: Log;
  start: StartBackup;
  /** Told how each one ended, for metrics. */
  onBackup?: (made: boolean) => void;
}

export class BackupSchedule {
  readonly #rooms: BackupScheduleRooms;
  #cancel: () => void;
  #running: { process: BackupProcess; ended: Promise<void> } | null = null;
  #stopped = false;

  /** Begins at once. */
  constructor(rooms: BackupScheduleRooms) {
    this.#rooms = rooms;
    this.#cancel = rooms.clock.after(FIRST_LOOK_MS, () => this.#look());
  }

  /** Makes no more; one that is being made is ended. */
  async stop(): Promise<void> {
    this.#stopped = true;
    this.#cancel();
    this.#running?.process.stop();
    await this.#running?.ended;
  }

  #look(): void {
    const { clock } = this.#rooms;
    const waitMs = this.#dueInMs(clock.now());
    if (waitMs <= 0) this.#begin();
    else this.#cancel = clock.after(Math.min(waitMs, LOOK_EVERY_MS), () => this.#look());
  }

  #dueInMs(nowMs: number): number {
    const { dataDir, everyMs } = this.#rooms;
    const [newest] = newestFirst(dataDir, nowMs);
    return newest === undefined || newest.atMs > nowMs ? 0 : newest.atMs + everyMs - nowMs;
  }

  #begin(): void {
    const { dataDir, clock, start } = this.#rooms;
    this.#removeParts();
    const process = start(backupFile(dataDir, "scheduled", clock.now()));
    this.#running = { process, ended: this.#follow(process) };
  }

  /** Never rejects. */
  async #follow(process: BackupProcess): Promise<void> {
    const { clock, log, onBackup } = this.#rooms;
    const startedMs = clock.monotonicMs();
    let made = true;
    try {
      await process.done;
    } catch (error) {
      made = false;
      if (!this.#stopped) log.error("the scheduled backup was not made", { cause: (error as Error).message });
    }
    this.#running = null;
    if (this.#stopped) {
      this.#removeParts();
      return;
    }
    if (made) {
      log.info("backup made", { tookMs: Math.round(clock.monotonicMs() - startedMs) });
      this.#prune();
    }
    onBackup?.(made);
    this.#cancel = clock.after(LOOK_EVERY_MS, () => this.#look());
  }

  #prune(): void {
    const { dataDir, keep, clock, log } = this.#rooms;
    for (const { file } of newestFirst(dataDir, clock.now()).slice(keep)) {
      try {
        rmSync(file, { force: true });
      } catch (error) {
        log.warn("an old backup could not be removed", { cause: (error as Error).message });
      }
    }
  }

  #removeParts(): void {
    for (const file of listScheduledParts(this.#rooms.dataDir)) rmSync(file, { force: true });
  }
}

/** One whose name lies in the future was made before the clock was set back: it counts as the oldest. */
function newestFirst(dataDir: string, nowMs: number): NamedBackup[] {
  const all = listScheduledBackups(dataDir);
  return [...all.filter(({ atMs }) => atMs <= nowMs), ...all.filter(({ atMs }) => atMs > nowMs)];
}
