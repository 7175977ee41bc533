/** Name of an event: its mapped type, or the kind of its trigger. */
import type { Event } from "../base/answer.ts";
import { isObject, type Json } from "../base/exact-json.ts";
import { escapeTricky } from "../base/tricky.ts";
import { TRIGGER_WORDS } from "./event-table.ts";

/** Returns the mapped values of an event, or null. */
export function mappedOf({ payload }: Pick<Event, "payload">): Readonly<Record<string, Json>> | null {
  return isObject(payload) && isObject(payload.mapped) ? payload.mapped : null;
}

export function formatType({ eventType, trigger }: Pick<Event, "eventType" | "trigger">): string {
  return eventType === null ? TRIGGER_WORDS[trigger] : escapeTricky(eventType);
}
