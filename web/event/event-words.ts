/** Name of an event: its mapped type, or the kind of its trigger. */
import type { Event } from "../base/answer.ts";
import { isObject, type Json } from "../base/exact-json.ts";
import { sayTricky } from "../base/tricky.ts";
import { TRIGGER_WORDS } from "./event-table.ts";

const MAX_TYPE_CHARS = 100;

/** Returns the mapped values of an event, or null. */
export function mappedOf({ payload }: Pick<Event, "payload">): Readonly<Record<string, Json>> | null {
  return isObject(payload) && isObject(payload.mapped) ? payload.mapped : null;
}

export function sayType(event: Pick<Event, "payload" | "trigger">): string {
  const type = mappedOf(event)?.event_type;
  return typeof type === "string" && type !== ""
    ? sayTricky(type.slice(0, MAX_TYPE_CHARS))
    : TRIGGER_WORDS[event.trigger];
}
