/** Stores events of several relays together, in one order of arrival, as senders deliver them while nothing runs. */
import { insertEvent, keyOfEventId, makeReceiverPayload } from "../../src/engine/event/insert.ts";
import { relayOf } from "./event-sql.ts";
import type { RunningService } from "./running-service.ts";

export interface Arriving {
  relay: string;
  email: string;
  ref?: string;
}

/** The running service that stores the events. */
type Place = { service: Pick<RunningService["service"], "store">; clock: Pick<RunningService["clock"], "now">; rows: RunningService["rows"] };

/** Stores the events in one transaction as receivers do, without their caps, and returns their ids. It wakes no runner. */
export async function storeEvents(running: Place, arriving: readonly Arriving[]): Promise<string[]> {
  const relays = await running.rows<{ id: string; name: string; environmentId: number }>(
    "SELECT id, name, environment_id AS environmentId FROM relay",
  );
  const byName = new Map(relays.map((relay) => [relay.name, relay]));
  const nowMs = running.clock.now();
  return await running.service.store.write("app", async (tx) => {
    const ids: string[] = [];
    for (const { relay: name, email, ref } of arriving) {
      const relay = byName.get(name);
      if (relay === undefined) throw new Error(`There is no relay ${name}.`);
      const id = `e${++stored}`;
      const mapped = { event_id: id, person_email: email, ...(ref === undefined ? {} : { ref }) };
      const event = await insertEvent(tx, {
        ...(await relayOf(tx, relay.environmentId, relay.id, name)),
        trigger: "receiver",
        payload: makeReceiverPayload(JSON.stringify({ id, email, ref }), mapped),
        unsigned: false,
        dedupe: keyOfEventId(relay.environmentId, name, id),
        nowMs,
      });
      ids.push(event.id);
    }
    return ids;
  });
}

let stored = 0;
