/**
 * Explains what a queued event waits for: a hold, a pause, its retry, or its turn after other events of its relay. It runs only for events that are
 * shown, and counts the events before each through an index, up to a limit.
 */
import { type Static, Type } from "typebox";
import { toIso } from "../../base/clock.ts";
import { EVENT_RETENTION_MS } from "../../base/limit.ts";
import { oneOf, orNull, timeOrNull } from "../../base/schema.ts";
import { formatCount } from "../../base/text.ts";
import type { Reader } from "../../store/port.ts";
import type { EventState } from "./event.ts";

/** Limits of the count: for one relay, and for all relays of a list together. */
const MAX_COUNTED = 1_000;
const MAX_COUNTED_TOGETHER = 20_000;

export const waitingView = Type.Object({
  for: oneOf(["hold", "pause", "retry", "turn"]),
  /** The time when its retry is due. */
  until: timeOrNull,
  /** The number of events of its relay before it, if it waits for its turn; 1,000 can mean more. */
  ahead: orNull(Type.Integer()),
  /** The time when it is dropped, if the hold or pause lasts that long. */
  dropsAt: timeOrNull,
  message: Type.String(),
});
export type Waiting = Static<typeof waitingView>;

/** The columns that the explanation needs. */
interface QueuedEvent {
  seq: number;
  state: EventState;
  relayId: string;
  relayName: string;
  nextAttemptAt: number | null;
  createdAt: number;
}

/** Explains each queued event, by its number. */
export async function explainWaiting(
  tx: Reader,
  environmentId: number,
  events: readonly QueuedEvent[],
): Promise<ReadonlyMap<number, Waiting>> {
  const waiting = new Map<number, Waiting>();
  const queued = events.filter(({ state }) => state === "queued");
  if (queued.length === 0) return waiting;
  const environment = await tx.get<{ heldAt: number | null; releasedThrough: number | null }>(
    "SELECT held_at AS heldAt, released_through AS releasedThrough FROM environment WHERE id = ?1",
    environmentId,
  );
  const heldAt = environment?.heldAt ?? null;
  const isReleasing = environment?.releasedThrough != null;
  const byRelay = Map.groupBy(queued, ({ relayId }) => relayId);
  const most = Math.min(MAX_COUNTED, Math.ceil(MAX_COUNTED_TOGETHER / byRelay.size));
  for (const [relayId, ofRelay] of byRelay) {
    const relay = await tx.get<{ state: string }>("SELECT state FROM relay WHERE id = ?1", relayId);
    const paused = relay?.state === "paused" ? (ofRelay[0]?.relayName ?? "<name>") : null;
    const stop = explainStop(heldAt, paused);
    const before = stop === null ? await countBefore(tx, relayId, ofRelay, most) : null;
    for (const event of ofRelay) {
      const retry = event.nextAttemptAt === null ? null : toIso(event.nextAttemptAt);
      if (stop !== null)
        waiting.set(event.seq, { ...stop, ...explainDrop(event, stop.message), until: retry, ahead: null });
      else if (retry !== null) waiting.set(event.seq, explainRetry(retry));
      else waiting.set(event.seq, explainTurn(before?.get(event.seq) ?? most, most, isReleasing));
    }
  }
  return waiting;
}

type Stop = Pick<Waiting, "for" | "message">;

/** `paused`: the relay's name if it is paused. */
function explainStop(heldAt: number | null, paused: string | null): Stop | null {
  if (heldAt !== null) return explainHold(heldAt, paused);
  return paused === null ? null : explainPause(paused);
}

function explainHold(heldAt: number, paused: string | null): Stop {
  const [pausedToo, resumedToo] =
    paused === null
      ? ["", ""]
      : [" and its relay is paused", ` and the relay is resumed (relay relays resume ${paused})`];
  return {
    for: "hold",
    message: `The environment is on hold since ${toIso(heldAt)}${pausedToo}: it runs when the hold is released (relay settings set held off)${resumedToo}`,
  };
}

function explainPause(name: string): Stop {
  return {
    for: "pause",
    message: `Its relay is paused: it runs when you resume it (relay relays resume ${name})`,
  };
}

function explainRetry(until: string): Waiting {
  return { for: "retry", until, ahead: null, dropsAt: null, message: `It will be retried at ${until}.` };
}

function explainDrop({ createdAt }: QueuedEvent, message: string): Pick<Waiting, "dropsAt" | "message"> {
  const dropsAt = toIso(createdAt + EVENT_RETENTION_MS);
  return { dropsAt, message: `${message}, and is dropped at ${dropsAt} if it waits until then.` };
}

function explainTurn(ahead: number, most: number, isReleasing: boolean): Waiting {
  const events = ahead === 1 && ahead < most ? "1 event" : `${formatCount(ahead)} events`;
  const count = ahead >= most ? `${events} or more` : events;
  const message =
    ahead === 0
      ? "It is its relay's next."
      : `It waits for its turn: ${count} of its relay ${ahead === 1 ? "is" : "are"} before it.`;
  const others = isReleasing
    ? " Until what waited for the hold has run, events of other relays that arrived earlier run before it."
    : "";
  return { for: "turn", until: null, ahead, dropsAt: null, message: `${message}${others}` };
}

/** Counts the events before each event: running ones, and earlier due ones. An event beyond the limit is not in the map. */
async function countBefore(
  tx: Reader,
  relayId: string,
  events: readonly QueuedEvent[],
  most: number,
): Promise<ReadonlyMap<number, number>> {
  if (events.every(({ nextAttemptAt }) => nextAttemptAt !== null)) return new Map();
  const running = await tx.get<{ count: number }>(
    "SELECT count(*) AS count FROM event INDEXED BY event_running WHERE state = 'running' AND relay_key = (SELECT key FROM relay_key WHERE relay_id = ?1)",
    relayId,
  );
  const due = await tx.all<{ seq: number }>(
    `SELECT seq FROM event INDEXED BY event_ready
     WHERE relay_key = (SELECT key FROM relay_key WHERE relay_id = ?1) AND state = 'queued' AND next_attempt_at IS NULL ORDER BY seq LIMIT ?2`,
    relayId,
    most,
  );
  return new Map(due.map(({ seq }, at) => [seq, at + (running?.count ?? 0)]));
}
