/** Shows the plan of a replay, action by action, in data and in sentences. It reads nothing. */
import { type Static, Type } from "typebox";
import { toIsoOrNull } from "../../base/clock.ts";
import type { Json } from "../../base/json.ts";
import { json, oneOf, orNull, timeOrNull } from "../../base/schema.ts";
import { findAction } from "../../rules/action/registry.ts";
import type { LiveAction } from "../../rules/relay/live-relay.ts";
import { mayChoose, type Step } from "./step-reconciliation.ts";
import { formatTextDifference } from "./step-text.ts";

export const WILL = ["run", "skip", "again", "edited", "other_person", "settle"] as const;

const planPerson = Type.Object({
  /** The id; null if the attempt would create the person. */
  id: orNull(Type.String()),
  /** The address, or words for a person who was erased. */
  name: Type.String(),
});
type PlanPerson = Static<typeof planPerson>;

/** The plan of a replay. */
export const replayPlan = Type.Object({
  /** The relay; null if no relay has the name. */
  relay: orNull(Type.Object({ id: Type.String(), name: Type.String(), version: Type.Integer() })),
  /** A sentence if no action would run, and then `actions` is empty; else null. */
  stop: orNull(Type.String()),
  actions: Type.Array(
    Type.Object({
      /** The index in the definition's list, from 0. */
      index: Type.Integer(),
      type: Type.String(),
      /**
       * `run`: its work is not done. `skip`: its work is done. `again`: it is sent again, with the same id. `edited`: its work was done under another
       * text. `other_person`: its work was done for another person than the event's current one. Both are skipped unless they are chosen. `settle`:
       * how its send ended is unknown, and is looked up first.
       */
      will: oneOf(WILL),
      /** True if `run` may choose it although its work was done. */
      mayChoose: Type.Boolean(),
      /** The time when its work was done; null if it is not done, or if the time was not stored. */
      doneAt: timeOrNull,
      /** The plan for the action, in one sentence. */
      message: Type.String(),
      /** The current action. `was` is the action that did the work. It is set only if its text differs and was stored. */
      action: Type.Unsafe<Json>(json),
      was: Type.Optional(Type.Unsafe<Json>(json)),
      /** The person of the work, and the event's current person, for `other_person`. */
      doneFor: Type.Optional(planPerson),
      nowFor: Type.Optional(planPerson),
    }),
  ),
});
export type ReplayPlan = Static<typeof replayPlan>;
export type PlannedAction = ReplayPlan["actions"][number];

/** Returns what a replay does with an action. */
export function willDo({ repeats }: LiveAction, step: Step): PlannedAction["will"] {
  if (repeats) return "again";
  return "doneFor" in step && step.doneFor !== undefined ? "other_person" : step.does;
}

/** `people`: set for an action that is `other_person`. */
export function planAction(
  live: LiveAction,
  index: number,
  step: Step,
  people: { doneFor: PlanPerson; nowFor: PlanPerson } | null,
): PlannedAction {
  const { type, action } = live;
  const will = willDo(live, step);
  const was = step.does === "edited" ? step.was : undefined;
  const doneAt = "work" in step ? toIsoOrNull(step.work.doneAt) : null;
  return {
    index,
    type,
    will,
    mayChoose: mayChoose(step),
    doneAt,
    message:
      people === null
        ? formatPlan(will, step, doneAt, action)
        : formatOtherPersonPlan(live, step, doneAt, people),
    action: action as Json,
    ...(was === undefined ? {} : { was: was as Json }),
    ...people,
  };
}

function formatOtherPersonPlan(
  { type, action }: LiveAction,
  step: Step,
  doneAt: string | null,
  { doneFor: { name: was }, nowFor: { name: is } }: { doneFor: PlanPerson; nowFor: PlanPerson },
): string {
  const when = doneAt === null ? "" : ` at ${doneAt}`;
  const edited =
    step.does === "edited" && step.was !== undefined ? ` (${formatTextDifference(step.was, action)})` : "";
  const choice =
    findAction(type)?.sells === true
      ? `Choosing it moves the purchase: it is taken back from ${was} and made for ${is}.`
      : `Choosing it does the work for ${is}, and what was done for ${was} stays.`;
  return `Is skipped unless you choose it: its work was done${when} for ${was}, and the event is about ${is} now${edited}. ${choice}`;
}

function formatPlan(will: PlannedAction["will"], step: Step, doneAt: string | null, action: unknown): string {
  const when = doneAt === null ? "" : ` at ${doneAt}`;
  switch (will) {
    case "run":
      return "Runs.";
    case "again":
      return "Is sent again, with the same id.";
    case "settle":
      return "May have left before the service stopped: that is looked at first, and what may have left is not sent again.";
    case "other_person":
    case "skip":
      return step.does === "skip" && !step.sure
        ? `Is skipped: its work was done${when} under a text that was not kept, so it is not known whether it was edited since. Choose it to run it all the same.`
        : `Is skipped: its work was done${when}.`;
    case "edited": {
      const was = step.does === "edited" ? step.was : undefined;
      const texts =
        was === undefined ? "the text it ran with was not kept" : formatTextDifference(was, action);
      return `Is skipped unless you choose it: it was edited after it had done its work${when} (${texts}). Its earlier work stays, and choosing it does the new work in addition.`;
    }
  }
}
