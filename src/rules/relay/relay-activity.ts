/**
 * Counts the recent events of relays. Every query walks an index and reads a limited number of rows, so its cost does not grow with the number of
 * events.
 */
import { type Static, Type } from "typebox";
import { DAY_MS } from "../../base/limit.ts";
import type { Reader } from "../../store/port.ts";
import { firstSeqAbout } from "../../store/time-index.ts";

/** The states of the events of the last 24 hours. */
export const relayCounts = Type.Object({
  done: Type.Integer(),
  failed: Type.Integer(),
  dead: Type.Integer(),
  /** The number of events that are queued, running, or waiting for a retry. */
  waiting: Type.Integer(),
  /** True if there were more events than are counted, which makes the numbers approximate. */
  approximate: Type.Optional(Type.Literal(true)),
});
export type RelayCounts = Static<typeof relayCounts>;

export const ZERO_COUNTS: RelayCounts = { done: 0, failed: 0, dead: 0, waiting: 0 };

/** The limit for all relays together: more than a day at the default cap of 120 verified events a minute. */
const MAX_COUNTED = 200_000;
/** Failed and waiting events are few; a flood is counted up to this limit. */
const MAX_STATE_ROWS = 2_000;

interface StateCount {
  relayName: string;
  state: string;
  count: number;
}

/** Returns when the relay's newest event arrived, or null. */
export async function findLastEventAt(
  tx: Reader,
  environmentId: number,
  name: string,
): Promise<number | null> {
  return (await findLastEvents(tx, environmentId, [name])).get(name) ?? null;
}

/** Finds when the newest event of each named relay arrived, in one statement. The result has no relay without an event. */
export async function findLastEvents(
  tx: Reader,
  environmentId: number,
  names: readonly string[],
): Promise<Map<string, number>> {
  const sql = `SELECT relay_name.name AS name, (SELECT created_at FROM event INDEXED BY event_of_relay
      WHERE name_key = relay_name.key ORDER BY seq DESC LIMIT 1) AS at
    FROM ${NAMED}`;
  const values = { environmentId, names: JSON.stringify(names) };
  const rows = await tx.all<{ name: string; at: number | null }>(sql, values);
  return new Map(rows.flatMap(({ name, at }) => (at === null ? [] : [[name, at]])));
}

/** Counts the last 24 hours of the named relays, by name. */
export async function countLastDay(
  tx: Reader,
  environmentId: number,
  names: readonly string[],
  nowMs: number,
): Promise<Map<string, RelayCounts>> {
  const since = await firstSeqAbout(tx, "event", nowMs - DAY_MS);
  const [unhappy, unfinished] = [
    await countStates(tx, environmentId, since, "event_unhappy", "'failed', 'dead'"),
    await countStates(tx, environmentId, since, "event_unfinished", "'queued', 'running'"),
  ];
  // Each relay gets an equal share of the limit in one statement. Only a relay with more events needs another statement.
  const share = Math.max(1, Math.floor(MAX_COUNTED / names.length));
  const totals = await countEach(tx, environmentId, names, since, share);
  let left = MAX_COUNTED - [...totals.values()].reduce((sum, count) => sum + count, 0);
  const counts = new Map<string, RelayCounts>();
  for (const name of names) {
    let all = totals.get(name) ?? 0;
    let isBounded = unhappy.bounded || unfinished.bounded;
    if (all === share) {
      const most = share + left;
      if (most > share) all = (await countEach(tx, environmentId, [name], since, most)).get(name) ?? 0;
      left -= all - share;
      isBounded ||= all === most;
    }
    const failed = countOf(unhappy.rows, name, ["failed"]);
    const dead = countOf(unhappy.rows, name, ["dead"]);
    const waiting = countOf(unfinished.rows, name, ["queued", "running"]);
    const done = Math.max(0, all - failed - dead - waiting);
    counts.set(name, { done, failed, dead, waiting, ...(isBounded ? { approximate: true } : {}) });
  }
  return counts;
}

/** Counts at most `most` events of each named relay from `since` on, in one statement. */
async function countEach(
  tx: Reader,
  environmentId: number,
  names: readonly string[],
  since: number,
  most: number,
): Promise<Map<string, number>> {
  const sql = `SELECT relay_name.name AS name, (SELECT count(*) FROM (SELECT 1 FROM event INDEXED BY event_of_relay
      WHERE name_key = relay_name.key AND seq >= $since LIMIT $most)) AS count
    FROM ${NAMED}`;
  const values = { environmentId, names: JSON.stringify(names), since, most };
  const rows = await tx.all<{ name: string; count: number }>(sql, values);
  return new Map(rows.map(({ name, count }) => [name, count]));
}

const NAMED = `json_each($names) AS named CROSS JOIN relay_name
    ON relay_name.environment_id = $environmentId AND relay_name.name = named.value`;

/** Counts by relay and state over a partial index whose condition is `state IN (states)`. */
async function countStates(
  tx: Reader,
  environmentId: number,
  since: number,
  index: "event_unhappy" | "event_unfinished",
  states: string,
): Promise<{ rows: StateCount[]; bounded: boolean }> {
  const sql = `SELECT (SELECT name FROM relay_name WHERE key = name_key) AS relayName, state, count(*) AS count FROM (
      SELECT name_key, state FROM event INDEXED BY ${index}
      WHERE environment_id = ?1 AND state IN (${states}) AND seq >= ?2 LIMIT ${MAX_STATE_ROWS})
    GROUP BY name_key, state`;
  const rows = await tx.all<StateCount>(sql, environmentId, since);
  const total = rows.reduce((sum, row) => sum + row.count, 0);
  return { rows, bounded: total === MAX_STATE_ROWS };
}

function countOf(rows: readonly StateCount[], name: string, states: readonly string[]): number {
  return rows
    .filter((row) => row.relayName === name && states.includes(row.state))
    .reduce((sum, row) => sum + row.count, 0);
}
