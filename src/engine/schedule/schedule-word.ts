/**
 * Says of a schedule that was made, changed, paused or let go when it ticks next, and why not sooner: who made one in the middle of a period
 * otherwise waits for a tick that does not come. In local development those of the start are told too. It ticks nothing.
 */
import type { Clock } from "../../base/clock.ts";
import type { Log } from "../../base/log.ts";
import type { Teller } from "../../platform/audit/call-notifier.ts";
import type { LiveRelay, Snapshot } from "../../rules/relay/live-relay.ts";
import { tellNextTick } from "../../rules/relay/relay-view.ts";
import { type Store, StoreUnavailable } from "../../store/port.ts";
import { listMarks } from "./schedule.ts";

interface ScheduleWordDeps {
  store: Store;
  clock: Clock;
  log: Log;
  /** Local development. */
  local: boolean;
  teller: Pick<Teller, "tellSchedule">;
}

/** Relays were read again; `before`: as they were read last, null at the start. */
export async function tellSchedules(
  deps: ScheduleWordDeps,
  snapshot: Snapshot,
  before: Snapshot | null,
): Promise<void> {
  if (before === null && !deps.local) return;
  const changed = snapshot.relays.filter(
    (relay) =>
      relay.definition.trigger.kind === "schedule" &&
      stateOf(relay) !== stateOf(before?.findRelay(relay.id) ?? null),
  );
  if (changed.length === 0) return;
  try {
    const marks = await deps.store.read(listMarks);
    for (const relay of changed) tellSchedule(deps, relay, marks.get(relay.id) ?? 0);
  } catch (error) {
    if (!(error instanceof StoreUnavailable)) deps.log.error("a schedule cannot be told", { error });
  }
}

function tellSchedule(
  { clock, teller }: ScheduleWordDeps,
  { appId, environmentName, name: relayName, definition, waitsFor }: LiveRelay,
  activeSince: number,
): void {
  if (definition.trigger.kind !== "schedule") return;
  const nowMs = clock.now();
  const state = waitsFor === "paused" || waitsFor === "both" ? "paused" : "active";
  const heldAt = waitsFor === "held" || waitsFor === "both" ? nowMs : null;
  const { message } = tellNextTick(definition.trigger, { state, activeSince }, { heldAt }, nowMs);
  teller.tellSchedule({ appId, environmentName, relayName, message });
}

function stateOf(relay: LiveRelay | null): string {
  return relay === null ? "" : JSON.stringify([relay.definition.trigger, relay.waitsFor]);
}
