/** The alert `relay_failed`: the owner is told of every event that becomes dead, unless it is switched off on the Alerts page. */
import { alertOn, findEnvironmentById } from "../account/environment.ts";
import type { Writer } from "../store/port.ts";
import { raiseAlert } from "../watch/alert.ts";

export interface DeadAlert {
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
