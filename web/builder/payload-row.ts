/** Visible rows of a JSON value that is shown as a tree. Folded parts have no rows, so a large body costs little. */
import { ExactNumber, formatValue, isObject, type Json } from "../base/exact-json.ts";
import type { Step } from "../editor/json-tree.ts";

const OPEN_DEPTH = 5;
const SHOWN_ITEMS = 50;
/** The most rows of a tree. */
const MAX_ROWS = 2_000;

type Branch = Json[] | { [name: string]: Json };

export interface PayloadRow {
  /** Text that identifies the row among all rows of the value. */
  key: string;
  steps: readonly Step[];
  value: Json;
  /** Depth from 1. */
  level: number;
  /** Position among its siblings from 1, and their number. */
  position: number;
  siblings: number;
  /** null: the row is a value without parts. */
  isOpen: boolean | null;
  /** True for the last row of a branch with too many parts. It shows more of them. */
  isMore: boolean;
}

/** State of the tree that the user changed, by the key of the row. */
interface TreeState {
  open: ReadonlyMap<string, boolean>;
  /** Number of parts to show. */
  shown: ReadonlyMap<string, number>;
}

export function isBranch(value: Json): value is Branch {
  return typeof value === "object" && value !== null && !(value instanceof ExactNumber);
}

function rowKey(steps: readonly Step[]): string {
  return JSON.stringify(steps);
}

/** Lists the parts of a branch with their steps. */
export function listParts(value: Branch): (readonly [Step, Json])[] {
  if (!isObject(value)) return (value as Json[]).map((item, at) => [at, item]);
  return Object.entries(value);
}

/** Lists the rows in the order of the text. A value without parts is one row. */
export function listRows(value: Json, { open, shown }: TreeState): PayloadRow[] {
  if (!isBranch(value)) return [rowOf([], value, { level: 1, position: 1, siblings: 1 }, null)];
  const rows: PayloadRow[] = [];
  const left: PayloadRow[] = [];
  const enter = (branch: Branch, steps: readonly Step[], level: number): void => {
    const key = rowKey(steps);
    const parts = listParts(branch);
    const count = shown.get(key) ?? SHOWN_ITEMS;
    const siblings = Math.min(parts.length, count) + (parts.length > count ? 1 : 0);
    const inside = parts.slice(0, count).map(([step, part], at): PayloadRow => {
      const own = [...steps, step];
      const size = isBranch(part) ? listParts(part).length : 0;
      const isOpen =
        size === 0 ? null : (open.get(rowKey(own)) ?? (level < OPEN_DEPTH && size <= SHOWN_ITEMS * 2));
      return rowOf(own, part, { level, position: at + 1, siblings }, isOpen);
    });
    if (parts.length > count) {
      const more = rowOf(steps, branch, { level, position: siblings, siblings }, null);
      inside.push({ ...more, key: `${key} more`, isMore: true });
    }
    left.push(...inside.reverse());
  };
  enter(value, [], 1);
  for (let row = left.pop(); row !== undefined && rows.length < MAX_ROWS; row = left.pop()) {
    rows.push(row);
    if (row.isOpen === true && isBranch(row.value)) enter(row.value, row.steps, row.level + 1);
  }
  return rows;
}

function rowOf(
  steps: readonly Step[],
  value: Json,
  place: Pick<PayloadRow, "level" | "position" | "siblings">,
  isOpen: boolean | null,
): PayloadRow {
  return { key: rowKey(steps), steps, value, ...place, isOpen, isMore: false };
}

const MAX_FOUND = 50;
/** The most values that a search reads, and their greatest depth. */
const MAX_LOOKED_AT = 200_000;
const MAX_FOUND_DEPTH = 64;

/** Lists the values whose name or text contains the words, as rows of one level. It reads without recursion. */
export function findRows(value: Json, words: string): { rows: PayloadRow[]; isMore: boolean } {
  const wanted = words.toLowerCase();
  const found: { steps: readonly Step[]; value: Json }[] = [];
  const left: { steps: readonly Step[]; value: Json }[] = [{ steps: [], value }];
  let isMore = false;
  for (let looked = 0; ; looked++) {
    const spot = left.pop();
    if (spot === undefined) break;
    if (found.length === MAX_FOUND || looked === MAX_LOOKED_AT) {
      isMore = true;
      break;
    }
    const name = spot.steps.at(-1);
    const isNamed = typeof name === "string" && name.toLowerCase().includes(wanted);
    if (isNamed || (!isBranch(spot.value) && formatValue(spot.value).toLowerCase().includes(wanted)))
      found.push(spot);
    if (!isBranch(spot.value) || spot.steps.length >= MAX_FOUND_DEPTH) continue;
    for (const [step, part] of listParts(spot.value).reverse())
      left.push({ steps: [...spot.steps, step], value: part });
  }
  const siblings = found.length;
  const rows = found.map(({ steps, value: one }, at) =>
    rowOf(steps, one, { level: 1, position: at + 1, siblings }, null),
  );
  return { rows, isMore };
}
