/**
 * Queues the statements that a transaction posted and has not sent. No caller awaits their row counts, so rows of the same statement are sent
 * together.
 */
import type { SqlArguments } from "../port.ts";
import { RowWriter, type Statement } from "./bulk-insert.ts";
import { joinInserts } from "./combined-insert.ts";
import { touches } from "./prefetch.ts";

export class Posted {
  readonly #rows: RowWriter;
  readonly #waiting = new Map<string, SqlArguments[]>();

  /** `types` are the rows of COLUMN_TYPES. Each row is its own statement if they are absent. */
  constructor(types?: readonly Record<string, unknown>[]) {
    this.#rows = new RowWriter(types);
  }

  add(sql: string, more: readonly SqlArguments[]): void {
    const rows = this.#waiting.get(sql);
    if (rows === undefined) this.#waiting.set(sql, [...more]);
    else rows.push(...more);
  }

  clear(): void {
    this.#waiting.clear();
  }

  /** Returns whether the statement may read what the queue writes. */
  isReadBy(text: string): boolean {
    for (const posted of this.#waiting.keys()) if (touches(posted, text)) return true;
    return false;
  }

  /** Empties the queue and returns its statements to send. */
  take(): readonly Statement[] {
    if (this.#waiting.size === 0) return [];
    const posted = [...this.#waiting];
    this.#waiting.clear();
    return joinInserts(posted.flatMap(([sql, rows]) => this.write(sql, rows)));
  }

  /** Returns the statements for rows that do not wait in the queue. */
  write(sql: string, rows: readonly SqlArguments[]): Statement[] {
    return this.#rows.write(sql, rows);
  }
}
