/** Prints the progress of a test run: one line for each completed file. On a terminal it also updates a last line in place. */

/** The remaining time is shown after this share of the work. */
const TELLS_FROM_SHARE = 0.03;

interface Ended {
  name: string;
  passed: number;
  failed: number;
  skipped: number;
  seconds: number;
}

export class Progress {
  #done = 0;
  #workDone = 0;
  #running: string[] = [];
  readonly #beganMs = performance.now();

  /** `work` is the sum of the work of all jobs, in any unit. `terminal` is true if a line can be updated in place. */
  constructor(
    readonly total: number,
    readonly work: number,
    readonly terminal: boolean,
    readonly write: (text: string) => void,
  ) {}

  began(name: string): void {
    this.#running.push(name);
    this.#update();
  }

  /** Prints the line of a completed file. `work` is its part of the total work. */
  ended({ name, passed, failed, skipped, seconds }: Ended, work: number): void {
    this.#done += 1;
    this.#workDone += work;
    this.#running = this.#running.filter((other) => other !== name);
    const counts = [
      `${passed} passed`,
      failed > 0 ? `${failed} FAILED` : "",
      skipped > 0 ? `${skipped} skipped` : "",
    ];
    const place = `[${String(this.#done).padStart(String(this.total).length)}/${this.total}]`;
    const line = `${place} ${name}: ${counts.filter((part) => part !== "").join(", ")} in ${seconds.toFixed(1)} s`;
    if (!this.terminal) this.write(`${line}${this.#left()}\n`);
    else {
      // On a terminal, a file without a failure prints no permanent line.
      if (failed > 0) this.write(`\r\x1b[K${line}\n`);
      this.#update();
    }
  }

  finish(): void {
    if (this.terminal) this.write("\r\x1b[K");
  }

  #update(): void {
    if (!this.terminal) return;
    const width = process.stderr.columns ?? 80;
    const text = `[${this.#done}/${this.total}]${this.#left()}: ${this.#running.map((name) => name.replace(/^test\//, "")).join(", ")}`;
    this.write(`\r\x1b[K${text.slice(0, width - 1)}`);
  }

  #left(): string {
    const share = this.#workDone / this.work;
    if (share < TELLS_FROM_SHARE || this.#done === this.total) return "";
    const elapsedMs = performance.now() - this.#beganMs;
    return `, ${formatDuration((elapsedMs / share) * (1 - share))} left`;
  }
}

/** Formats milliseconds as "42 s" or "3 min 5 s". */
export function formatDuration(ms: number): string {
  const seconds = Math.round(ms / 1_000);
  return seconds < 60 ? `${seconds} s` : `${Math.floor(seconds / 60)} min ${seconds % 60} s`;
}
