/**
 * Whether the disk has room for writes, once a group of them found none. Small writes can still succeed on a full disk, so a group that succeeds
 * proves nothing until the disk was asked. The trouble ends with the first group that succeeds after the disk said that it has room.
 */
import type { Clock } from "../base/clock.ts";

interface DiskSpaceOptions {
  clock: Pick<Clock, "monotonicMs">;
  /** Whether the disk takes about a megabyte. Never throws. */
  ask: () => Promise<boolean>;
  /** The least time between two questions, in milliseconds. */
  everyMs: number;
  /** What is said while there is no room. */
  trouble: string;
  /** Receives the trouble each time that a group finds no room, and null when it ends. */
  onChange: (trouble: string | null) => void;
}

export class DiskSpace {
  readonly #options: DiskSpaceOptions;
  /** `untried`: the disk has room, and no group has succeeded since. */
  #state: "free" | "full" | "untried" = "free";
  #isAsking = false;
  /** Counts the groups that found no room. */
  #failures = 0;
  #notedMs = 0;

  constructor(options: DiskSpaceOptions) {
    this.#options = options;
  }

  /** Why writes that need new room fail, or null. */
  get trouble(): string | null {
    return this.#state === "free" ? null : this.#options.trouble;
  }

  /** Records that a group failed because the disk had no room. */
  recordFull(): void {
    this.#failures += 1;
    this.#notedMs = this.#options.clock.monotonicMs();
    this.#state = "full";
    this.#options.onChange(this.#options.trouble);
  }

  /** Records that a group succeeded. */
  recordSuccess(): void {
    if (this.#state !== "untried") return;
    this.#state = "free";
    this.#options.onChange(null);
  }

  /** Asks the disk where that is due. Must be called every second. */
  look(): void {
    const { clock, ask, everyMs } = this.#options;
    const nowMs = clock.monotonicMs();
    if (this.#state !== "full" || this.#isAsking || nowMs - this.#notedMs < everyMs) return;
    this.#notedMs = nowMs;
    this.#isAsking = true;
    const failures = this.#failures;
    void ask().then((hasRoom) => {
      this.#isAsking = false;
      if (hasRoom && this.#failures === failures) this.#state = "untried";
    });
  }
}
