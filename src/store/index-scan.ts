/**
 * Reads lists at a bounded cost, however many rows a table holds. A step walks an index from the newest row on and looks at a bounded number of rows
 * and bytes. The next step continues from a cursor. The event loop runs between two steps, so that no list blocks a receiver.
 */

import { systemClock } from "../base/clock.ts";
import {
  makeCursor,
  makeNameKey,
  makePage,
  type Page,
  type PageRequest,
  parseNameKey,
  readCursor,
  readSeq,
} from "../base/page.ts";
import type { Reader, SqlNames, SqlValue, Store } from "./port.ts";

/** Rows that one step looks at if `span` bounds it, because most of these rows are adjacent on the disk. */
const MAX_LOOKED_AT = 500;
/** Rows that one step looks at otherwise. Each can be on its own page, which takes a tenth of a millisecond to read from the disk. */
const MAX_APART = 100;
/** Rows that one step looks at if another process (the PostgreSQL server) does the work, which does not block this event loop. */
const MAX_ELSEWHERE = 1_000;
/** Bytes that one step searches, or parses and writes into the response. */
const MAX_STEP_BYTES = 256 * 1024;
/** Steps of one page. They bound the cost of a search that finds nothing. */
const MAX_STEPS = 50;
const MAX_STEPS_ELSEWHERE = 6;
/** Milliseconds of blocked event loop after which a page ends. A row that is only on the disk costs a hundred times as much as a cached one. */
const MAX_HELD_MS = 6;

/** A part of a WHERE clause. Each `?` in its text takes the next of its values. */
export interface Condition {
  sql: string;
  values: readonly SqlValue[];
}

/** A table to list, or some of its columns. */
interface Listed<Row> {
  name: string;
  columns: string;
  read(stored: object): Row;
}

export interface Walk {
  index: string;
  /** The column that orders the list. It is unique, and the newest row has the highest value. */
  key: "id" | "seq";
  /** Conditions on the index's leading columns. The index yields no row that fails them. */
  led: readonly (Condition | undefined)[];
  /** Bounds of the key: from the first, included, to the second, excluded. */
  between?: readonly [above: number, below: number];
  /** Conditions that each row of the index is checked against. */
  fits?: readonly (Condition | undefined)[];
  /**
   * Bounds a step further than `led` does: at most `most` rows are between `from` and `before`. `ended` means that none is below `from`. Null means
   * that no row is left.
   */
  span?: (before: number, most: number) => Promise<{ from: number; ended: boolean } | null>;
  /** An SQL expression for the bytes that looking at a row reads. */
  cost?: string;
  /** A JOIN for the rows of the result only. */
  join?: string;
  /** Columns to select instead of the table's own. They must include those. */
  columns?: string;
}

/** Returns `column = value`, or undefined if `value` is undefined. */
export function equals(column: string, value: SqlValue | undefined): Condition | undefined {
  return value === undefined ? undefined : { sql: `${column} = ?`, values: [value] };
}

/** A request for one step. `look` is the number of rows to look at. The default is a number that is quick even if every row is on its own page. */
export interface StepRequest extends PageRequest {
  look?: number;
}

/** Takes one step of a list. The page can be short or empty and still have a next one. */
export async function walkPage<Row, Item, More = unknown>(
  tx: Reader,
  table: Listed<Row>,
  request: StepRequest,
  walk: Walk,
  toItem: (row: Row & More) => Item,
): Promise<Page<Item>> {
  const { limit } = request;
  const key = `${table.name}.${walk.key}`;
  const from = `${table.name} INDEXED BY ${walk.index}`;
  const after = walk.key === "seq" ? readSeq(request.after) : request.after;
  const fits = (walk.fits ?? []).filter((one) => one !== undefined);
  const most =
    fits.length === 0 ? limit + 1 : (request.look ?? (walk.span === undefined ? MAX_APART : MAX_LOOKED_AT));
  const [above, below] = walk.between ?? [null, null];
  const upper = after === null || below === null ? (after ?? below) : Math.min(Number(after), below);
  const span = await walk.span?.(Number(upper ?? Number.MAX_SAFE_INTEGER), most);
  if (span === null) return { items: [], next: null };
  // Uses one bound on each side. With two, the index scan begins or ends at the first, even if the second excludes more rows.
  const within = (lower: SqlValue): Condition[] => [
    ...walk.led.filter((one) => one !== undefined),
    ...(upper === null ? [] : [{ sql: `${key} < ?`, values: [upper] }]),
    ...(lower === null ? [] : [{ sql: `${key} >= ?`, values: [lower] }]),
  ];
  const lower = span?.from ?? above;
  const led = within(lower);
  // A walk without a cost needs only the last row of the step. OFFSET skips the others inside the index.
  const { cost } = walk;
  const looked = await tx.all<LookedAt>(
    `SELECT ${key} AS key, ${cost ?? "0"} AS cost FROM ${from} WHERE ${textOf(led)} ORDER BY ${key} DESC
     LIMIT ${cost === undefined ? `1 OFFSET ${most - 1}` : most}`,
    ...valuesOf(led),
  );
  const { floor, ended } = reach(looked, cost === undefined ? 1 : most);
  if (floor === null && cost !== undefined) return { items: [], next: null };
  // Bounds the scan on both ends, so that the planner of PostgreSQL knows that few rows are between them.
  const top = fits.length === 0 || upper !== null ? null : await newest(tx, from, key, led);
  const ending = top === null ? [] : [{ sql: `${key} <= ?`, values: [top] }];
  const asked = [...within(floor ?? lower), ...ending, ...fits];
  const rows = await tx.all<{ walkKey: string | number }>(
    `SELECT ${walk.columns ?? table.columns}, ${key} AS walkKey FROM ${from} ${walk.join ?? ""}
     WHERE ${textOf(asked)} ORDER BY ${key} DESC LIMIT ${limit + 1}`,
    ...valuesOf(asked),
  );
  const page = makePage(
    rows,
    { limit, after: null },
    (row) => row.walkKey,
    ({ walkKey: _, ...row }) => toItem(table.read(row) as Row & More),
  );
  if (page.next !== null) return page;
  const left = !ended && floor !== null ? floor : span?.ended === false ? span.from : null;
  return { items: page.items, next: left === null ? null : makeCursor(String(left)) };
}

async function newest(
  tx: Reader,
  from: string,
  key: string,
  led: readonly Condition[],
): Promise<string | number | null> {
  const sql = `SELECT ${key} AS key FROM ${from} WHERE ${textOf(led)} ORDER BY ${key} DESC LIMIT 1`;
  return (await tx.get<{ key: string | number }>(sql, ...valuesOf(led)))?.key ?? null;
}

/** A row that a step can take: its key and its cost in bytes. */
export interface LookedAt {
  key: string | number;
  cost: number | null;
}

/**
 * Returns the last row that fits into one step's bytes, at least the first. `ended` means that there were fewer than `most` rows, so that none is
 * left.
 */
export function reach(
  looked: readonly LookedAt[],
  most: number,
): { floor: string | number | null; ended: boolean } {
  let bytes = 0;
  let floor: string | number | null = null;
  for (const { key, cost } of looked) {
    bytes += cost ?? 0;
    if (bytes > MAX_STEP_BYTES && floor !== null) return { floor, ended: false };
    floor = key;
  }
  return { floor, ended: looked.length < most };
}

function textOf(conditions: readonly Condition[]): string {
  let number = 0;
  return conditions.map(({ sql }) => sql.replaceAll("?", () => `?${++number}`)).join(" AND ");
}

function valuesOf(conditions: readonly Condition[]): SqlValue[] {
  return conditions.flatMap(({ values }) => values);
}

/** Returns a page of rows that a name identifies, newest first and then by name. `environmentId` is null if `which` does not use it. */
export async function pageByName<Name extends string, Row extends Named<Name>, Item>(
  tx: Reader,
  table: { all(tx: Reader, rest: string, values: SqlNames): Promise<Row[]> },
  name: Name,
  environmentId: number | null,
  request: PageRequest,
  toItem: (row: Row) => Item,
  which = "environment_id = $environmentId",
  more: SqlNames = {},
): Promise<Page<Item>> {
  const rest = `WHERE ${which} AND
      ($createdAt IS NULL OR created_at < $createdAt OR (created_at = $createdAt AND ${name} > $name))
    ORDER BY created_at DESC, ${name} LIMIT $limit`;
  const values = { environmentId, ...more, ...parseNameKey(request.after), limit: request.limit + 1 };
  const keyOf = (row: Row) => makeNameKey({ createdAt: row.createdAt, name: row[name] });
  return makePage(await table.all(tx, rest, values), request, keyOf, toItem);
}

type Named<Name extends string> = Readonly<Record<Name, string>> & { createdAt: number };

/**
 * Reads a whole page of a list in steps, each in its own read. The page is short if its steps, or the time that they may block the event loop, are
 * used up. `steps` sets a fixed number of steps, and `look` is as in StepRequest. With `large`, the page ends with the first step that finds an item,
 * so that memory holds few large items.
 */
export async function readPage<Item>(
  store: Store,
  request: PageRequest,
  step: (tx: Reader, request: StepRequest) => Promise<Page<Item>>,
  { large = false, steps, look }: { large?: boolean; steps?: number; look?: number } = {},
): Promise<Page<Item>> {
  let [heldMs, most] = [0, MAX_STEPS];
  const isSpent = (taken: number): boolean =>
    steps === undefined ? taken >= most || heldMs >= MAX_HELD_MS : taken === steps;
  const items: Item[] = [];
  let after = request.after;
  for (let taken = 1; ; taken++) {
    const part = { limit: request.limit - items.length, after, ...(look === undefined ? {} : { look }) };
    const { page, ms } = await store.read((tx) => timeHeld(() => step(tx, part)));
    heldMs += ms ?? 0;
    if (ms === null) [look, most] = [look ?? MAX_ELSEWHERE, MAX_STEPS_ELSEWHERE];
    items.push(...page.items);
    const isComplete = large ? items.length > 0 : items.length === request.limit;
    if (page.next === null || isComplete || isSpent(taken)) return { items, next: page.next };
    after = readCursor(page.next);
    await yieldToEventLoop();
  }
}

/** Measures how long a step blocked the event loop. `ms` is null if another process did the work. */
async function timeHeld<Found>(step: () => Promise<Found>): Promise<{ page: Found; ms: number | null }> {
  let turned = false;
  const turn = setImmediate(() => {
    turned = true;
  });
  const begun = systemClock.monotonicMs();
  const page = await step();
  clearImmediate(turn);
  return { page, ms: turned ? null : systemClock.monotonicMs() - begun };
}

/** Lets the event loop run other work of this process. */
export function yieldToEventLoop(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
