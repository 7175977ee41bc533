/**
 * Events are kept for 30 days: after that they go, with their runs, effects and dedupe keys. One that waited all that time because its
 * relay is paused or its environment on hold is dropped without having run, and the owner is told. One that is running, or that an active
 * relay still has to run or retry, stays until that is over.
 */
import { alertOn, findEnvironmentById } from "../account/environment.ts";
import { forgetKey } from "../event/dedupe.ts";
import { idFloor } from "../ground/id.ts";
import { EVENT_RETENTION_MS } from "../ground/limit.ts";
import type { Log } from "../ground/log.ts";
import { relayTarget } from "../relay/relay-row.ts";
import type { Writer } from "../store/port.ts";
import { raiseAlert } from "../watch/alert.ts";

/** Events, and bytes of them and their runs, in one transaction: a few milliseconds, as what is deleted is also written over. */
const BATCH_SIZE = 100;
const BATCH_BYTES = 512 * 1024;

interface OldRow {
  seq: number;
  environmentId: number;
  relayName: string;
  state: string;
  dedupeHash: Uint8Array | null;
  heldAt: number | null;
  bytes: number;
}

/** Deletes the oldest events that are over their 30 days; answers whether there may be more. Ids sort by the time of arrival. */
export async function retireEvents(tx: Writer, nowMs: number, log: Log): Promise<boolean> {
  const found = await tx.all<OldRow>(
    `SELECT event.seq, event.environment_id AS environmentId, event.relay_name AS relayName, event.state, event.dedupe_hash AS dedupeHash,
       environment.held_at AS heldAt, octet_length(event.payload)
         + coalesce((SELECT sum(octet_length(results)) FROM run WHERE event_seq = event.seq), 0) AS bytes
     FROM event LEFT JOIN relay ON relay.id = event.relay_id LEFT JOIN environment ON environment.id = event.environment_id
     WHERE event.id < ?1 AND (event.state IN ('done', 'failed', 'dead')
       OR (event.state = 'queued' AND (relay.state = 'paused' OR environment.held_at IS NOT NULL)))
     ORDER BY event.id LIMIT ?2`,
    idFloor("evt", nowMs - EVENT_RETENTION_MS),
    BATCH_SIZE,
  );
  let bytes = 0;
  const old = found.filter((row, index) => {
    bytes += row.bytes;
    return index === 0 || bytes <= BATCH_BYTES;
  });
  for (const row of old) await deleteEvent(tx, row);
  await tellDropped(
    tx,
    old.filter((row) => row.state === "queued"),
    nowMs,
    log,
  );
  return old.length < found.length || found.length === BATCH_SIZE;
}

async function deleteEvent(tx: Writer, { seq, dedupeHash }: OldRow): Promise<void> {
  if (dedupeHash !== null) await forgetKey(tx, dedupeHash, seq);
  await tx.run("DELETE FROM run WHERE event_seq = ?1", seq);
  await tx.run("DELETE FROM effect WHERE event_seq = ?1", seq);
  await tx.run("DELETE FROM event WHERE seq = ?1", seq);
}

/** One alert a relay, unless the owner switched it off; those of later batches join it, and its count is all of them. The log always says. */
async function tellDropped(tx: Writer, dropped: readonly OldRow[], nowMs: number, log: Log): Promise<void> {
  const byRelay = Map.groupBy(dropped, (row) => `${row.environmentId} ${row.relayName}`);
  for (const rows of byRelay.values()) {
    const [first] = rows;
    if (first === undefined) continue;
    const { environmentId, relayName, heldAt } = first;
    const held = heldAt !== null;
    const what = { environmentId, relay: relayName, held, count: rows.length };
    tx.afterCommit(() => log.warn("waiting events were dropped after 30 days", what));
    const environment = await findEnvironmentById(tx, environmentId);
    if (environment === null || !alertOn(environment, "events_dropped")) continue;
    await raiseAlert(tx, {
      environmentId,
      code: "events_dropped",
      target: relayTarget(relayName),
      message: `Events of ${relayName} that waited for more than 30 days were dropped and do not run: ${
        held
          ? "the environment is on hold, so release it to run what still waits."
          : "the relay is paused, so resume it to run what still waits."
      }`,
      count: rows.length,
      nowMs,
    });
  }
}
