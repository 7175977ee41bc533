/** Counts the queue for the metrics: events by state, the age of the oldest waiting one, and problems. Each query is a bounded walk of an index. */
import type { Reader } from "../../store/port.ts";

/** Counting stops here. The age of the queue shows a longer backlog. */
export const COUNTED_AT_MOST = 50_000;
/** Retries come before new events in a relay's queue; the most of them that are skipped to find a new event. */
const PASSED_OVER_AT_MOST = 100;

interface QueueCount {
  /** Events that are not final: `queued` is due now, `retrying` waits for a retry. */
  queued: number;
  retrying: number;
  running: number;
  failed: number;
  dead: number;
  /** The time when the oldest event that may run and never did arrived, in milliseconds since the epoch; null where none waits. */
  oldestAtMs: number | null;
  listOpenProblems: number;
}

export async function countQueue(tx: Reader): Promise<QueueCount> {
  const count = async (walk: string): Promise<number> => {
    const sql = `SELECT count(*) AS count FROM (SELECT 1 FROM ${walk} LIMIT ${COUNTED_AT_MOST})`;
    return (await tx.get<{ count: number }>(sql))?.count ?? 0;
  };
  // The walk goes through each environment, so that the index leads straight to the state.
  const inState = (index: string, states: string, state: string): Promise<number> =>
    count(
      `environment CROSS JOIN event INDEXED BY ${index} ON event.environment_id = environment.id
       WHERE event.state IN (${states}) AND event.state = '${state}'`,
    );
  return {
    queued: await count("event INDEXED BY event_ready WHERE state = 'queued' AND next_attempt_at IS NULL"),
    retrying: await count(
      "event INDEXED BY event_retry WHERE state = 'queued' AND next_attempt_at IS NOT NULL",
    ),
    running: await inState("event_unfinished", "'queued', 'running'", "running"),
    failed: await inState("event_unhappy", "'failed', 'dead'", "failed"),
    dead: await inState("event_unhappy", "'failed', 'dead'", "dead"),
    oldestAtMs: await findOldest(tx),
    listOpenProblems: await count("problem WHERE cleared_at IS NULL"),
  };
}

/** Events of paused relays and held environments are left out, because their wait is intended. */
async function findOldest(tx: Reader): Promise<number | null> {
  const row = await tx.get<{ oldestAtMs: number | null }>(
    `SELECT min((SELECT created_at FROM (SELECT seq, created_at, runs FROM event INDEXED BY event_ready
         WHERE relay_key = relay_key.key AND state = 'queued' AND next_attempt_at IS NULL ORDER BY seq LIMIT ${PASSED_OVER_AT_MOST})
       WHERE runs = 0 ORDER BY seq LIMIT 1)) AS oldestAtMs
     FROM relay JOIN relay_key ON relay_key.relay_id = relay.id JOIN environment ON environment.id = relay.environment_id
     WHERE relay.state = 'active' AND environment.held_at IS NULL`,
  );
  return row?.oldestAtMs ?? null;
}
