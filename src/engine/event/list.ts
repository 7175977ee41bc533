/**
 * Lists events, the newest first, fast on millions of rows. It walks the narrowest index and applies the other filters to its rows. One page reads a
 * bounded number of rows, so a page can be short and still have a next one.
 */

import { isId } from "../../base/id.ts";
import { writeJson } from "../../base/json.ts";
import type { Page, PageRequest } from "../../base/page.ts";
import { Refusal } from "../../base/refusal.ts";
import {
  type Condition,
  equals,
  readPage,
  type StepRequest,
  type Walk,
  walkPage,
} from "../../store/index-scan.ts";
import type { Reader, Store } from "../../store/port.ts";
import type { RowOf } from "../../store/table.ts";
import { endSeqUntil, firstSeqSince } from "../../store/time-index.ts";
import { EVENT_TRIGGERS, type EventState, type EventTrigger, findEventSeq } from "./event.ts";
import { newestSpan, OF_ENVIRONMENT } from "./number-range.ts";
import { addPreviews } from "./preview.ts";
import {
  type EventItem,
  type ListedEvent,
  SUMMARY,
  SUMMARY_JOIN,
  SUMMARY_TEXTS,
  type SummaryTexts,
  showSummary,
} from "./view.ts";
import { explainWaiting } from "./wait-reason.ts";

export interface EventFilter {
  /** Relay name. */
  relay?: string | undefined;
  state?: EventState | undefined;
  trigger?: EventTrigger | undefined;
  /** The code that the event failed with last, or `ANY_REASON`. */
  reason?: string | undefined;
  /** Person id. */
  person?: string | undefined;
  /** Milliseconds since the epoch, inclusive. */
  sinceMs?: number | undefined;
  /** Milliseconds since the epoch, exclusive. */
  untilMs?: number | undefined;
  /** An event id, or text anywhere in the payload, without regard to case in ASCII. */
  q?: string | undefined;
  /** A mapped name and the beginning of its value, `order:cs_live`, without regard to case in ASCII. */
  mapped?: string | undefined;
}

/** Matches every event with a reason: failed and dead events, and those that wait for a retry. */
export const ANY_REASON = "any";

/** The columns in addition to the summary. */
interface ListedRow extends SummaryTexts {
  /** The number of warnings. */
  warnings: number;
  /** The size of the payload. */
  bytes: number;
}

/** An item, and the size of the payload that its preview reads. */
interface FoundEvent {
  seq: number;
  bytes: number;
  item: ListedEvent;
}

/** Reads a full page with previews. */
export async function readEvents(
  store: Store,
  environmentId: number,
  filter: EventFilter,
  request: PageRequest,
  options: { steps?: number } = {},
): Promise<Page<EventItem>> {
  const step = (tx: Reader, part: StepRequest) => findEvents(tx, environmentId, filter, part);
  const { items, next } = await readPage(store, request, step, options);
  return { items: await addPreviews(store, items), next };
}

/** Reads one step of a page, without previews. */
export async function listEvents(
  tx: Reader,
  environmentId: number,
  filter: EventFilter,
  page: StepRequest,
): Promise<Page<ListedEvent>> {
  const { items, next } = await findEvents(tx, environmentId, filter, page);
  return { items: items.map(({ item }) => item), next };
}

async function findEvents(
  tx: Reader,
  environmentId: number,
  filter: EventFilter,
  page: StepRequest,
): Promise<Page<FoundEvent>> {
  const nameKey = filter.relay === undefined ? undefined : await findNameKey(tx, environmentId, filter.relay);
  if (nameKey === null) return { items: [], next: null };
  const named =
    filter.q !== undefined && isId("evt", filter.q) ? await findEventSeq(tx, environmentId, filter.q) : null;
  const { index, led, between, span } = await planWalk(tx, environmentId, filter, nameKey);
  if (named !== null) led.push(equals("event.seq", named));
  const q = named === null ? filter.q : undefined;
  const walk: Walk = {
    index,
    join: SUMMARY_JOIN,
    columns: `${SUMMARY.columnsOf("event")}, ${SUMMARY_TEXTS}, coalesce(json_array_length(event.warnings), 0) AS warnings, octet_length(event.payload) AS bytes`,
    key: "seq",
    led,
    between,
    ...(span === undefined || named !== null ? {} : { span }),
    fits: [
      equals("event.name_key", nameKey),
      equals("event.state", filter.state),
      equals("event.trigger", filter.trigger),
      failedWith(filter.reason),
      since(filter.sinceMs),
      until(filter.untilMs),
      search(q),
      searchMapped(filter.mapped),
    ],
    ...((q === undefined || q === "") && filter.mapped === undefined
      ? {}
      : { cost: "octet_length(event.payload) + coalesce(octet_length(event.preview), 0)" }),
  };
  const rows: (RowOf<typeof SUMMARY> & ListedRow)[] = [];
  const { items, next } = await walkPage<RowOf<typeof SUMMARY>, FoundEvent, ListedRow>(
    tx,
    SUMMARY,
    page,
    walk,
    (row) => {
      rows.push(row);
      const { seq, bytes, warnings } = row;
      return { seq, bytes, item: { ...showSummary(row, null), warnings } };
    },
  );
  const waiting = await explainWaiting(tx, environmentId, rows);
  return {
    items: items.map((found) => ({
      ...found,
      item: { ...found.item, waits: waiting.get(found.seq) ?? null },
    })),
    next,
  };
}

/** Chooses the index to walk and the conditions on its first columns. A partial index needs its own condition word for word. */
async function planWalk(
  tx: Reader,
  environmentId: number,
  { person, state, trigger, sinceMs, untilMs }: EventFilter,
  nameKey: number | undefined,
): Promise<Pick<Walk, "index" | "span"> & { led: (Condition | undefined)[]; between: [number, number] }> {
  const above = sinceMs === undefined ? 0 : await firstSeqSince(tx, "event", sinceMs);
  const below = untilMs === undefined ? Number.MAX_SAFE_INTEGER : await endSeqUntil(tx, "event", untilMs);
  const between: [number, number] = [above, below];
  const inEnvironment = equals("event.environment_id", environmentId);
  if (person !== undefined)
    return { index: "event_of_person", led: [equals("event.person_id", person), inEnvironment], between };
  if (state === "failed" || state === "dead") {
    const unhappy = { sql: "event.state IN ('failed', 'dead')", values: [] };
    return { index: "event_unhappy", led: [inEnvironment, unhappy, isState(state)], between };
  }
  if (state === "queued" || state === "running") {
    const unfinished = { sql: "event.state IN ('queued', 'running')", values: [] };
    return { index: "event_unfinished", led: [inEnvironment, unfinished, isState(state)], between };
  }
  const rare = nameKey === undefined ? leadOfTrigger(trigger) : null;
  if (rare !== null)
    return { index: "event_of_trigger", led: [inEnvironment, { sql: rare, values: [] }], between };
  const index = "event_of_relay";
  if (nameKey !== undefined) return { index, led: [equals("event.name_key", nameKey)], between };
  return {
    index,
    led: [{ sql: OF_ENVIRONMENT, values: [environmentId] }],
    between,
    span: (before, most) => newestSpan(tx, environmentId, { above, below: before }, most),
  };
}

/** The value is part of the text, so that the planner sees that the partial index applies. */
function isState(state: EventState): Condition {
  return { sql: `event.state = '${state}'`, values: [] };
}

/** Returns the condition for `event_of_trigger`, which holds all events but those of receivers; null if the index does not hold the trigger. */
export function leadOfTrigger(trigger: string | null | undefined): string | null {
  const known = EVENT_TRIGGERS.find((one) => one === trigger && one !== "receiver");
  return known === undefined ? null : `event.trigger <> 'receiver' AND event.trigger = '${known}'`;
}

/** Finds the key of a relay name on events; null if no relay ever had the name. */
export async function findNameKey(tx: Reader, environmentId: number, name: string): Promise<number | null> {
  const sql = "SELECT key FROM relay_name WHERE environment_id = ?1 AND name = ?2";
  return (await tx.get<{ key: number }>(sql, environmentId, name))?.key ?? null;
}

function failedWith(reason: string | undefined): Condition | undefined {
  return reason === ANY_REASON
    ? { sql: "event.reason IS NOT NULL", values: [] }
    : equals("event.reason", reason);
}

function since(ms: number | undefined): Condition | undefined {
  return ms === undefined ? undefined : { sql: "event.created_at >= ?", values: [ms] };
}

function until(ms: number | undefined): Condition | undefined {
  return ms === undefined ? undefined : { sql: "event.created_at < ?", values: [ms] };
}

/** Uses `instr`, which reads a text once. LIKE starts again at every position that begins like the pattern. */
function search(q: string | undefined): Condition | undefined {
  if (q === undefined || q === "") return undefined;
  const found = (column: string) => `instr(lower(${column}), lower(?)) > 0`;
  const spellings = listSpellings(q);
  return {
    sql: `(${spellings.map(() => `${found("event.payload")} OR ${found("event.preview")}`).join(" OR ")})`,
    values: spellings.flatMap((one) => [one, one]),
  };
}

/** Lists the spellings of a text in JSON: senders escape more or less than JSON requires, and a payload is stored as received. */
function listSpellings(text: string): string[] {
  const json = writeJson(text).slice(1, -1);
  const ascii = json.replace(
    /[^\0-\x7f]/g,
    (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
  const slashed = [json, ascii].map((one) => one.replaceAll("/", "\\/"));
  return [...new Set([text, json, ascii, ...slashed])];
}

/** Refuses with `invalid_input`. The text search comes first, because it saves parsing payloads that cannot match. */
function searchMapped(mapped: string | undefined): Condition | undefined {
  if (mapped === undefined) return undefined;
  const [, name = "", value = ""] = /^([A-Za-z0-9_]{1,64}):(.*)$/s.exec(mapped) ?? [];
  if (name === "" || value === "")
    throw new Refusal(
      "invalid_input",
      "mapped is not valid: write a mapped name and what its value begins with, such as order:cs_live.",
    );
  const plain = /^[\w.@:+ -]*$/.test(value) ? value : "";
  return {
    sql: `(instr(lower(event.payload), lower(?)) > 0 AND EXISTS (SELECT 1 FROM json_each(event.payload, '$.mapped') AS one
      WHERE one.key = ? AND substr(lower(CASE WHEN one.type IN ('true', 'false') THEN one.type ELSE one.value END), 1, ?) = lower(?)))`,
    values: [plain, name, [...value].length, value],
  };
}
