/**
 * Events by filter: the newest page, kept fresh while nobody is reading, and older pages behind it on demand. Refreshing rests while the
 * tab is hidden, the page is scrolled down or text is selected, so that nothing moves under a reader's eyes.
 */
import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import type { EventItem, Page } from "../ground/answer.ts";
import { call, sentenceOf, writeQuery } from "../ground/api.ts";
import { useCell } from "../ground/cell.ts";
import { sessionTurn } from "../ground/session-turn.ts";

const REFRESH_MS = 2_000;
/** Pages that one look further back reads at most. */
const LOOKS = 5;
/** Scrolled further down than this, one is reading. */
const READING_PX = 120;
const MAX_KEPT = 20;

interface Shown {
  items: EventItem[] | undefined;
  next: string | null;
  error: string | null;
}

export interface LiveEvents extends Shown {
  /** null: refreshing; else why it rests. */
  rests: "hidden" | "scrolled" | "selected" | null;
  isLoadingOlder: boolean;
  loadOlder(): void;
  reload(): void;
}

const kept = new Map<string, Shown>();

export function useLiveEvents(
  path: string,
  filter: Readonly<Record<string, string>>,
  isLive: boolean,
): LiveEvents {
  const address = path + writeQuery(filter);
  const turn = useCell(sessionTurn);
  const [, draw] = useState(0);
  const state = useRef<{ address: string; shown: Shown }>({ address: "", shown: nothing() });
  if (state.current.address !== address) state.current = { address, shown: kept.get(address) ?? nothing() };
  const [rests, setRests] = useState<LiveEvents["rests"]>(null);
  const [isLoadingOlder, setLoadingOlder] = useState(false);

  const show = useCallback(
    (change: (before: Shown) => Shown) => {
      if (state.current.address !== address) return;
      const shown = change(state.current.shown);
      state.current = { address, shown };
      kept.delete(address);
      kept.set(address, shown);
      const oldest = kept.keys().next().value;
      if (kept.size > MAX_KEPT && oldest !== undefined) kept.delete(oldest);
      draw((count) => count + 1);
    },
    [address],
  );

  const refresh = useCallback(
    async (signal?: AbortSignal) => {
      try {
        const page = await call<Page<EventItem>>("GET", address, undefined, signal);
        if (!signal?.aborted) show((before) => merge(before, page));
      } catch (error) {
        if (!signal?.aborted) show((before) => ({ ...before, error: sentenceOf(error) }));
      }
    },
    [address, show],
  );

  useEffect(() => {
    const stop = new AbortController();
    let timer: ReturnType<typeof setTimeout> | undefined;
    const turnOver = async (isFirst: boolean): Promise<void> => {
      const why = whyRest();
      setRests(why);
      if (isFirst || why === null) await refresh(stop.signal);
      if (isLive && !stop.signal.aborted) timer = setTimeout(turnOver, REFRESH_MS, false);
    };
    void turnOver(true);
    return () => {
      stop.abort();
      clearTimeout(timer);
    };
  }, [refresh, isLive, turn]);

  const loadOlder = async (): Promise<void> => {
    const { next } = state.current.shown;
    if (next === null || isLoadingOlder) return;
    setLoadingOlder(true);
    try {
      const readFrom = (cursor: string) =>
        call<Page<EventItem>>("GET", path + writeQuery({ ...filter, cursor }));
      let page = await readFrom(next);
      // A page looks at a bounded number of events: where it finds none, some more are looked at before the button comes again.
      for (let more = 1; more < LOOKS && page.items.length === 0 && page.next !== null; more++)
        page = await readFrom(page.next);
      show((before) => ({ items: [...(before.items ?? []), ...page.items], next: page.next, error: null }));
    } catch (error) {
      show((before) => ({ ...before, error: sentenceOf(error) }));
    }
    setLoadingOlder(false);
  };

  const { shown } = state.current;
  return { ...shown, rests, isLoadingOlder, loadOlder: () => void loadOlder(), reload: () => void refresh() };
}

function nothing(): Shown {
  return { items: undefined, next: null, error: null };
}

/** The fresh page, with the older events that were loaded behind it where the two meet. */
function merge(before: Shown, page: Page<EventItem>): Shown {
  const last = page.items.at(-1);
  const at = last === undefined ? -1 : (before.items ?? []).findIndex(({ id }) => id === last.id);
  const older = at === -1 ? [] : (before.items ?? []).slice(at + 1);
  return { items: [...page.items, ...older], next: older.length > 0 ? before.next : page.next, error: null };
}

function whyRest(): LiveEvents["rests"] {
  if (document.hidden) return "hidden";
  if (scrollY > READING_PX) return "scrolled";
  return getSelection()?.isCollapsed === false ? "selected" : null;
}
