/**
 * Counts how a relay's recent events ended, and at which step the failed ones stopped. Indexes give the counts. The step is read only from the runs
 * of the newest events, and scaled to all.
 */

import { shortenToLine } from "../../base/text.ts";
import { EVENT } from "../../engine/event/event.ts";
import { RUN_RESULTS } from "../../engine/event/run.ts";
import type { StoredResult } from "../../rules/action/contract.ts";
import { yieldToEventLoop } from "../../store/index-scan.ts";
import type { Reader, Store } from "../../store/port.ts";
import { formatFailure } from "./failure-cause.ts";

/** Events counted in one step, and in all steps together. */
const STEP = 50_000;
const MAX_COUNTED = 2_000_000;
/** Failed and dead events of the environment read in one step, and in all steps together for each state. */
const UNHAPPY_STEP = 10_000;
const MAX_UNHAPPY = 250_000;
/** The newest events of each state whose runs are read, and how many of them in one step. */
const MAX_READ = 100;
const READ_STEP = 20;
const MAX_RESULTS_BYTES = 16 * 1024;
/** Waiting events of the environment that are read. */
const MAX_WAITING = 2_000;
const MAX_SENTENCE = 300;

/** The place before the first action. */
export const BEFORE_ACTIONS = -1;

export interface StopCount {
  /** The index of an action, or `BEFORE_ACTIONS`. */
  at: number;
  state: "failed" | "dead";
  code: string;
  /** The reason that all of them share, by which a list can filter them; null where they have several or none. */
  reason: string | null;
  count: number;
  message: string;
}

interface RetryCount {
  all: number;
  commonest: StopCount;
}

export interface EventEnds {
  all: number;
  done: number;
  /** Events that wait for their turn, a resume or a release. */
  waiting: number;
  /** Events that wait for a retry, by the step that failed, with their most common cause. */
  retries: ReadonlyMap<number, RetryCount>;
  stops: StopCount[];
  /** Warnings of the newest events. */
  warned: Warned;
  approximate: boolean;
}

/** The number of the newest `of` events that carry a warning, and the newest warning. An example is a map that finds no value. */
export interface Warned {
  events: number;
  of: number;
  message: string | null;
}

interface EndsQuery {
  environmentId: number;
  /** The key of the relay's name; null where no event of the relay was ever stored. */
  nameKey: number | null;
  relayId: string;
  from: number;
  /** The types of the relay's actions, in order. */
  types: readonly string[];
}

export async function countEvents(store: Store, query: EndsQuery): Promise<EventEnds> {
  const { nameKey, types } = query;
  if (nameKey === null)
    return {
      all: 0,
      done: 0,
      waiting: 0,
      retries: new Map(),
      stops: [],
      warned: NONE_WARNED,
      approximate: false,
    };
  const all = await countAll(store, nameKey, query.from);
  const stops: StopCount[] = [];
  let approximate = all >= MAX_COUNTED;
  for (const state of ["failed", "dead"] as const) {
    const found = await findUnhappy(store, query, nameKey, state);
    const read = await readEnds(store, found.newest, types);
    stops.push(...share(read, found.count, state));
    approximate ||= found.count > read.length || found.isMore;
  }
  const waits = await findWaiting(store, query, nameKey);
  const retried = await readEnds(store, waits.retries, types);
  const retries = new Map<number, RetryCount>();
  // The most common cause comes first.
  for (const one of share(retried, waits.retries.length, "failed")) {
    const { all: known, commonest } = retries.get(one.at) ?? { all: 0, commonest: one };
    retries.set(one.at, { all: known + one.count, commonest });
  }
  const retrying = [...retries.values()].map((one) => one.all);
  const sum = (counts: Iterable<number>): number => [...counts].reduce((total, one) => total + one, 0);
  const unhappy = sum(stops.map(({ count }) => count));
  const done = Math.max(0, all - unhappy - waits.ready - sum(retrying));
  return {
    all,
    done,
    waiting: waits.ready,
    retries,
    stops,
    warned: await store.read((tx) => findWarned(tx, nameKey, query.from)),
    approximate: approximate || waits.isMore || waits.retries.length > retried.length,
  };
}

async function countAll(store: Store, nameKey: number, from: number): Promise<number> {
  let [all, after] = [0, from];
  while (all < MAX_COUNTED) {
    const row = await store.read((tx) => tx.get<Counted>(ALL, { nameKey, after, step: STEP }));
    all += row?.count ?? 0;
    if (row === null || row.last === null || row.count < STEP) break;
    after = row.last + 1;
    await yieldToEventLoop();
  }
  return all;
}

interface Counted {
  count: number;
  last: number | null;
}

const ALL = `SELECT count(*) AS count, max(seq) AS last FROM (
    SELECT seq FROM event INDEXED BY event_of_relay WHERE name_key = $nameKey AND seq >= $after ORDER BY seq LIMIT $step)`;

const NONE_WARNED: Warned = { events: 0, of: 0, message: null };

async function findWarned(tx: Reader, nameKey: number, from: number): Promise<Warned> {
  const rows = (await tx.all<object>(NEWEST, { nameKey, from })).map(
    (row) => WARNED.read(row).warnings ?? [],
  );
  const warned = rows.filter(({ length }) => length > 0);
  const message = warned[0]?.[0] ?? null;
  return {
    events: warned.length,
    of: rows.length,
    message: message === null ? null : shortenToLine(message, MAX_SENTENCE),
  };
}

const WARNED = EVENT.pick("warnings");
const NEWEST = `SELECT ${WARNED.columns} FROM event INDEXED BY event_of_relay WHERE name_key = $nameKey AND seq >= $from ORDER BY seq DESC LIMIT ${MAX_READ}`;

/** Counts the relay's events of one state, and lists the newest. */
async function findUnhappy(
  store: Store,
  { environmentId, from }: EndsQuery,
  nameKey: number,
  state: "failed" | "dead",
): Promise<{ count: number; newest: number[]; isMore: boolean }> {
  const newest: number[] = [];
  let [count, before] = [0, Number.MAX_SAFE_INTEGER];
  for (let looked = 0; looked < MAX_UNHAPPY; looked += UNHAPPY_STEP) {
    const values = { environmentId, from, before, step: UNHAPPY_STEP };
    const rows = await store.read((tx) =>
      tx.all<{ seq: number; nameKey: number }>(UNHAPPY.replaceAll("STATE", state), values),
    );
    for (const row of rows) {
      if (row.nameKey !== nameKey) continue;
      count++;
      if (newest.length < MAX_READ) newest.push(row.seq);
    }
    const last = rows.at(-1);
    if (last === undefined || rows.length < UNHAPPY_STEP) return { count, newest, isMore: false };
    before = last.seq;
    await yieldToEventLoop();
  }
  return { count, newest, isMore: true };
}

const UNHAPPY = `SELECT seq, name_key AS nameKey FROM event INDEXED BY event_unhappy
  WHERE environment_id = $environmentId AND state IN ('failed', 'dead') AND state = 'STATE' AND seq >= $from AND seq < $before
  ORDER BY seq DESC LIMIT $step`;

/** Counts the events that wait for their turn, and lists those that failed and wait for a retry. */
async function findWaiting(
  store: Store,
  { environmentId, relayId, from }: EndsQuery,
  nameKey: number,
): Promise<{ ready: number; retries: number[]; isMore: boolean }> {
  return await store.read(async (tx) => {
    const ready = await tx.get<{ count: number }>(READY, { relayId, from, most: STEP });
    const running = await tx.get<{ count: number }>(RUNNING, { nameKey, from });
    const waiting = await tx.all<{ seq: number; nameKey: number; retries: number }>(RETRIES, {
      environmentId,
      from,
      most: MAX_WAITING,
    });
    const retries = waiting
      .filter((one) => one.nameKey === nameKey && one.retries === 1)
      .map(({ seq }) => seq);
    return {
      ready: (ready?.count ?? 0) + (running?.count ?? 0),
      retries,
      isMore: waiting.length === MAX_WAITING || ready?.count === STEP,
    };
  });
}

const READY = `SELECT count(*) AS count FROM (SELECT 1 FROM event INDEXED BY event_ready
  WHERE relay_key = (SELECT key FROM relay_key WHERE relay_id = $relayId) AND state = 'queued' AND next_attempt_at IS NULL AND seq >= $from LIMIT $most)`;
const RUNNING = `SELECT count(*) AS count FROM event INDEXED BY event_running WHERE state = 'running' AND seq >= $from AND name_key = $nameKey`;
const RETRIES = `SELECT seq, name_key AS nameKey, next_attempt_at IS NOT NULL AS retries FROM event INDEXED BY event_unfinished
  WHERE environment_id = $environmentId AND state IN ('queued', 'running') AND state = 'queued' AND seq >= $from ORDER BY seq DESC LIMIT $most`;

/** The step at which an event stopped, and the cause. */
interface End {
  at: number;
  code: string;
  reason: string | null;
  message: string;
}

async function readEnds(store: Store, seqs: readonly number[], types: readonly string[]): Promise<End[]> {
  const ends: End[] = [];
  const newest = seqs.slice(0, MAX_READ);
  for (let first = 0; first < newest.length; first += READ_STEP) {
    const part = newest.slice(first, first + READ_STEP);
    ends.push(
      ...(await store.read(async (tx) => {
        const read: End[] = [];
        for (const seq of part) read.push(await readEnd(tx, seq, types));
        return read;
      })),
    );
    await yieldToEventLoop();
  }
  return ends;
}

async function readEnd(tx: Reader, seq: number, types: readonly string[]): Promise<End> {
  const row = await tx.get<{ reason: string | null; results: string | null }>(END, seq);
  const results = row === null || row.results === null ? [] : RUN_RESULTS.read(row).results;
  const place = results.findIndex((one) => one.outcome === "failed");
  const failed = results[place];
  if (failed === undefined || failed.outcome !== "failed") {
    const code = row?.reason ?? "interrupted";
    return {
      at: BEFORE_ACTIONS,
      code,
      reason: row?.reason ?? null,
      message: formatFailure({ code }),
    };
  }
  return {
    at: placeOf(failed, place, types),
    code: failed.code,
    reason: row?.reason ?? null,
    message: formatFailure(failed),
  };
}

const END = `SELECT reason, (SELECT results FROM run WHERE event_seq = event.seq AND octet_length(results) <= ${MAX_RESULTS_BYTES} ORDER BY number DESC LIMIT 1) AS results
  FROM event WHERE seq = ?1`;

/** Finds the place of the failed action in the relay's current version. After a change of the relay, the first action of the same type counts. */
function placeOf({ type }: StoredResult, place: number, types: readonly string[]): number {
  if (type === "person") return BEFORE_ACTIONS;
  if (types[place] === type) return place;
  const same = types.indexOf(type);
  return same === -1 ? Math.min(place, types.length - 1) : same;
}

/** Groups the ends by step and code, and scales the counts to `all` events. */
function share(ends: readonly End[], all: number, state: StopCount["state"]): StopCount[] {
  const found = new Map<string, StopCount>();
  for (const { at, code, reason, message } of ends) {
    const key = `${at} ${code}`;
    const known = found.get(key) ?? { at, state, code, reason, count: 0, message };
    known.count++;
    if (known.reason !== reason) known.reason = null;
    found.set(key, known);
  }
  const stops = [...found.values()].toSorted((one, other) => other.count - one.count);
  if (ends.length > 0 && all > ends.length)
    for (const stop of stops) stop.count = Math.round((stop.count / ends.length) * all);
  return stops;
}
