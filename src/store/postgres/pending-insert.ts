/** What a transaction posted and has not sent yet: nobody asks how many rows it changes, so rows of a kind wait for others and go out together. */
import type { SqlArguments } from "../port.ts";
import { RowWriter, type Statement } from "./bulk-insert.ts";
import { joinInserts } from "./combined-insert.ts";
import { touches } from "./prefetch.ts";

export class Posted {
  readonly #rows: RowWriter;
  readonly #waiting = new Map<string, SqlArguments[]>();

  /** `types`: what COLUMN_TYPES answers; none where each row is a statement. */
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

  /** Whether this is to see what waits. */
  isReadBy(text: string): boolean {
    for (const posted of this.#waiting.keys()) if (touches(posted, text)) return true;
    return false;
  }

  /** All that waits, as statements to send; nothing does then. */
  take(): readonly Statement[] {
    if (this.#waiting.size === 0) return [];
    const posted = [...this.#waiting];
    this.#waiting.clear();
    return joinInserts(posted.flatMap(([sql, rows]) => this.write(sql, rows)));
  }

  /** What does not wait for others. */
  write(sql: string, rows: readonly SqlArguments[]): Statement[] {
    return this.#rows.write(sql, rows);
  }
}
