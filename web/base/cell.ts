/** Observable value. The page's few pieces of shared state, such as session, address and theme, are one cell each. */
import { useLayoutEffect, useState } from "preact/hooks";

interface Cell<T> {
  get(): T;
  /** Notifies every watcher unless the value is the same. */
  set(value: T): void;
  /** Returns a function that ends the watching. */
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

/** Returns the cell's value and renders the view again when it changes. */
export function useCell<T>(cell: Cell<T>): T {
  const [, draw] = useState(0);
  useLayoutEffect(() => cell.watch(() => draw((count) => count + 1)), [cell]);
  return cell.get();
}
