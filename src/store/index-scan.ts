/**
 * Lists that stay quick however many rows there are: a step walks an index from the newest row on, looks at a bounded number of rows and
 * bytes, and answers those that fit; what is left follows by cursor. A page is made of a bounded number of steps, and the loop turns
 * between two, so that no list holds up a receiver. It never knows what is listed.
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

/** Rows that one step looks at, of an environment's, most of which lie side by side. */
const MAX_LOOKED_AT = 500;
/** Where an index leads to few of many: each may be a page of its own, which the disk needs a tenth of a millisecond for. */
const MAX_APART = 100;
/** Where another process looks at them: it holds up nobody here. */
const MAX_ELSEWHERE = 1_000;
/** Bytes that one step reads: searched, or parsed and written into the answer. */
const MAX_STEP_BYTES = 256 * 1024;
/** Of a page that others wait beside: what finds nothing costs so many steps and no more. */
const MAX_STEPS = 50;
const MAX_STEPS_ELSEWHERE = 6;
/** Nor does it begin another once its steps held up the loop for so long: rows that stand on the disk alone cost a hundred times as much. */
const MAX_HELD_MS = 6;

/** Part of a WHERE: each `?` of its text stands for the next of its values. */
export interface Condition {
  sql: string;
  values: readonly SqlValue[];
}

/** What is listed: a table, or some of its columns. */
interface Listed<Row> {
  name: string;
  columns: string;
  read(stored: object): Row;
}

export interface Walk {
  index: string;
  /** Orders the list, the newest highest; unique in it. */
  key: "id" | "seq";
  /** What the index is led by: it yields no row that fails these. */
  led: readonly (Condition | undefined)[];
  /** Keys from the first to before the second alone. */
  between?: readonly [above: number, below: number];
  /** What is asked of each row that the index yields. */
  fits?: readonly (Condition | undefined)[];
  /** Bounds a step by more than what leads: before this key at most so many rows lie from `from` on; null: no row is left. */
  span?: (before: number, most: number) => Promise<{ from: number; ended: boolean } | null>;
  /** Bytes that it costs to look at a row, an expression. */
  cost?: string;
  /** Joined for the rows of the answer alone. */
  join?: string;
  /** Selected instead of the table's own columns, which it holds too. */
  columns?: string;
}

/** `column = value`, or undefined where nothing is asked. */
export function equals(column: string, value: SqlValue | undefined): Condition | undefined {
  return value === undefined ? undefined : { sql: `${column} = ?`, values: [value] };
}

/** What a step is asked for. `look`: at so many rows; without it, at as many as are quick to look at wherever they lie. */
export interface StepRequest extends PageRequest {
  look?: number;
}

/** One step of a list: a page that may be short, or empty, and still have a next one. */
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
  // One bound on each side: of two, the index begins or ends with the first, however far the second cuts.
  const within = (lower: SqlValue): Condition[] => [
    ...walk.led.filter((one) => one !== undefined),
    ...(upper === null ? [] : [{ sql: `${key} < ?`, values: [upper] }]),
    ...(lower === null ? [] : [{ sql: `${key} >= ?`, values: [lower] }]),
  ];
  const lower = span?.from ?? above;
  const led = within(lower);
  // Where a row costs nothing to look at, only the last one is asked for: the others are counted in the index.
  const { cost } = walk;
  const looked = await tx.all<LookedAt>(
    `SELECT ${key} AS key, ${cost ?? "0"} AS cost FROM ${from} WHERE ${textOf(led)} ORDER BY ${key} DESC
     LIMIT ${cost === undefined ? `1 OFFSET ${most - 1}` : most}`,
    ...valuesOf(led),
  );
  const { floor, ended } = reach(looked, cost === undefined ? 1 : most);
  if (floor === null && cost !== undefined) return { items: [], next: null };
  // Between both ends stand few rows, which a database that weighs how it reads them has to be told.
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

/** A row that a step might take: its key and what it costs. */
export interface LookedAt {
  key: string | number;
  cost: number | null;
}

/** The last row that one step's bytes reach, at least one; `ended`: there were fewer than `most`, so no row lies beyond. */
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

/** A page of what is told apart by a name (in this environment; null: anywhere): the newest first, those of one moment by name. */
export async function pageByName<Name extends string, Row extends Named<Name>, Item>(
  tx: Reader,
  table: { all(tx: Reader, rest: string, values: SqlNames): Promise<Row[]> },
  name: Name,
  environmentId: number | null,
  request: PageRequest,
  toItem: (row: Row) => Item,
  which = "environment_id = $environmentId",
): Promise<Page<Item>> {
  const rest = `WHERE ${which} AND
      ($createdAt IS NULL OR created_at < $createdAt OR (created_at = $createdAt AND ${name} > $name))
    ORDER BY created_at DESC, ${name} LIMIT $limit`;
  const values = { environmentId, ...parseNameKey(request.after), limit: request.limit + 1 };
  const keyOf = (row: Row) => makeNameKey({ createdAt: row.createdAt, name: row[name] });
  return makePage(await table.all(tx, rest, values), request, keyOf, toItem);
}

type Named<Name extends string> = Readonly<Record<Name, string>> & { createdAt: number };

/**
 * A whole page of a list, step by step, each a read of its own; short where the steps, or the time they hold up others, were spent (`steps`: so
 * many, however long; `look`: as a step's). Large items are not gathered: their page ends with the first step that finds any.
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
    const enough = large ? items.length > 0 : items.length === request.limit;
    if (page.next === null || enough || isSpent(taken)) return { items, next: page.next };
    after = readCursor(page.next);
    await yieldToEventLoop();
  }
}

/** How long a step held up the loop; null: another process answered it. */
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

/** Lets every other call of this process have its turn. */
export function yieldToEventLoop(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
