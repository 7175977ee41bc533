/**
 * List of the API: the newest page, refreshed while the user is not reading, and older pages on demand. Older pages
 * stay cached by address, so that Back shows the list at its earlier length.
 */
import { useEffect, useState } from "preact/hooks";
import type { Page } from "./answer.ts";
import { call, sentenceOf } from "./api.ts";
import { isReading } from "./reading.ts";
import { useLoad } from "./use-load.ts";

/** Largest number of pages that one request for older items reads. */
const LOOKS = 5;
const MAX_KEPT = 20;

export interface List<Item> {
  /** Newest page and the loaded older pages; undefined while loading. */
  items: Item[] | undefined;
  /** Cursor of the next older page; null at the end. */
  next: string | null;
  error: string | null;
  /** True if the service said that the list does not exist. */
  isGone: boolean;
  isLoadingOlder: boolean;
  loadOlder(): void;
  reload(): void;
}

/** Largest number of pages of a list that is loaded completely. */
const MAX_PAGES = 50;

/** Older pages by address. Each begins with the last item of the newest page. */
const behind = new Map<string, Page<{ id: string }>>();

/** `path` contains the filter as its query. `everyMs` is the refresh interval while the user is not reading; null: no polling. */
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

/** Loads the complete list, and its older pages again whenever the newest page changes. Lists that are sorted or searched in the browser use it. */
export function useCompleteList<Item extends { id: string }>(path: string, everyMs: number): List<Item> {
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
    // A failed load leaves the list unchanged. Its "older" button reports the error.
    read().catch(() => undefined);
    return () => {
      isGone = true;
    };
  }, [path, data]);
  return list;
}

/**
 * Joins the newest page with the older pages where they meet. If more new items arrived than a page holds, they no
 * longer meet, and the older pages must be loaded again.
 */
function join<Item extends { id: string }>(newest: Page<Item>, older: Page<Item> | undefined): Page<Item> {
  const last = newest.items.at(-1);
  const at = last === undefined ? -1 : (older?.items ?? []).findIndex(({ id }) => id === last.id);
  if (older === undefined || at === -1) return newest;
  return { items: [...newest.items, ...older.items.slice(at + 1)], next: older.next };
}

/** Reads the next older page. Each page scans a bounded number of rows, so this reads some more if a page is empty. */
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
