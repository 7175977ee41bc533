/**
 * A backup that an owner asks for while the server runs: into the data directory's backups/, one at a time, in a process of its own. It is
 * never removed by itself; how it ended is told until the next one.
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
  /** Told how each one ended, for metrics. */
  onBackup: (made: boolean) => void;
}

/** One that was asked for. */
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

  /** The one that is being made, and how the last one failed; null: there is none, it did not. */
  get state(): { running: RequestedBackup | null; failed: (RequestedBackup & { message: string }) | null } {
    return { running: this.#running, failed: this.#failed };
  }

  /** Begins one, unless one is being made. Answers that one, and whether it began now. */
  start(): { asked: RequestedBackup; began: boolean } {
    if (this.#running !== null) return { asked: this.#running, began: false };
    const { dataDir, clock, start } = this.#deps;
    const startedAt = clock.now();
    const file = backupFile(dataDir, "by-hand", startedAt);
    const asked = { name: basename(file), startedAt };
    this.#running = asked;
    this.#failed = null;
    void this.#make(asked, () => start(file));
    return { asked, began: true };
  }

  /** Ends one that is being made. */
  stop(): void {
    this.#stopped = true;
    this.#process?.stop();
  }

  /** A process that does not even begin is a backup that was not made. */
  async #make(asked: RequestedBackup, start: () => BackupProcess): Promise<void> {
    const { log, onBackup } = this.#deps;
    try {
      this.#process = start();
      await this.#process.done;
      log.info("backup made", { file: asked.name });
      onBackup(true);
    } catch (error) {
      const message = (error as Error).message;
      this.#failed = { ...asked, message };
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
