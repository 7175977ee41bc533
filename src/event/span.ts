/**
 * Where an environment's next events lie among the numbers of all: no index leads from an environment to its events, because each event would
 * have to be written into it. Each of its relays' names leads to its own, so a span of numbers is found that holds some of them and not too many,
 * wherever they lie and however many names there are.
 */
import type { Reader } from "../store/port.ts";

/** Numbers from `from` to before `to`. `ended`: none of the environment's lies beyond, in the direction that was looked in. */
interface Span {
  from: number;
  to: number;
  ended: boolean;
}

/** A span that was too narrow is followed by one so much wider. */
const WIDER = 4;

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
  let from = to;
  for (let width = most; from > first; width *= WIDER) {
    const wider = Math.max(first, to - width);
    const count = await countIn(tx, environmentId, wider, to, most);
    if (count > most) break;
    from = wider;
    if (count * WIDER > most) break;
  }
  return { from, to, ended: from <= first };
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
  let to = from;
  for (let width = most; to < end; width *= WIDER) {
    const wider = Math.min(end, from + width);
    const count = await countIn(tx, environmentId, from, wider, most);
    if (count > most) break;
    to = wider;
    if (count * WIDER > most) break;
  }
  return { from, to, ended: to >= end };
}

const NEWEST = `SELECT max(head) AS seq, (SELECT min(seq) FROM event) AS first FROM (
    SELECT (SELECT max(seq) FROM event INDEXED BY event_of_relay WHERE name_key = relay_name.key AND seq >= $above AND seq < $below) AS head
    FROM relay_name WHERE environment_id = $environmentId)`;
const OLDEST = `SELECT min(head) AS seq, (SELECT max(seq) FROM event) AS last FROM (
    SELECT (SELECT min(seq) FROM event INDEXED BY event_of_relay WHERE name_key = relay_name.key AND seq > $after) AS head
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
