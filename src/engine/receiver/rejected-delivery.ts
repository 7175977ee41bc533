/**
 * The ledger of rejected requests that would have become events: one row for each event id of a relay, and one row that counts the requests without
 * a readable id. An id has arrived when an event of the relay has it. The ids are not verified, so they are only compared and shown.
 */
import type { LiveRelay } from "../../rules/relay/live-relay.ts";
import { yieldToEventLoop } from "../../store/index-scan.ts";
import type { Reader, Store, Writer } from "../../store/port.ts";
import { defineTable, integer, orNull, type RowOf, text } from "../../store/table.ts";
import { findDuplicate, keyOfEventId } from "../event/insert.ts";

/** The most event ids of one relay. Further requests are only counted. */
export const MAX_REJECTED_IDS = 1_000;
/** The row of the requests without a readable id. */
export const NO_ID = "";
/** The ids that one transaction compares with the events. */
const IDS_AT_ONCE = 100;
/** No control characters, which PostgreSQL refuses, and no address of a person. */
const STORABLE = /^[^\p{C}@]{1,200}$/u;

const REJECTED_DELIVERY = defineTable({
  name: "rejected_delivery",
  key: ["relayId", "eventId"],
  columns: {
    relayId: text(),
    eventId: text(),
    firstAt: integer(),
    lastAt: integer(),
    count: integer(),
    arrivedAt: orNull(integer()),
  },
});
type RejectedDelivery = RowOf<typeof REJECTED_DELIVERY>;

type Counted = Pick<RejectedDelivery, "firstAt" | "lastAt" | "count">;

/** The requests of one relay that are not written yet. */
interface Pending {
  ids: Map<string, Counted>;
  /** The time since which requests were stray ones, so that their rows are deleted first; null: none were. */
  strayedSince: number | null;
  strayedUntil: number;
}

/** Collects rejected requests between two writes of the request log. */
export class RejectionLedger {
  #pending = new Map<string, Pending>();

  get isEmpty(): boolean {
    return this.#pending.size === 0;
  }

  /** Records a rejected request. `eventId` is null where it has no id that can be stored. */
  record({ id }: Pick<LiveRelay, "id">, eventId: string | null, at: number): void {
    const { ids, strayedSince, strayedUntil } = this.#pendingOf(id);
    // Its id was read only after the stray requests were forgotten.
    if (strayedSince !== null && at >= strayedSince && at <= strayedUntil) return;
    const storable = eventId !== null && STORABLE.test(eventId) ? eventId : NO_ID;
    const key = ids.size >= MAX_REJECTED_IDS && !ids.has(storable) ? NO_ID : storable;
    addTo(ids, key, { firstAt: at, lastAt: at, count: 1 });
  }

  /** Forgets the requests since this time: a request verified so soon after them that they were stray ones. */
  forget({ id }: Pick<LiveRelay, "id">, since: number, until: number): void {
    const pending = this.#pendingOf(id);
    pending.ids.clear();
    pending.strayedSince = Math.min(since, pending.strayedSince ?? since);
    pending.strayedUntil = until;
  }

  /** Removes and returns the unwritten requests. */
  take(): ReadonlyMap<string, Pending> {
    const taken = this.#pending;
    this.#pending = new Map();
    return taken;
  }

  /** Puts back what could not be written. */
  restore(taken: ReadonlyMap<string, Pending>): void {
    for (const [id, { ids, strayedSince, strayedUntil }] of taken) {
      const pending = this.#pendingOf(id);
      const strayedAfter = pending.strayedSince;
      if (strayedAfter === null) Object.assign(pending, { strayedSince, strayedUntil });
      else if (strayedSince !== null) pending.strayedSince = Math.min(strayedAfter, strayedSince);
      for (const [eventId, counted] of ids)
        if (strayedAfter === null || counted.firstAt < strayedAfter) addTo(pending.ids, eventId, counted);
    }
  }

  #pendingOf(relayId: string): Pending {
    const known = this.#pending.get(relayId);
    if (known !== undefined) return known;
    const pending: Pending = { ids: new Map(), strayedSince: null, strayedUntil: 0 };
    this.#pending.set(relayId, pending);
    return pending;
  }
}

function addTo(ids: Map<string, Counted>, eventId: string, { firstAt, lastAt, count }: Counted): void {
  const known = ids.get(eventId);
  if (known === undefined) {
    ids.set(eventId, { firstAt, lastAt, count });
    return;
  }
  known.firstAt = Math.min(known.firstAt, firstAt);
  known.lastAt = Math.max(known.lastAt, lastAt);
  known.count += count;
}

/** A relay that was deleted meanwhile gets no row. */
const ADD = `INSERT INTO rejected_delivery (relay_id, event_id, first_at, last_at, count)
  SELECT id, $eventId, $firstAt, $lastAt, $count FROM relay WHERE id = $relayId
  ON CONFLICT (relay_id, event_id) DO UPDATE SET last_at = excluded.last_at, count = rejected_delivery.count + excluded.count`;

export async function writeRejections(tx: Writer, taken: ReadonlyMap<string, Pending>): Promise<void> {
  for (const [relayId, { ids, strayedSince }] of taken) {
    if (strayedSince !== null)
      await tx.run("DELETE FROM rejected_delivery WHERE relay_id = $relayId AND first_at >= $strayedSince", {
        relayId,
        strayedSince,
      });
    if (ids.size === 0) continue;
    const stored = await tx.all<{ eventId: string }>(
      "SELECT event_id AS eventId FROM rejected_delivery WHERE relay_id = ?1 LIMIT 2000",
      relayId,
    );
    const known = new Set(stored.map(({ eventId }) => eventId));
    const fitting = new Map<string, Counted>();
    for (const [eventId, counted] of ids) {
      const fits = eventId === NO_ID || known.has(eventId) || known.size < MAX_REJECTED_IDS;
      if (fits) known.add(eventId);
      addTo(fitting, fits ? eventId : NO_ID, counted);
    }
    await tx.postEach(
      ADD,
      [...fitting].map(([eventId, { firstAt, lastAt, count }]) => ({
        relayId,
        eventId,
        firstAt,
        lastAt,
        count,
      })),
    );
  }
}

/** The rows of an outage that is over: a request verified after they were rejected. */
const SETTLED = "relay.accepted_at IS NOT NULL AND rejected_delivery.first_at < relay.accepted_at";
const COLUMNS = `rejected_delivery.relay_id AS relayId, rejected_delivery.event_id AS eventId, rejected_delivery.first_at AS firstAt,
  rejected_delivery.last_at AS lastAt, rejected_delivery.count AS count, rejected_delivery.arrived_at AS arrivedAt`;

type Missing = Pick<RejectedDelivery, "relayId" | "eventId"> & { environmentId: number; relayName: string };
const MISSING = `SELECT rejected_delivery.relay_id AS relayId, rejected_delivery.event_id AS eventId, relay.environment_id AS environmentId, relay.name AS relayName
  FROM rejected_delivery JOIN relay ON relay.id = rejected_delivery.relay_id
  WHERE rejected_delivery.arrived_at IS NULL AND rejected_delivery.event_id <> '' AND ($relayId IS NULL OR relay.id = $relayId) AND ${SETTLED}`;

/** Marks the ids of which an event exists now, and deletes the rows of relays of which nothing is missing. */
export async function markArrivals(
  store: Store,
  nowMs: number,
  relayId: string | null = null,
): Promise<void> {
  const missing = await store.read((tx) => tx.all<Missing>(MISSING, { relayId }));
  for (let at = 0; at < missing.length; at += IDS_AT_ONCE) {
    const some = missing.slice(at, at + IDS_AT_ONCE);
    await store.write("app", async (tx) => {
      const arrived = new Set<string>();
      const keys = some.map(({ environmentId, relayName, eventId }) =>
        keyOfEventId(environmentId, relayName, eventId),
      );
      await tx.keys.prefetch?.(keys.map(({ hash }) => hash));
      for (const [nth, key] of keys.entries()) {
        const one = some[nth];
        if (one === undefined || (await findDuplicate(tx, key)) === null) continue;
        const { relayId, eventId } = one;
        arrived.add(relayId);
        await tx.run(
          "UPDATE rejected_delivery SET arrived_at = $nowMs WHERE relay_id = $relayId AND event_id = $eventId",
          { nowMs, relayId, eventId },
        );
      }
      for (const relayId of arrived) await deleteComplete(tx, relayId);
    });
    await yieldToEventLoop();
  }
}

async function deleteComplete(tx: Writer, relayId: string): Promise<void> {
  await tx.run(
    `DELETE FROM rejected_delivery WHERE relay_id = $relayId
      AND NOT EXISTS (SELECT 1 FROM rejected_delivery AS open WHERE open.relay_id = $relayId AND open.arrived_at IS NULL)`,
    { relayId },
  );
}

export type SettledRejection = RejectedDelivery & { relayName: string };

/** Lists what was rejected before a request verified again, in the order of arrival. `relayId` null: of every relay of the environment. */
export function listSettled(
  tx: Reader,
  environmentId: number,
  relayId: string | null,
): Promise<SettledRejection[]> {
  return tx.all<SettledRejection>(
    `SELECT ${COLUMNS}, relay.name AS relayName FROM relay JOIN rejected_delivery ON rejected_delivery.relay_id = relay.id
      WHERE relay.environment_id = $environmentId AND ($relayId IS NULL OR relay.id = $relayId) AND ${SETTLED}
      ORDER BY relay.name, rejected_delivery.first_at, rejected_delivery.event_id`,
    { environmentId, relayId },
  );
}

/** Deletes what was rejected before a request verified again. */
export async function deleteSettled(tx: Writer, relayId: string): Promise<void> {
  await tx.run(
    `DELETE FROM rejected_delivery WHERE relay_id = $relayId
      AND first_at < (SELECT accepted_at FROM relay WHERE relay.id = $relayId)`,
    { relayId },
  );
}
