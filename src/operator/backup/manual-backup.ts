/**
 * Makes a backup that an owner requests while the server runs: into the data directory's backups/, one at a time, in a separate process.
 * The service never removes it. The result is shown until the next one.
 */
import { basename } from "node:path";
import type { Clock } from "../../base/clock.ts";
import type { Log } from "../../base/log.ts";
import { backupFile } from "./backup.ts";
import type { BackupProcess, StartBackup } from "./schedule.ts";

interface ManualBackupDeps {
  dataDir: string;
  clock: Clock;
  log: Log;
  start: StartBackup;
  /** Gets the result of each backup, for metrics. */
  onBackup: (made: boolean) => void;
}

/** A requested backup. */
interface RequestedBackup {
  /** The file's name in backups/. */
  name: string;
  startedAt: number;
}

export class ManualBackup {
  readonly #deps: ManualBackupDeps;
  #process: BackupProcess | null = null;
  #running: RequestedBackup | null = null;
  #failed: (RequestedBackup & { message: string }) | null = null;
  #stopped = false;

  constructor(deps: ManualBackupDeps) {
    this.#deps = deps;
  }

  /** The running backup, and the failure of the last one; null if there is none. */
  get state(): { running: RequestedBackup | null; failed: (RequestedBackup & { message: string }) | null } {
    return { running: this.#running, failed: this.#failed };
  }

  /** Starts a backup unless one runs. Returns the running one, and whether it began now. */
  start(): { backup: RequestedBackup; isNew: boolean } {
    if (this.#running !== null) return { backup: this.#running, isNew: false };
    const { dataDir, clock, start } = this.#deps;
    const startedAt = clock.now();
    const file = backupFile(dataDir, "by-hand", startedAt);
    const backup = { name: basename(file), startedAt };
    this.#running = backup;
    this.#failed = null;
    void this.#make(backup, () => start(file));
    return { backup, isNew: true };
  }

  /** Ends a running backup. */
  stop(): void {
    this.#stopped = true;
    this.#process?.stop();
  }

  /** A process that cannot start counts as a failed backup. */
  async #make(backup: RequestedBackup, start: () => BackupProcess): Promise<void> {
    const { log, onBackup } = this.#deps;
    try {
      this.#process = start();
      await this.#process.done;
      log.info("backup made", { file: backup.name });
      onBackup(true);
    } catch (error) {
      const message = (error as Error).message;
      this.#failed = { ...backup, message };
      if (!this.#stopped) {
        log.error("the backup that was asked for was not made", { cause: message });
        onBackup(false);
      }
    } finally {
      this.#running = null;
      this.#process = null;
    }
  }
}
