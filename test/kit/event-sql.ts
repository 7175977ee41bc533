/** SQL about events for tests. An event's row stores numbers instead of the event's id and its relay. */
import { readNumberedId } from "../../src/base/id.ts";
import type { Writer } from "../../src/store/port.ts";
import { ON_POSTGRES } from "./chosen-store.ts";

/** SQL for the id of an event that this version stored. */
export const EVENT_ID = ON_POSTGRES
  ? "('evt_' || lpad(to_hex(event.created_at), 12, '0') || '80008' || lpad(to_hex(event.seq), 15, '0'))"
  : "('evt_' || printf('%012x80008%015x', event.created_at, event.seq))";
/** SQL for the number of the next event. */
export const NEXT_SEQ = "(SELECT coalesce(max(seq), 0) + 1 FROM event)";
/** SQL for the name of an event's relay. */
export const RELAY_NAME = "(SELECT name FROM relay_name WHERE key = event.name_key)";

/** Returns the number of an event that this version stored. */
export function seqOf(id: string): number {
  return readNumberedId("evt", id)?.seq ?? 0;
}

/** Returns the relay's fields of an event's draft. The relay need not exist. */
export async function relayOf(tx: Writer, environmentId: number, relayId: string, name: string) {
  await tx.run("INSERT INTO relay_name (environment_id, name) VALUES (?1, ?2) ON CONFLICT DO NOTHING", environmentId, name);
  await tx.run(
    "INSERT INTO relay_key (relay_id, name_key) SELECT ?3, key FROM relay_name WHERE environment_id = ?1 AND name = ?2 ON CONFLICT DO NOTHING",
    environmentId,
    name,
    relayId,
  );
  const keys = await tx.get<{ relayKey: number; nameKey: number }>(
    "SELECT key AS relayKey, name_key AS nameKey FROM relay_key WHERE relay_id = ?1",
    relayId,
  );
  if (keys === null) throw new Error(`The relay ${relayId} has no key.`);
  return { environmentId, relayId, ...keys };
}
