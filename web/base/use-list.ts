/**
 * A list of the API: its newest page, kept fresh while nobody is reading, and older pages behind it on demand. What was loaded stays with
 * the address, so that Back finds the list as long as it was left.
 */
import { useEffect, useState } from "preact/hooks";
import type { Page } from "./answer.ts";
import { call, sentenceOf } from "./api.ts";
import { isReading } from "./reading.ts";
import { useLoad } from "./use-load.ts";

/** Pages that one look further back reads at most. */
const LOOKS = 5;
const MAX_KEPT = 20;

export interface List<Item> {
  /** The newest page and what was loaded behind it; undefined until it is known. */
  items: Item[] | undefined;
  /** Where the next older page begins; null: these are all. */
  next: string | null;
  error: string | null;
  /** Whether there is no such list, as the service says. */
  isGone: boolean;
  isLoadingOlder: boolean;
  loadOlder(): void;
  reload(): void;
}

/** Pages of a list that is wanted whole, at most. */
const MAX_PAGES = 50;

/** What was loaded behind the newest page, with where it meets that page. */
const behind = new Map<string, Page<{ id: string }>>();

/** `path`: with its filter as query. `everyMs`: refreshed that often while nobody reads; null: not by the clock. */
export function useList<Item extends { id: string }>(
  path: string,
  everyMs: number | null = null,
): List<Item> {
  const newest = useLoad<Page<Item>>(path, everyMs, isReading);
  const [isLoadingOlder, setLoadingOlder] = useState(false);
  const [olderError, setOlderError] = useState<string | null>(null);
  const shown =
    newest.data === undefined ? null : join(newest.data, behind.get(path) as Page<Item> | undefined);
  const loadOlder = async (): Promise<void> => {
    if (shown === null || shown.next === null || isLoadingOlder) return;
    setLoadingOlder(true);
    setOlderError(null);
    try {
      const older = await readBehind<Item>(path, shown.next);
      remember(path, { items: [...shown.items, ...older.items], next: older.next });
    } catch (thrown) {
      setOlderError(sentenceOf(thrown));
    }
    setLoadingOlder(false);
  };
  return {
    items: shown?.items,
    next: shown?.next ?? null,
    error: olderError ?? newest.error,
    isGone: newest.isGone,
    isLoadingOlder,
    loadOlder: () => void loadOlder(),
    reload: newest.reload,
  };
}

/** The list with everything that is behind its newest page, read anew as that page changes: for what is sorted and searched here. */
export function useWholeList<Item extends { id: string }>(path: string, everyMs: number): List<Item> {
  const list = useList<Item>(path, everyMs);
  const { data } = useLoad<Page<Item>>(path, everyMs, isReading);
  const [, setRead] = useState(0);
  useEffect(() => {
    if (data === undefined || data.next === null) return;
    let isGone = false;
    const read = async (): Promise<void> => {
      let { items, next } = data;
      for (let pages = 0; pages < MAX_PAGES && next !== null; pages++) {
        const page: Page<Item> = await readBehind<Item>(path, next);
        items = [...items, ...page.items];
        next = page.next;
      }
      if (isGone) return;
      remember(path, { items, next });
      setRead((count) => count + 1);
    };
    // What cannot be read stays as it was; the button for it tells why.
    read().catch(() => undefined);
    return () => {
      isGone = true;
    };
  }, [path, data]);
  return list;
}

/** The newest page, and what is behind it where the two meet: where more came between than a page holds, what is behind must be read anew. */
function join<Item extends { id: string }>(newest: Page<Item>, older: Page<Item> | undefined): Page<Item> {
  const last = newest.items.at(-1);
  const at = last === undefined ? -1 : (older?.items ?? []).findIndex(({ id }) => id === last.id);
  if (older === undefined || at === -1) return newest;
  return { items: [...newest.items, ...older.items.slice(at + 1)], next: older.next };
}

/** A page looks at a bounded number of rows: where it finds none, some more are looked at before one is asked again. */
async function readBehind<Item>(path: string, next: string): Promise<Page<Item>> {
  const mark = path.includes("?") ? "&" : "?";
  const read = (cursor: string) =>
    call<Page<Item>>("GET", `${path}${mark}cursor=${encodeURIComponent(cursor)}`);
  let page = await read(next);
  for (let more = 1; more < LOOKS && page.items.length === 0 && page.next !== null; more++)
    page = await read(page.next);
  return page;
}

function remember(path: string, page: Page<{ id: string }>): void {
  behind.delete(path);
  behind.set(path, page);
  const oldest = behind.keys().next().value;
  if (behind.size > MAX_KEPT && oldest !== undefined) behind.delete(oldest);
}
