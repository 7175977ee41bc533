/** Finds the newest failed event of a relay for an attention item, and when the newest attempt of such an event began. */
import { type Static, Type } from "typebox";
import { orNull, textOrNull } from "../../base/schema.ts";
import { EVENT, eventIdOf } from "../../engine/event/event.ts";
import type { Reader } from "../../store/port.ts";
import { findFailure } from "./failure-cause.ts";

/** Waiting or failed events of the environment that are read to find one of the relay. */
const MAX_WAITING = 2_000;

/** The newest failed event: its id and person, the code, and the status that a called URL answered. */
export const latestFailure = orNull(
  Type.Object({
    event: Type.String(),
    person: textOrNull,
    reason: Type.String(),
    status: orNull(Type.Integer()),
  }),
);
type LatestFailure = Static<typeof latestFailure>;

const FAILING = EVENT.pick("seq", "formerId", "createdAt", "reason", "personId");
const INNER = "seq, former_id, created_at, started_at, reason, person_id, name_key";
const OF_RELAY =
  "name_key = (SELECT key FROM relay_name WHERE environment_id = $environmentId AND name = $relay)";

/** The events that wait for a retry, and for `relay_nobody` those that found no person. */
const FAILED_EVENTS: Readonly<Record<string, string>> = {
  relay_failing: `FROM (SELECT ${INNER} FROM event INDEXED BY event_unfinished
    WHERE environment_id = $environmentId AND state IN ('queued', 'running') AND state = 'queued' ORDER BY seq DESC LIMIT ${MAX_WAITING}) AS newest
  WHERE ${OF_RELAY} AND reason IS NOT NULL`,
  relay_nobody: `FROM (SELECT ${INNER} FROM event INDEXED BY event_unhappy
    WHERE environment_id = $environmentId AND state IN ('failed', 'dead') AND state = 'failed' ORDER BY seq DESC LIMIT ${MAX_WAITING}) AS newest
  WHERE ${OF_RELAY} AND reason = 'person_not_found'`,
};

/** Finds when the newest attempt of such an event began; 0 if there is none. */
export async function findLastAttemptAt(
  tx: Reader,
  environmentId: number,
  { code, relay }: { code: string; relay: string | null },
): Promise<number> {
  const from = FAILED_EVENTS[code];
  if (from === undefined) return 0;
  const sql = `SELECT max(started_at) AS at ${from}`;
  return (await tx.get<{ at: number | null }>(sql, { environmentId, relay }))?.at ?? 0;
}

/** Finds the newest event that waits for a retry, or for `relay_nobody` the newest one that found no person. Returns null for other codes. */
export async function findLatestFailure(
  tx: Reader,
  environmentId: number,
  { code, relay }: { code: string; relay: string | null },
): Promise<LatestFailure> {
  const from = FAILED_EVENTS[code];
  if (from === undefined) return null;
  const sql = `SELECT ${FAILING.columns} ${from} ORDER BY seq DESC LIMIT 1`;
  const row = await tx.get<object>(sql, { environmentId, relay });
  if (row === null) return null;
  const { reason, personId, ...event } = FAILING.read(row);
  const { status } = await findFailure(tx, event.seq, reason ?? "");
  return { event: eventIdOf(event), person: personId, reason: reason ?? "", status };
}
