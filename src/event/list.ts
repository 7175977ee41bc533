/**
 * The list of events, newest first, instant on millions of rows: the narrowest index is walked, the other filters are applied to what
 * it yields, and one page looks at a bounded number of rows. A page may so be short and still have a next one.
 */

import { isId } from "../ground/id.ts";
import type { Page, PageRequest } from "../ground/page.ts";
import type { Reader } from "../store/port.ts";
import type { RowOf } from "../store/table.ts";
import { type Condition, endSeqUntil, equals, firstSeqSince, type Walk, walkPage } from "../store/walk.ts";
import type { EventState, EventTrigger } from "./event.ts";
import { type EventItem, SUMMARY, showSummary } from "./view.ts";
import { explainWaiting } from "./waiting.ts";

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

/** What is selected beside the summary. */
interface ListedRow {
  personEmail: string | null;
  /** How many. */
  warnings: number;
}

export async function listEvents(
  tx: Reader,
  environmentId: number,
  filter: EventFilter,
  page: PageRequest,
): Promise<Page<EventItem>> {
  const { index, led } = await planWalk(tx, environmentId, filter);
  const walk: Walk = {
    index,
    join: "LEFT JOIN person ON person.id = event.person_id",
    columns: `${SUMMARY.columnsOf("event")}, person.email AS personEmail, coalesce(json_array_length(event.warnings), 0) AS warnings`,
    key: "seq",
    led,
    fits: [
      equals("event.relay_name", filter.relay),
      equals("event.state", filter.state),
      equals("event.trigger", filter.trigger),
      since(filter.sinceMs),
      until(filter.untilMs),
      search(filter.q),
    ],
    ...(filter.q === undefined || filter.q === ""
      ? {}
      : { cost: "octet_length(event.payload) + coalesce(octet_length(event.preview), 0)" }),
  };
  const rows: (RowOf<typeof SUMMARY> & ListedRow)[] = [];
  const { items, next } = await walkPage<RowOf<typeof SUMMARY>, EventItem, ListedRow>(
    tx,
    SUMMARY,
    page,
    walk,
    (row) => {
      rows.push(row);
      return { ...showSummary(row, null), warnings: row.warnings };
    },
  );
  const waiting = await explainWaiting(tx, environmentId, rows);
  return {
    items: items.map((item, at) => ({ ...item, waits: waiting.get(rows[at]?.seq ?? 0) ?? null })),
    next,
  };
}

/** Chooses the index to walk and what leads it. A partial index is taken only where its own condition stands word for word. */
async function planWalk(
  tx: Reader,
  environmentId: number,
  filter: EventFilter,
): Promise<{ index: string; led: (Condition | undefined)[] }> {
  const led = [equals("event.environment_id", environmentId)];
  let index = "event_by_environment";
  if (filter.person !== undefined) {
    index = "event_by_person";
    led.push(equals("event.person_id", filter.person));
  } else if (filter.state === "failed" || filter.state === "dead") {
    index = "event_unhappy";
    led.push({ sql: "event.state IN ('failed', 'dead')", values: [] }, isState(filter.state));
  } else if (filter.state === "queued" || filter.state === "running") {
    index = "event_unfinished";
    led.push({ sql: "event.state IN ('queued', 'running')", values: [] }, isState(filter.state));
  } else if (filter.relay !== undefined) {
    index = "event_by_relay";
    led.push(equals("event.relay_name", filter.relay));
  }
  const { sinceMs, untilMs } = filter;
  if (sinceMs !== undefined)
    led.push({ sql: "event.seq >= ?", values: [await firstSeqSince(tx, "event", "evt", sinceMs)] });
  if (untilMs !== undefined)
    led.push({ sql: "event.seq < ?", values: [await endSeqUntil(tx, "event", "evt", untilMs)] });
  if (filter.q !== undefined && isId("evt", filter.q)) {
    const seq = await findSeq(tx, filter.q);
    if (seq !== null) led.push(equals("event.seq", seq));
  }
  return { index, led };
}

/** Written out, so that the planner sees that the index's own condition holds. */
function isState(state: EventState): Condition {
  return { sql: `event.state = '${state}'`, values: [] };
}

async function findSeq(tx: Reader, id: string): Promise<number | null> {
  return (await tx.get<{ seq: number }>("SELECT seq FROM event WHERE id = ?1", id))?.seq ?? null;
}

function since(ms: number | undefined): Condition | undefined {
  return ms === undefined ? undefined : { sql: "event.created_at >= ?", values: [ms] };
}

function until(ms: number | undefined): Condition | undefined {
  return ms === undefined ? undefined : { sql: "event.created_at < ?", values: [ms] };
}

/** `instr` looks at each place once; LIKE would try again from each place that begins alike. */
function search(q: string | undefined): Condition | undefined {
  if (q === undefined || q === "") return undefined;
  const found = (column: string) => `instr(lower(${column}), lower(?)) > 0`;
  return {
    sql: `(event.id = ? OR ${found("event.payload")} OR ${found("event.preview")})`,
    values: [q, q, q],
  };
}
