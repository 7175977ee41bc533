/**
 * What a queued event waits for, in words: a hold, a pause, its retry, or its turn behind others of its relay. It is asked of the events that
 * are shown and of no other, and counts what is before one through an index, so many at most.
 */
import { type Static, Type } from "typebox";
import { toIso } from "../../base/clock.ts";
import { EVENT_RETENTION_MS } from "../../base/limit.ts";
import { oneOf, orNull, timeOrNull } from "../../base/schema.ts";
import type { Reader } from "../../store/port.ts";
import type { EventState } from "./event.ts";

/** Events of one relay that are counted, and of all relays of one list. */
const MAX_COUNTED = 1_000;
const MAX_COUNTED_ALTOGETHER = 20_000;

export const waitingView = Type.Object({
  for: oneOf(["hold", "pause", "retry", "turn"]),
  /** When it is tried again. */
  until: timeOrNull,
  /** Events of its relay that are before it, where it waits for its turn; 1,000 stands for more too. */
  ahead: orNull(Type.Integer()),
  /** When it is dropped if it still waits for the hold or the pause to end. */
  dropsAt: timeOrNull,
  message: Type.String(),
});
export type Waiting = Static<typeof waitingView>;

/** What is asked of an event. */
interface Shown {
  seq: number;
  state: EventState;
  relayId: string;
  relayName: string;
  nextAttemptAt: number | null;
  createdAt: number;
}

/** By number, of those that wait. */
export async function explainWaiting(
  tx: Reader,
  environmentId: number,
  events: readonly Shown[],
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
  const most = Math.min(MAX_COUNTED, Math.ceil(MAX_COUNTED_ALTOGETHER / byRelay.size));
  for (const [relayId, ofRelay] of byRelay) {
    const relay = await tx.get<{ state: string }>("SELECT state FROM relay WHERE id = ?1", relayId);
    const paused = relay?.state === "paused" ? (ofRelay[0]?.relayName ?? "<name>") : null;
    const brake = heldAt !== null ? sayHold(heldAt, paused) : paused !== null ? sayPause(paused) : null;
    const before = brake === null ? await countBefore(tx, relayId, ofRelay, most) : null;
    for (const event of ofRelay) {
      const retry = event.nextAttemptAt === null ? null : toIso(event.nextAttemptAt);
      waiting.set(
        event.seq,
        brake !== null
          ? { ...brake, ...tellDrop(event, brake.message), until: retry, ahead: null }
          : retry !== null
            ? {
                for: "retry",
                until: retry,
                ahead: null,
                dropsAt: null,
                message: `It is tried again at ${retry}.`,
              }
            : tellTurn(before?.get(event.seq) ?? most, most, isReleasing),
      );
    }
  }
  return waiting;
}

type Brake = Pick<Waiting, "for" | "message">;

/** `paused`: the relay's name where it is paused too. */
function sayHold(heldAt: number, paused: string | null): Brake {
  const [also, then] =
    paused === null
      ? ["", ""]
      : [" and its relay is paused", ` and the relay is resumed (relay relays resume ${paused})`];
  return {
    for: "hold",
    message: `The environment is on hold since ${toIso(heldAt)}${also}: it runs when the hold is released (relay settings set held off)${then}`,
  };
}

function sayPause(name: string): Brake {
  return {
    for: "pause",
    message: `Its relay is paused: it runs when you resume it (relay relays resume ${name})`,
  };
}

function tellDrop({ createdAt }: Shown, message: string): Pick<Waiting, "dropsAt" | "message"> {
  const dropsAt = toIso(createdAt + EVENT_RETENTION_MS);
  return { dropsAt, message: `${message}, and is dropped at ${dropsAt} if it waits until then.` };
}

function tellTurn(ahead: number, most: number, isReleasing: boolean): Waiting {
  const count =
    ahead >= most
      ? `${ahead.toLocaleString("en")} events or more`
      : ahead === 1
        ? "1 event"
        : `${ahead.toLocaleString("en")} events`;
  const message =
    ahead === 0
      ? "It is its relay's next."
      : `It waits for its turn: ${count} of its relay ${ahead === 1 ? "is" : "are"} before it.`;
  const others = isReleasing
    ? " Until what waited for the hold has run, events of other relays that arrived earlier run before it."
    : "";
  return { for: "turn", until: null, ahead, dropsAt: null, message: `${message}${others}` };
}

/** How many events of the relay are before each: those that run, and those that are due and came earlier; none for one further back. */
async function countBefore(
  tx: Reader,
  relayId: string,
  events: readonly Shown[],
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
