/**
 * What a relay did lately: its last event, and how the events of the last 24 hours stand. Every query walks an index and looks at a
 * bounded number of rows, so that it costs the same beside ten million events.
 */
import { DAY_MS } from "../ground/limit.ts";
import type { Reader } from "../store/port.ts";

export interface RelayCounts {
  done: number;
  failed: number;
  dead: number;
  /** Queued, running, or waiting for a retry. */
  waiting: number;
  /** Present where there were more events than are counted, so that the figures are only about right. */
  approximate?: true;
}

/** Of all the relays together: more than a day at the default cap of 120 verified events a minute. */
const MAX_COUNTED = 200_000;
/** Failed and waiting events are few; of a flood this many are counted. */
const MAX_UNHAPPY = 2_000;

interface StateCount {
  relayName: string;
  state: string;
  count: number;
}

/** When the relay's newest event arrived, or null. */
export async function findLastEventAt(
  tx: Reader,
  environmentId: number,
  name: string,
): Promise<number | null> {
  const sql = `SELECT created_at AS at FROM event INDEXED BY event_by_relay
    WHERE environment_id = ?1 AND relay_name = ?2 ORDER BY seq DESC LIMIT 1`;
  const row = await tx.get<{ at: number }>(sql, environmentId, name);
  return row?.at ?? null;
}

/** The last 24 hours of the named relays, by name. */
export async function countLastDay(
  tx: Reader,
  environmentId: number,
  names: readonly string[],
  nowMs: number,
): Promise<Map<string, RelayCounts>> {
  const since = await findFirstSeqSince(tx, nowMs - DAY_MS);
  const [unhappy, unfinished] = [
    await countStates(tx, environmentId, since, "event_unhappy", "'failed', 'dead'"),
    await countStates(tx, environmentId, since, "event_unfinished", "'queued', 'running'"),
  ];
  const counts = new Map<string, RelayCounts>();
  let left = MAX_COUNTED;
  for (const name of names) {
    const all = await countAll(tx, environmentId, name, since, left);
    const failed = countOf(unhappy.rows, name, ["failed"]);
    const dead = countOf(unhappy.rows, name, ["dead"]);
    const waiting = countOf(unfinished.rows, name, ["queued", "running"]);
    const done = Math.max(0, all - failed - dead - waiting);
    const bounded = all === left || unhappy.bounded || unfinished.bounded;
    left -= all;
    counts.set(name, { done, failed, dead, waiting, ...(bounded ? { approximate: true } : {}) });
  }
  return counts;
}

/** An event's id begins with its time, so the index of ids finds where a day begins. */
async function findFirstSeqSince(tx: Reader, sinceMs: number): Promise<number> {
  const first = `evt_${Math.max(0, sinceMs).toString(16).padStart(12, "0")}`;
  const row = await tx.get<{ seq: number }>(
    "SELECT seq FROM event WHERE id >= ?1 ORDER BY id LIMIT 1",
    first,
  );
  return row?.seq ?? Number.MAX_SAFE_INTEGER;
}

async function countAll(
  tx: Reader,
  environmentId: number,
  name: string,
  since: number,
  most: number,
): Promise<number> {
  const sql = `SELECT count(*) AS count FROM (SELECT 1 FROM event INDEXED BY event_by_relay
    WHERE environment_id = ?1 AND relay_name = ?2 AND seq >= ?3 LIMIT ?4)`;
  return (await tx.get<{ count: number }>(sql, environmentId, name, since, most))?.count ?? 0;
}

/** Counts by relay and state over one of the partial indexes, whose condition is `state IN (states)`. */
async function countStates(
  tx: Reader,
  environmentId: number,
  since: number,
  index: "event_unhappy" | "event_unfinished",
  states: string,
): Promise<{ rows: StateCount[]; bounded: boolean }> {
  const sql = `SELECT relay_name AS relayName, state, count(*) AS count FROM (
      SELECT relay_name, state FROM event INDEXED BY ${index}
      WHERE environment_id = ?1 AND state IN (${states}) AND seq >= ?2 LIMIT ${MAX_UNHAPPY})
    GROUP BY relay_name, state`;
  const rows = await tx.all<StateCount>(sql, environmentId, since);
  const total = rows.reduce((sum, row) => sum + row.count, 0);
  return { rows, bounded: total === MAX_UNHAPPY };
}

function countOf(rows: readonly StateCount[], name: string, states: readonly string[]): number {
  return rows
    .filter((row) => row.relayName === name && states.includes(row.state))
    .reduce((sum, row) => sum + row.count, 0);
}
