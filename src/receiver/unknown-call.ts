/**
 * A call to a name that no receiver has: whose owner may want to know of it. Nobody's, unless an environment of the app deleted a relay of
 * that name, or has one that is no receiver; then the sender was not told, and its calls show there.
 */
import { toIso } from "../ground/clock.ts";
import { relayTarget } from "../relay/relay.ts";
import type { Reader } from "../store/port.ts";

interface FormerReceiver {
  environmentId: number;
  /** Why it receives nothing. */
  cause: string;
}

/** The app's environments that the name means something to. */
export async function findFormerReceivers(
  tx: Reader,
  appId: string,
  name: string,
): Promise<FormerReceiver[]> {
  const sql = `SELECT environment.id AS environmentId, relay.id AS relayId,
      (SELECT max(at) FROM audit WHERE audit.environment_id = environment.id AND target = ?3 AND event_id IS NULL
        AND action = 'relay.deleted') AS deletedAt
    FROM environment LEFT JOIN relay ON relay.environment_id = environment.id AND relay.name = ?2
    WHERE environment.app_id = ?1`;
  const rows = await tx.all<{ environmentId: number; relayId: string | null; deletedAt: number | null }>(
    sql,
    appId,
    name,
    relayTarget(name),
  );
  return rows.flatMap(({ environmentId, relayId, deletedAt }): FormerReceiver[] => {
    if (relayId !== null) {
      return [{ environmentId, cause: "the relay of this name has another trigger and receives no calls" }];
    }
    if (deletedAt === null) return [];
    return [{ environmentId, cause: `the relay was deleted at ${toIso(deletedAt)}` }];
  });
}
