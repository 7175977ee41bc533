/**
 * What can be wrong with a receiver that no single call shows: it went silent, or it refuses every call. Such a trouble stands as a problem
 * until it is over; when it begins and when it is over the owner is alerted, unless that is switched off. Finding it is others' work.
 */
import { alertOn, findEnvironmentById } from "../account/environment.ts";
import { relayTarget } from "../relay/relay.ts";
import type { Reader, Writer } from "../store/port.ts";
import { raiseAlert } from "../watch/alert.ts";
import { clearProblem, raiseProblem, standingProblems } from "../watch/problem.ts";

export type TroubleCode = "relay_silent" | "relay_refusing";

/** The relay it is about. */
export interface TroubledRelay {
  environmentId: number;
  name: string;
}

export interface Trouble {
  relay: TroubledRelay;
  code: TroubleCode;
}

/** Raises the trouble unless it stands, with one alert. */
export async function raiseTrouble(
  tx: Writer,
  trouble: Trouble,
  message: string,
  nowMs: number,
): Promise<void> {
  const { environmentId, code, target } = keyOf(trouble);
  if (!(await raiseProblem(tx, { environmentId, code, target, message, nowMs }))) return;
  const environment = await findEnvironmentById(tx, environmentId);
  if (environment === null || !alertOn(environment, code)) return;
  await raiseAlert(tx, { environmentId, code, target, message, nowMs });
}

/** Clears the trouble if it stands. `message` alerts that it is over, where its beginning was alerted; null clears it silently. */
export async function clearTrouble(
  tx: Writer,
  trouble: Trouble,
  message: string | null,
  nowMs: number,
): Promise<void> {
  const { environmentId, code, target } = keyOf(trouble);
  if (!(await clearProblem(tx, { environmentId, code, target, nowMs })) || message === null) return;
  const environment = await findEnvironmentById(tx, environmentId);
  if (environment === null || !alertOn(environment, code) || !alertOn(environment, RECOVERED)) return;
  await raiseAlert(tx, { environmentId, code: RECOVERED, target, message, nowMs });
}

/** Every trouble that stands, of every environment. */
export async function listTroubles(tx: Reader): Promise<Trouble[]> {
  const rows = await standingProblems(tx, ["relay_silent", "relay_refusing"]);
  return rows.map(({ environmentId, code, target }) => ({
    relay: { environmentId, name: target.slice(relayTarget("").length) },
    code,
  }));
}

const RECOVERED = "relay_recovered";

function keyOf({ relay, code }: Trouble): { environmentId: number; code: string; target: string } {
  return { environmentId: relay.environmentId, code, target: relayTarget(relay.name) };
}
