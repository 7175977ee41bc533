/**
 * The list of events, newest first, instant on millions of rows: the narrowest index is walked, the other filters are applied to what
 * it yields, and one page looks at a bounded number of rows. A page may so be short and still have a next one.
 */
import { toIso, toIsoOrNull } from "../ground/clock.ts";
import { isId } from "../ground/id.ts";
import { makeCursor, type Page, type PageRequest } from "../ground/page.ts";
import { Refusal } from "../ground/refusal.ts";
import type { Reader, SqlValue } from "../store/port.ts";
import type { EventState, EventTrigger } from "./event-row.ts";
import { endSeqUntil, firstSeqSince } from "./event-time.ts";

export interface EventFilter {
  /** Relay name. */
  relay?: string | undefined;
  state?: EventState | undefined;
  trigger?: EventTrigger | undefined;
  /** Person id. */
  person?: string | undefined;
  /** Milliseconds since the epoch, inclusive. */
  sinceMs?: number | undefined;
  /** Milliseconds since the epoch, exclusive. */
  untilMs?: number | undefined;
  /** An event id, or text anywhere in the payload, without regard to case in ASCII. */
  q?: string | undefined;
}

/** An event as lists show it: everything but its payload and runs. */
export interface EventItem {
  id: string;
  relay: { id: string; name: string };
  trigger: EventTrigger;
  state: EventState;
  reason: string | null;
  attempts: number;
  nextAttemptAt: string | null;
  person: { id: string; email: string | null } | null;
  truncated: boolean;
  warnings: number;
  createdAt: string;
  finishedAt: string | null;
}

/** Rows looked at for one page at most. */
const MAX_LOOKED_AT = 4_000;

interface ListRow {
  seq: number;
  id: string;
  relayId: string;
  relayName: string;
  trigger: EventTrigger;
  state: EventState;
  reason: string | null;
  attempts: number;
  nextAttemptAt: number | null;
  personId: string | null;
  personEmail: string | null;
  truncated: number;
  warnings: number;
  createdAt: number;
  finishedAt: number | null;
}

export async function listEvents(
  tx: Reader,
  environmentId: number,
  filter: EventFilter,
  page: PageRequest,
): Promise<Page<EventItem>> {
  const walk = await planWalk(tx, environmentId, filter, page);
  const looked = await tx.get<{ count: number; last: number | null }>(
    `SELECT count(*) AS count, min(seq) AS last FROM (SELECT seq FROM event ${walk.index} WHERE ${walk.where} ORDER BY seq DESC LIMIT ${MAX_LOOKED_AT})`,
    ...walk.values,
  );
  const floor = looked?.last ?? null;
  if (looked === null || floor === null) return { items: [], next: null };
  const rest = restOf(filter, walk.values.length + 1);
  const rows = await tx.all<ListRow>(
    `SELECT event.seq, event.id, event.relay_id AS relayId, event.relay_name AS relayName, event.trigger, event.state, event.reason, event.attempts,
       event.next_attempt_at AS nextAttemptAt, event.person_id AS personId, person.email AS personEmail, event.truncated,
       coalesce(json_array_length(event.warnings), 0) AS warnings, event.created_at AS createdAt, event.finished_at AS finishedAt
     FROM event ${walk.index} LEFT JOIN person ON person.id = event.person_id
     WHERE ${walk.where.replaceAll(/\b(environment_id|relay_name|person_id|state|seq)\b/g, "event.$1")} AND event.seq >= ?${walk.values.length + 1} ${rest.where}
     ORDER BY event.seq DESC LIMIT ${page.limit + 1}`,
    ...walk.values,
    floor,
    ...rest.values,
  );
  const shown = rows.slice(0, page.limit);
  const lastShown = shown.at(-1);
  const next =
    rows.length > page.limit && lastShown !== undefined
      ? lastShown.seq
      : looked.count === MAX_LOOKED_AT
        ? floor
        : null;
  return { items: shown.map(toItem), next: next === null ? null : makeCursor(String(next)) };
}

interface Walk {
  index: string;
  where: string;
  values: SqlValue[];
}

/** Chooses the index to walk and its bounds. A partial index is taken only where its own condition stands word for word. */
async function planWalk(
  tx: Reader,
  environmentId: number,
  filter: EventFilter,
  page: PageRequest,
): Promise<Walk> {
  const values: SqlValue[] = [environmentId];
  const where = ["environment_id = ?1"];
  const bind = (value: SqlValue): string => `?${values.push(value)}`;
  let index = "INDEXED BY event_by_environment";
  if (filter.person !== undefined) {
    index = "INDEXED BY event_by_person";
    where.push(`person_id = ${bind(filter.person)}`);
  } else if (filter.state === "failed" || filter.state === "dead") {
    index = "INDEXED BY event_unhappy";
    where.push("state IN ('failed', 'dead')", `state = '${filter.state}'`);
  } else if (filter.state === "queued" || filter.state === "running") {
    index = "INDEXED BY event_unfinished";
    where.push("state IN ('queued', 'running')", `state = '${filter.state}'`);
  } else if (filter.relay !== undefined) {
    index = "INDEXED BY event_by_relay";
    where.push(`relay_name = ${bind(filter.relay)}`);
  }
  if (page.after !== null) where.push(`seq < ${bind(readAfter(page.after))}`);
  if (filter.sinceMs !== undefined) where.push(`seq >= ${bind(await firstSeqSince(tx, filter.sinceMs))}`);
  if (filter.untilMs !== undefined) where.push(`seq < ${bind(await endSeqUntil(tx, filter.untilMs))}`);
  if (filter.q !== undefined && isId("evt", filter.q)) {
    const seq = await findSeq(tx, filter.q);
    if (seq !== null) where.push(`seq = ${bind(seq)}`);
  }
  return { index, where: where.join(" AND "), values };
}

function readAfter(after: string): number {
  const seq = Number(after);
  if (Number.isSafeInteger(seq)) return seq;
  throw new Refusal(
    "invalid_input",
    "cursor is not one of this list: use the next value of the page before.",
  );
}

async function findSeq(tx: Reader, id: string): Promise<number | null> {
  return (await tx.get<{ seq: number }>("SELECT seq FROM event WHERE id = ?1", id))?.seq ?? null;
}

function restOf(filter: EventFilter, taken: number): { where: string; values: SqlValue[] } {
  const values: SqlValue[] = [];
  const where: string[] = [];
  const bind = (value: SqlValue): string => `?${taken + values.push(value)}`;
  if (filter.relay !== undefined) where.push(`event.relay_name = ${bind(filter.relay)}`);
  if (filter.state !== undefined) where.push(`event.state = ${bind(filter.state)}`);
  if (filter.trigger !== undefined) where.push(`event.trigger = ${bind(filter.trigger)}`);
  if (filter.sinceMs !== undefined) where.push(`event.created_at >= ${bind(filter.sinceMs)}`);
  if (filter.untilMs !== undefined) where.push(`event.created_at < ${bind(filter.untilMs)}`);
  if (filter.q !== undefined && filter.q !== "") {
    const text = bind(`%${filter.q.replaceAll(/[\\%_]/g, "\\$&")}%`);
    where.push(
      `(event.id = ${bind(filter.q)} OR event.payload LIKE ${text} ESCAPE '\\' OR event.preview LIKE ${text} ESCAPE '\\')`,
    );
  }
  return { where: where.map((part) => `AND ${part}`).join(" "), values };
}

function toItem(row: ListRow): EventItem {
  return {
    id: row.id,
    relay: { id: row.relayId, name: row.relayName },
    trigger: row.trigger,
    state: row.state,
    reason: row.reason,
    attempts: row.attempts,
    nextAttemptAt: toIsoOrNull(row.nextAttemptAt),
    person: row.personId === null ? null : { id: row.personId, email: row.personEmail },
    truncated: row.truncated === 1,
    warnings: row.warnings,
    createdAt: toIso(row.createdAt),
    finishedAt: toIsoOrNull(row.finishedAt),
  };
}
