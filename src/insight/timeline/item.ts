/** One item of a person's timeline: what happened in a sentence, what caused it, and where the dashboard shows it. */
import { type Static, Type } from "typebox";
import { eventText, oneOf, orNull, textOrNull, time } from "../../base/schema.ts";

const STORY_KINDS = [
  "event",
  "access",
  "access_end",
  "credits",
  "purchase",
  "refund",
  "plan",
  "plan_end",
  "mail",
  "record",
  "change",
  "made",
] as const;

/** The kind of end: `failed` is retried or failed permanently, `dead` used up its retries, `none` is neither good nor bad. */
const LOOKS = ["done", "waiting", "failed", "dead", "none"] as const;

export const timelineItem = Type.Object({
  /** The id, unique in the timeline, such as `event:evt_…`. */
  id: Type.String(),
  kind: oneOf(STORY_KINDS),
  at: time,
  /** The sentence, in one line. */
  sentence: Type.String(),
  /** More detail in one line: why an event failed, or the given reason. */
  detail: orNull(eventText),
  look: oneOf(LOOKS),
  /** The thing that the dashboard opens. */
  thing: Type.Object({
    kind: oneOf(["event", "grant", "credit", "purchase", "subscription", "email", "record", "person"]),
    id: Type.String(),
    /** The collection of a record. */
    collection: textOrNull,
  }),
  relay: textOrNull,
  /** The event that caused it; null where no event did. */
  eventId: orNull(Type.String()),
});
export type TimelineItem = Static<typeof timelineItem>;
