/**
 * Writes the ledger of rejected requests that would have become events: one row for each event id of a relay, and one row that counts the requests
 * without a readable id. The ids are not verified, so they are only compared and shown.
 */
import type { LiveRelay } from "../../rules/relay/live-relay.ts";
import { NO_ID, type REJECTED_DELIVERY } from "../../rules/relay/rejected-request.ts";
import type { Writer } from "../../store/port.ts";
import type { RowOf } from "../../store/table.ts";

/** The most event ids of one relay. Further requests are only counted. */
export const MAX_REJECTED_IDS = 1_000;
/** No control characters, which PostgreSQL refuses, and no address of a person. */
const STORABLE = /^[^\p{C}@]{1,200}$/u;

type RejectedDelivery = RowOf<typeof REJECTED_DELIVERY>;

type Counted = Pick<RejectedDelivery, "firstAt" | "lastAt" | "count" | "eventType">;

/** The requests of one relay that are not written yet. */
interface Pending {
  ids: Map<string, Counted>;
  /** The time since which requests were stray ones, which get no row; null: none were. */
  strayedSince: number | null;
  strayedUntil: number;
}

/** Collects rejected requests between two writes of the request log. */
export class RejectionLedger {
  #pending = new Map<string, Pending>();

  get isEmpty(): boolean {
    return this.#pending.size === 0;
  }

  /** Records a rejected request. `eventId` is null where it has no readable id. */
  record(
    { id }: Pick<LiveRelay, "id">,
    eventId: string | null,
    at: number,
    type: string | null = null,
  ): void {
    const { ids, strayedSince, strayedUntil } = this.#pendingOf(id);
    // Its id was read only after the stray requests were forgotten.
    if (strayedSince !== null && at >= strayedSince && at <= strayedUntil) return;
    const storable = keepStorable(eventId) ?? NO_ID;
    const key = ids.size >= MAX_REJECTED_IDS && !ids.has(storable) ? NO_ID : storable;
    addTo(ids, key, { firstAt: at, lastAt: at, count: 1, eventType: keepStorable(type) });
  }

  /**
   * Forgets the unwritten requests since this time: a request verified so soon after them that they were stray ones. The health of the relay deletes
   * the rows of the others.
   */
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

function keepStorable(text: string | null): string | null {
  return text !== null && STORABLE.test(text) ? text : null;
}

function addTo(
  ids: Map<string, Counted>,
  eventId: string,
  { firstAt, lastAt, count, eventType }: Counted,
): void {
  const known = ids.get(eventId);
  if (known === undefined) {
    ids.set(eventId, { firstAt, lastAt, count, eventType: eventId === NO_ID ? null : eventType });
    return;
  }
  known.firstAt = Math.min(known.firstAt, firstAt);
  known.lastAt = Math.max(known.lastAt, lastAt);
  known.count += count;
}

/** A relay that was deleted meanwhile gets no row. */
const ADD = `INSERT INTO rejected_delivery (relay_id, event_id, first_at, last_at, count, event_type)
  SELECT id, $eventId, $firstAt, $lastAt, $count, $eventType FROM relay WHERE id = $relayId
  ON CONFLICT (relay_id, event_id) DO UPDATE SET last_at = excluded.last_at, count = rejected_delivery.count + excluded.count`;

export async function writeRejections(tx: Writer, taken: ReadonlyMap<string, Pending>): Promise<void> {
  for (const [relayId, { ids }] of taken) {
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
      [...fitting].map(([eventId, counted]) => ({ relayId, eventId, ...counted })),
    );
  }
}

/** Deletes what was rejected before a request verified again. */
export async function deleteSettled(tx: Writer, relayId: string): Promise<void> {
  await tx.run(
    `DELETE FROM rejected_delivery WHERE relay_id = $relayId
      AND first_at < (SELECT accepted_at FROM relay WHERE relay.id = $relayId)`,
    { relayId },
  );
}
