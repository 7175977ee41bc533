/**
 * What the owner is told of an event's end: every one that becomes dead (`relay_failed`), and at its first failure one that waits for
 * something only the owner can do (`sender_domain_required`, `invite_capped`), unless it is switched off on the Alerts page.
 */
import { alertOn, findEnvironmentById } from "../account/environment.ts";
import { DAY_MS } from "../ground/limit.ts";
import type { Writer } from "../store/port.ts";
import { raiseAlert } from "../watch/alert.ts";

interface DeadAlert {
  environmentId: number;
  relayName: string;
  /** Why it is dead, to follow "An event of <relay> is dead". */
  why: string;
  nowMs: number;
}

/** Raises the alert in the transaction that ends the event. Source: the specification's "States and transitions". */
export async function alertDead(tx: Writer, alert: DeadAlert): Promise<void> {
  const environment = await findEnvironmentById(tx, alert.environmentId);
  if (environment === null || !alertOn(environment, "relay_failed")) return;
  await raiseAlert(tx, {
    environmentId: alert.environmentId,
    code: "relay_failed",
    target: `relay:${alert.relayName}`,
    message: `An event of ${alert.relayName} is dead${alert.why}`,
    nowMs: alert.nowMs,
  });
}

/** Failures that are tried again and that waiting alone does not mend. */
export const WAITING_CODES = ["sender_domain_required", "invite_capped"] as const;
type WaitingCode = (typeof WAITING_CODES)[number];

interface WaitingAlert {
  environmentId: number;
  relayName: string;
  code: WaitingCode;
  /** What failed and what to do, in a sentence. */
  message: string;
  nowMs: number;
}

/** One a day for each relay and cause, with a count of the events. */
export async function alertWaiting(tx: Writer, alert: WaitingAlert): Promise<void> {
  const { environmentId, relayName, code, message, nowMs } = alert;
  const environment = await findEnvironmentById(tx, environmentId);
  if (environment === null || !alertOn(environment, code)) return;
  await raiseAlert(tx, {
    environmentId,
    code,
    target: `relay:${relayName}`,
    message: `An event of ${relayName} waits and is tried again: ${message}`,
    burstMs: DAY_MS,
    nowMs,
  });
}
