/** What the owner is told of events that do not run as they should. */
import { toIso } from "../../base/clock.ts";
import { DAY_MS } from "../../base/limit.ts";
import { type NewAlert, raiseAlert } from "../../platform/audit/alert.ts";
import { relayTarget } from "../../rules/relay/relay.ts";
import type { Writer } from "../../store/port.ts";

interface EventAlert {
  environmentId: number;
  relayName: string;
  nowMs: number;
}

/** Raised in the transaction that makes the event what it is. */
function alertOwner(
  tx: Writer,
  { environmentId, relayName, nowMs }: EventAlert,
  alert: Pick<NewAlert, "code" | "message" | "count" | "burstMs">,
): Promise<void> {
  return raiseAlert(tx, { environmentId, target: relayTarget(relayName), nowMs, ...alert });
}

/** `why` follows "… of <relay> is dead". Names the newest event of a burst; `count`: how many died at once, 1 when absent. Source: the specification's "States and transitions". */
export function alertDead(
  tx: Writer,
  { eventId, why, count: added, ...alert }: EventAlert & { eventId: string; why: string; count?: number },
): Promise<void> {
  const { relayName } = alert;
  const dead = `The event ${eventId} of ${relayName} is dead${why}`;
  const message = (count: number, sinceMs: number): string => {
    if (count === 1) return `${dead} See it with relay events show ${eventId}.`;
    const more = count === 2 ? "one more has" : `${count - 1} more have`;
    return `${dead} Since ${toIso(sinceMs)} ${more} died: relay events list --relay ${relayName} --state dead.`;
  };
  return alertOwner(tx, alert, { code: "relay_failed", message, count: added });
}

/** Failures that are tried again and that waiting alone does not mend. */
export const WAITING_CODES = ["sender_domain_required", "invite_capped"] as const;
type WaitingCode = (typeof WAITING_CODES)[number];

/** One a day for each relay and cause, with a count of the events. `why`: what failed and what to do, in a sentence. */
export function alertWaiting(
  tx: Writer,
  { count, ...alert }: EventAlert & { code: WaitingCode; why: string; count: number },
): Promise<void> {
  const message = `An event of ${alert.relayName} waits and is tried again: ${alert.why}`;
  return alertOwner(tx, alert, { code: alert.code, message, count, burstMs: DAY_MS });
}

/** One a day for each relay, with a count of the events: somebody was to be given a product or a plan, or to lose it. `eventId`: the last one; `why`: as its run says it. */
export function alertNobody(
  tx: Writer,
  { eventId, why, count: added, ...alert }: EventAlert & { eventId: string; why: string; count: number },
): Promise<void> {
  const { relayName } = alert;
  const message = (count: number, sinceMs: number): string => {
    const which =
      count === 1
        ? `The event ${eventId} of ${relayName} found nobody, so nobody was given or lost what it was about`
        : `${count} events of ${relayName} found nobody since ${toIso(sinceMs)}, so nobody was given or lost what they were about, the last one ${eventId}`;
    return `${which}: ${why} See relay events show ${eventId}.`;
  };
  return alertOwner(tx, alert, { code: "sale_nobody", message, count: added, burstMs: DAY_MS });
}

/** Ticks that were missed: how many, and when the first one's period began. */
export interface Missed {
  count: number;
  firstMs: number;
}

/**
 * One for all; those of a later step join it. The missed are dead events, so it is `relay_failed` that tells of them. `missed`: when their
 * periods began; `before`: those of the steps before. Answers both together.
 */
export async function alertMissed(
  tx: Writer,
  alert: EventAlert & { missed: readonly number[] },
  before: Missed,
): Promise<Missed> {
  const { relayName, missed } = alert;
  const [first] = missed;
  if (first === undefined) return before;
  const last = missed.at(-1) ?? first;
  const all = { count: before.count + missed.length, firstMs: before.count === 0 ? first : before.firstMs };
  const which =
    all.count === 1
      ? `1 tick of ${relayName} was missed, of ${toIso(first)}: it is stored as dead and can be replayed`
      : `${all.count} ticks of ${relayName} were missed, from ${toIso(all.firstMs)} to ${toIso(last)}: they are stored as dead and can be replayed`;
  const message = `${which}; the newest one runs late.`;
  await alertOwner(tx, alert, { code: "relay_failed", message, count: missed.length });
  return all;
}

/** One a relay; those of later batches join it, and its count is all of them. */
export function alertDropped(
  tx: Writer,
  alert: EventAlert & { held: boolean; count: number },
): Promise<void> {
  const { relayName, held, count } = alert;
  const what = held
    ? "the environment is on hold, so release it (relay settings set held off) to run what still waits."
    : `the relay is paused, so resume it (relay relays resume ${relayName}) to run what still waits.`;
  const message = `Events of ${relayName} that waited for more than 30 days were dropped and do not run: ${what}`;
  return alertOwner(tx, alert, { code: "events_dropped", message, count });
}
