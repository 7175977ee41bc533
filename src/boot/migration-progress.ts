/** Reports the progress of a migration during a start: to callers of the port, and every few seconds to the log. */
import { type Clock, Loop } from "../base/clock.ts";
import type { Log } from "../base/log.ts";
import { SCHEMA_VERSION } from "../store/migrate/migrations.ts";
import type { MigrationProgress } from "../store/sqlite/migrate.ts";
import type { EarlyPort } from "./start-retry.ts";

/** The interval of log lines for steps that report no rows: the copy, and a single long statement. Moved rows are logged once a second. */
const STILL_EVERY_MS = 5_000;
const NOT_BEGUN =
  "It waits for the database, which the process of an earlier start may still use, or it finds the migrations that it must run.";

interface ReportDeps {
  clock: Clock;
  log: Log;
  early: EarlyPort;
}

export class MigrationReport {
  /** The port that answers during the migration. */
  readonly port: number;
  readonly #clock: Clock;
  readonly #log: Log;
  readonly #aside: () => string | null;
  readonly #reminder: Loop;
  #moved = "";
  #step: { name: string; sinceMs: number } | null = null;
  #wasReported = false;

  /** Starts to report. `aside` returns a sentence about work before the first step, or null. */
  constructor({ clock, log, early }: ReportDeps, from: number, aside: () => string | null) {
    this.#clock = clock;
    this.#log = log;
    this.#aside = aside;
    this.port = early.open(() => {
      const done = this.#formatStep() ?? this.#moved;
      const what =
        from === 0
          ? "The service makes its tables in an empty database before it starts."
          : `The service migrates its database to this version's schema before it starts (from ${from} to ${SCHEMA_VERSION}).`;
      return done === "" ? what : `${what} ${done}`;
    });
    this.#reminder = new Loop({
      clock,
      everyMs: STILL_EVERY_MS,
      turn: async () => this.#logProgress(),
      onError: () => undefined,
    });
    void this.#reminder.start(STILL_EVERY_MS);
  }

  readonly record: MigrationProgress = (progress) => {
    const { name, rows, of } = progress;
    this.#step = of === null ? { name, sinceMs: this.#clock.monotonicMs() } : null;
    if (of === null) return;
    this.#wasReported = true;
    this.#moved = `${rows} of about ${of} rows are moved.`;
    this.#log.info("moving rows to this version's schema", progress);
  };

  /** Stops the log lines. The port still answers as before. */
  stop(): Promise<void> {
    return this.#reminder.stop();
  }

  #formatStep(): string | null {
    const aside = this.#aside();
    if (aside !== null || this.#step === null) return aside;
    const { name, sinceMs } = this.#step;
    const seconds = Math.floor((this.#clock.monotonicMs() - sinceMs) / 1_000);
    return `Its step ${name} has taken ${seconds} s so far; a large database takes a minute or more.`;
  }

  #logProgress(): undefined {
    if (!this.#wasReported)
      this.#log.info("still migrating the database to this version's schema", {
        done: this.#formatStep() ?? (this.#moved || NOT_BEGUN),
      });
    this.#wasReported = false;
  }
}
