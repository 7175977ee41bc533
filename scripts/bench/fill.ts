/**
 * Fills a store with as many events as years of requests create. It uses the product's own insert, so that every index, trigger and dedupe key
 * exists. The events arrived evenly over the last 29 days and have ended, one in twenty not successfully. It creates no runs and no records.
 */

import { DAY_MS } from "../../src/base/limit.ts";
import { EVENT_STATES } from "../../src/engine/event/event.ts";
import { insertEvent, keyOfEventId } from "../../src/engine/event/insert.ts";
import type { Reader, Store, Writer } from "../../src/store/port.ts";

const BATCH = 1_000;
const SPREAD_MS = 29 * DAY_MS;

export interface FilledRelay {
  id: string;
  name: string;
  environmentId: number;
  relayKey: number;
  nameKey: number;
}

/** Adds events until the store has `rows` of them. */
export async function fillEvents(
  store: Store,
  relays: readonly FilledRelay[],
  { rows, nowMs }: { rows: number; nowMs: number },
): Promise<void> {
  for (let from = await store.read(lastSeq); from < rows; from += BATCH) {
    const count = Math.min(BATCH, rows - from);
    await store.write("app", async (tx) => {
      const before = await lastSeq(tx);
      for (let index = from; index < from + count; index++) {
        const relay = relays[index % relays.length];
        if (relay !== undefined) await insert(tx, relay, nowMs - SPREAD_MS * (1 - index / rows));
      }
      await endAfter(tx, before);
    });
  }
}

async function lastSeq(tx: Reader): Promise<number> {
  return (await tx.get<{ seq: number | null }>("SELECT max(seq) AS seq FROM event"))?.seq ?? 0;
}

async function insert(tx: Writer, relay: FilledRelay, atMs: number): Promise<void> {
  const eventId = `old_${crypto.randomUUID()}`;
  const note = "x".repeat(290);
  const event = { id: eventId, type: "order.paid", amount: 4200, email: "ada@example.com", note };
  const mapped = { event_id: eventId, event_type: "order.paid" };
  await insertEvent(tx, {
    environmentId: relay.environmentId,
    relayId: relay.id,
    relayKey: relay.relayKey,
    nameKey: relay.nameKey,
    trigger: "receiver",
    payload: { text: JSON.stringify({ event, mapped }), truncated: false, preview: null, warnings: [] },
    unsigned: false,
    form: false,
    dedupe: keyOfEventId(relay.environmentId, relay.name, eventId),
    mapVersion: 1,
    nowMs: Math.floor(atMs),
  });
}

async function endAfter(tx: Writer, seq: number): Promise<void> {
  const [, , done, failed, dead] = EVENT_STATES;
  await tx.run(
    `UPDATE event SET attempts = 1, runs = 1, started_at = created_at, finished_at = created_at,
       state = CASE seq % 40 WHEN 0 THEN $failed WHEN 20 THEN $dead ELSE $done END
     WHERE seq > $seq`,
    { seq, done, failed, dead },
  );
}
