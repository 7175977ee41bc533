/** Runs the steps of bulk replays, each at its requested rate, and continues after a restart. event/bulk-replay.ts takes a step. */

import { BackgroundJob, type Clock } from "../../base/clock.ts";
import type { Log } from "../../base/log.ts";
import type { FencedStore, Writer } from "../../store/port.ts";
import { listRunning, stepBulkReplay } from "../event/bulk-replay.ts";

/** New replays wake the loop. This interval finds those whose wake did not arrive. */
const LOOK_EVERY_MS = 60_000;
/** The time that a failed replay waits before its retry. */
const AGAIN_AFTER_MS = 1_000;
/** The most replays in one transaction. */
const MAX_STEP = 25;
/** The steps in a second, so that a slow replay runs evenly. */
const STEPS_PER_SECOND = 10;

interface BulkReplaysDeps {
  store: FencedStore;
  clock: Clock;
  log: Log;
}

export class BulkReplays extends BackgroundJob {
  readonly #deps: BulkReplaysDeps;
  /** The monotonic time when each can continue. */
  readonly #nextMs = new Map<string, number>();

  constructor(deps: BulkReplaysDeps) {
    super({
      clock: deps.clock,
      everyMs: LOOK_EVERY_MS,
      firstAfterMs: AGAIN_AFTER_MS,
      onError: (error) => deps.log.error("bulk replays could not be looked for", { error }),
    });
    this.#deps = deps;
  }

  /** Takes a step of each replay that can continue. Returns after how many milliseconds the next one can. */
  protected override async turn(): Promise<number | undefined> {
    const { store, clock, log } = this.#deps;
    const running = await store.read(listRunning);
    for (const id of this.#nextMs.keys()) {
      if (!running.some((one) => one.id === id)) this.#nextMs.delete(id);
    }
    for (const { id, environmentId, perSecond } of running) {
      if (!this.loop.running) return undefined;
      const startMs = clock.monotonicMs();
      if ((this.#nextMs.get(id) ?? 0) > startMs) continue;
      const most = Math.max(1, Math.min(MAX_STEP, Math.floor(perSecond / STEPS_PER_SECOND)));
      try {
        const step = (tx: Writer) => stepBulkReplay(tx, id, most, clock.now());
        const done = await store.write("app", step, environmentId);
        if (done === null) this.#nextMs.delete(id);
        else this.#nextMs.set(id, startMs + Math.ceil((Math.max(1, done) * 1_000) / perSecond));
      } catch (error) {
        // Other replays continue.
        log.error("a bulk replay could not continue and will be retried", { id, error });
        this.#nextMs.set(id, startMs + AGAIN_AFTER_MS);
      }
    }
    const next = Math.min(...this.#nextMs.values());
    return Number.isFinite(next) ? Math.max(1, next - clock.monotonicMs()) : undefined;
  }
}
