/**
 * Moves the events of an earlier version into the table as it is now (migrations/0025), some thousand in a transaction, so that neither memory
 * nor the log grows with them. A row is in one of the two tables, never in both, so that a start goes on where one before it was killed.
 */
import type { SqliteConnection } from "./connection.ts";

/** Rows of one step, and bytes of their payloads after which it ends. */
const STEP_ROWS = 5_000;
const STEP_BYTES = 8 * 1024 * 1024;

/** How many rows are to move, or a few more. */
export async function countMoving(connection: SqliteConnection): Promise<number> {
  const row = await connection.get<{ count: number | null }>(
    "SELECT (SELECT max(seq) FROM event_before) - (SELECT min(seq) FROM event_before) + 1 AS count",
  );
  return row?.count ?? 0;
}

/** One step, in the transaction that is open; answers how many rows moved, 0 at the end. */
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

/** Of relays that are gone too. */
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
/** As insertEvent notes it (time-index.ts), of the rows of this step. */
const CLOCK_BACK = `INSERT INTO event_clock_back (seq)
  SELECT seq FROM (SELECT seq, created_at, lag(created_at) OVER (ORDER BY seq) AS before FROM event
    WHERE seq >= (SELECT coalesce(max(seq), 0) FROM event WHERE seq < ?1))
  WHERE seq >= ?1 AND created_at < before - 2000`;
