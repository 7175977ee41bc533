/**
 * Capture: drains the change log into events as soon as it is told of a change, and looks by itself for those it is not told of (another
 * process, SQL by hand). It decides when; what fires is drain.ts's.
 */
import type { Clock } from "../ground/clock.ts";
import type { Log } from "../ground/log.ts";
import { Loop } from "../ground/loop.ts";
import type { Store } from "../store/port.ts";
import { hasChanges } from "./change-row.ts";
import { drainChanges } from "./drain.ts";

/** Changes in one transaction; bounds how long others wait for the writer. */
const BATCH_SIZE = 64;
const POLL_MS = 2_000;

interface CaptureRooms {
  store: Store;
  clock: Clock;
  log: Log;
}

export class Capture {
  readonly #rooms: CaptureRooms;
  readonly #loop: Loop;

  constructor(rooms: CaptureRooms) {
    this.#rooms = rooms;
    this.#loop = new Loop({
      clock: rooms.clock,
      everyMs: POLL_MS,
      turn: () => this.#drain(),
      // The next look tries again.
      onError: (error) =>
        rooms.log.warn("record changes cannot be captured now", { cause: (error as Error).message }),
    });
  }

  /** Begins: what was written while nothing ran becomes events first. Resolves after that. */
  start(): Promise<void> {
    return this.#loop.start();
  }

  /** Records may have changed; call after the change is durable. */
  wake(): void {
    this.#loop.wake();
  }

  /** Drains nothing more; resolves when what was begun is stored. The rest of the log waits for the next start. */
  stop(): Promise<void> {
    return this.#loop.stop();
  }

  async #drain(): Promise<undefined> {
    const { store, clock, log } = this.#rooms;
    while (this.#loop.running && (await store.read(hasChanges))) {
      await store.write("app", (tx) => drainChanges(tx, BATCH_SIZE, clock.now(), log));
    }
  }
}
