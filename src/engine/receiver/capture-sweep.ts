/** Deletes captures with their requests as soon as their hour is over, also if no caller asks for them. A new capture wakes it. */
import { BackgroundJob, type Clock } from "../../base/clock.ts";
import { HOUR_MS } from "../../base/limit.ts";
import type { Log } from "../../base/log.ts";
import type { FencedStore } from "../../store/port.ts";
import { deleteEndedCaptures, findNextEnd } from "./request-capture.ts";

/** The pause between two steps. */
const PAUSE_MS = 10;
const FIRST_LOOK_AFTER_MS = 1_000;

export class CaptureSweep extends BackgroundJob {
  readonly #deps: { store: FencedStore; clock: Clock; log: Log };

  constructor(deps: { store: FencedStore; clock: Clock; log: Log }) {
    super({
      clock: deps.clock,
      everyMs: HOUR_MS,
      firstAfterMs: FIRST_LOOK_AFTER_MS,
      onError: (error) =>
        deps.log.error("captured requests could not be deleted and will be retried", { error }),
    });
    this.#deps = deps;
  }

  protected override async turn(): Promise<number | undefined> {
    const { store, clock } = this.#deps;
    const findWait = async (): Promise<number | null> => {
      const endMs = await store.read(findNextEnd);
      return endMs === null ? null : Math.max(0, endMs - clock.now());
    };
    let waitMs = await findWait();
    if (waitMs === 0) {
      await this.loop.repeat(
        () => store.write("app", (tx) => deleteEndedCaptures(tx, clock.now())),
        PAUSE_MS,
      );
      waitMs = await findWait();
    }
    return waitMs === null ? undefined : Math.min(waitMs, HOUR_MS);
  }
}
