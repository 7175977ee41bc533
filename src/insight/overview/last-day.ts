/**
 * Counts the events of the last 24 hours by hour and by outcome. No index is ordered by hour, so each hour's range of numbers is found first, and
 * counted in spans of a bounded number of rows.
 */
import { type Static, Type } from "typebox";
import { toIso } from "../../base/clock.ts";
import { HOUR_MS } from "../../base/limit.ts";
import { time } from "../../base/schema.ts";
import { yieldToEventLoop } from "../../store/index-scan.ts";
import type { Reader, Store } from "../../store/port.ts";
import { listFirstSeqs } from "../../store/time-index.ts";

const HOURS = 24;
/** The most events that are counted in one step, and in all steps together. Older events are estimated from slices of each hour. */
const STEP = 10_000;
const MAX_COUNTED = 120_000;
const SLICES = 10;
/** A slice is this fraction of what a step can count. */
const SLICE_SHARE = 40;
/** The most waiting events that are counted by relay. */
const MAX_WAITING = 2_000;

const outcomes = {
  done: Type.Integer(),
  /** Events that are queued, running, or waiting for a retry. */
  waiting: Type.Integer(),
  failed: Type.Integer(),
  dead: Type.Integer(),
};
export const outcomeCounts = Type.Object(outcomes);
type OutcomeCounts = Static<typeof outcomeCounts>;

/** Events that arrived in the hour that begins at `at`, by their current state. */
export const hourView = Type.Object({ at: time, ...outcomes });
type HourView = Static<typeof hourView>;

export interface Day {
  hours: HourView[];
  /** The counts by relay name. */
  relays: Map<string, OutcomeCounts>;
  /** True if some events were estimated and not counted. */
  approximate: boolean;
}

const none = (): OutcomeCounts => ({ done: 0, waiting: 0, failed: 0, dead: 0 });

interface Span {
  environmentId: number;
  from: number;
  to: number;
}

interface Counted {
  nameKey: number;
  count: number;
}

export async function countDay(store: Store, environmentId: number, nowMs: number): Promise<Day> {
  const firstMs = Math.floor(nowMs / HOUR_MS) * HOUR_MS - (HOURS - 1) * HOUR_MS;
  const starts = await findStarts(store, firstMs);
  const hours = Array.from({ length: HOURS }, (_, at) => ({ at: toIso(firstMs + at * HOUR_MS), ...none() }));
  const byKey = new Map<number, OutcomeCounts>();
  let left = MAX_COUNTED;
  let approximate = false;
  let width = STEP;
  for (let at = HOURS - 1; at >= 0; at--) {
    const hour = hours[at];
    const to = starts[at + 1] ?? 0;
    let from = starts[at] ?? 0;
    while (hour !== undefined && from < to && left > 0) {
      const span = { environmentId, from, to: Math.min(to, from + width) };
      const rows = await store.read((tx) => tx.all<Counted>(ALL, { ...span, most: STEP + 1 }));
      const all = rows.reduce((sum, { count }) => sum + count, 0);
      await yieldToEventLoop();
      if (all > STEP) {
        width = Math.max(1, Math.floor(width / 2));
        continue;
      }
      if (all > 0) await store.read((tx) => addSpan(tx, span, rows, hour, byKey));
      left -= all;
      from = span.to;
      if (all < STEP / 4) width *= 4;
    }
    if (hour === undefined || from >= to) continue;
    approximate = true;
    const slice = Math.max(1, Math.floor(width / SLICE_SHARE));
    await addInSlices(store, { environmentId, from, to }, slice, hour, byKey);
  }
  return {
    hours,
    relays: await store.read((tx) => nameRelays(tx, { environmentId, from: starts[0] ?? 0 }, byKey)),
    approximate,
  };
}

/** Estimates a span from slices. Failed and waiting events are counted exactly where they are few. */
async function addInSlices(
  store: Store,
  span: Span,
  width: number,
  hour: OutcomeCounts,
  byKey: Map<number, OutcomeCounts>,
): Promise<void> {
  const wide = span.to - span.from;
  const each = Math.min(width, Math.ceil(wide / SLICES));
  const times = wide / (each * SLICES);
  const some = none();
  const someByKey = new Map<number, OutcomeCounts>();
  const all = new Map<number, number>();
  for (let at = 0; at < SLICES; at++) {
    const from = span.from + Math.floor((at * wide) / SLICES);
    const slice = { ...span, from, to: from + each };
    await store.read(async (tx) => {
      const rows = await tx.all<Counted>(ALL, { ...slice, most: STEP });
      for (const { nameKey, count } of rows) all.set(nameKey, (all.get(nameKey) ?? 0) + count);
      await addSpan(tx, slice, rows, some, someByKey);
    });
    await yieldToEventLoop();
  }
  const most = await store.read((tx) => tx.get<{ count: number }>(TROUBLED, { ...span, most: STEP }));
  if ((most?.count ?? 0) < STEP) {
    const rows = [...all].map(([nameKey, count]) => ({ nameKey, count: Math.round(count * times) }));
    return await store.read((tx) => addSpan(tx, span, rows, hour, byKey));
  }
  addTimes(hour, some, times);
  for (const [key, counts] of someByKey) {
    const known = byKey.get(key) ?? none();
    byKey.set(key, known);
    addTimes(known, counts, times);
  }
}

function addTimes(counts: OutcomeCounts, more: OutcomeCounts, times: number): void {
  counts.done += Math.round(Math.max(0, more.done) * times);
  counts.waiting += Math.round(more.waiting * times);
  counts.failed += Math.round(more.failed * times);
  counts.dead += Math.round(more.dead * times);
}

/** Finds the first event number of each hour, and the number after the last event. */
async function findStarts(store: Store, firstMs: number): Promise<number[]> {
  const hours = Array.from({ length: HOURS }, (_, at) => firstMs + at * HOUR_MS);
  const starts = await listFirstSeqs(store, "event", hours);
  const newest = await store.read((tx) =>
    tx.get<{ seq: number | null }>("SELECT max(seq) AS seq FROM event"),
  );
  return [...starts, (newest?.seq ?? 0) + 1];
}

async function addSpan(
  tx: Reader,
  span: Span,
  rows: readonly Counted[],
  hour: OutcomeCounts,
  byKey: Map<number, OutcomeCounts>,
): Promise<void> {
  const of = (key: number): OutcomeCounts => {
    const known = byKey.get(key) ?? none();
    byKey.set(key, known);
    return known;
  };
  const { environmentId, from, to } = span;
  const values = { environmentId, from, to };
  let done = 0;
  for (const { nameKey, count } of rows) {
    of(nameKey).done += count;
    done += count;
  }
  for (const { nameKey, state, count } of await tx.all<Counted & { state: "failed" | "dead" }>(
    UNHAPPY,
    values,
  )) {
    of(nameKey)[state] += count;
    of(nameKey).done -= count;
    hour[state] += count;
    done -= count;
  }
  const waiting = (await tx.get<{ count: number }>(WAITING, values))?.count ?? 0;
  hour.waiting += waiting;
  hour.done += Math.max(0, done - waiting);
}

/** Maps the counts to relay names, and adds what waits. The index of waiting events has no relay, so only the newest ones are looked up. */
async function nameRelays(
  tx: Reader,
  values: { environmentId: number; from: number },
  byKey: ReadonlyMap<number, OutcomeCounts>,
): Promise<Map<string, OutcomeCounts>> {
  for (const { nameKey, count } of await tx.all<Counted>(WAITING_BY_RELAY, {
    ...values,
    most: MAX_WAITING,
  })) {
    const counts = byKey.get(nameKey);
    if (counts === undefined) continue;
    counts.waiting += count;
    counts.done = Math.max(0, counts.done - count);
  }
  const names = new Map<string, OutcomeCounts>();
  for (const { key, name } of await tx.all<{ key: number; name: string }>(NAMES, values.environmentId)) {
    const counts = byKey.get(key);
    // An estimate can count more failed events than events.
    if (counts !== undefined) names.set(name, { ...counts, done: Math.max(0, counts.done) });
  }
  return names;
}

const ALL = `SELECT nameKey, count(*) AS count FROM (
    SELECT event.name_key AS nameKey FROM relay_name CROSS JOIN event INDEXED BY event_of_relay ON event.name_key = relay_name.key
    WHERE relay_name.environment_id = $environmentId AND event.seq >= $from AND event.seq < $to LIMIT $most)
  GROUP BY nameKey`;
const UNHAPPY = ["failed", "dead"]
  .map(
    (
      state,
    ) => `SELECT name_key AS nameKey, '${state}' AS state, count(*) AS count FROM event INDEXED BY event_unhappy
    WHERE environment_id = $environmentId AND state IN ('failed', 'dead') AND state = '${state}' AND seq >= $from AND seq < $to GROUP BY name_key`,
  )
  .join(" UNION ALL ");
const UNFINISHED = `event INDEXED BY event_unfinished WHERE environment_id = $environmentId AND state IN ('queued', 'running') AND seq >= $from`;
const TROUBLED = `SELECT count(*) AS count FROM (
    SELECT 1 FROM event INDEXED BY event_unhappy
      WHERE environment_id = $environmentId AND state IN ('failed', 'dead') AND seq >= $from AND seq < $to
    UNION ALL SELECT 1 FROM ${UNFINISHED} AND seq < $to LIMIT $most)`;
const WAITING = `SELECT count(*) AS count FROM ${UNFINISHED} AND seq < $to`;
const WAITING_BY_RELAY = `SELECT name_key AS nameKey, count(*) AS count FROM (
    SELECT name_key FROM ${UNFINISHED} LIMIT $most)
  GROUP BY name_key`;
const NAMES = "SELECT key, name FROM relay_name WHERE environment_id = ?1";
