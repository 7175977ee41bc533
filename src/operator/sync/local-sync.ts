/**
 * Runs local development's sync, so that the service directory and the environment `local` are the same within a second of a save on
 * either side. It runs before and after a save, after notices of the file system, and every two seconds for file systems without notices.
 */
import { type FSWatcher, watch } from "node:fs";
import { Loop } from "../../base/clock.ts";
import { relaysFolder } from "./definition-file.ts";
import { LocalFiles, type SavedFileResult } from "./local-files.ts";
import type { LocalDeps } from "./local-secret.ts";

/** An editor's save causes several notices: truncate, write, rename. */
const DEBOUNCE_MS = 100;
const POLL_MS = 2_000;

/** The folder to whose files a save is written. A target is `relay:checkout`, or `catalog`. */
export interface ProjectFolder {
  /** Applies changed files before a save. Throws `version_conflict` where the file of a target cannot be applied. */
  prepare(targets: readonly string[]): Promise<void>;
  /** Writes to the files what was saved. `file` is that of the first target. Never throws, because the save is done. */
  settle(targets: readonly string[]): Promise<SavedFileResult>;
}

export interface LocalSync extends ProjectFolder, AsyncDisposable {
  /** Runs now. Resolves when all changes are applied and written. */
  look(): Promise<void>;
}

/** Applies the files, then watches them until it is disposed. */
export async function startLocalSync(deps: LocalDeps): Promise<LocalSync> {
  const { clock, serviceDir, store, print } = deps;
  const files = new LocalFiles(deps);
  let edited = false;
  let looking: Promise<void> = Promise.resolve();
  const look = (past: boolean): Promise<void> => {
    looking = looking.then(
      () => files.sync(past),
      () => files.sync(past),
    );
    return looking;
  };
  await look(true);
  let cancelGathering: (() => void) | null = null;
  const folders = new WatchedFolders([serviceDir, relaysFolder(serviceDir)], () => {
    cancelGathering ??= clock.after(DEBOUNCE_MS, () => {
      cancelGathering = null;
      loop.wake();
    });
  });
  const loop = new Loop({
    clock,
    everyMs: POLL_MS,
    turn: async () => {
      folders.attach();
      const past = edited;
      edited = false;
      await look(past);
      return files.nextSyncMs ?? undefined;
    },
    onError: (error) =>
      print(`The files could not be applied (${(error as Error).message}); they will be retried.`),
  });
  folders.attach();
  // A command next to the service changes the catalog too.
  const stopWatching = store.watch(({ foreignChange }) => {
    if (!foreignChange) return;
    edited = true;
    loop.wake();
  });
  await loop.start(files.nextSyncMs ?? POLL_MS);
  return {
    look: () => look(true),
    async prepare(targets) {
      // An error is reported after the save.
      await look(false).catch(() => undefined);
      for (const target of targets) files.requireInSync(target);
    },
    async settle(targets) {
      try {
        await look(true);
        if (files.nextSyncMs !== null) loop.wake();
        const results = targets.map((target) => files.resultOf(target));
        return { ...results[0], warnings: results.flatMap(({ warnings }) => warnings) };
      } catch (error) {
        const message = `The files could not be looked at (${(error as Error).message}): what was saved is in force, and is written as soon as it can be.`;
        return { warnings: [{ code: "file_not_written", field: "", message }] };
      }
    },
    async [Symbol.asyncDispose]() {
      stopWatching();
      folders.close();
      cancelGathering?.();
      await loop.stop();
      await looking.catch(() => undefined);
    },
  };
}

/** Reports changes in folders, not in their subfolders. */
class WatchedFolders {
  readonly #folders: readonly string[];
  readonly #onChange: () => void;
  readonly #watchers = new Map<string, FSWatcher>();

  constructor(folders: readonly string[], onChange: () => void) {
    this.#folders = folders;
    this.#onChange = onChange;
  }

  /** Watches folders that appeared. Polling still finds changes where the system cannot watch. */
  attach(): void {
    for (const folder of this.#folders) {
      if (this.#watchers.has(folder)) continue;
      try {
        const watcher = watch(folder, { persistent: false }, this.#onChange);
        this.#watchers.set(folder, watcher);
        watcher.on("error", () => {
          watcher.close();
          this.#watchers.delete(folder);
        });
      } catch {
        // The folder is missing, or cannot be watched.
      }
    }
  }

  close(): void {
    for (const watcher of this.#watchers.values()) watcher.close();
  }
}
