/** Watches that a work awaits nothing but its transaction, because it blocks the writers of all nodes meanwhile. */
import { systemClock } from "../../base/clock.ts";
import type { WorkWatch } from "../group-commit/group-database.ts";
import type { PostgresConnection } from "./connection.ts";

/** The most time that a transaction may be idle. */
const IDLE_WITHIN_MS = 250;

export class IdleWatch implements WorkWatch {
  readonly #connection: Pick<PostgresConnection, "unanswered" | "answers"> | null;
  #cancel = systemClock.after(IDLE_WITHIN_MS, () => this.#check());
  #answers = -1;
  #fail: (error: Error) => void = () => undefined;

  constructor(connection: Pick<PostgresConnection, "unanswered" | "answers"> | null) {
    this.#connection = connection;
  }

  over<Result>(working: Promise<Result>): Promise<Result> {
    this.#answers = -1;
    return new Promise((resolve, reject) => {
      this.#fail = reject;
      working.then(resolve, reject);
    });
  }

  stop(): void {
    this.#cancel();
  }

  /** Fails the work if no statement waits for an answer and none was answered since the last check. */
  #check(): void {
    this.#cancel = systemClock.after(IDLE_WITHIN_MS, () => this.#check());
    if (this.#connection === null || this.#connection.unanswered > 0) return;
    const { answers } = this.#connection;
    if (answers === this.#answers)
      this.#fail(new Error("A transaction's work awaited something other than its transaction."));
    this.#answers = answers;
  }
}
