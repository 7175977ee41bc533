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

type PassingRelay = { environmentId: number; name: string };

/** Collects the requests by relay and minute between two writes. A request counts once for each follower, so a count is one look-up. */
export class PassedTally {
  #newest = new Map<PassingRelay, PassedMinute>();
  #minutes: PassedMinute[] = [];

  get isEmpty(): boolean {
    return this.#minutes.length === 0;
  }

  add(relay: PassingRelay, outcome: PassedRow["outcome"], atMs: number): void {
    const at = atMs - (atMs % MINUTE_MS);
    let minute = this.#newest.get(relay);
    if (minute?.at !== at) {
      minute = { relay, at, ignored: 0, duplicate: 0 };
      this.#newest.set(relay, minute);
      this.#minutes.push(minute);
    }
    minute[outcome] += 1;
  }

  /** Removes and returns the unwritten counts. */
  take(): PassedTally {
    const taken = new PassedTally();
    [taken.#minutes, this.#minutes] = [this.#minutes, []];
    this.#newest = new Map();
    return taken;
  }

  get environmentIds(): number[] {
    return this.#minutes.map(({ relay }) => relay.environmentId);
  }

  /** Adds the counts of an environment that could not be written. */
  restore(taken: PassedTally, of: number): void {
    this.#minutes.push(...taken.#minutes.filter(({ relay }) => relay.environmentId === of));
  }

  /** Writes the counts of an environment, or all of them. */
  async write(tx: Writer, of: number | null = null): Promise<void> {
    const rows = new Map<string, PassedRow>();
    for (const { relay, at, ...counts } of this.#minutes)
      for (const outcome of of === null || relay.environmentId === of ? OUTCOMES : []) {
        const { environmentId, name: relayName } = relay;
        const key = `${environmentId} ${relayName} ${outcome} ${at}`;
        const count = (rows.get(key)?.count ?? 0) + counts[outcome];
        if (count > 0) rows.set(key, { environmentId, relayName, outcome, at, count });
      }
    await tx.postEach(ADD, [...rows.values()]);
  }
}

const OUTCOMES = ["ignored", "duplicate"] as const;

/** The counts of a relay in the minute that begins at `at`. */
interface PassedMinute extends Record<PassedRow["outcome"], number> {
  relay: PassingRelay;
  at: number;
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
