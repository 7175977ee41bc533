/**
 * How many events of each state a filter chooses, as far as counting is cheap: through the indexes of what waits and of what failed, a bounded
 * number at a step, and to a bound. What was done has no index of its own: it is what is left of all, or, where that is not known, counted
 * among the newest.
 */
import { type Static, Type } from "typebox";
import { readPage, turnLoop } from "../../store/index-scan.ts";
import type { Reader, Store } from "../../store/port.ts";
import { firstSeqAbout } from "../../store/time-index.ts";
import { EVENT_STATES, type EventState } from "./event.ts";
import { ANY_REASON, type EventFilter, findNameKey, leadOfTrigger, listEvents } from "./list.ts";
import { MAX_SPAN, newestSpan, OF_ENVIRONMENT } from "./number-range.ts";

/** More than so many are not counted. */
const MAX_COUNTED = 10_000;
/** Nor are more looked at for one state. */
const MAX_LOOKED_AT = 2 * MAX_COUNTED;
/** Looked at in one step: through an index alone, or in their rows. */
const STEP = MAX_SPAN;
/** Events that hold a text, each of which has to be read. */
const TEXT_PAGE = { limit: 200, after: null };
const TEXT_STEPS = { steps: 2, look: 1_000 };

const stateCount = Type.Object({
  count: Type.Integer(),
  /** Whether there may be more: counting ends at 10,000, sooner where a text is searched for. */
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

/** Of the states in which events lie in an index. */
const INDEXED = {
  queued: ["event_unfinished", "state IN ('queued', 'running')"],
  running: ["event_unfinished", "state IN ('queued', 'running')"],
  failed: ["event_unhappy", "state IN ('failed', 'dead')"],
  dead: ["event_unhappy", "state IN ('failed', 'dead')"],
} as const;

/** What is counted, with numbers from `above` to before `below`. */
interface Asked {
  environmentId: number;
  nameKey: number | null;
  trigger: string | null;
  reason: string | null;
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
    return await eachState((state) => countFound(store, environmentId, { ...filter, state }));
  const asked = await store.read((tx) => ask(tx, environmentId, filter));
  if (asked === null) return await eachState(async () => NONE);
  if (asked.person !== null) return await countOfPerson(store, asked);
  const counts = new Map<EventState, StateCount>();
  for (const state of ["queued", "running", "failed", "dead"] as const)
    counts.set(state, await countSteps(store, asked, (tx, below) => stepOfState(tx, asked, state, below)));
  return await eachState(
    async (state) => counts.get(state) ?? (await countDone(store, asked, [...counts.values()])),
  );
}

async function eachState(count: (state: EventState) => Promise<StateCount>): Promise<EventCounts> {
  const counted: Partial<EventCounts> = {};
  for (const state of EVENT_STATES) counted[state] = await count(state);
  return { queued: NONE, running: NONE, done: NONE, failed: NONE, dead: NONE, ...counted };
}

/** null: no relay ever had the name. */
async function ask(
  tx: Reader,
  environmentId: number,
  { relay, trigger, reason, person, sinceMs, untilMs }: EventFilter,
): Promise<Asked | null> {
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

/** As many as the first pages of the list hold. */
async function countFound(store: Store, environmentId: number, filter: EventFilter): Promise<StateCount> {
  const { items, next } = await readPage(
    store,
    TEXT_PAGE,
    (tx, part) => listEvents(tx, environmentId, filter, part),
    TEXT_STEPS,
  );
  return { count: items.length, isMore: next !== null };
}

/** `last`: the lowest number looked at; null: there are no more. */
interface Step {
  looked: number;
  found: number;
  last: number | null;
}

async function countSteps(
  store: Store,
  { below: end }: Asked,
  step: (tx: Reader, below: number) => Promise<Step>,
): Promise<StateCount> {
  let [count, looked, below] = [0, 0, end];
  for (;;) {
    const at = below;
    const one = await store.read((tx) => step(tx, at));
    count += one.found;
    looked += one.looked;
    if (count > MAX_COUNTED) return { count: MAX_COUNTED, isMore: true };
    if (one.last === null) return { count, isMore: false };
    if (looked >= MAX_LOOKED_AT) return { count, isMore: true };
    below = one.last;
    await turnLoop();
  }
}

/** Only what is asked for is looked at, so that what an index holds is read from it alone. */
function fitsOf({ nameKey, trigger, reason }: Asked): string[] {
  return [
    ...(nameKey === null ? [] : ["name_key = $nameKey"]),
    ...(trigger === null ? [] : ['"trigger" = $trigger']),
    ...(reason === null ? [] : [reason === ANY_REASON ? "reason IS NOT NULL" : "reason = $reason"]),
  ];
}

function stepOfState(tx: Reader, asked: Asked, state: keyof typeof INDEXED, below: number): Promise<Step> {
  const [index, condition] = INDEXED[state];
  return look(
    tx,
    { ...asked, below },
    index,
    `environment_id = $environmentId AND ${condition} AND state = '${state}'`,
    fitsOf(asked),
  );
}

/** All states in one walk, since their index knows of none; of somebody with very many, those of the newest. */
async function countOfPerson(store: Store, { above, ...asked }: Asked): Promise<EventCounts> {
  const fits = [...fitsOf({ ...asked, above }), "environment_id = $environmentId"].join(" AND ");
  const sql = `SELECT state, count(*) FILTER (WHERE ${fits}) AS found, count(*) AS looked, min(seq) AS last FROM (
      SELECT seq, state, environment_id, name_key, "trigger", reason FROM event INDEXED BY event_of_person WHERE person_id = $person AND seq >= $above AND seq < $below ORDER BY seq DESC LIMIT $step)
    GROUP BY state`;
  const found = new Map<EventState, number>();
  let [looked, below, isMore] = [0, asked.below, true];
  while (isMore && looked < MAX_COUNTED) {
    const values = namesIn(sql, { ...asked, above, below });
    const rows = await store.read((tx) => tx.all<Step & { state: EventState }>(sql, values));
    for (const row of rows) found.set(row.state, (found.get(row.state) ?? 0) + row.found);
    const step = rows.reduce((sum, row) => sum + row.looked, 0);
    looked += step;
    isMore = step === STEP;
    below = Math.min(...rows.map(({ last }) => last ?? 0));
    await turnLoop();
  }
  return await eachState(async (state) => ({ count: found.get(state) ?? 0, isMore }));
}

/** Looks at the newest events that the index is led to. */
async function look(
  tx: Reader,
  asked: Asked,
  index: string,
  led: string,
  fits: readonly string[],
): Promise<Step> {
  const sql = `SELECT count(*) AS looked, count(*) FILTER (WHERE fits) AS found, min(seq) AS last FROM (
      SELECT seq, ${fits.length === 0 ? "TRUE" : `(${fits.join(" AND ")})`} AS fits FROM event INDEXED BY ${index}
      WHERE ${led} AND seq >= $above AND seq < $below ORDER BY seq DESC LIMIT $step)`;
  const row = await tx.get<Step>(sql, namesIn(sql, asked));
  if (row === null) return { looked: 0, found: 0, last: null };
  return { ...row, last: row.looked < STEP ? null : row.last };
}

/** What is left of all, where nothing else has to be looked at and the others are known; else what the newest hold. */
async function countDone(store: Store, asked: Asked, others: readonly StateCount[]): Promise<StateCount> {
  // What is done has failed with nothing.
  if (asked.reason !== null) return NONE;
  const isKnown = asked.trigger === null && others.every(({ isMore }) => !isMore);
  if (!isKnown) return await countSteps(store, asked, (tx, below) => stepOfDone(tx, asked, below));
  const besides = others.reduce((sum, { count }) => sum + count, 0);
  const sql = `SELECT count(*) AS count FROM (SELECT 1 FROM relay_name CROSS JOIN event INDEXED BY event_of_relay ON event.name_key = relay_name.key
    WHERE relay_name.environment_id = $environmentId ${asked.nameKey === null ? "" : "AND relay_name.key = $nameKey"}
      AND event.seq >= $above AND event.seq < $below LIMIT $most)`;
  const most = besides + MAX_COUNTED + 1;
  const all = await store.read((tx) => tx.get<{ count: number }>(sql, { ...namesIn(sql, asked), most }));
  const done = Math.max(0, (all?.count ?? 0) - besides);
  return { count: Math.min(done, MAX_COUNTED), isMore: done > MAX_COUNTED };
}

async function stepOfDone(tx: Reader, asked: Asked, below: number): Promise<Step> {
  const fits = [...fitsOf(asked), "state = 'done'"];
  if (asked.nameKey !== null)
    return look(tx, { ...asked, below }, "event_of_relay", "name_key = $nameKey", fits);
  const rare = leadOfTrigger(asked.trigger);
  if (rare !== null)
    return look(
      tx,
      { ...asked, below },
      "event_of_trigger",
      `environment_id = $environmentId AND ${rare}`,
      fits,
    );
  const span = await newestSpan(tx, asked.environmentId, { above: asked.above, below }, STEP);
  if (span === null) return { looked: 0, found: 0, last: null };
  const sql = `SELECT count(*) AS looked, count(*) FILTER (WHERE ${fits.join(" AND ")}) AS found FROM (
      SELECT name_key, "trigger", state FROM event INDEXED BY event_of_relay
      WHERE ${OF_ENVIRONMENT.replace("?", "$environmentId")} AND seq >= $above AND seq < $below ORDER BY seq)`;
  const values = namesIn(sql, { ...asked, above: Math.max(asked.above, span.from), below });
  const row = await tx.get<{ looked: number; found: number }>(sql, values);
  return { looked: row?.looked ?? 0, found: row?.found ?? 0, last: span.ended ? null : span.from };
}

/** A statement is given the values that it names. */
function namesIn(sql: string, asked: Asked): Record<string, string | number | null> {
  const values = { ...asked, step: STEP };
  return Object.fromEntries(Object.entries(values).filter(([name]) => new RegExp(`\\$${name}\\b`).test(sql)));
}
