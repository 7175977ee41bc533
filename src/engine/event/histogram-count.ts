/**
 * Counts the events of a range of numbers by outcome. Up to a limit each row is counted. Beyond it, samples across the range give an approximate
 * count. Events that failed or wait are rare, so their counts are mostly exact.
 */
import type { Reader } from "../../store/port.ts";
import {
  type CountFilter,
  conditionsOf,
  type IndexPath,
  pathOfAll,
  pathOfState,
  valuesOf,
  walkSql,
} from "./counted-walk.ts";
import type { EventState } from "./event.ts";

/** Rows that are counted exactly: in the index only, or with a lookup of each row. */
const MAX_INDEX_ROWS = 1_000;
const MAX_LOOKUP_ROWS = 80;
const SAMPLES = 10;
/** A number above every count of a sample, so that two counts fit into one number. */
const PACKED = 1_000_000;

/** `waiting`: queued, running, or waiting for a retry. */
export type Counts = Record<"done" | "waiting" | "failed" | "dead", number>;

export interface HistogramFilter extends CountFilter {
  state: EventState | null;
}

/** Numbers from `from` to before `to`. */
interface Span {
  from: number;
  to: number;
}

export function outcomeOf(state: EventState): keyof Counts {
  return state === "queued" || state === "running" ? "waiting" : state;
}

/** Counts the events of a span by outcome. `exact` is true if each row was counted. */
export async function countSpan(
  tx: Reader,
  filter: HistogramFilter,
  span: Span,
): Promise<{ counts: Counts; exact: boolean }> {
  const counts: Counts = { done: 0, waiting: 0, failed: 0, dead: 0 };
  if (span.from >= span.to) return { counts, exact: true };
  let exact = true;
  const count = async (path: IndexPath): Promise<number> => {
    const counted = await countPath(tx, filter, path, span);
    exact &&= counted.exact;
    return counted.count;
  };
  const { state } = filter;
  // No index holds done events, so their count is the rest of all events.
  const wantsDone = state === null || state === "done";
  const others = (["dead", "failed", "queued", "running"] as const).map(async (one) => {
    // Counted before it is added, because queued and running share a sum.
    const counted = wantsDone || state === one ? await count(pathOfState(one)) : 0;
    counts[outcomeOf(one)] += counted;
  });
  const [all] = await Promise.all([wantsDone ? count(pathOfAll(filter)) : 0, ...others]);
  if (!wantsDone) return { counts, exact };
  const done = Math.max(0, all - counts.waiting - counts.failed - counts.dead);
  return { counts: state === null ? { ...counts, done } : { done, waiting: 0, failed: 0, dead: 0 }, exact };
}

/** Counts each row up to the limit; else counts samples of the range, which grow until they hold enough rows. */
async function countPath(
  tx: Reader,
  filter: HistogramFilter,
  path: IndexPath,
  { from, to }: Span,
): Promise<{ count: number; exact: boolean }> {
  const { nameKey, trigger } = filter;
  const needsLookup =
    (trigger !== null && !path.holds.includes("trigger")) ||
    (nameKey !== null && !path.holds.includes("nameKey"));
  const most = needsLookup ? MAX_LOOKUP_ROWS : MAX_INDEX_ROWS;
  const leads = path.lead.includes("$nameKey");
  const conditions = conditionsOf(leads ? { ...filter, nameKey: null } : filter);
  const walk = walkSql(path, conditions, { low: "$from", high: "$to" });
  const countSql = `SELECT count(*) AS looked, count(*) FILTER (WHERE fits) AS found FROM (${walk})`;
  const first = await tx.get<{ looked: number; found: number }>(
    countSql,
    valuesOf(countSql, { ...filter, from, to, limit: most + 1 }),
  );
  if (first === null || first.looked <= most) return { count: first?.found ?? 0, exact: true };
  // A subquery for each sample keeps the planner on the index. It returns both counts as one number.
  const low = "CAST(sample.value AS INTEGER)";
  const sampleWalk = walkSql(path, conditions, { low, high: `${low} + $width` });
  const sampleSql = `SELECT (SELECT count(*) * ${PACKED} + count(*) FILTER (WHERE fits) FROM (${sampleWalk})) AS packed
    FROM json_each($starts) AS sample`;
  const step = (to - from) / SAMPLES;
  const starts = JSON.stringify(Array.from({ length: SAMPLES }, (_, at) => Math.floor(from + at * step)));
  let width = Math.max(1, Math.floor(most / SAMPLES));
  for (;;) {
    const sampleWidth = Math.min(width, Math.floor(step));
    const samples = await tx.all<{ packed: number }>(
      sampleSql,
      valuesOf(sampleSql, { ...filter, starts, width: sampleWidth, limit: most * 2 }),
    );
    const looked = samples.reduce((sum, { packed }) => sum + Math.floor(packed / PACKED), 0);
    const found = samples.reduce((sum, { packed }) => sum + (packed % PACKED), 0);
    if (looked >= most / 2 || width >= step)
      return { count: Math.round((found * (to - from)) / (sampleWidth * SAMPLES)), exact: false };
    width = Math.ceil(Math.min(step, width * Math.max(2, most / Math.max(1, looked))));
  }
}
