/**
 * Empties deleted apps in small steps with pauses, and continues after a restart. Then it returns the file's free pages, so that no copy of the
 * data stays in them. Earlier backups are not touched.
 */
import { BackgroundJob, type Clock } from "../../base/clock.ts";
import type { Log } from "../../base/log.ts";
import type { FencedStore } from "../../store/port.ts";
import { emptyApp, endRemoval, listRemovals } from "./app-removal.ts";

/** The pause between two steps. */
const PAUSE_MS = 10;
const FIRST_LOOK_AFTER_MS = 1_000;
const LOOK_EVERY_MS = 60_000;
/** A request that began before the deletion may still write. The sweep looks for its rows after this time. */
const SETTLE_MS = 5_000;

export class AppSweep extends BackgroundJob {
  readonly #deps: { store: FencedStore; clock: Clock; log: Log };

  constructor(deps: { store: FencedStore; clock: Clock; log: Log }) {
    super({
      clock: deps.clock,
      everyMs: LOOK_EVERY_MS,
      firstAfterMs: FIRST_LOOK_AFTER_MS,
      onError: (error) => deps.log.error("a deleted app could not be emptied and will be retried", { error }),
    });
    this.#deps = deps;
  }

  protected override async turn(): Promise<number | undefined> {
    const { store, clock, log } = this.#deps;
    const removals = await store.read(listRemovals);
    for (const { id } of removals) {
      await this.loop.repeat(() => store.write("erasure", (tx) => emptyApp(tx, id)), PAUSE_MS);
      if (!this.loop.running) return undefined;
      await this.loop.pause(SETTLE_MS);
      if (!this.loop.running) return undefined;
      const isEmpty = await store.write("erasure", (tx) => endRemoval(tx, id, clock.now()));
      // Something was still running or written. The next round deletes it.
      if (!isEmpty) return SETTLE_MS;
      log.info("a deleted app is emptied", { app: id });
      await this.loop.repeat(() => store.vacuumStep({ everything: true }), PAUSE_MS);
    }
    return undefined;
  }
}
