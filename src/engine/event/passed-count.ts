/**
 * Counts the verified requests that a relay did not take although another relay of the same receiver took them, by the minute. Together with the
 * request log, which has the requests that no relay took, they say how many requests a receiver verified for each of its relays.
 */
import { DAY_MS, MINUTE_MS } from "../../base/limit.ts";
import type { Reader, Writer } from "../../store/port.ts";
import { defineTable, integer, type RowOf, text } from "../../store/table.ts";

/** The age at which the counts are deleted. The funnel shows the last 24 hours. */
export const PASSED_COUNT_MS = 2 * DAY_MS;

const PASSED_COUNT = defineTable({
  name: "passed_count",
  key: ["environmentId", "relayName", "outcome", "at"],
  columns: {
    environmentId: integer(),
    relayName: text(),
    outcome: text<"ignored" | "duplicate">(),
    /** The start of the minute. */
    at: integer(),
    count: integer(),
  },
});
type PassedRow = RowOf<typeof PASSED_COUNT>;

/** Collects the requests by relay, outcome and minute between two writes. */
export class PassedTally {
  #counts = new Map<string, PassedRow>();

  get isEmpty(): boolean {
    return this.#counts.size === 0;
  }

  add({ environmentId, relayName, outcome, at: atMs, count }: PassedRow): void {
    const at = atMs - (atMs % MINUTE_MS);
    const key = `${environmentId} ${relayName} ${outcome} ${at}`;
    const known = this.#counts.get(key);
    if (known === undefined) this.#counts.set(key, { environmentId, relayName, outcome, at, count });
    else known.count += count;
  }

  /** Removes and returns the unwritten counts. */
  take(): PassedTally {
    const taken = new PassedTally();
    [taken.#counts, this.#counts] = [this.#counts, taken.#counts];
    return taken;
  }

  /** Adds counts that could not be written. */
  restore(taken: PassedTally): void {
    for (const row of taken.#counts.values()) this.add(row);
  }

  async write(tx: Writer): Promise<void> {
    if (!this.isEmpty) await tx.postEach(ADD, [...this.#counts.values()]);
  }
}

const ADD = `INSERT INTO passed_count (environment_id, relay_name, outcome, at, count)
  VALUES ($environmentId, $relayName, $outcome, $at, $count)
  ON CONFLICT (environment_id, relay_name, outcome, at) DO UPDATE SET count = passed_count.count + excluded.count`;

/** Sums the requests of a relay since a time. */
export async function sumPassed(
  tx: Reader,
  asked: { environmentId: number; relay: string; sinceMs: number },
): Promise<Record<PassedRow["outcome"], number>> {
  const sql = `SELECT outcome, sum(count) AS count FROM passed_count
    WHERE environment_id = $environmentId AND relay_name = $relay AND at >= $sinceMs GROUP BY outcome`;
  const sums = { ignored: 0, duplicate: 0 };
  for (const { outcome, count } of await tx.all<Pick<PassedRow, "outcome" | "count">>(sql, asked))
    sums[outcome] = count;
  return sums;
}
