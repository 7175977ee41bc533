/** Handles pages of a list, newest first, and their cursors. A cursor is opaque to callers and valid only for its list. */
import { Refusal } from "./refusal.ts";

const DEFAULT_PAGE_SIZE = 50;
export const MAX_PAGE_SIZE = 200;

export interface PageRequest {
  /** The number of items, 1 to 200. */
  limit: number;
  /** The sort key of the last item seen, after which the page begins. Null to begin with the newest item. */
  after: string | null;
}

export interface Page<Item> {
  items: Item[];
  /** Cursor of the next page, or null on the last page. */
  next: string | null;
}

/** Reads `?limit=` and `?cursor=`. Refuses with `invalid_input`. */
export function readPageRequest(query: {
  limit?: string | undefined;
  cursor?: string | undefined;
}): PageRequest {
  const limit = query.limit === undefined ? DEFAULT_PAGE_SIZE : Number(query.limit);
  if (!/^\d+$/.test(query.limit ?? "1") || limit < 1 || limit > MAX_PAGE_SIZE) {
    throw new Refusal("invalid_input", `limit is not valid: use an integer from 1 to ${MAX_PAGE_SIZE}.`);
  }
  return { limit, after: query.cursor === undefined ? null : readCursor(query.cursor) };
}

/**
 * Makes a page from rows in list order. The caller reads `limit + 1` rows, because the extra row shows that there are more. `keyOf` returns the sort
 * key of a row, for `PageRequest.after`.
 */
export function makePage<Row, Item>(
  rows: readonly Row[],
  request: PageRequest,
  keyOf: (row: Row) => string | number,
  toItem: (row: Row) => Item,
): Page<Item> {
  const shown = rows.slice(0, request.limit);
  const last = shown.at(-1);
  const next = rows.length > request.limit && last !== undefined ? makeCursor(String(keyOf(last))) : null;
  return { items: shown.map(toItem), next };
}

/** Returns the row number in the cursor of a list by row numbers, or null for the first page. Refuses with `invalid_input`. */
export function readSeq(after: string | null): number | null {
  if (after === null) return null;
  const seq = Number(after);
  if (after.trim() !== "" && Number.isSafeInteger(seq)) return seq;
  throw rejectCursor("is not one of this list: use the next value of the page before, unchanged");
}

export function makeCursor(key: string): string {
  return Buffer.from(key).toString("base64url");
}

/** Returns the key that a cursor holds. Refuses with `invalid_input`. */
export function readCursor(cursor: string): string {
  const key = Buffer.from(cursor, "base64url").toString();
  if (cursor === "" || makeCursor(key) !== cursor) {
    throw rejectCursor("is not valid: use the next value of the page before, unchanged");
  }
  return key;
}

/** Returns the key of a row, such as `1767225600000:lamp`. */
export function makeNameKey(row: { createdAt: number; name: string }): string {
  return `${row.createdAt}:${row.name}`;
}

/** Returns the two parts of a key, or nulls for the first page. Refuses a cursor of another list with `invalid_input`. */
export function parseNameKey(key: string | null): { createdAt: number | null; name: string | null } {
  if (key === null) return { createdAt: null, name: null };
  const found = /^(-?\d{1,15}):(.+)$/.exec(key);
  if (found) return { createdAt: Number(found[1]), name: found[2] ?? "" };
  throw rejectCursor("belongs to another list: use the next value of this list's page");
}

export function rejectCursor(why: string): Refusal {
  return new Refusal("invalid_input", `cursor ${why}.`);
}
