/** Where a person's story comes from: lists of the person's own rows, each walked by an index that leads to them, newest first. */
import { EVENT } from "../../engine/event/event.ts";
import type { Reader } from "../../store/port.ts";
import type { RowOf } from "../../store/table.ts";
import type { TimelineItem } from "./item.ts";
import type { Entry, Source } from "./merge.ts";

/** Whose story, and where; every list is read in one transaction. */
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

/** An item; an event's words are found once it is chosen. */
export type TimelineDraft = Omit<TimelineItem, "at"> & { atMs: number; event?: EventShown };

/** Holds for the person's own rows. */
export const OF_PERSON = "person_id = $personId AND environment_id = $environmentId";

/** Rows of a list from a key on. */
interface Walk<Row> {
  name: string;
  keys: "number" | "text";
  /** `SELECT …` up to the key and the limit, which stand as `$from` and `$most`. */
  sql: string;
  toEntry(row: Row): Entry<TimelineDraft>;
}

/** Higher than any key: an id begins with a letter. */
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
