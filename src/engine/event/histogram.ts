/**
 * Draws a histogram of the events that match a filter: bars of equal width over time, by the events' current outcome. No index holds the time, so a
 * binary search finds the event numbers of each bar. histogram-count.ts counts them, so the cost depends on the bars and not on the events.
 */
import { type Static, Type } from "typebox";
import { toIso } from "../../base/clock.ts";
import { DAY_MS, HOUR_MS, MINUTE_MS } from "../../base/limit.ts";
import { Refusal } from "../../base/refusal.ts";
import { time } from "../../base/schema.ts";
import { yieldToEventLoop } from "../../store/index-scan.ts";
import type { Reader, Store } from "../../store/port.ts";
import { firstSeqAbout, listFirstSeqs } from "../../store/time-index.ts";
import { type CountFilter, conditionsOf, findFirstMatches, valuesOf } from "./counted-walk.ts";
import type { EventState } from "./event.ts";
import { type Counts, countSpan, type HistogramFilter, outcomeOf } from "./histogram-count.ts";
import { type EventFilter, findNameKey } from "./list.ts";
import { listRejectedCounts } from "./rejected-count.ts";

/** The widths of a bar in minutes. The narrowest width with few enough bars is the default. */
const WIDTHS = {
  "1m": 1,
  "2m": 2,
  "5m": 5,
  "10m": 10,
  "15m": 15,
  "30m": 30,
  "1h": 60,
  "2h": 120,
  "3h": 180,
  "6h": 360,
  "12h": 720,
  "1d": 1_440,
} as const;
export const BAR_WIDTHS = Object.keys(WIDTHS) as (keyof typeof WIDTHS)[];
const DEFAULT_BARS = 96;
const MAX_BARS = 168;
const RETENTION_MS = 30 * DAY_MS;
/** Events of one person that a walk reads, in total and in one step. */
const MAX_OF_PERSON = 10_000;
const PERSON_STEP = 1_000;
/** Bars counted between two turns of the event loop. */
const BAR_STEP = 2;

export const histogramView = Type.Object({
  since: time,
  until: time,
  /** The width of a bar in milliseconds. */
  everyMs: Type.Integer(),
  /** The events that arrived from `at` on, by current outcome. `waiting`: queued, running, or waiting for a retry. */
  bars: Type.Array(
    Type.Object({
      at: time,
      done: Type.Integer(),
      waiting: Type.Integer(),
      failed: Type.Integer(),
      dead: Type.Integer(),
      /** Requests that a receiver rejected. It is 0 where the filter selects events by more than their relay and time. */
      rejected: Type.Integer(),
    }),
  ),
  /** True if samples were counted, or some events were left out. */
  approximate: Type.Boolean(),
});
export type HistogramView = Static<typeof histogramView>;

interface Bar extends Counts {
  rejected: number;
  atMs: number;
  from: number;
  to: number;
}

export async function drawHistogram(
  store: Store,
  environmentId: number,
  filter: EventFilter & { every?: (typeof BAR_WIDTHS)[number] | undefined },
  nowMs: number,
): Promise<HistogramView> {
  const { sinceMs, untilMs, everyMs } = await store.read((tx) => chooseRange(tx, filter, nowMs));
  const { relay, trigger = null, person = null, state = null, reason, q, mapped } = filter;
  const nameKey =
    relay === undefined ? null : await store.read((tx) => findNameKey(tx, environmentId, relay));
  const bars = await makeBars(store, sinceMs, untilMs, everyMs);
  const [first] = bars;
  const from = filter.sinceMs;
  if (first !== undefined && from !== undefined)
    first.from = await store.read((tx) => firstSeqAbout(tx, "event", from));
  const counted = { environmentId, nameKey, trigger, state, reason: null };
  let exact = true;
  if (relay !== undefined && nameKey === null) exact = true;
  else if ((q ?? "") !== "" || mapped !== undefined || reason !== undefined)
    exact = await addFirstMatches(store, environmentId, { ...filter, sinceMs, untilMs }, bars);
  else if (person !== null) exact = await addOfPerson(store, { ...counted, person }, bars);
  else exact = await addAll(store, counted, bars);
  if (selectsRequests(filter)) {
    const range = { environmentId, relay, sinceMs, untilMs };
    const rejected = await store.read((tx) => listRejectedCounts(tx, range, nowMs));
    for (const { at, count } of rejected) {
      const bar = bars[Math.floor((at - sinceMs) / everyMs)];
      if (bar !== undefined) bar.rejected += count;
    }
  }
  return {
    since: toIso(sinceMs),
    until: toIso(untilMs),
    everyMs,
    bars: bars.map(({ atMs, done, waiting, failed, dead, rejected }) => ({
      at: toIso(atMs),
      done,
      waiting,
      failed,
      dead,
      rejected,
    })),
    approximate: !exact,
  };
}

/** Reports whether rejected requests can match the filter: they have a relay and a time, and nothing else was verified. */
function selectsRequests({ state, trigger, reason, person, q, mapped }: EventFilter): boolean {
  const isReceiver = trigger === undefined || trigger === "receiver";
  return isReceiver && [state, reason, person, mapped].every((one) => one === undefined) && (q ?? "") === "";
}

/** Chooses the range of full bars. It begins at the oldest event if `since` is not set; the first bar may begin earlier. */
async function chooseRange(
  tx: Reader,
  { sinceMs, untilMs, every }: Parameters<typeof drawHistogram>[2],
  nowMs: number,
) {
  const until = untilMs ?? nowMs + 1;
  const oldest = await tx.get<{ at: number }>("SELECT created_at AS at FROM event ORDER BY seq LIMIT 1");
  const first = Math.max(until - RETENTION_MS, Math.min(oldest?.at ?? nowMs, until - HOUR_MS));
  const since = Math.max(sinceMs ?? first, until - 400 * DAY_MS);
  if (since >= until)
    throw new Refusal("invalid_input", "since must be before until: choose a range that has begun.");
  const wide = until - since;
  const minutes =
    every === undefined
      ? Object.values(WIDTHS).find((one) => wide / (one * MINUTE_MS) <= DEFAULT_BARS)
      : WIDTHS[every];
  const width = minutes === undefined ? Math.ceil(wide / DEFAULT_BARS) : minutes * MINUTE_MS;
  if (wide / width > MAX_BARS)
    throw new Refusal(
      "invalid_input",
      `every would make ${Math.ceil(wide / width)} bars of this range, and ${MAX_BARS} is the most: choose a wider one, or leave it out.`,
    );
  return { sinceMs: Math.floor(since / width) * width, untilMs: until, everyMs: width };
}

async function makeBars(store: Store, sinceMs: number, untilMs: number, everyMs: number): Promise<Bar[]> {
  const moments: number[] = [];
  for (let atMs = sinceMs; atMs < untilMs; atMs += everyMs) moments.push(atMs);
  const seqs = await listFirstSeqs(store, "event", [...moments, untilMs]);
  const none = { done: 0, waiting: 0, failed: 0, dead: 0, rejected: 0 };
  return moments.map((atMs, at) => ({ atMs, from: seqs[at] ?? 0, to: seqs[at + 1] ?? 0, ...none }));
}

async function addAll(store: Store, filter: HistogramFilter, bars: readonly Bar[]): Promise<boolean> {
  const last = await store.read((tx) => tx.get<{ seq: number | null }>("SELECT max(seq) AS seq FROM event"));
  const end = (last?.seq ?? 0) + 1;
  let exact = true;
  for (const [at, bar] of bars.entries()) {
    const counted = await store.read((tx) => countSpan(tx, filter, { ...bar, to: Math.min(bar.to, end) }));
    Object.assign(bar, counted.counts);
    exact &&= counted.exact;
    if (at % BAR_STEP === BAR_STEP - 1) await yieldToEventLoop();
  }
  return exact;
}

/** Returns whether all events of the person were counted. */
async function addOfPerson(
  store: Store,
  { state, ...filter }: HistogramFilter & { person: string },
  bars: readonly Bar[],
): Promise<boolean> {
  const range = { ...filter, above: bars[0]?.from ?? 0, below: bars.at(-1)?.to ?? 0 };
  const isMore = await visitPersonEvents(store, range, (event) => {
    const bar = bars.find(({ from, to }) => event.seq >= from && event.seq < to);
    if (bar !== undefined && (state === null || state === event.state)) bar[outcomeOf(event.state)] += 1;
  });
  return !isMore;
}

/** Returns whether all matches were counted. */
async function addFirstMatches(
  store: Store,
  environmentId: number,
  filter: EventFilter,
  bars: readonly Bar[],
): Promise<boolean> {
  const { items, next } = await findFirstMatches(store, environmentId, filter);
  for (const { createdAt, state } of items) {
    const atMs = Date.parse(createdAt);
    const bar = bars.findLast((one) => one.atMs <= atMs);
    if (bar !== undefined) bar[outcomeOf(state)] += 1;
  }
  return next === null;
}

interface PersonEvent {
  seq: number;
  state: EventState;
}

/** Visits the matching events of a person, the newest first. Returns whether older ones were left out. */
async function visitPersonEvents(
  store: Store,
  filter: CountFilter & { person: string; above: number; below: number },
  visit: (event: PersonEvent) => void,
): Promise<boolean> {
  const fits = ["environment_id = $environmentId", ...conditionsOf(filter)].join(" AND ");
  const sql = `SELECT seq, state, (${fits}) AS fits FROM event INDEXED BY event_of_person
    WHERE person_id = $person AND seq >= $above AND seq < $below ORDER BY seq DESC LIMIT ${PERSON_STEP}`;
  let { below } = filter;
  for (let visited = 0; visited < MAX_OF_PERSON; visited += PERSON_STEP) {
    const values = valuesOf(sql, { ...filter, below });
    const rows = await store.read((tx) => tx.all<PersonEvent & { fits: number }>(sql, values));
    for (const { fits: isMatch, ...event } of rows) if (isMatch === 1) visit(event);
    if (rows.length < PERSON_STEP) return false;
    below = rows.at(-1)?.seq ?? 0;
    await yieldToEventLoop();
  }
  return true;
}
