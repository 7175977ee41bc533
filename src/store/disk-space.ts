/**
 * Tracks whether a full disk has space again. Small writes can succeed on a full disk, so a successful group proves nothing until a check of the disk
 * succeeds. The trouble ends with the first group that succeeds after that check.
 */
import type { Clock } from "../base/clock.ts";

interface DiskSpaceOptions {
  clock: Pick<Clock, "monotonicMs">;
  /** Returns whether the disk can store about a megabyte. Never throws. */
  ask: () => Promise<boolean>;
  /** The minimum time between two checks, in milliseconds. */
  everyMs: number;
  /** The message while the disk is full. */
  trouble: string;
  /** Receives the message each time that a group fails on a full disk, and null when writes succeed again. */
  onChange: (trouble: string | null) => void;
}

export class DiskSpace {
  readonly #options: DiskSpaceOptions;
  /** `untried` means that the disk has space again, but no group has succeeded since. */
  #state: "free" | "full" | "untried" = "free";
  #isAsking = false;
  /** The number of groups that failed on a full disk. */
  #failures = 0;
  #notedMs = 0;

  constructor(options: DiskSpaceOptions) {
    this.#options = options;
  }

  /** Says why writes that need disk space fail. Null if they do not. */
  get trouble(): string | null {
    return this.#state === "free" ? null : this.#options.trouble;
  }

  /** Records that a group failed because the disk was full. */
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

  /** Checks the disk if a check is due. The store calls it every second. */
  check(): void {
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
