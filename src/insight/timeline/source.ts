/** Defines the parts that the timeline's lists have in common. Each list walks an index of the person's own rows, newest first. */
import { EVENT } from "../../engine/event/event.ts";
import type { Reader } from "../../store/port.ts";
import type { RowOf } from "../../store/table.ts";
import type { TimelineItem } from "./item.ts";
import type { Entry, Source } from "./merge.ts";

/** The person of the timeline, the environment, and the current time. All lists are read in one transaction. */
export interface TimelineScope {
  environmentId: number;
  personId: string;
  nowMs: number;
}

export const EVENT_SHOWN = EVENT.pick(
  "seq",
  "formerId",
  "trigger",
  "state",
  "reason",
  "attempts",
  "createdAt",
);
export type EventShown = RowOf<typeof EVENT_SHOWN> & { relayName: string; bytes: number };

/** An item of a list. The text of an event is formatted once the event is on the page. */
export type TimelineDraft = Omit<TimelineItem, "at"> & { atMs: number; event?: EventShown };

/** SQL condition for the person's own rows. */
export const OF_PERSON = "person_id = $personId AND environment_id = $environmentId";

/** A query for the rows of a list from a key on. */
interface Walk<Row> {
  name: string;
  keys: "number" | "text";
  /** A `SELECT` with the key as `$from` and the limit as `$most`. */
  sql: string;
  toEntry(row: Row): Entry<TimelineDraft>;
}

/** A key higher than any other, because an id begins with a letter. */
export const NEWEST = { number: Number.MAX_SAFE_INTEGER, text: "~" };

export function walkSource<Row>(
  tx: Reader,
  { environmentId, personId }: TimelineScope,
  { name, keys, sql, toEntry }: Walk<Row>,
): Source<TimelineDraft> {
  return {
    name,
    keys,
    async read(from, most) {
      const values = { environmentId, personId, from: from ?? NEWEST[keys], most };
      return (await tx.all<Row>(sql, values)).map(toEntry);
    },
  };
}
