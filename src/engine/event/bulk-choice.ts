/**
 * Which events a bulk replay takes, and what it would do with them. They are found oldest first through the index of what failed, a bounded
 * number at a step, so that nothing waits for it however many there are.
 */
import { type Static, Type } from "typebox";
import { oneOf, time } from "../../base/schema.ts";
import { turnLoop } from "../../store/index-scan.ts";
import type { Reader, Store } from "../../store/port.ts";
import type { RowOf } from "../../store/table.ts";
import { endSeqUntil, firstSeqSince } from "../../store/time-index.ts";
import { EVENT, EVENT_TRIGGERS, eventIdOf } from "./event.ts";
import { ANY_REASON } from "./list.ts";
import { outlineReplay } from "./replay.ts";
import { WILL } from "./replay-plan.ts";

/** Of done events only those are replayed whose work was done for another person than they are about now. */
export const BULK_STATES = ["dead", "failed", "done"] as const;
/** Events looked at in one step, and counted in one. */
export const LOOK = 250;
const COUNT = 1_000;

/** Which events, as it is shown and kept. */
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

/** Where the filter's events lie, and how each is told from its neighbours. */
interface Chosen {
  environmentId: number;
  state: BulkFilter["state"];
  nameKey: number | null;
  trigger: string | null;
  reason: string | null;
  person: string | null;
  sinceMs: number;
  untilMs: number;
  /** The latest end that one may have. */
  endedUntil: number;
  /** Events with a higher number, up to `untilSeq`. */
  cursor: number;
  untilSeq: number;
}

/** Where the filter chooses from; null: nothing can match, because no relay ever had the name. */
export async function choose(tx: Reader, environmentId: number, filter: BulkFilter): Promise<Chosen | null> {
  const { relay, state, trigger, reason, person, since, until } = filter;
  let nameKey: number | null = null;
  if (relay !== undefined) {
    const sql = "SELECT key FROM relay_name WHERE environment_id = ?1 AND name = ?2";
    const found = await tx.get<{ key: number }>(sql, environmentId, relay);
    if (found === null) return null;
    nameKey = found.key;
  }
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

/** Version 0.7 forgot when an event ended that ran as it came. */
const ENDED = "coalesce(finished_at, created_at)";
const FITS = `(environment_id = $environmentId AND ($nameKey IS NULL OR name_key = $nameKey) AND ("trigger" = $trigger OR $trigger IS NULL) AND (reason = $reason OR $reason IS NULL)
  AND ($person IS NULL OR person_id = $person) AND created_at >= $sinceMs AND created_at < $untilMs AND ${ENDED} <= $endedUntil) AS fits`;

/** Each state's own text, so that the planner sees that the index's condition holds. Done events are most events, so all events are looked at. */
function lookSql(state: Chosen["state"], columns: string): string {
  if (state === "done")
    return `SELECT ${columns}, ${FITS.replace("AS fits", "AND state = 'done' AS fits")} FROM event
      WHERE seq > $cursor AND seq <= $untilSeq ORDER BY seq LIMIT $limit`;
  return `SELECT ${columns}, ${FITS} FROM event INDEXED BY event_unhappy
    WHERE environment_id = $environmentId AND state IN ('failed', 'dead') AND state = '${state}' AND seq > $cursor AND seq <= $untilSeq
    ORDER BY seq LIMIT $limit`;
}

const LISTED = EVENT.pick("seq", "formerId", "createdAt");
interface Looked {
  fits: number;
}

/** The next events of the filter, with how far was looked; `end`: there are no more. */
export async function look(tx: Reader, { state, ...chosen }: Chosen, limit: number) {
  const rows = await tx.all<Looked>(lookSql(state, LISTED.columns), { ...chosen, limit });
  const found = rows.filter(({ fits }) => fits === 1).map((row) => LISTED.read(row));
  const last = rows.at(-1);
  return {
    found,
    cursor: last === undefined ? chosen.untilSeq : LISTED.read(last).seq,
    end: rows.length < limit,
  };
}

/** The events that a filter chose when they were counted: one that ends after the last of them is none of them. */
export interface Counted {
  matched: number;
  endedUntil: number;
}

/** How many events the filter chooses now. */
export async function countChosen(store: Store, environmentId: number, filter: BulkFilter): Promise<Counted> {
  let chosen = await store.read((tx) => choose(tx, environmentId, filter));
  let [matched, endedUntil] = [0, 0];
  while (chosen !== null) {
    const { state, ...at }: Chosen = chosen;
    const sql = `SELECT count(*) AS looked, count(*) FILTER (WHERE fits) AS found, max(seq) AS last, max(ended_at) FILTER (WHERE fits) AS ended
      FROM (${lookSql(state, `seq, ${ENDED} AS ended_at`)})`;
    const row = await store.read((tx) => tx.get<CountedPart>(sql, { ...at, limit: COUNT }));
    await turnLoop();
    matched += row?.found ?? 0;
    endedUntil = Math.max(endedUntil, row?.ended ?? 0);
    chosen = row === null || row.last === null || row.looked < COUNT ? null : { ...chosen, cursor: row.last };
  }
  return { matched, endedUntil };
}

interface CountedPart {
  looked: number;
  found: number | null;
  last: number | null;
  ended: number | null;
}

/** Events whose replays are planned one by one; the rest are counted. */
const MAX_PLANNED = 2_000;
/** Planned between two turns of the loop: each may have a large payload, and a relay's largest definition. */
const PLANNED_AT_ONCE = 3;

export const bulkPlan = Type.Object({
  /** Events that match. */
  matched: Type.Integer(),
  /** How many of them, the oldest, were planned one by one. */
  planned: Type.Integer(),
  relays: Type.Array(Type.Object({ relay: Type.String(), events: Type.Integer() })),
  /** What becomes of the planned events' actions, by type. */
  actions: Type.Array(Type.Object({ type: Type.String(), will: oneOf(WILL), events: Type.Integer() })),
  /** Planned events with work that was done for another person than they are about now: it is skipped unless the replay moves it. */
  otherPerson: Type.Integer(),
  /** Planned events that may not act any more, by why. */
  leftOut: Type.Record(Type.String(), Type.Integer()),
});
export type BulkPlan = Static<typeof bulkPlan>;

/** What a replay of each of these events would do. */
async function* outlineAll(store: Store, environmentId: number, events: readonly RowOf<typeof LISTED>[]) {
  for (let at = 0; at < events.length; at += PLANNED_AT_ONCE) {
    const some = events.slice(at, at + PLANNED_AT_ONCE);
    yield* await store.read(async (tx) => {
      const outlines = [];
      for (const event of some)
        outlines.push(await outlineReplay(tx, { environmentId, id: eventIdOf(event) }));
      return outlines;
    });
    await turnLoop();
  }
}

/** What a bulk replay of these events would do now. It reads in small steps. */
export async function planBulkReplay(
  store: Store,
  environmentId: number,
  filter: BulkFilter,
): Promise<BulkPlan> {
  const { matched } = await countChosen(store, environmentId, filter);
  const relays = new Map<string, number>();
  const actions = new Map<string, BulkPlan["actions"][number]>();
  const leftOut: Record<string, number> = {};
  let [planned, otherPerson] = [0, 0];
  let chosen = await store.read((tx) => choose(tx, environmentId, filter));
  while (chosen !== null && planned < MAX_PLANNED) {
    const at: Chosen = chosen;
    const { found, cursor, end } = await store.read((tx) => look(tx, at, LOOK));
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
    await turnLoop();
    chosen = end ? null : { ...at, cursor };
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
