/**
 * Where an environment's next events lie among the numbers of all: no index leads from an environment to its events, because each event would
 * have to be written into it. Each of its relays' names leads to its own, so a span of numbers is found that holds some of them and not too many,
 * wherever they lie and however many names there are.
 */
import type { Reader } from "../../store/port.ts";

/** Numbers from `from` to before `to`. `ended`: none of the environment's lies beyond, in the direction that was looked in. */
interface Span {
  from: number;
  to: number;
  ended: boolean;
}

/** No span is asked for more: whoever is led to its rows from several names at once takes no more from each. */
export const MAX_SPAN = 2_000;
/** A span that was too narrow is followed by one so much wider. */
const LEAP = 4;

/** Holds for the environment's events, and leads through `event_of_relay`. One value: the environment. */
export const OF_ENVIRONMENT = "event.name_key IN (SELECT key FROM relay_name WHERE environment_id = ?)";

/** The newest events with numbers from `above` to before `below`: at least one and at most `most`; null: there is none. */
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
  const width = await widen(most, to - first, (wide) => countIn(tx, environmentId, to - wide, to, most));
  return { from: to - width, to, ended: to - width <= first };
}

/** As `newestSpan`, of the oldest events after `after`. */
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
  const width = await widen(most, end - from, (wide) => countIn(tx, environmentId, from, from + wide, most));
  return { from, to: from + width, ended: from + width >= end };
}

/** A width up to `widest` that holds `most` rows or a few less: by leaps, and halving once one was too long. */
async function widen(
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
    width = tooMany <= widest ? Math.floor((fits + tooMany) / 2) : Math.min(widest, width * LEAP);
  }
}

const NEWEST = `SELECT max(head) AS seq, (SELECT min(seq) FROM event) AS first FROM (
    SELECT (SELECT seq FROM event INDEXED BY event_of_relay WHERE name_key = relay_name.key AND seq >= $above AND seq < $below ORDER BY seq DESC LIMIT 1) AS head
    FROM relay_name WHERE environment_id = $environmentId)`;
const OLDEST = `SELECT min(head) AS seq, (SELECT max(seq) FROM event) AS last FROM (
    SELECT (SELECT seq FROM event INDEXED BY event_of_relay WHERE name_key = relay_name.key AND seq > $after ORDER BY seq LIMIT 1) AS head
    FROM relay_name WHERE environment_id = $environmentId)`;

/** Counts to one more than `most`. */
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
