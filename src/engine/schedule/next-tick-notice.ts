/**
 * Tells the developer when a schedule that was created, changed, paused or deleted ticks next, and why not sooner. A schedule created in the
 * middle of a period would otherwise seem broken. Local development also reports the schedules at the start. It ticks nothing.
 */
import type { Clock } from "../../base/clock.ts";
import type { Log } from "../../base/log.ts";
import type { Notifier } from "../../platform/audit/notifier.ts";
import type { LiveRelay, Snapshot } from "../../rules/relay/live-relay.ts";
import { describeNextTick } from "../../rules/relay/relay-view.ts";
import { type Store, StoreUnavailable } from "../../store/port.ts";
import { listMarks } from "./schedule.ts";

interface NoticeDeps {
  store: Store;
  clock: Clock;
  log: Log;
  /** True in local development. */
  local: boolean;
  notifier: Pick<Notifier, "notifySchedule">;
}

/** Reports the schedules that differ from the snapshot `before`, which is null at the start. */
export async function notifySchedules(
  deps: NoticeDeps,
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
    for (const relay of changed) notifySchedule(deps, relay, marks.get(relay.id) ?? 0);
  } catch (error) {
    if (!(error instanceof StoreUnavailable)) deps.log.error("a schedule cannot be reported", { error });
  }
}

function notifySchedule(
  { clock, notifier }: NoticeDeps,
  { appId, environmentName, name: relayName, definition, waitsFor }: LiveRelay,
  activeSince: number,
): void {
  if (definition.trigger.kind !== "schedule") return;
  const nowMs = clock.now();
  const state = waitsFor === "paused" || waitsFor === "both" ? "paused" : "active";
  const heldAt = waitsFor === "held" || waitsFor === "both" ? nowMs : null;
  const { message } = describeNextTick(definition.trigger, { state, activeSince }, { heldAt }, nowMs);
  notifier.notifySchedule({ appId, environmentName, relayName, message });
}

function stateOf(relay: LiveRelay | null): string {
  return relay === null ? "" : JSON.stringify([relay.definition.trigger, relay.waitsFor]);
}
