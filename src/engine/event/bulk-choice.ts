/** Selects the events of a bulk replay, the oldest first, a bounded number of rows at a step, so that no other work waits for it. */
import { type Static, Type } from "typebox";
import { oneOf, time } from "../../base/schema.ts";
import { yieldToEventLoop } from "../../store/index-scan.ts";
import type { Reader, Store } from "../../store/port.ts";
import { endSeqUntil, firstSeqSince } from "../../store/time-index.ts";
import { valuesOf } from "./counted-walk.ts";
import { EVENT_TRIGGERS } from "./event.ts";
import { ANY_REASON, findNameKey } from "./list.ts";
import { OF_ENVIRONMENT, oldestSpan } from "./number-range.ts";

/** The states of events that a bulk replay takes. It takes only the done events whose work was done for another person. */
export const BULK_STATES = ["dead", "failed", "done"] as const;
/** The rows that one step looks at. Each can be on its own page, which takes a tenth of a millisecond to read from the disk. */
const ROW_STEP = 200;
/** The entries of an index that one step counts or lists, if the index answers by itself. */
const INDEX_STEP = 5_000;
const LIST_STEP = 1_000;

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

/** The way to the events of a selection: an index, and the condition on its leading columns. */
interface Path {
  index: string;
  lead: string;
  /** The index holds all columns of the conditions, so that no event is read. */
  answers?: true;
  /** The index does not have these events in the order of their numbers. */
  unordered?: true;
}

/**
 * Returns the path of a selection. The state is part of the text, so that the planner sees that the partial index applies. No index holds done
 * events, so all events of the relay or of the environment are read.
 */
function pathOf({ state, nameKey, person }: Selection): Path {
  if (person !== null) return { index: "event_of_person", lead: "person_id = $person" };
  if (state !== "done")
    return {
      index: "event_unhappy",
      lead: `environment_id = $environmentId AND state IN ('failed', 'dead') AND state = '${state}'`,
      answers: true,
    };
  if (nameKey !== null) return { index: "event_of_relay", lead: "name_key = $nameKey" };
  return {
    index: "event_of_relay",
    lead: OF_ENVIRONMENT.replace("?", "$environmentId"),
    unordered: true,
  };
}

/** Returns the FROM clause and the conditions of a path's events up to `$untilSeq`. */
function rangeSql({ index, lead }: Path): string {
  return `FROM event INDEXED BY ${index} WHERE ${lead} AND seq > $cursor AND seq <= $untilSeq`;
}

/** Returns `rangeSql` with the filter's other conditions. One that every event meets is left out. */
function matchSql(path: Path, selection: Selection): string {
  const { state, nameKey, trigger, reason, sinceMs, untilMs, endedUntil } = selection;
  const isLed = (column: string): boolean => path.lead.includes(column);
  return [
    rangeSql(path),
    ...(isLed("$person") ? ["environment_id = $environmentId"] : []),
    ...(isLed("state =") ? [] : [`state = '${state}'`]),
    ...(nameKey === null || isLed("$nameKey") ? [] : ["name_key = $nameKey"]),
    ...(trigger === null ? [] : ['"trigger" = $trigger']),
    ...(reason === null ? [] : ["reason = $reason"]),
    ...(sinceMs === 0 ? [] : ["created_at >= $sinceMs"]),
    ...(untilMs === Number.MAX_SAFE_INTEGER ? [] : ["created_at < $untilMs"]),
    ...(endedUntil === Number.MAX_SAFE_INTEGER ? [] : [`${ENDED} <= $endedUntil`]),
  ].join(" AND ");
}

/** Returns the number of the last of the next `most` events of a path; null if fewer are left. */
async function findLast(tx: Reader, path: Path, selection: Selection, most: number): Promise<number | null> {
  const { environmentId, cursor, untilSeq } = selection;
  if (path.unordered) {
    const span = await oldestSpan(tx, environmentId, cursor, most);
    return span === null || span.ended || span.to > untilSeq ? null : span.to - 1;
  }
  const sql = `SELECT seq ${rangeSql(path)} ORDER BY seq LIMIT 1 OFFSET $skipped`;
  const row = await tx.get<{ seq: number }>(sql, valuesOf(sql, { ...selection, skipped: most - 1 }));
  return row?.seq ?? null;
}

/** One step of a walk over a selection: what it read of the events that it looked at. */
interface Step<Found> {
  found: Found;
  looked: number;
  /** The cursor of the next step; null if there is none. */
  next: number | null;
}

/** Lists the numbers of the next events. */
export async function listSelected(tx: Reader, selection: Selection): Promise<Step<number[]>> {
  const path = pathOf(selection);
  const looked = path.answers ? LIST_STEP : ROW_STEP;
  const next = await findLast(tx, path, selection, looked);
  const sql = `SELECT seq ${matchSql(path, selection)} ORDER BY seq`;
  const rows = await tx.all<{ seq: number }>(
    sql,
    valuesOf(sql, { ...selection, untilSeq: next ?? selection.untilSeq }),
  );
  return { found: rows.map(({ seq }) => seq), looked, next };
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
  const selection = await store.read((tx) => resolveFilter(tx, environmentId, filter));
  if (selection === null) return { matched: 0, endedUntil: 0 };
  const { matched, endedUntil } = await countUpTo(store, selection, Number.POSITIVE_INFINITY);
  return { matched, endedUntil };
}

/**
 * Counts a selection. If no index answers, it looks at about `mostRows` rows, because each can be only on the disk. `isMore`: there may be more.
 */
export async function countUpTo(
  store: Store,
  from: Selection,
  mostRows: number,
): Promise<Counted & { isMore: boolean }> {
  const path = pathOf(from);
  const [most, limit] = path.answers ? [INDEX_STEP, Number.POSITIVE_INFINITY] : [ROW_STEP, mostRows];
  let [matched, endedUntil, looked] = [0, 0, 0];
  let cursor: number | null = from.cursor;
  while (cursor !== null) {
    if (looked >= limit) return { matched, endedUntil, isMore: true };
    const selection: Selection = { ...from, cursor };
    const step = await store.read((tx) => countSelected(tx, path, selection, most));
    await yieldToEventLoop();
    matched += step.found.matched;
    endedUntil = Math.max(endedUntil, step.found.endedUntil);
    looked += step.looked;
    cursor = step.next;
  }
  return { matched, endedUntil, isMore: false };
}

async function countSelected(
  tx: Reader,
  path: Path,
  selection: Selection,
  most: number,
): Promise<Step<Counted>> {
  const next = await findLast(tx, path, selection, most);
  const sql = `SELECT count(*) AS matched, max(${ENDED}) AS endedUntil ${matchSql(path, selection)}`;
  const row = await tx.get<{ matched: number; endedUntil: number | null }>(
    sql,
    valuesOf(sql, { ...selection, untilSeq: next ?? selection.untilSeq }),
  );
  return {
    found: { matched: row?.matched ?? 0, endedUntil: row?.endedUntil ?? 0 },
    looked: most,
    next,
  };
}
