/** A value that views watch: the page's few pieces of shared state (session, address, theme, notices) are one each. */
import { useLayoutEffect, useState } from "preact/hooks";

interface Cell<T> {
  get(): T;
  /** Tells every watcher, unless the value is the same. */
  set(value: T): void;
  /** Answers what stops the watching. */
  watch(watcher: () => void): () => void;
}

export function makeCell<T>(first: T): Cell<T> {
  let value = first;
  const watchers = new Set<() => void>();
  return {
    get: () => value,
    set(next) {
      if (Object.is(next, value)) return;
      value = next;
      for (const watcher of [...watchers]) watcher();
    },
    watch(watcher) {
      watchers.add(watcher);
      return () => watchers.delete(watcher);
    },
  };
}

/** The cell's value; the view is drawn again when it changes. */
export function useCell<T>(cell: Cell<T>): T {
  const [, draw] = useState(0);
  useLayoutEffect(() => cell.watch(() => draw((count) => count + 1)), [cell]);
  return cell.get();
}
