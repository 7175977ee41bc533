/** Shows what is at an address of the API, by what `loaded.ts` keeps of it. */
import { useEffect, useRef, useState } from "preact/hooks";
import { invalidate, peek, put, watch } from "./loaded.ts";
import { whenReleased } from "./reading.ts";

interface Shown<T> {
  data: T | undefined;
  /** The sentence of the last load, where it failed. */
  error: string | null;
  /** Whether there is no such thing, as the service says. */
  isGone: boolean;
  reload(): void;
  /** Puts an answer of a change in the place of what was loaded. */
  put(data: T): void;
}

/**
 * The answer of a GET; of no path it is never there. `everyMs`: refreshed that often, or as often as what was loaded asks for; null: once, and when it is known to have
 * changed. `rests`: whether what is shown must not move now.
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
    // What came between the drawing and this was told to the others who show it alone.
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
