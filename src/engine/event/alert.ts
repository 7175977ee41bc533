/** Alerts about events that did not run as they should. */
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

/** Raises an alert in the transaction that changes the event. */
function alertOwner(
  tx: Writer,
  { environmentId, relayName, nowMs }: EventAlert,
  alert: Pick<NewAlert, "code" | "message" | "count" | "burstMs">,
): Promise<void> {
  return raiseAlert(tx, { environmentId, target: relayTarget(relayName), nowMs, ...alert });
}

/**
 * Alerts about dead events; the message names the newest of them. `why` follows "… of <relay> is dead". `count`: how many died together, by default
 * 1.
 * Source: the specification's "States and transitions".
 */
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

/** Codes of retryable failures that only the owner can fix. */
export const WAITING_CODES = ["sender_domain_required", "invite_capped"] as const;
type WaitingCode = (typeof WAITING_CODES)[number];

/** Alerts once a day for each relay and code, with a count of the events. `why`: a sentence that says what failed and what to do. */
export function alertWaiting(
  tx: Writer,
  { count, ...alert }: EventAlert & { code: WaitingCode; why: string; count: number },
): Promise<void> {
  const message = `An event of ${alert.relayName} waits and will be retried: ${alert.why}`;
  return alertOwner(tx, alert, { code: alert.code, message, count, burstMs: DAY_MS });
}

/** Alerts once a day for each relay about sales without a person, with a count. `eventId`: the last event. `why`: the message of its run. */
export function alertUnmatchedSale(
  tx: Writer,
  { eventId, why, count: added, ...alert }: EventAlert & { eventId: string; why: string; count: number },
): Promise<void> {
  const { relayName } = alert;
  const message = (count: number, sinceMs: number): string => {
    const which =
      count === 1
        ? `The event ${eventId} of ${relayName} found no person, so it granted and revoked nothing`
        : `${count} events of ${relayName} found no person since ${toIso(sinceMs)}, so they granted and revoked nothing, the last one ${eventId}`;
    return `${which}: ${why} See relay events show ${eventId}.`;
  };
  return alertOwner(tx, alert, { code: "sale_nobody", message, count: added, burstMs: DAY_MS });
}

/** Missed ticks: how many, and when the period of the first one began. */
export interface Missed {
  count: number;
  firstMs: number;
}

/**
 * Alerts once about all missed ticks of a relay. They are dead events, so the code is `relay_failed`. `missed`: when their periods began. `before`:
 * the ticks of earlier steps. Returns the sum of both.
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

/** Alerts once for each relay about dropped events. Later batches add to its count. */
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
