/**
 * Finds a span of event numbers that holds some of an environment's events, but not too many. No index holds an environment's events, because it
 * would cost a write for each event. The index by relay name does, so the span is widened or halved until its count fits.
 */
import type { Reader } from "../../store/port.ts";

/** Numbers from `from` to before `to`. `ended`: the environment has no further event in the direction of the search. */
interface Span {
  from: number;
  to: number;
  ended: boolean;
}

/** The largest span. A query that reads through several relay names takes at most so many rows of each. */
export const MAX_SPAN = 2_000;
/** The factor by which the next span is wider after one that was too narrow. */
const GROWTH = 4;

/** The condition for an environment's events, which uses the index `event_of_relay`. Its value is the environment's id. */
export const OF_ENVIRONMENT = "event.name_key IN (SELECT key FROM relay_name WHERE environment_id = ?)";

/** Finds a span of 1 to `most` of the newest events with numbers from `above` to before `below`; null if there is none. */
export async function newestSpan(
  tx: Reader,
  environmentId: number,
  { above, below }: { above: number; below: number },
  most: number,
): Promise<Span | null> {
  const head = await tx.get<{ seq: number | null; first: number }>(NEWEST, { environmentId, above, below });
  if (head === null || head.seq === null) return null;
  const to = head.seq + 1;
  const first = Math.max(above, head.first);
  const width = await findWidth(most, to - first, (wide) => countIn(tx, environmentId, to - wide, to, most));
  return { from: to - width, to, ended: to - width <= first };
}

/** Finds a span of 1 to `most` of the oldest events after the number `after`; null if there is none. */
export async function oldestSpan(
  tx: Reader,
  environmentId: number,
  after: number,
  most: number,
): Promise<Span | null> {
  const head = await tx.get<{ seq: number | null; last: number }>(OLDEST, { environmentId, after });
  if (head === null || head.seq === null) return null;
  const from = head.seq;
  const end = head.last + 1;
  const width = await findWidth(most, end - from, (wide) =>
    countIn(tx, environmentId, from, from + wide, most),
  );
  return { from, to: from + width, ended: from + width >= end };
}

/** Finds a width up to `widest` that holds `most` rows or slightly fewer: it grows until it holds too many, then halves. */
async function findWidth(
  most: number,
  widest: number,
  count: (width: number) => Promise<number>,
): Promise<number> {
  if (most > MAX_SPAN)
    throw new Error(`A span of ${most} rows was asked for, and none holds more than ${MAX_SPAN}.`);
  let [fits, tooMany] = [0, widest + 1];
  let width = Math.min(most, widest);
  for (;;) {
    const held = await count(width);
    if (held > most) tooMany = width;
    else fits = width;
    if (fits === widest || tooMany - fits <= 1 || (held <= most && held * 8 >= most * 7)) return fits;
    width = tooMany <= widest ? Math.floor((fits + tooMany) / 2) : Math.min(widest, width * GROWTH);
  }
}

const NEWEST = `SELECT max(head) AS seq, (SELECT min(seq) FROM event) AS first FROM (
    SELECT (SELECT seq FROM event INDEXED BY event_of_relay WHERE name_key = relay_name.key AND seq >= $above AND seq < $below ORDER BY seq DESC LIMIT 1) AS head
    FROM relay_name WHERE environment_id = $environmentId)`;
const OLDEST = `SELECT min(head) AS seq, (SELECT max(seq) FROM event) AS last FROM (
    SELECT (SELECT seq FROM event INDEXED BY event_of_relay WHERE name_key = relay_name.key AND seq > $after ORDER BY seq LIMIT 1) AS head
    FROM relay_name WHERE environment_id = $environmentId)`;

/** Counts up to one more than `most`. */
async function countIn(
  tx: Reader,
  environmentId: number,
  from: number,
  to: number,
  most: number,
): Promise<number> {
  const row = await tx.get<{ count: number }>(
    `SELECT count(*) AS count FROM (SELECT 1 FROM relay_name CROSS JOIN event INDEXED BY event_of_relay ON event.name_key = relay_name.key
       WHERE relay_name.environment_id = $environmentId AND event.seq >= $from AND event.seq < $to LIMIT $most)`,
    { environmentId, from, to, most: most + 1 },
  );
  return row?.count ?? 0;
}
