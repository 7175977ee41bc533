/**
 * Counts rejected requests over time, for charts. The request log writes the counts with its batches: by the minute, and by the hour for ranges that
 * are older than the minutes.
 */
import { DAY_MS, HOUR_MS, MINUTE_MS } from "../../base/limit.ts";
import type { Reader, Writer } from "../../store/port.ts";
import { defineTable, integer, text } from "../../store/table.ts";

/** The age at which minutes are deleted. The hours of an older time stay. */
export const REJECTED_MINUTES_MS = 4 * DAY_MS;
const WIDTHS_MS = [MINUTE_MS, HOUR_MS];
/** The name that counts all relays of an environment. */
const ALL_RELAYS = "";

const REJECTED_COUNT = defineTable({
  name: "rejected_count",
  key: ["environmentId", "relayName", "everyMs", "at"],
  columns: {
    environmentId: integer(),
    relayName: text(),
    /** The time that the row counts, in milliseconds. */
    everyMs: integer(),
    /** The start of that time. */
    at: integer(),
    count: integer(),
  },
});

/** Collects rejected requests by relay and minute between two writes. */
export class RejectedTally {
  #counts = new Map<string, { environmentId: number; relayName: string; at: number; count: number }>();

  get isEmpty(): boolean {
    return this.#counts.size === 0;
  }

  add(environmentId: number, relayName: string, atMs: number, count = 1): void {
    const at = atMs - (atMs % MINUTE_MS);
    const key = `${environmentId} ${at} ${relayName}`;
    const known = this.#counts.get(key);
    if (known === undefined) this.#counts.set(key, { environmentId, relayName, at, count });
    else known.count += count;
  }

  /** Removes and returns the unwritten counts. */
  take(): RejectedTally {
    const taken = new RejectedTally();
    [taken.#counts, this.#counts] = [this.#counts, taken.#counts];
    return taken;
  }

  get environmentIds(): number[] {
    return [...this.#counts.values()].map(({ environmentId }) => environmentId);
  }

  /** Adds the counts of an environment that could not be written. */
  restore(taken: RejectedTally, of: number): void {
    for (const { environmentId, relayName, at, count } of taken.#counts.values())
      if (environmentId === of) this.add(environmentId, relayName, at, count);
  }

  /** Writes the counts of an environment, or all of them. */
  async write(tx: Writer, of: number | null = null): Promise<void> {
    const sums = new Map<
      string,
      { environmentId: number; relayName: string; everyMs: number; at: number; count: number }
    >();
    for (const { environmentId, relayName: name, at: minute, count } of this.#counts.values())
      for (const relayName of of === null || environmentId === of ? [name, ALL_RELAYS] : [])
        for (const everyMs of WIDTHS_MS) {
          const at = minute - (minute % everyMs);
          const key = `${environmentId} ${everyMs} ${at} ${relayName}`;
          const sum = sums.get(key);
          if (sum === undefined) sums.set(key, { environmentId, relayName, everyMs, at, count });
          else sum.count += count;
        }
    await tx.postEach(ADD, [...sums.values()]);
  }
}

const ADD = `INSERT INTO rejected_count (environment_id, relay_name, every_ms, at, count)
  VALUES ($environmentId, $relayName, $everyMs, $at, $count)
  ON CONFLICT (environment_id, relay_name, every_ms, at) DO UPDATE SET count = rejected_count.count + excluded.count`;

interface CountedRange {
  environmentId: number;
  /** Undefined for all relays. */
  relay: string | undefined;
  sinceMs: number;
  untilMs: number;
}

/** Lists the counts of a range, oldest first: by the minute where the range has minutes, otherwise by the hour. */
export async function listRejectedCounts(
  tx: Reader,
  { environmentId, relay = ALL_RELAYS, sinceMs, untilMs }: CountedRange,
  nowMs: number,
): Promise<{ at: number; count: number }[]> {
  const everyMs = sinceMs > nowMs - REJECTED_MINUTES_MS ? MINUTE_MS : HOUR_MS;
  const rest = `WHERE environment_id = $environmentId AND relay_name = $relay AND every_ms = $everyMs AND at >= $sinceMs AND at < $untilMs ORDER BY at`;
  return await REJECTED_COUNT.all(tx, rest, { environmentId, relay, everyMs, sinceMs, untilMs });
}
