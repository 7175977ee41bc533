/**
 * Counts the events of a filter by state, up to a limit. Queued, running, failed and dead events have their own indexes. Done events have none: their
 * count is the rest of all events, or, if that is not known, a count among the newest events.
 */
import { type Static, Type } from "typebox";
import { yieldToEventLoop } from "../../store/index-scan.ts";
import type { Reader, Store } from "../../store/port.ts";
import { firstSeqAbout } from "../../store/time-index.ts";
import {
  type CountFilter,
  conditionsOf,
  findFirstMatches,
  type IndexPath,
  pathOfAll,
  pathOfState,
  valuesOf,
  walkSql,
} from "./counted-walk.ts";
import { EVENT_STATES, type EventState } from "./event.ts";
import { type EventFilter, findNameKey, leadOfTrigger } from "./list.ts";
import { MAX_SPAN, newestSpan, OF_ENVIRONMENT } from "./number-range.ts";

/** A count ends at this number. */
const MAX_COUNTED = 10_000;
/** A count of one state reads at most so many rows. */
const MAX_READ = 2 * MAX_COUNTED;
/** Rows of one step. */
const STEP = MAX_SPAN;

const stateCount = Type.Object({
  count: Type.Integer(),
  /** True if there may be more: a count ends at 10,000, and earlier for a text search. */
  isMore: Type.Boolean(),
});
export const eventCounts = Type.Object({
  queued: stateCount,
  running: stateCount,
  done: stateCount,
  failed: stateCount,
  dead: stateCount,
});
export type EventCounts = Static<typeof eventCounts>;
type StateCount = Static<typeof stateCount>;

const NONE: StateCount = { count: 0, isMore: false };

/** A filter, with event numbers from `above` to before `below`. */
interface CountRange extends CountFilter {
  person: string | null;
  above: number;
  below: number;
}

export async function countEvents(
  store: Store,
  environmentId: number,
  filter: Omit<EventFilter, "state">,
): Promise<EventCounts> {
  const { q = "", mapped } = filter;
  if (q !== "" || mapped !== undefined)
    return await countStates(async (state) => {
      const { items, next } = await findFirstMatches(store, environmentId, { ...filter, state });
      return { count: items.length, isMore: next !== null };
    });
  const range = await store.read((tx) => resolveRange(tx, environmentId, filter));
  if (range === null) return await countStates(async () => NONE);
  if (range.person !== null) return await countOfPerson(store, { ...range, person: range.person });
  const counts = new Map<EventState, StateCount>();
  for (const state of ["queued", "running", "failed", "dead"] as const)
    counts.set(state, await countState(store, range, state));
  return await countStates(
    async (state) => counts.get(state) ?? (await countDone(store, range, [...counts.values()])),
  );
}

/** Counts the queued and running events of a relay, or of the environment. */
export async function countUnfinished(store: Store, environmentId: number, relay?: string): Promise<number> {
  const filter = relay === undefined ? {} : { relay };
  const range = await store.read((tx) => resolveRange(tx, environmentId, filter));
  if (range === null) return 0;
  let unfinished = 0;
  for (const state of ["queued", "running"] as const) {
    const { count } = await countState(store, range, state);
    unfinished += count;
  }
  return Math.min(unfinished, MAX_COUNTED);
}

function countState(
  store: Store,
  range: CountRange,
  state: Exclude<EventState, "done">,
): Promise<StateCount> {
  return countSteps(store, range, (tx, part) => countStep(tx, part, pathOfState(state), conditionsOf(part)));
}

async function countStates(count: (state: EventState) => Promise<StateCount>): Promise<EventCounts> {
  const counted: Partial<EventCounts> = {};
  for (const state of EVENT_STATES) counted[state] = await count(state);
  return { queued: NONE, running: NONE, done: NONE, failed: NONE, dead: NONE, ...counted };
}

/** Resolves the filter to a range; null if no relay ever had the name. */
async function resolveRange(
  tx: Reader,
  environmentId: number,
  { relay, trigger, reason, person, sinceMs, untilMs }: EventFilter,
): Promise<CountRange | null> {
  const nameKey = relay === undefined ? null : await findNameKey(tx, environmentId, relay);
  if (relay !== undefined && nameKey === null) return null;
  return {
    environmentId,
    nameKey,
    trigger: trigger ?? null,
    reason: reason ?? null,
    person: person ?? null,
    above: sinceMs === undefined ? 0 : await firstSeqAbout(tx, "event", sinceMs),
    below: untilMs === undefined ? Number.MAX_SAFE_INTEGER : await firstSeqAbout(tx, "event", untilMs),
  };
}

/** The result of a step. `last` is the lowest number that the step read; null if it was the last step. */
interface Step {
  looked: number;
  found: number;
  last: number | null;
}

/** Counts from the newest event to older ones, step by step. */
async function countSteps(
  store: Store,
  range: CountRange,
  readStep: (tx: Reader, range: CountRange) => Promise<Step>,
): Promise<StateCount> {
  let [count, looked] = [0, 0];
  let part = range;
  for (;;) {
    const now = part;
    const step = await store.read((tx) => readStep(tx, now));
    count += step.found;
    looked += step.looked;
    if (count > MAX_COUNTED) return { count: MAX_COUNTED, isMore: true };
    if (step.last === null) return { count, isMore: false };
    if (looked >= MAX_READ) return { count, isMore: true };
    part = { ...range, below: step.last };
    await yieldToEventLoop();
  }
}

/** Counts among the newest events of a path. */
async function countStep(
  tx: Reader,
  range: CountRange,
  path: IndexPath,
  conditions: readonly string[],
): Promise<Step> {
  const walk = walkSql(path, conditions, { low: "$above", high: "$below", order: "DESC" });
  const sql = `SELECT count(*) AS looked, count(*) FILTER (WHERE fits) AS found, min(seq) AS last FROM (${walk})`;
  const row = await tx.get<Step>(sql, valuesOf(sql, { ...range, limit: STEP }));
  if (row === null) return { looked: 0, found: 0, last: null };
  return { ...row, last: row.looked < STEP ? null : row.last };
}

/** Counts all states in one walk, because the index of people does not hold the state. A step returns one row for each state. */
async function countOfPerson(store: Store, range: CountRange & { person: string }): Promise<EventCounts> {
  const fits = [...conditionsOf(range), "environment_id = $environmentId"].join(" AND ");
  const sql = `SELECT state, count(*) FILTER (WHERE ${fits}) AS found, count(*) AS looked, min(seq) AS last FROM (
      SELECT seq, state, environment_id, name_key, "trigger", reason FROM event INDEXED BY event_of_person
      WHERE person_id = $person AND seq >= $above AND seq < $below ORDER BY seq DESC LIMIT $limit)
    GROUP BY state`;
  const counts = new Map<EventState, number>();
  let { below } = range;
  let isMore = true;
  for (let looked = 0; isMore && looked < MAX_COUNTED; looked += STEP) {
    const values = valuesOf(sql, { ...range, below, limit: STEP });
    const rows = await store.read((tx) => tx.all<Step & { state: EventState; last: number }>(sql, values));
    for (const { state, found } of rows) counts.set(state, (counts.get(state) ?? 0) + found);
    isMore = rows.reduce((sum, row) => sum + row.looked, 0) === STEP;
    below = Math.min(...rows.map(({ last }) => last));
    await yieldToEventLoop();
  }
  return await countStates(async (state) => ({ count: counts.get(state) ?? 0, isMore }));
}

/** Subtracts the other states from all events, if all counts are exact and no row must be read; else counts among the newest events. */
async function countDone(
  store: Store,
  range: CountRange,
  others: readonly StateCount[],
): Promise<StateCount> {
  // A done event has no reason.
  if (range.reason !== null) return NONE;
  const isExact = range.trigger === null && others.every(({ isMore }) => !isMore);
  if (!isExact) return await countSteps(store, range, countDoneStep);
  const notDone = others.reduce((sum, { count }) => sum + count, 0);
  const walk = walkSql(pathOfAll(range), [], { low: "$above", high: "$below", order: "DESC" });
  const sql = `SELECT count(*) AS count FROM (${walk})`;
  const values = valuesOf(sql, { ...range, limit: notDone + MAX_COUNTED + 1 });
  const all = await store.read((tx) => tx.get<{ count: number }>(sql, values));
  const done = Math.max(0, (all?.count ?? 0) - notDone);
  return { count: Math.min(done, MAX_COUNTED), isMore: done > MAX_COUNTED };
}

async function countDoneStep(tx: Reader, range: CountRange): Promise<Step> {
  const conditions = [...conditionsOf(range), "state = 'done'"];
  if (range.nameKey !== null || leadOfTrigger(range.trigger) !== null)
    return countStep(tx, range, pathOfAll(range), conditions);
  const span = await newestSpan(tx, range.environmentId, range, STEP);
  if (span === null) return { looked: 0, found: 0, last: null };
  const sql = `SELECT count(*) AS looked, count(*) FILTER (WHERE ${conditions.join(" AND ")}) AS found FROM (
      SELECT name_key, "trigger", state FROM event INDEXED BY event_of_relay
      WHERE ${OF_ENVIRONMENT.replace("?", "$environmentId")} AND seq >= $above AND seq < $below ORDER BY seq)`;
  const values = valuesOf(sql, { ...range, above: Math.max(range.above, span.from) });
  const row = await tx.get<{ looked: number; found: number }>(sql, values);
  return { looked: row?.looked ?? 0, found: row?.found ?? 0, last: span.ended ? null : span.from };
}
