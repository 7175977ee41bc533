/** The pages behind the first one of a list, loaded on demand. The first page may be refreshed; what follows stays where the two meet. */
import { useState } from "preact/hooks";
import type { Page } from "./answer.ts";
import { call, sentenceOf } from "./api.ts";

export interface Older<Item> {
  /** The first page and what was loaded behind it. */
  items: Item[];
  next: string | null;
  isLoading: boolean;
  error: string | null;
  load(): void;
}

export function useOlder<Item extends { id: string }>(
  path: string,
  first: Page<Item> | undefined,
): Older<Item> {
  const [behind, setBehind] = useState<Page<Item> | null>(null);
  const [isLoading, setLoading] = useState(false);
  const [error, setError] = useState<string | null>(null);
  const ids = new Set(first?.items.map(({ id }) => id));
  const next = behind === null ? (first?.next ?? null) : behind.next;
  const load = async (): Promise<void> => {
    if (next === null) return;
    setLoading(true);
    setError(null);
    try {
      const mark = path.includes("?") ? "&" : "?";
      const page = await call<Page<Item>>("GET", `${path}${mark}cursor=${encodeURIComponent(next)}`);
      setBehind({ items: [...(behind?.items ?? []), ...page.items], next: page.next });
    } catch (thrown) {
      setError(sentenceOf(thrown));
    }
    setLoading(false);
  };
  const items = [...(first?.items ?? []), ...(behind?.items ?? []).filter(({ id }) => !ids.has(id))];
  return { items, next, isLoading, error, load: () => void load() };
}
