/** Shows events in brief, for lists of other things that name an event: its type and its current state. */
import { type Static, Type } from "typebox";
import { readNumberedId } from "../../base/id.ts";
import { oneOf, textOrNull } from "../../base/schema.ts";
import type { Store } from "../../store/port.ts";
import { EVENT, EVENT_STATES, eventIdOf } from "./event.ts";
import { addPreviews } from "./preview.ts";

export const eventBrief = Type.Object({
  id: Type.String(),
  state: oneOf(EVENT_STATES),
  /** The first 100 characters of the mapped event_type, or null. */
  eventType: textOrNull,
});
type EventBrief = Static<typeof eventBrief>;

const BRIEF = EVENT.pick("seq", "createdAt", "formerId", "state");

/** Finds the events with these ids in one statement, and their payloads in steps. Events that no longer exist are absent. */
export async function findEventBriefs(
  store: Store,
  environmentId: number,
  ids: readonly string[],
): Promise<Map<string, EventBrief>> {
  const seqs = ids.flatMap((id) => readNumberedId("evt", id)?.seq ?? []);
  if (seqs.length === 0) return new Map();
  const sql = `SELECT ${BRIEF.columns}, octet_length(payload) AS bytes FROM event
    WHERE seq IN (SELECT CAST(value AS INTEGER) FROM json_each($seqs)) AND environment_id = $environmentId`;
  const rows = await store.read((tx) =>
    tx.all<{ bytes: number }>(sql, { seqs: JSON.stringify([...new Set(seqs)]), environmentId }),
  );
  const found = rows.map((stored) => {
    const row = BRIEF.read(stored);
    const item = { id: eventIdOf(row), state: row.state, person: null };
    return { seq: row.seq, bytes: stored.bytes, item };
  });
  const events = await addPreviews(store, found);
  return new Map(events.map(({ id, state, eventType }) => [id, { id, state, eventType }]));
}
