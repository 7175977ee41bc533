/**
 * Cache of loaded data by address. Each address is loaded once for all views and stays cached, so that going back shows
 * no empty page. One timer refreshes at the pace of the fastest view. It rests while the tab is hidden. Writes and the
 * stream mark outdated data. A failed refresh keeps the data and reports its error.
 */
import { ApiError, call, isSameAnswer, sentenceOf } from "./api.ts";

interface Loaded {
  data: unknown;
  /** Message of the last load, if it failed. */
  error: string | null;
  /** True if the service said that the object does not exist, so a retry does not help. */
  isGone: boolean;
}

/** Milliseconds between two loads, given the loaded data; null: no polling. */
type Pace = (data: unknown) => number | null;

interface Watcher {
  draw(): void;
  pace: Pace;
  /** Reports whether the view must not change now. */
  rests?: (() => boolean) | undefined;
}

interface Entry extends Loaded {
  readonly path: string;
  readonly watchers: Set<Watcher>;
  loading: AbortController | null;
  /** End of the last load, in milliseconds of the page's clock; -Infinity: a load is required. */
  loadedAt: number;
  /** Durations of the last two loads in milliseconds, newest first. */
  tookMs: [number, number];
  /** Start of the last load. The stream did not report changes from before it opened. */
  askedAt: number;
  /** True if something changed since the last load began. */
  isOutdated: boolean;
}

const MAX_KEPT = 60;
/**
 * Limits for reloading data that changes constantly. The interval grows with the cost of a load, between a minimum and
 * a maximum. An open page then uses at most a hundredth of the service's thread for one address, and a thirtieth for
 * all.
 */
const OUTDATED_MS = 1_000;
const OUTDATED_TIMES = 100;
const OUTDATED_TIMES_EACH = 30;
const OUTDATED_MOST_MS = 10_000;
/** Slows down polling of addresses that the stream reports: the factor and the longest interval. */
const SLOWER_TIMES = 6;
const SLOWEST_MS = 60_000;
/** Interval in which a resting view is checked again. */
const REST_MS = 500;
const entries = new Map<string, Entry>();
let timer: ReturnType<typeof setTimeout> | undefined;
/** Reports whether the stream reports changes at the address. */
let isReported: (path: string) => boolean = () => false;
let reportedSince = 0;
/** Shortest load of any address, which is about the round trip without work. */
let quickestMs = Number.POSITIVE_INFINITY;

/** Returns the cached data of the address without loading it. */
export function peek(path: string): Loaded {
  return entries.get(path) ?? NOTHING;
}
const NOTHING: Loaded = { data: undefined, error: null, isGone: false };

/** Shows the address until the returned function is called. The data loads at once and `draw` runs after each change. */
export function watch(path: string, watcher: Watcher): () => void {
  const entry = entries.get(path) ?? make(path);
  entry.watchers.add(watcher);
  // A returning user first sees the cached data, then the new data.
  if (entry.watchers.size === 1) entry.loadedAt = Number.NEGATIVE_INFINITY;
  plan();
  return () => {
    entry.watchers.delete(watcher);
    if (entry.watchers.size === 0) stop(entry);
  };
}

/** Replaces the cached data with the response to a change. A running load is older, so it is dropped. */
export function put(path: string, data: unknown): void {
  const entry = entries.get(path) ?? make(path);
  stop(entry);
  show(entry, { data, error: null, isGone: false });
}

/** Marks every address with this prefix as outdated. Shown addresses reload now, the others when a view shows them. */
export function invalidate(prefix: string): void {
  for (const entry of entries.values()) {
    if (!covers(prefix, entry.path)) continue;
    // A running load began before the change.
    stop(entry);
    entry.loadedAt = Number.NEGATIVE_INFINITY;
  }
  plan();
}

/**
 * Marks addresses as outdated, many times a second if much happens. Shown addresses reload soon, and a running load
 * continues. `isFollowed`: whether a view also polls the address.
 */
export function outdate(isMeant: (path: string, isFollowed: boolean) => boolean): void {
  for (const entry of entries.values()) {
    const isFollowed = [...entry.watchers].some(({ pace }) => pace(entry.data) !== null);
    if (isMeant(entry.path, isFollowed)) entry.isOutdated = true;
  }
  plan();
}

/** Sets the addresses that the stream reports from now on. They are polled seldom. */
export function relyOn(reports: (path: string) => boolean): void {
  isReported = reports;
  reportedSince = performance.now();
  plan();
}

/** `/a/b` covers itself, `/a/b/c` and `/a/b?x`, but not `/a/bc`. */
function covers(prefix: string, path: string): boolean {
  return path.startsWith(prefix) && (prefix.endsWith("/") || /^[/?]?$/.test(path.charAt(prefix.length)));
}

function make(path: string): Entry {
  const entry: Entry = {
    path,
    ...NOTHING,
    watchers: new Set(),
    loading: null,
    loadedAt: Number.NEGATIVE_INFINITY,
    tookMs: [0, 0],
    askedAt: Number.NEGATIVE_INFINITY,
    isOutdated: false,
  };
  entries.set(path, entry);
  for (const old of entries.values()) {
    if (entries.size <= MAX_KEPT) break;
    if (old.watchers.size === 0 && old !== entry) entries.delete(old.path);
  }
  return entry;
}

function stop(entry: Entry): void {
  entry.loading?.abort();
  entry.loading = null;
}

function show(entry: Entry, { data, error, isGone }: Loaded): void {
  const isSame = error === entry.error && isSameAnswer(data, entry.data);
  // Equal data keeps its identity, so that no view takes it for a change.
  if (!isSame) entry.data = data;
  entry.error = error;
  entry.isGone = isGone;
  entry.loadedAt = performance.now();
  // Moves the entry to the end: the cache drops the oldest entries first.
  entries.delete(entry.path);
  entries.set(entry.path, entry);
  if (!isSame) for (const watcher of [...entry.watchers]) watcher.draw();
  plan();
}

async function load(entry: Entry): Promise<void> {
  const own = new AbortController();
  entry.loading = own;
  entry.isOutdated = false;
  const startedAt = performance.now();
  entry.askedAt = startedAt;
  let shown: Loaded;
  try {
    shown = { data: await call("GET", entry.path, undefined, own.signal), error: null, isGone: false };
  } catch (thrown) {
    shown = { data: entry.data, error: sentenceOf(thrown), isGone: isMissing(thrown) };
  }
  if (entry.loading !== own) return;
  entry.loading = null;
  const tookMs = performance.now() - startedAt;
  quickestMs = Math.min(quickestMs, tookMs);
  entry.tookMs = [tookMs, entry.tookMs[0]];
  show(entry, shown);
}

/** Reports whether the object does not exist. A proxy's 404 says nothing about the object. */
function isMissing(thrown: unknown): boolean {
  return thrown instanceof ApiError && thrown.status === 404 && thrown.code !== "unknown";
}

/** Returns when to load the entry next, on the page's clock; Infinity: never by the timer. */
function dueAt(entry: Entry): number {
  if (entry.loadedAt === Number.NEGATIVE_INFINITY) return entry.loadedAt;
  let every = entry.isOutdated ? paceOf(entry) : Number.POSITIVE_INFINITY;
  for (const { pace } of entry.watchers) {
    const ms = pace(entry.data) ?? Number.POSITIVE_INFINITY;
    every = Math.min(
      every,
      isReported(entry.path) && entry.askedAt >= reportedSince
        ? Math.max(ms, Math.min(SLOWER_TIMES * ms, SLOWEST_MS))
        : ms,
    );
  }
  return entry.loadedAt + every;
}

/**
 * Returns the interval for data that changes constantly. It uses the faster of the last two loads, because one slow
 * load says nothing about the cost.
 */
function paceOf({ tookMs }: Entry): number {
  const costMs = Math.max(0, Math.min(...tookMs) - quickestMs);
  const shown = [...entries.values()].filter(({ watchers }) => watchers.size > 0).length;
  const times = Math.max(OUTDATED_TIMES, OUTDATED_TIMES_EACH * shown);
  return Math.min(OUTDATED_MOST_MS, Math.max(OUTDATED_MS, times * costMs));
}

/** Loads each entry that is due and sets the timer for the next one. */
function plan(): void {
  clearTimeout(timer);
  const now = performance.now();
  let next = Number.POSITIVE_INFINITY;
  for (const entry of [...entries.values()]) {
    if (entry.watchers.size === 0 || entry.loading !== null) continue;
    const due = dueAt(entry);
    const isFirst = entry.data === undefined && entry.error === null;
    const rests = !isFirst && [...entry.watchers].every((watcher) => watcher.rests?.() ?? false);
    if (due <= now && !rests && (isFirst || !document.hidden)) void load(entry);
    else next = Math.min(next, rests ? Math.max(due, now + REST_MS) : due);
  }
  if (next < Number.POSITIVE_INFINITY && !document.hidden) timer = setTimeout(plan, Math.max(0, next - now));
}

document.addEventListener("visibilitychange", plan);
