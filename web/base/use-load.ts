/** Hook that loads an API address through the cache of `loaded.ts`. */
import { useEffect, useRef, useState } from "preact/hooks";
import { invalidate, peek, put, watch } from "./loaded.ts";
import { whenReleased } from "./reading.ts";

interface Shown<T> {
  data: T | undefined;
  /** Message of the last load, if it failed. */
  error: string | null;
  /** True if the service said that the object does not exist. */
  isGone: boolean;
  reload(): void;
  /** Replaces the loaded data with the response to a change. */
  put(data: T): void;
}

/**
 * Loads `path` with GET; null loads nothing. `everyMs` is the refresh interval, or a function of the loaded data; null:
 * once and after known changes. `rests`: whether the content must not change now.
 */
export function useLoad<T>(
  path: string | null,
  everyMs: number | null | ((data: T | undefined) => number | null) = null,
  rests?: () => boolean,
): Shown<T> {
  const [, draw] = useState(0);
  const rule = useRef(everyMs);
  rule.current = everyMs;
  const { data, error, isGone } = peek(path ?? "");
  const drawn = useRef({ data, error });
  drawn.current = { data, error };
  useEffect(() => {
    if (path === null) return;
    const redraw = (): void => draw((count) => count + 1);
    const pace = (data: unknown): number | null => {
      const { current } = rule;
      return typeof current === "function" ? current(data as T | undefined) : current;
    };
    const stop = watch(path, { draw: () => whenReleased(redraw), pace, rests });
    // Data that arrived between the render and this effect has notified only the earlier watchers.
    const now = peek(path);
    if (now.data !== drawn.current.data || now.error !== drawn.current.error) redraw();
    return stop;
  }, [path]);
  return {
    data: data as T | undefined,
    error,
    isGone,
    reload: () => path !== null && invalidate(path),
    put: (next) => path !== null && put(path, next),
  };
}
