/**
 * Capture: drains the change log into events as soon as it is told of a change, and looks by itself for those it is not told of (another
 * process, SQL by hand). It decides when; what fires is drain.ts's.
 */
import type { Clock } from "../ground/clock.ts";
import type { Log } from "../ground/log.ts";
import type { Store } from "../store/port.ts";
import { hasChanges } from "./change-row.ts";
import { drainChanges } from "./drain.ts";

/** Changes in one transaction; bounds how long others wait for the writer. */
const BATCH_SIZE = 64;
const POLL_MS = 2_000;

export interface CaptureRooms {
  store: Store;
  clock: Clock;
  log: Log;
  /** Told of every relay that got an event, after its commit. */
  onEvent(relayId: string): void;
}

export class Capture {
  readonly #rooms: CaptureRooms;
  #cancelPoll: () => void = () => undefined;
  #draining: Promise<void> | null = null;
  #drainAgain = false;
  #running = false;

  constructor(rooms: CaptureRooms) {
    this.#rooms = rooms;
  }

  /** Begins: what was written while nothing ran becomes events first. Resolves after that. */
  async start(): Promise<void> {
    this.#running = true;
    this.wake();
    await this.#draining;
    this.#arm();
  }

  /** Records may have changed; call after the change is durable. */
  wake(): void {
    if (!this.#running) return;
    this.#drainAgain = this.#draining !== null;
    if (this.#draining !== null) return;
    this.#draining = this.#drain().finally(() => {
      this.#draining = null;
      if (this.#drainAgain) this.wake();
    });
  }

  /** Drains nothing more; resolves when what was begun is stored. The rest of the log waits for the next start. */
  async stop(): Promise<void> {
    this.#running = false;
    this.#cancelPoll();
    await this.#draining;
  }

  #arm(): void {
    if (!this.#running) return;
    this.#cancelPoll = this.#rooms.clock.after(POLL_MS, () => {
      this.wake();
      this.#arm();
    });
  }

  async #drain(): Promise<void> {
    const { store, clock, log, onEvent } = this.#rooms;
    try {
      while (this.#running && (await store.read(hasChanges))) {
        const drained = await store.write("app", (tx) => drainChanges(tx, BATCH_SIZE, clock.now(), log));
        for (const relayId of drained.relayIds) onEvent(relayId);
      }
    } catch (error) {
      // The next look tries again.
      if (this.#running)
        log.warn("record changes cannot be captured now", { cause: (error as Error).message });
    }
  }
}
