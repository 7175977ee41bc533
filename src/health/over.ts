/** Which problems of relays are over, by the database, so that what was told and seen to is not told again after a start. */
import type { Reader } from "../store/port.ts";
import { CODES, type HealthCode } from "./rule.ts";

/** When the newest problem that is over was raised, by `<code> <relay id>`. */
type Over = ReadonlyMap<string, number>;

/**
 * Which problems are over, by the database: one that a person resolved while, or just before, nothing ran comes back only with what happens from
 * then on. One raised later than now tells that the clock was set back, and of nothing that goes on.
 */
export async function listOver(tx: Reader, nowMs: number): Promise<Over> {
  const rows = await tx.all<{ id: string; code: string; raisedAt: number }>(
    `SELECT relay.id AS id, code, max(raised_at) AS raisedAt FROM problem
     JOIN relay ON relay.environment_id = problem.environment_id AND target = 'relay:' || relay.name
     WHERE cleared_at IS NOT NULL AND raised_at <= ? AND code IN (${CODES.map(() => "?").join(", ")}) GROUP BY relay.id, code`,
    nowMs,
    ...CODES,
  );
  return new Map(rows.map(({ id, code, raisedAt }) => [`${code} ${id}`, raisedAt]));
}

/** Whether what has gone on since `sinceMs` was told as a problem, and that is over. */
export function isOver(over: Over, relayId: string, code: HealthCode, sinceMs: number): boolean {
  return (over.get(`${code} ${relayId}`) ?? Number.NEGATIVE_INFINITY) >= sinceMs;
}
