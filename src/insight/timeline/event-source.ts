/**
 * The list of the timeline that holds the person's events. The text of an event, with its preview and its failure, is read only for the events of
 * the page.
 */

import { MAX_ATTEMPTS } from "../../base/limit.ts";
import { type EventState, eventIdOf, RELAY_NAME } from "../../engine/event/event.ts";
import { addPreviews } from "../../engine/event/preview.ts";
import { RUN_RESULTS } from "../../engine/event/run.ts";
import type { Reader, Store } from "../../store/port.ts";
import type { TimelineItem } from "./item.ts";
import type { Source } from "./merge.ts";
import { formatCode, lineOf } from "./sentence.ts";
import {
  EVENT_SHOWN,
  type EventShown,
  type TimelineDraft,
  type TimelineScope,
  walkSource,
} from "./source.ts";

const LOOKS = {
  queued: "waiting",
  running: "waiting",
  done: "done",
  failed: "failed",
  dead: "dead",
} as const;
const TRIGGERS = { receiver: "A call", schedule: "A tick", data_change: "A record change" } as const;
/** Bytes of results that are read of one run, and for one page. */
const MAX_RUN_BYTES = 32 * 1024;
const MAX_PAGE_RUN_BYTES = 256 * 1024;

export function eventSource(tx: Reader, at: TimelineScope): Source<TimelineDraft> {
  return walkSource<EventShown>(tx, at, {
    name: "event",
    keys: "number",
    sql: `SELECT ${EVENT_SHOWN.columnsOf("event")}, ${RELAY_NAME}, octet_length(payload) AS bytes
      FROM event INDEXED BY event_of_person
      WHERE person_id = $personId AND environment_id = $environmentId AND seq <= $from ORDER BY seq DESC LIMIT $most`,
    toEntry(row) {
      const id = eventIdOf(row);
      return {
        key: row.seq,
        at: row.createdAt,
        item: {
          id: `event:${id}`,
          kind: "event",
          atMs: row.createdAt,
          sentence: "",
          detail: null,
          look: LOOKS[row.state],
          thing: { kind: "event", id, collection: null },
          relay: row.relayName,
          eventId: id,
          event: row,
        },
      };
    },
  });
}

/** Formats the events among the items: what each is about, its state, and why. */
export async function describeEvents(
  store: Store,
  items: readonly TimelineDraft[],
): Promise<ReadonlyMap<string, Words>> {
  const events = items.flatMap(({ event }) => (event === undefined ? [] : [event]));
  const found = events.map((row) => ({ seq: row.seq, bytes: row.bytes, item: { person: row, row } }));
  const previews = await addPreviews(store, found);
  const why = await store.read((tx) => findReasons(tx, events));
  return new Map(
    previews.map(({ row, eventType, preview }) => {
      const about = eventType ?? TRIGGERS[row.trigger];
      const found = why.get(row.seq);
      const skipped = row.state === "done" && found !== undefined ? `, ${found.type} skipped` : "";
      const sentence = `${about} at ${row.relayName}: ${formatState(row)}${skipped}`;
      const code = row.state === "done" || row.reason === null ? null : formatCode(row.reason);
      const detail = found === undefined ? (code ?? preview) : `${found.type}: ${found.why}`;
      return [`event:${eventIdOf(row)}`, { sentence, detail: lineOf(detail) }];
    }),
  );
}
type Words = Pick<TimelineItem, "sentence" | "detail">;

const FINAL_WORDS: Readonly<Record<Exclude<EventState, "queued">, string>> = {
  running: "running now",
  done: "done",
  failed: "failed, nothing ran",
  dead: "dead, not retried automatically",
};

function formatState({ state, attempts, reason }: EventShown): string {
  if (state !== "queued") return FINAL_WORDS[state];
  if (attempts === 0) return "waits for its turn";
  const how = reason === "interrupted" ? "interrupted" : "failed";
  return `${how}, will be retried (attempt ${attempts} of ${MAX_ATTEMPTS})`;
}

interface Reason {
  type: string;
  why: string;
}

/** Finds for each event what its last attempt failed at, or which action it skipped and why. Reads only as many bytes as a page may. */
async function findReasons(tx: Reader, events: readonly EventShown[]): Promise<ReadonlyMap<number, Reason>> {
  const found = new Map<number, Reason>();
  let left = MAX_PAGE_RUN_BYTES;
  for (const { seq, state, attempts } of events) {
    if ((state === "queued" && attempts === 0) || left <= 0) continue;
    const run = await tx.get<{ results: string | null }>(
      `SELECT CASE WHEN octet_length(results) <= $most THEN results END AS results FROM run
       WHERE event_seq = $seq ORDER BY number DESC LIMIT 1`,
      { seq, most: Math.min(left, MAX_RUN_BYTES) },
    );
    const text = run?.results ?? null;
    if (text === null) continue;
    left -= text.length;
    const { results } = RUN_RESULTS.read({ results: text });
    // An action that an earlier attempt did is skipped without a message.
    const result =
      state === "done"
        ? results.find(({ outcome, message }) => outcome === "skipped" && message !== undefined)
        : results.findLast(({ outcome }) => outcome === "failed");
    if (result === undefined) continue;
    found.set(seq, { type: result.type, why: result.message ?? formatCode(result.code ?? "failed") });
  }
  return found;
}
