/**
 * Merges ordered lists into one, newest first, a page at a time. The cursor holds the next key of each list, so that a page repeats and omits
 * nothing, even when rows arrive meanwhile or the clock is set.
 */

import { isJsonObject, type Json, parseJson, writeJson } from "../../base/json.ts";
import { makeCursor, type Page, type PageRequest, rejectCursor } from "../../base/page.ts";

export type Key = string | number;

/** One entry of a list. An entry without an item is passed over. */
export interface Entry<Item> {
  key: Key;
  /** Milliseconds since the epoch. */
  at: number;
  item: Item | null;
}

/** A list that returns its entries from a key on, newest first; null begins at the newest. */
export interface Source<Item> {
  name: string;
  keys: "number" | "text";
  read(from: Key | null, most: number): Promise<Entry<Item>[]>;
}

interface Stream<Item> {
  entries: Entry<Item>[];
  /** The key after the entries; null where these are all. */
  more: Key | null;
}

type Positions = ReadonlyMap<string, Key>;
const MAX_KEY_CHARS = 100;

/** Merges one page. Entries of the same moment come in the order of the lists. */
export async function mergePage<Item>(
  sources: readonly Source<Item>[],
  { limit, after }: PageRequest,
): Promise<Page<Item>> {
  const begin = after === null ? null : readPositions(sources, after);
  const streams = new Map<string, Stream<Item>>();
  for (const { name, read } of sources) {
    const from = begin === null ? null : begin.get(name);
    if (from === undefined) continue;
    const entries = await read(from, limit + 1);
    const more = entries.length > limit ? (entries.pop()?.key ?? null) : null;
    streams.set(name, { entries, more });
  }
  const items: Item[] = [];
  while (items.length < limit) {
    const heads = [...streams.values()];
    // The next part of this list is not read yet, and may be newer than the other lists.
    if (heads.some(({ entries, more }) => entries.length === 0 && more !== null)) break;
    const taken = takeNewest(heads);
    if (taken === null) break;
    if (taken.item !== null) items.push(taken.item);
  }
  const next = new Map<string, Key>();
  for (const [name, { entries, more }] of streams) {
    const key = entries[0]?.key ?? more;
    if (key !== null) next.set(name, key);
  }
  return { items, next: next.size === 0 ? null : makeCursor(writeJson(Object.fromEntries(next))) };
}

function takeNewest<Item>(streams: readonly Stream<Item>[]): Entry<Item> | null {
  let newest: Stream<Item> | null = null;
  for (const stream of streams) {
    const head = stream.entries[0];
    if (head !== undefined && head.at > (newest?.entries[0]?.at ?? Number.NEGATIVE_INFINITY)) newest = stream;
  }
  return newest?.entries.shift() ?? null;
}

/** Reads a cursor. Throws `invalid_input` where it is not one of these lists. */
function readPositions(sources: readonly Pick<Source<unknown>, "name" | "keys">[], after: string): Positions {
  const held = parse(after);
  const positions = new Map<string, Key>();
  for (const [name, key] of Object.entries(held)) {
    const source = sources.find((one) => one.name === name);
    const fits =
      source?.keys === "number"
        ? typeof key === "number" && Number.isSafeInteger(key)
        : source?.keys === "text" && typeof key === "string" && key.length <= MAX_KEY_CHARS;
    if (!fits)
      throw rejectCursor("is not one of this list: use the next value of the page before, unchanged");
    positions.set(name, key as Key);
  }
  return positions;
}

function parse(text: string): { [name: string]: Json } {
  try {
    const value = parseJson(text);
    if (isJsonObject(value)) return value;
  } catch {
    // The error is thrown below.
  }
  throw rejectCursor("is not one of this list: use the next value of the page before, unchanged");
}
