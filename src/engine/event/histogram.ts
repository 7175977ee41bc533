/**
 * How many events a filter of the list chooses over time, by how they stand now, in bars of equal width. No index leads to a time: each bar's
 * numbers are found by halving, and counted through the index that is led to them. A bar with more than a share is counted in slices of it and
 * told as about so many; what failed or waits is rarer, has indexes of its own, and is so mostly exact. The cost is bounded by bars and
 * shares, however many events there are.
 */
import { type Static, Type } from "typebox";
import { toIso } from "../../base/clock.ts";
import { DAY_MS, HOUR_MS, MINUTE_MS } from "../../base/limit.ts";
import { Refusal } from "../../base/refusal.ts";
import { time } from "../../base/schema.ts";
import { readPage, turnLoop } from "../../store/index-scan.ts";
import type { Reader, Store } from "../../store/port.ts";
import { firstSeqAbout, listFirstSeqs } from "../../store/time-index.ts";
import type { EventState } from "./event.ts";
import { type Asked, type Counts, countSpan, outcomeOf } from "./histogram-count.ts";
import { type EventFilter, findNameKey, listEvents } from "./list.ts";

/** Widths of a bar, in minutes; the narrowest that makes few enough bars is taken. */
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
const USUAL_BARS = 96;
const MAX_BARS = 168;
const KEPT_MS = 30 * DAY_MS;
/** Bars between two turns of the loop. */
const AT_ONCE = 2;
/** Events of a person that are looked at, and in one step. */
const MAX_OF_PERSON = 10_000;
const PERSON_STEP = 1_000;
/** Events that hold a text, each of which has to be read. */
const TEXT_PAGE = { limit: 200, after: null };
const TEXT_STEPS = { steps: 2, look: 1_000 };

export const histogramView = Type.Object({
  since: time,
  until: time,
  /** Milliseconds that a bar stands for. */
  everyMs: Type.Integer(),
  /** Those that arrived from `at` on, by how they stand now. `waiting`: queued, running, or waiting for a retry. */
  bars: Type.Array(
    Type.Object({
      at: time,
      done: Type.Integer(),
      waiting: Type.Integer(),
      failed: Type.Integer(),
      dead: Type.Integer(),
    }),
  ),
  /** Whether some were counted in samples, or not all were looked at. */
  approximate: Type.Boolean(),
});
export type HistogramView = Static<typeof histogramView>;

interface Bar extends Counts {
  atMs: number;
  from: number;
  to: number;
}

interface AskedOfPerson extends Asked {
  person: string;
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
  const asked = { environmentId, nameKey, trigger, state };
  let exact = true;
  if (relay !== undefined && nameKey === null) exact = true;
  else if ((q ?? "") !== "" || mapped !== undefined || reason !== undefined)
    exact = await addFound(store, environmentId, { ...filter, sinceMs, untilMs }, bars);
  else if (person !== null) exact = await addOfPerson(store, { ...asked, person }, bars);
  else exact = await addAll(store, asked, bars);
  return {
    since: toIso(sinceMs),
    until: toIso(untilMs),
    everyMs,
    bars: bars.map(({ atMs, done, waiting, failed, dead }) => ({
      at: toIso(atMs),
      done,
      waiting,
      failed,
      dead,
    })),
    approximate: !exact,
  };
}

/** Since the oldest event that is kept, where nothing is said; whole bars, the first of which may begin before. */
async function chooseRange(
  tx: Reader,
  { sinceMs, untilMs, every }: Parameters<typeof drawHistogram>[2],
  nowMs: number,
) {
  const until = untilMs ?? nowMs + 1;
  const oldest = await tx.get<{ at: number }>("SELECT created_at AS at FROM event ORDER BY seq LIMIT 1");
  const first = Math.max(until - KEPT_MS, Math.min(oldest?.at ?? nowMs, until - HOUR_MS));
  const since = Math.max(sinceMs ?? first, until - 400 * DAY_MS);
  if (since >= until)
    throw new Refusal("invalid_input", "since must be before until: choose a range that has begun.");
  const wide = until - since;
  const minutes =
    every === undefined
      ? Object.values(WIDTHS).find((one) => wide / (one * MINUTE_MS) <= USUAL_BARS)
      : WIDTHS[every];
  const width = minutes === undefined ? Math.ceil(wide / USUAL_BARS) : minutes * MINUTE_MS;
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
  const none = { done: 0, waiting: 0, failed: 0, dead: 0 };
  return moments.map((atMs, at) => ({ atMs, from: seqs[at] ?? 0, to: seqs[at + 1] ?? 0, ...none }));
}

async function addAll(store: Store, asked: Asked, bars: readonly Bar[]): Promise<boolean> {
  const last = await store.read((tx) => tx.get<{ seq: number | null }>("SELECT max(seq) AS seq FROM event"));
  const end = (last?.seq ?? 0) + 1;
  let exact = true;
  for (const [at, bar] of bars.entries()) {
    const counted = await store.read((tx) => countSpan(tx, asked, { ...bar, to: Math.min(bar.to, end) }));
    Object.assign(bar, counted.counts);
    exact &&= counted.exact;
    if (at % AT_ONCE === AT_ONCE - 1) await turnLoop();
  }
  return exact;
}

/** A person's are looked at one by one, the newest first. */
async function addOfPerson(store: Store, asked: AskedOfPerson, bars: readonly Bar[]): Promise<boolean> {
  const { environmentId, nameKey, trigger, person, state } = asked;
  const sql = `SELECT seq, state, (environment_id = $environmentId AND ($nameKey IS NULL OR name_key = $nameKey) AND ($trigger IS NULL OR "trigger" = $trigger)) AS fits
    FROM event INDEXED BY event_of_person WHERE person_id = $person AND seq >= $from AND seq < $below ORDER BY seq DESC LIMIT ${PERSON_STEP}`;
  let below = bars.at(-1)?.to ?? 0;
  for (let looked = 0; looked < MAX_OF_PERSON; looked += PERSON_STEP) {
    const values = { environmentId, nameKey, trigger, person, from: bars[0]?.from ?? 0, below };
    const rows = await store.read((tx) =>
      tx.all<{ seq: number; state: EventState; fits: number }>(sql, values),
    );
    for (const row of rows) {
      const bar = bars.find(({ from, to }) => row.seq >= from && row.seq < to);
      if (bar !== undefined && row.fits === 1 && (state === null || state === row.state))
        bar[outcomeOf(row.state)] += 1;
    }
    if (rows.length < PERSON_STEP) return true;
    below = rows.at(-1)?.seq ?? 0;
    await turnLoop();
  }
  return false;
}

/** As many as the first pages of the list hold. */
async function addFound(
  store: Store,
  environmentId: number,
  filter: EventFilter,
  bars: readonly Bar[],
): Promise<boolean> {
  const { items, next } = await readPage(
    store,
    TEXT_PAGE,
    (tx, part) => listEvents(tx, environmentId, filter, part),
    TEXT_STEPS,
  );
  for (const { createdAt, state } of items) {
    const atMs = Date.parse(createdAt);
    const bar = bars.findLast((one) => one.atMs <= atMs);
    if (bar !== undefined) bar[outcomeOf(state)] += 1;
  }
  return next === null;
}
