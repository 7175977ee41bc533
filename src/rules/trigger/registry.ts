/** Lists every kind of trigger. To add one, add its file and one line here. */
import type { TriggerType } from "./contract.ts";
import { type DataChangeTrigger, dataChangeTrigger } from "./data-change.ts";
import { findPersonKey, type ReceiverTrigger, receiverTrigger } from "./receiver.ts";
import { type ScheduleTrigger, scheduleTrigger } from "./schedule.ts";

export const TRIGGERS: readonly TriggerType[] = [receiverTrigger, scheduleTrigger, dataChangeTrigger];

/** A relay's trigger, as its definition has it. */
export type Trigger = ReceiverTrigger | ScheduleTrigger | DataChangeTrigger;

/** Finds the trigger of this kind, or null. */
export function findTrigger(kind: string): TriggerType | null {
  return TRIGGERS.find((trigger) => trigger.kind === kind) ?? null;
}

/** Reports whether an event of this trigger can have a person: a record's owner or recipient, or the person that the map or the customer names. */
export function canHavePerson(trigger: Trigger): boolean {
  if (trigger.kind === "receiver")
    return findPersonKey(trigger.map) !== null || trigger.customer !== undefined;
  return findTrigger(trigger.kind)?.canHavePerson === true;
}

/** Describes a trigger for lists: "every Monday at 09:00 UTC", "when order.paid arrives". */
export function describeTrigger(trigger: Trigger): string {
  return findTrigger(trigger.kind)?.inWords(trigger) ?? trigger.kind;
}
