/**
 * Selects the events of a bulk replay, and plans what the replay would do with them. It reads the oldest first, a bounded number of rows at a step,
 * so that no other work waits for it.
 */
import { type Static, Type } from "typebox";
import { oneOf, time } from "../../base/schema.ts";
import { yieldToEventLoop } from "../../store/index-scan.ts";
import type { Reader, Store } from "../../store/port.ts";
import type { RowOf } from "../../store/table.ts";
import { endSeqUntil, firstSeqSince } from "../../store/time-index.ts";
import { EVENT, EVENT_TRIGGERS, eventIdOf } from "./event.ts";
import { ANY_REASON, findNameKey } from "./list.ts";
import { outlineReplay } from "./replay.ts";
import { WILL } from "./replay-plan.ts";

/** The states of events that a bulk replay takes. It takes only the done events whose work was done for another person. */
export const BULK_STATES = ["dead", "failed", "done"] as const;
/** The most events that one step reads. */
export const STEP = 250;
/** The most events that one step counts. */
const COUNT_STEP = 1_000;

/** The shown and stored form of the filter. */
export const bulkFilter = {
  state: oneOf(BULK_STATES),
  relay: Type.Optional(Type.String()),
  trigger: Type.Optional(oneOf(EVENT_TRIGGERS)),
  /** The code they failed with last. */
  reason: Type.Optional(Type.String({ maxLength: 100, description: "the code they failed with last" })),
  /** Person id. */
  person: Type.Optional(Type.String()),
  since: Type.Optional(time),
  until: Type.Optional(time),
};
const bulkFilterSchema = Type.Object(bulkFilter);
export type BulkFilter = Static<typeof bulkFilterSchema>;

/** A filter resolved to the range and the columns of its events. */
interface Selection {
  environmentId: number;
  state: BulkFilter["state"];
  nameKey: number | null;
  trigger: string | null;
  reason: string | null;
  person: string | null;
  sinceMs: number;
  untilMs: number;
  /** The event must have ended at this time or before. */
  endedUntil: number;
  /** The events have higher numbers than `cursor`, up to `untilSeq`. */
  cursor: number;
  untilSeq: number;
}

/** Resolves a filter; null if no event can match, because no relay ever had the name. */
export async function resolveFilter(
  tx: Reader,
  environmentId: number,
  filter: BulkFilter,
): Promise<Selection | null> {
  const { relay, state, trigger, reason, person, since, until } = filter;
  const nameKey = relay === undefined ? null : await findNameKey(tx, environmentId, relay);
  if (relay !== undefined && nameKey === null) return null;
  const sinceMs = since === undefined ? 0 : Date.parse(since);
  const untilMs = until === undefined ? Number.MAX_SAFE_INTEGER : Date.parse(until);
  const first = since === undefined ? 0 : (await firstSeqSince(tx, "event", sinceMs)) - 1;
  const newest = await tx.get<{ seq: number | null }>("SELECT max(seq) AS seq FROM event");
  const end = until === undefined ? Number.MAX_SAFE_INTEGER : (await endSeqUntil(tx, "event", untilMs)) - 1;
  const untilSeq = Math.min(end, newest?.seq ?? 0);
  return {
    environmentId,
    state,
    nameKey,
    trigger: trigger ?? null,
    reason: reason === undefined || reason === ANY_REASON ? null : reason,
    person: person ?? null,
    sinceMs,
    untilMs,
    endedUntil: Number.MAX_SAFE_INTEGER,
    cursor: Math.max(0, first),
    untilSeq,
  };
}

/** Version 0.7 did not store the end of events that ran inline. */
const ENDED = "coalesce(finished_at, created_at)";
const FITS = `(environment_id = $environmentId AND ($nameKey IS NULL OR name_key = $nameKey) AND ("trigger" = $trigger OR $trigger IS NULL) AND (reason = $reason OR $reason IS NULL)
  AND ($person IS NULL OR person_id = $person) AND created_at >= $sinceMs AND created_at < $untilMs AND ${ENDED} <= $endedUntil) AS fits`;

/** The state is part of the text, so that the planner sees that the partial index applies. Most events are done, so that state scans all events. */
function scanSql(state: Selection["state"], columns: string): string {
  if (state === "done")
    return `SELECT ${columns}, ${FITS.replace("AS fits", "AND state = 'done' AS fits")} FROM event
      WHERE seq > $cursor AND seq <= $untilSeq ORDER BY seq LIMIT $limit`;
  return `SELECT ${columns}, ${FITS} FROM event INDEXED BY event_unhappy
    WHERE environment_id = $environmentId AND state IN ('failed', 'dead') AND state = '${state}' AND seq > $cursor AND seq <= $untilSeq
    ORDER BY seq LIMIT $limit`;
}

const LISTED = EVENT.pick("seq", "formerId", "createdAt");
interface ScannedRow {
  fits: number;
}

/** Lists the next events of a selection, and the number up to which it read. `end`: there are no more. */
export async function listSelected(tx: Reader, { state, ...range }: Selection, limit: number) {
  const rows = await tx.all<ScannedRow>(scanSql(state, LISTED.columns), { ...range, limit });
  const found = rows.filter(({ fits }) => fits === 1).map((row) => LISTED.read(row));
  const last = rows.at(-1);
  return {
    found,
    cursor: last === undefined ? range.untilSeq : LISTED.read(last).seq,
    end: rows.length < limit,
  };
}

/** The count of a filter's events, and when the last of them ended. An event that ends later does not belong to them. */
export interface Counted {
  matched: number;
  endedUntil: number;
}

/** Counts the events that match the filter now. */
export async function countMatches(
  store: Store,
  environmentId: number,
  filter: BulkFilter,
): Promise<Counted> {
  let selection = await store.read((tx) => resolveFilter(tx, environmentId, filter));
  let [matched, endedUntil] = [0, 0];
  while (selection !== null) {
    const { state, ...at }: Selection = selection;
    const sql = `SELECT count(*) AS looked, count(*) FILTER (WHERE fits) AS found, max(seq) AS last, max(ended_at) FILTER (WHERE fits) AS ended
      FROM (${scanSql(state, `seq, ${ENDED} AS ended_at`)})`;
    const row = await store.read((tx) => tx.get<CountedPart>(sql, { ...at, limit: COUNT_STEP }));
    await yieldToEventLoop();
    matched += row?.found ?? 0;
    endedUntil = Math.max(endedUntil, row?.ended ?? 0);
    const last = row === null || row.looked < COUNT_STEP ? null : row.last;
    selection = last === null ? null : { ...selection, cursor: last };
  }
  return { matched, endedUntil };
}

interface CountedPart {
  looked: number;
  found: number | null;
  last: number | null;
  ended: number | null;
}

/** The most events whose replays are planned. The rest are only counted. */
const MAX_PLANNED = 2_000;
/** The most events planned between two turns of the event loop: each may have a large payload and a large definition. */
const PLAN_STEP = 3;

export const bulkPlan = Type.Object({
  /** Events that match. */
  matched: Type.Integer(),
  /** The number of them that were planned, the oldest first. */
  planned: Type.Integer(),
  relays: Type.Array(Type.Object({ relay: Type.String(), events: Type.Integer() })),
  /** The effects of the planned events' actions, by type. */
  actions: Type.Array(Type.Object({ type: Type.String(), will: oneOf(WILL), events: Type.Integer() })),
  /** Planned events with work that was done for another person. It is skipped unless the replay moves it. */
  otherPerson: Type.Integer(),
  /** Planned events that would be left out, by reason. */
  leftOut: Type.Record(Type.String(), Type.Integer()),
});
export type BulkPlan = Static<typeof bulkPlan>;

/** Outlines the replay of each event. */
async function* outlineAll(store: Store, environmentId: number, events: readonly RowOf<typeof LISTED>[]) {
  for (let at = 0; at < events.length; at += PLAN_STEP) {
    const some = events.slice(at, at + PLAN_STEP);
    yield* await store.read(async (tx) => {
      const outlines = [];
      for (const event of some)
        outlines.push(await outlineReplay(tx, { environmentId, id: eventIdOf(event) }));
      return outlines;
    });
    await yieldToEventLoop();
  }
}

/** Plans a bulk replay of the filter's events, in small steps. */
export async function planBulkReplay(
  store: Store,
  environmentId: number,
  filter: BulkFilter,
): Promise<BulkPlan> {
  const { matched } = await countMatches(store, environmentId, filter);
  const relays = new Map<string, number>();
  const actions = new Map<string, BulkPlan["actions"][number]>();
  const leftOut: Record<string, number> = {};
  let [planned, otherPerson] = [0, 0];
  let selection = await store.read((tx) => resolveFilter(tx, environmentId, filter));
  while (selection !== null && planned < MAX_PLANNED) {
    const at: Selection = selection;
    const { found, cursor, end } = await store.read((tx) => listSelected(tx, at, STEP));
    const events = found.slice(0, MAX_PLANNED - planned);
    planned += events.length;
    for await (const outline of outlineAll(store, environmentId, events)) {
      if ("left" in outline) {
        leftOut[outline.left] = (leftOut[outline.left] ?? 0) + 1;
        continue;
      }
      relays.set(outline.relay, (relays.get(outline.relay) ?? 0) + 1);
      if (outline.will.some(([, will]) => will === "other_person")) otherPerson += 1;
      for (const [type, will] of outline.will) {
        const key = `${type} ${will}`;
        actions.set(key, { type, will, events: (actions.get(key)?.events ?? 0) + 1 });
      }
    }
    await yieldToEventLoop();
    selection = end ? null : { ...at, cursor };
  }
  return {
    matched,
    planned,
    relays: [...relays].map(([relay, events]) => ({ relay, events })).sort((a, b) => b.events - a.events),
    actions: [...actions.values()].sort((a, b) => b.events - a.events),
    otherPerson,
    leftOut,
  };
}
