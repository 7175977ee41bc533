/** What a person's story is made of: one thing that happened, in a sentence, with where it came from and what shows it whole. */
import { type Static, Type } from "typebox";
import { oneOf, orNull, textOrNull, time } from "../../base/schema.ts";

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

/** How it stands: `failed` is tried again or was given up at once, `dead` was given up, `none` is neither well nor ill. */
const LOOKS = ["done", "waiting", "failed", "dead", "none"] as const;

export const timelineItem = Type.Object({
  /** Of this list alone, such as `event:evt_…`. */
  id: Type.String(),
  kind: oneOf(STORY_KINDS),
  at: time,
  /** One line. */
  sentence: Type.String(),
  /** More of it in one line: why an event failed, a reason that was given. */
  detail: textOrNull,
  look: oneOf(LOOKS),
  /** What shows it whole, by id. */
  thing: Type.Object({
    kind: oneOf(["event", "grant", "credit", "purchase", "subscription", "email", "record", "person"]),
    id: Type.String(),
    /** Of a record. */
    collection: textOrNull,
  }),
  relay: textOrNull,
  /** The event that did it; null: no event did. */
  eventId: orNull(Type.String()),
});
export type TimelineItem = Static<typeof timelineItem>;
