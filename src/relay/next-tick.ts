/** When a schedule ticks next, and why not sooner, in words. It ticks nothing. */
import type { Environment } from "../account/environment.ts";
import { toIso } from "../ground/clock.ts";
import { periodAround, type ScheduleTrigger } from "../trigger/schedule.ts";
import type { RelayRow } from "./relay.ts";

/** `at`: null while it is paused or its environment on hold. */
export function tellNextTick(
  trigger: ScheduleTrigger,
  { state, activeSince }: Pick<RelayRow, "state" | "activeSince">,
  { heldAt }: Pick<Environment, "heldAt">,
  nowMs: number,
): { at: string | null; message: string } {
  const { startMs, nextMs } = periodAround(trigger, nowMs);
  const next = toIso(nextMs);
  if (heldAt !== null || state === "paused") {
    const [brake, end] =
      heldAt !== null ? ["The environment is on hold", "release"] : ["The relay is paused", "resume"];
    const message = `${brake}: ticks are not recorded; the first one after the ${end} is of the next period to begin, at ${next} if it comes before then.`;
    return { at: null, message };
  }
  // The mark is the beginning of the last period that ticked, or the moment from which on it ticks.
  if (activeSince <= startMs || activeSince > nowMs)
    return { at: next, message: `The next tick is at ${next}.` };
  const since = toIso(activeSince);
  const message = `The next tick is at ${next}: the period that began at ${toIso(startMs)} has none, because the schedule was made, changed or resumed after that, at ${since}.`;
  return { at: next, message };
}
