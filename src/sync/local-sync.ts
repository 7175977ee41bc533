/**
 * Local development: the files of the service directory are the relays and the catalog of the environment `local`, within a second of a
 * save. When to look is decided here: at the system's own notices, gathered for a moment, and every other second for file systems that
 * give none.
 */
import { type FSWatcher, watch } from "node:fs";
import { Loop } from "../ground/clock.ts";
import { relaysFolder } from "./definition-file.ts";
import { LocalFiles } from "./local-files.ts";
import type { LocalDeps } from "./local-secret.ts";

/** An editor's save is several notices: truncate, write, rename. */
const GATHER_MS = 100;
const POLL_MS = 2_000;

export interface LocalSync extends AsyncDisposable {
  /** Looks at the files now; resolves when what changed is applied. */
  look(): Promise<void>;
}

/** Applies the files, then watches them until it is disposed. */
export async function startLocalSync(deps: LocalDeps): Promise<LocalSync> {
  const { clock, serviceDir, tell } = deps;
  const files = new LocalFiles(deps);
  let looking: Promise<void> = Promise.resolve();
  const look = (): Promise<void> => {
    looking = looking.then(
      () => files.look(),
      () => files.look(),
    );
    return looking;
  };
  await look();
  let cancelGathering: (() => void) | null = null;
  const folders = new WatchedFolders([serviceDir, relaysFolder(serviceDir)], () => {
    cancelGathering ??= clock.after(GATHER_MS, () => {
      cancelGathering = null;
      loop.wake();
    });
  });
  const loop = new Loop({
    clock,
    everyMs: POLL_MS,
    turn: async () => {
      folders.attach();
      await look();
      return files.unsure ? GATHER_MS : undefined;
    },
    onError: (error) =>
      tell(`The files could not be applied (${(error as Error).message}); they are tried again.`),
  });
  folders.attach();
  await loop.start(POLL_MS);
  return {
    look,
    async [Symbol.asyncDispose]() {
      folders.close();
      cancelGathering?.();
      await loop.stop();
    },
  };
}

/** Notices of changes in folders, not below them. */
class WatchedFolders {
  readonly #folders: readonly string[];
  readonly #onChange: () => void;
  readonly #watchers = new Map<string, FSWatcher>();

  constructor(folders: readonly string[], onChange: () => void) {
    this.#folders = folders;
    this.#onChange = onChange;
  }

  /** Watches those that were not there before. Where the system has no watch to give, polling finds changes all the same. */
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
        // Not there yet, or not to be watched.
      }
    }
  }

  close(): void {
    for (const watcher of this.#watchers.values()) watcher.close();
  }
}
