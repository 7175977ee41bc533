/**
 * Says when something in a few folders may have changed: the system's own notices, gathered for a moment, and a look every other second
 * for file systems that give none. What changed is the listener's to find out; it is called once at a time.
 */
import { type FSWatcher, watch } from "node:fs";
import type { Clock } from "../ground/clock.ts";

/** An editor's save is several notices: truncate, write, rename. */
const GATHER_MS = 100;
const POLL_MS = 2_000;

interface FolderWatch {
  /** Looks again soon, as after a notice. */
  soon(): void;
  /** Stops and resolves when a look under way has ended. */
  stop(): Promise<void>;
}

/** Calls `look` after changes in the folders (not below them). A folder that does not exist yet is watched once it does. */
export function watchFolders(
  folders: readonly string[],
  options: { clock: Clock; look: () => Promise<void> },
): FolderWatch {
  const { clock, look } = options;
  const watchers = new Map<string, FSWatcher>();
  let gathering: (() => void) | null = null;
  let looking: Promise<void> = Promise.resolve();
  let stopped = false;

  const run = (): void => {
    gathering = null;
    attach();
    looking = looking.then(() => (stopped ? undefined : look()));
  };
  const soon = (): void => {
    if (!stopped) gathering ??= clock.after(GATHER_MS, run);
  };
  const attach = (): void => {
    for (const folder of folders) {
      if (watchers.has(folder)) continue;
      const watcher = tryWatch(folder, soon, () => watchers.delete(folder));
      if (watcher !== null) watchers.set(folder, watcher);
    }
  };
  let cancelPoll = (): void => undefined;
  const poll = (): void => {
    cancelPoll = clock.after(POLL_MS, () => {
      soon();
      poll();
    });
  };
  attach();
  poll();
  return {
    soon,
    async stop() {
      stopped = true;
      gathering?.();
      cancelPoll();
      for (const watcher of watchers.values()) watcher.close();
      await looking;
    },
  };
}

/** null where the folder does not exist or the system has no watch to give: the poll finds changes all the same. */
function tryWatch(folder: string, onChange: () => void, onEnd: () => void): FSWatcher | null {
  try {
    const watcher = watch(folder, { persistent: false }, onChange);
    watcher.on("error", () => {
      watcher.close();
      onEnd();
    });
    return watcher;
  } catch {
    return null;
  }
}
