/**
 * Loads what a page shows. What was loaded before is shown at once while it is loaded again, so that going back never flashes; a failed
 * refresh keeps what is shown and tells its sentence. Refreshing rests while the tab is hidden.
 */
import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import { call, sentenceOf } from "./api.ts";
import { useCell } from "./cell.ts";
import { sessionTurn } from "./session-turn.ts";

interface Loaded<T> {
  data: T | undefined;
  /** The sentence of the last load, where it failed. */
  error: string | null;
  reload(): void;
  /** Puts an answer of a change in the place of what was loaded. */
  put(data: T): void;
}

const MAX_KEPT = 60;
const kept = new Map<string, unknown>();

function keep(path: string, data: unknown): void {
  kept.delete(path);
  kept.set(path, data);
  const oldest = kept.keys().next().value;
  if (kept.size > MAX_KEPT && oldest !== undefined) kept.delete(oldest);
}

/** The answer of a GET. `everyMs`: refreshed that often, or as often as what was loaded asks for; null: once. */
export function useLoad<T>(
  path: string,
  everyMs: number | null | ((data: T | undefined) => number) = null,
): Loaded<T> {
  const turn = useCell(sessionTurn);
  const [, draw] = useState(0);
  const [round, setRound] = useState(0);
  const state = useRef<{ path: string; data: T | undefined; error: string | null }>({
    path: "",
    data: undefined,
    error: null,
  });
  if (state.current.path !== path) {
    state.current = { path, data: kept.get(path) as T | undefined, error: null };
  }
  const changes = useRef(0);
  const pace = useRef(everyMs);
  pace.current = everyMs;

  const load = useCallback(
    async (signal?: AbortSignal) => {
      const before = changes.current;
      try {
        const data = await call<T>("GET", path, undefined, signal);
        if (signal?.aborted || state.current.path !== path || changes.current !== before) return;
        keep(path, data);
        state.current = { path, data, error: null };
      } catch (error) {
        if (signal?.aborted || state.current.path !== path) return;
        state.current = { ...state.current, error: sentenceOf(error) };
      }
      draw((count) => count + 1);
    },
    [path],
  );

  useEffect(() => {
    const stop = new AbortController();
    let timer: ReturnType<typeof setTimeout> | undefined;
    const waitAndLoad = (): void => {
      const rule = pace.current;
      const ms = typeof rule === "function" ? rule(state.current.data) : rule;
      if (ms !== null && !stop.signal.aborted) timer = setTimeout(again, ms);
    };
    const again = async (): Promise<void> => {
      if (!document.hidden) await load(stop.signal);
      waitAndLoad();
    };
    void load(stop.signal).then(waitAndLoad);
    return () => {
      stop.abort();
      clearTimeout(timer);
    };
  }, [load, turn, round]);

  const { data, error } = state.current;
  return {
    data,
    error,
    reload: () => void load(),
    put(next) {
      changes.current += 1;
      keep(path, next);
      state.current = { path, data: next, error: null };
      // Begins the round of refreshing anew, at the pace of what is shown now.
      setRound((count) => count + 1);
    },
  };
}
