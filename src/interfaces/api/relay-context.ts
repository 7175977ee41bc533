/** Makes the contexts in which routes save and show relays, and records missed ticks before a save. */
import { recordMissedTicks } from "../../engine/schedule/schedule.ts";
import type { UpdateContext } from "../../rules/relay/relay-save.ts";
import type { ViewContext } from "../../rules/relay/relay-view.ts";
import type { HttpDeps } from "../http/deps.ts";
import type { EnvironmentCall } from "../http/route.ts";

export function relayContext({
  deps,
  environment,
  actor,
  nowMs,
}: Pick<EnvironmentCall, "environment" | "actor"> & { deps: HttpDeps; nowMs: number }): UpdateContext {
  const { limits, allowPrivate } = deps.config;
  return {
    environment,
    actor,
    nowMs,
    limits,
    allowPrivate,
    // A getter, because a command that seals no secret may have no master key.
    get sealer() {
      return deps.sealer;
    },
    baseUrl: deps.baseUrl(),
    recordDue: deps.scheduler.recordDue,
  };
}

export function viewContext({
  deps,
  environment,
  nowMs,
}: Pick<EnvironmentCall, "environment"> & { deps: HttpDeps; nowMs: number }): ViewContext {
  const sealer = deps.hasMasterKey ? { sealer: deps.sealer } : {};
  return { environment, nowMs, baseUrl: deps.baseUrl(), ...sealer };
}

/** Records the missed ticks of schedules, in steps, before a save that can change triggers of the environment or of one relay. */
export async function recordMissedBefore(
  { deps, nowMs }: { deps: HttpDeps; nowMs: number },
  environmentId: number,
  name?: string,
): Promise<void> {
  const settling = { environmentId, nowMs, ...(name === undefined ? {} : { name }) };
  if (deps.scheduler.trustsClock()) await recordMissedTicks(deps.store, settling);
}
