/**
 * Finds the dead events of an environment by relay: how many, since when, why the newest one died, and whether that cause still exists. Each step
 * reads a bounded part of an index.
 */
import { type Static, Type } from "typebox";
import { toIso } from "../../base/clock.ts";
import { textOrNull, time } from "../../base/schema.ts";
import { EVENT, eventIdOf } from "../../engine/event/event.ts";
import { findRelay } from "../../rules/relay/relay.ts";
import type { TroubleRows } from "../../rules/relay/trouble-rows.ts";
import { yieldToEventLoop } from "../../store/index-scan.ts";
import type { Reader, Store } from "../../store/port.ts";
import {
  causeView,
  type EventCause,
  evaluateCause,
  failureView,
  findFailure,
  IS_EXPUNGED,
} from "./failure-cause.ts";

/** The most dead events that are read in one step, and in all steps together. Older ones beyond that are not reported. */
const STEP = 5_000;
const MAX_LOOKED_AT = 250_000;
/** The dashboard shows more as "10,000+". */
export const MAX_SHOWN = 10_000;

export interface DeadOfRelay {
  nameKey: number;
  relay: string;
  count: number;
  firstSeq: number;
  newestSeq: number;
}

/** Counts the dead events of every relay, including deleted ones. `all` is false where the oldest were not counted. */
export async function countDead(
  store: Store,
  environmentId: number,
): Promise<{ relays: DeadOfRelay[]; all: boolean }> {
  const found = new Map<number, DeadOfRelay>();
  let before = Number.MAX_SAFE_INTEGER;
  for (let looked = 0; looked < MAX_LOOKED_AT; looked += STEP) {
    const rows = await store.read((tx) => tx.all<DeadOfRelay>(DEAD, { environmentId, before, step: STEP }));
    for (const row of rows) {
      const known = found.get(row.nameKey);
      found.set(
        row.nameKey,
        known === undefined ? row : { ...known, count: known.count + row.count, firstSeq: row.firstSeq },
      );
      before = Math.min(before, row.firstSeq);
    }
    if (rows.reduce((sum, { count }) => sum + count, 0) < STEP)
      return { relays: [...found.values()], all: true };
    await yieldToEventLoop();
  }
  return { relays: [...found.values()], all: false };
}

const DEAD = `SELECT name_key AS nameKey, (SELECT name FROM relay_name WHERE key = name_key) AS relay, count(*) AS count,
    min(seq) AS firstSeq, max(seq) AS newestSeq
  FROM (SELECT name_key, seq FROM event INDEXED BY event_unhappy
    WHERE environment_id = $environmentId AND state IN ('failed', 'dead') AND state = 'dead' AND seq < $before ORDER BY seq DESC LIMIT $step)
  GROUP BY name_key`;

export const deadView = Type.Object({
  /** The number of dead events, at most `MAX_SHOWN`. */
  events: Type.Integer(),
  /** True if there are more than `events`. */
  more: Type.Boolean(),
  firstDeadAt: time,
  newestDeadAt: time,
  newestEvent: Type.String(),
  /** The person of the newest event. */
  person: textOrNull,
  /** True if the newest event was expunged or its person erased. Such an event never runs again. */
  expunged: Type.Boolean(),
  /** The failure of the newest event. */
  failure: failureView,
  cause: causeView,
});
export type DeadView = Static<typeof deadView>;

const EXPUNGED_CAUSE: EventCause = {
  stands: "unknown",
  message: "The newest of them was expunged and never runs again.",
  since: null,
  missing: null,
};

const END = EVENT.pick("seq", "formerId", "createdAt", "finishedAt", "reason", "personId");

/** Describes the dead events of one relay by the first and the newest. Returns null where one of these was replayed or erased since the count. */
export async function describeDead(
  tx: Reader,
  rows: TroubleRows,
  { nameKey, relay, count, firstSeq, newestSeq }: DeadOfRelay,
  isFailing: boolean,
): Promise<DeadView | null> {
  const { environmentId } = rows;
  const sql = `SELECT ${END.columns}, ${IS_EXPUNGED} AS expunged FROM event WHERE seq = ?1`;
  const first = await tx.get<object>(sql, firstSeq);
  const newest = await tx.get<{ expunged: number }>(sql, newestSeq);
  if (first === null || newest === null) return null;
  const [from, last] = [END.read(first), END.read(newest)];
  const deadAt = last.finishedAt ?? last.createdAt;
  const failure = await findFailure(tx, newestSeq, last.reason ?? "interrupted");
  const row = await findRelay(tx, environmentId, relay);
  const expunged = newest.expunged === 1;
  const subject = {
    environmentId,
    rows,
    nameKey,
    relay,
    row,
    person: last.personId,
    failure,
    deadAt,
    isFailing,
  };
  return {
    events: Math.min(count, MAX_SHOWN),
    more: count > MAX_SHOWN,
    firstDeadAt: toIso(from.finishedAt ?? from.createdAt),
    newestDeadAt: toIso(deadAt),
    newestEvent: eventIdOf(last),
    person: last.personId,
    expunged,
    failure,
    cause: expunged ? EXPUNGED_CAUSE : await evaluateCause(tx, subject),
  };
}
