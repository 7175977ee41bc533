/**
 * Moves the events of a database before schema 25 into the current table, a few thousand in each transaction. That limits memory and the write-ahead
 * log. A row is in one table only, so a start continues where an earlier one was killed.
 */
import type { SqliteConnection } from "./connection.ts";

/** Limits of one step: rows, and bytes of their payloads. */
const STEP_ROWS = 5_000;
const STEP_BYTES = 8 * 1024 * 1024;

/** Estimates how many rows are left, from the first and the last number. */
export async function countMoving(connection: SqliteConnection): Promise<number> {
  const row = await connection.get<{ count: number | null }>(
    "SELECT (SELECT max(seq) FROM event_before) - (SELECT min(seq) FROM event_before) + 1 AS count",
  );
  return row?.count ?? 0;
}

/** Moves one step's rows in the open transaction. Returns how many, 0 when none are left. */
export async function moveEvents(connection: SqliteConnection): Promise<number> {
  const heads = await connection.all<{ seq: number; bytes: number }>(
    `SELECT seq, octet_length(payload) AS bytes FROM event_before ORDER BY seq LIMIT ${STEP_ROWS}`,
  );
  let bytes = 0;
  const rows = heads.filter((head, at) => {
    bytes += head.bytes;
    return at === 0 || bytes <= STEP_BYTES;
  });
  const last = rows.at(-1);
  if (last === undefined) return 0;
  for (const sql of [NAMES, KEYS, ROWS]) await connection.run(sql, last.seq);
  await connection.run(CLOCK_BACK, rows[0]?.seq ?? 0);
  await connection.run("DELETE FROM event_before WHERE seq <= ?1", last.seq);
  return rows.length;
}

/** Covers deleted relays too. */
const NAMES = `INSERT OR IGNORE INTO relay_name (environment_id, name)
  SELECT DISTINCT environment_id, relay_name FROM event_before WHERE seq <= ?1`;
const KEYS = `INSERT OR IGNORE INTO relay_key (relay_id, name_key)
  SELECT DISTINCT moved.relay_id, relay_name.key FROM event_before AS moved
  JOIN relay_name ON relay_name.environment_id = moved.environment_id AND relay_name.name = moved.relay_name WHERE moved.seq <= ?1`;
const ROWS = `INSERT INTO event (seq, environment_id, name_key, relay_key, trigger, state, attempts, runs, replays, created_at, started_at,
    finished_at, next_attempt_at, reason, person_id, map_version, mapped_again, form, unsigned, truncated, former_id, chosen, warnings,
    dedupe_hash, payload, preview)
  SELECT seq, environment_id,
    (SELECT key FROM relay_name WHERE relay_name.environment_id = moved.environment_id AND relay_name.name = moved.relay_name),
    (SELECT key FROM relay_key WHERE relay_key.relay_id = moved.relay_id), trigger, state, attempts, runs, replays, created_at, started_at,
    finished_at, next_attempt_at, reason, person_id, map_version, mapped_again, form, unsigned, truncated, id, chosen, warnings,
    dedupe_hash, payload, preview
  FROM event_before AS moved WHERE seq <= ?1 ORDER BY seq`;
/** Records clock rollbacks among this step's rows, as insertEvent does (time-index.ts). */
const CLOCK_BACK = `INSERT INTO event_clock_back (seq)
  SELECT seq FROM (SELECT seq, created_at, lag(created_at) OVER (ORDER BY seq) AS before FROM event
    WHERE seq >= (SELECT coalesce(max(seq), 0) FROM event WHERE seq < ?1))
  WHERE seq >= ?1 AND created_at < before - 2000`;
