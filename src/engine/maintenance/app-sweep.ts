/**
 * Empties apps that were deleted, in small steps with pauses, and goes on after a restart; then the file's free pages are given back, so that no
 * copy of what was deleted stays in them. Backups made before are not touched.
 */
import { type Clock, Loop } from "../../base/clock.ts";
import type { Log } from "../../base/log.ts";
import type { FencedStore } from "../../store/port.ts";
import { emptyApp, endRemoval, listRemovals } from "./app-removal.ts";

/** Between two steps. */
const PAUSE_MS = 10;
const FIRST_LOOK_AFTER_MS = 1_000;
const LOOK_EVERY_MS = 60_000;
/** What was let in before the app was deleted, and writes behind it, is looked for once more after this while. */
const LATE_MS = 5_000;

export class AppSweep {
  readonly #deps: { store: FencedStore; clock: Clock; log: Log };
  readonly #loop: Loop;

  constructor(deps: { store: FencedStore; clock: Clock; log: Log }) {
    this.#deps = deps;
    this.#loop = new Loop({
      clock: deps.clock,
      everyMs: LOOK_EVERY_MS,
      turn: () => this.#work(),
      onError: (error) => deps.log.error("a deleted app could not be emptied and is tried again", { error }),
    });
  }

  start(): void {
    void this.#loop.start(FIRST_LOOK_AFTER_MS);
  }

  /** An app was deleted. */
  wake(): void {
    this.#loop.wake();
  }

  /** Ends after the step that is on its way; the next start goes on. */
  stop(): Promise<void> {
    return this.#loop.stop();
  }

  async #work(): Promise<number | undefined> {
    const { store, clock, log } = this.#deps;
    const removals = await store.read(listRemovals);
    for (const { id } of removals) {
      while (this.#loop.running && (await store.write("erasure", (tx) => emptyApp(tx, id))))
        await this.#loop.pause(PAUSE_MS);
      if (!this.#loop.running) return undefined;
      await this.#loop.pause(LATE_MS);
      if (!this.#loop.running) return undefined;
      const isEmpty = await store.write("erasure", (tx) => endRemoval(tx, id, clock.now()));
      // Something was still running, or came behind: the next look finds it.
      if (!isEmpty) return LATE_MS;
      log.info("a deleted app is emptied", { app: id });
      while (this.#loop.running && (await store.vacuumStep({ everything: true })))
        await this.#loop.pause(PAUSE_MS);
    }
    return undefined;
  }
}
