/**
 * A receiver's own rhythm, learned from its events: the longest time it was usually without one, and from that, how long is too long.
 * Gaps shorter than an hour are not told apart, so that learning a relay with millions of events asks for a few hundred rows.
 */
import { idFloor } from "../ground/id.ts";
import { DAY_MS } from "../ground/limit.ts";
import type { Reader } from "../store/port.ts";

const HOUR_MS = 3_600_000;
/** How far back from its last event it is learned: two weekends. */
const LEARNED_MS = 14 * DAY_MS;
/** With fewer events there is no rhythm yet. */
const MIN_EVENTS = 8;
/** Silent is more than so many times the longest gap, and never less than the floor. */
const SILENT_GAPS = 2;
export const MIN_SILENCE_MS = 6 * HOUR_MS;
/** A history shorter than a week has seen no weekend yet, so its floor is one. */
const WHOLE_RHYTHM_MS = 7 * DAY_MS;
const MIN_YOUNG_SILENCE_MS = 3 * DAY_MS;

export interface Rhythm {
  /** At least an hour; shorter gaps count as one. */
  longestGapMs: number;
  /** How long without an event counts as silent. */
  silentAfterMs: number;
}

/** The rhythm of the relay's events up to `lastAtMs`; null while there are too few since it was made. */
export async function learnRhythm(
  tx: Reader,
  relay: { id: string; environmentId: number; name: string },
  lastAtMs: number,
): Promise<Rhythm | null> {
  const made = await tx.get<{ createdAt: number }>(
    "SELECT created_at AS createdAt FROM relay WHERE id = ?1",
    relay.id,
  );
  const fromMs = Math.max(lastAtMs - LEARNED_MS, made?.createdAt ?? lastAtMs);
  const events = new RelayEvents(tx, relay);
  const first = await events.findFrom(fromMs);
  if (first === null || !(await events.holdFrom(first.seq, MIN_EVENTS))) return null;
  let event: FoundEvent = first;
  let longestGapMs = HOUR_MS;
  while (event.at < lastAtMs) {
    const next: FoundEvent | null = await events.findFrom(event.at + HOUR_MS);
    if (next === null || next.at <= event.at) break;
    const before = await events.findBefore(next.seq);
    longestGapMs = Math.max(longestGapMs, next.at - (before?.at ?? event.at));
    event = next;
  }
  const floorMs = lastAtMs - first.at < WHOLE_RHYTHM_MS ? MIN_YOUNG_SILENCE_MS : MIN_SILENCE_MS;
  return { longestGapMs, silentAfterMs: Math.max(floorMs, SILENT_GAPS * longestGapMs) };
}

interface FoundEvent {
  seq: number;
  at: number;
}

/** Single events of a relay, each found through an index. Ids sort by the time of arrival. */
class RelayEvents {
  readonly #tx: Reader;
  readonly #of: readonly [environmentId: number, relayName: string];

  constructor(tx: Reader, relay: { environmentId: number; name: string }) {
    this.#tx = tx;
    this.#of = [relay.environmentId, relay.name];
  }

  /** The first that arrived at `ms` or later. */
  async findFrom(ms: number): Promise<FoundEvent | null> {
    const first = await this.#tx.get<{ seq: number }>(
      "SELECT seq FROM event WHERE id >= ?1 ORDER BY id LIMIT 1",
      idFloor("evt", ms),
    );
    if (first === null) return null;
    return this.#tx.get<FoundEvent>(
      "SELECT seq, created_at AS at FROM event WHERE environment_id = ?1 AND relay_name = ?2 AND seq >= ?3 ORDER BY seq LIMIT 1",
      ...this.#of,
      first.seq,
    );
  }

  findBefore(seq: number): Promise<FoundEvent | null> {
    return this.#tx.get<FoundEvent>(
      "SELECT seq, created_at AS at FROM event WHERE environment_id = ?1 AND relay_name = ?2 AND seq < ?3 ORDER BY seq DESC LIMIT 1",
      ...this.#of,
      seq,
    );
  }

  /** Whether there are as many from `seq` on. */
  async holdFrom(seq: number, count: number): Promise<boolean> {
    const rows = await this.#tx.all(
      "SELECT 1 FROM event WHERE environment_id = ?1 AND relay_name = ?2 AND seq >= ?3 ORDER BY seq LIMIT ?4",
      ...this.#of,
      seq,
      count,
    );
    return rows.length >= count;
  }
}
