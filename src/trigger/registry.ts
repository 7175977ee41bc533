/** Every trigger kind. A new one is its own file and one line here. */
import type { TriggerType } from "./contract.ts";
import { dataChangeTrigger } from "./data-change.ts";
import { receiverTrigger } from "./receiver.ts";
import { scheduleTrigger } from "./schedule.ts";

export const TRIGGERS: readonly TriggerType[] = [receiverTrigger, scheduleTrigger, dataChangeTrigger];

/** The trigger of this kind, or null when there is none. */
export function findTrigger(kind: string): TriggerType | null {
  return TRIGGERS.find((trigger) => trigger.kind === kind) ?? null;
}
