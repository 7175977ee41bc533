/**
 * What was loaded, by its address: loaded once for everyone who shows it, shared while it is on its way, kept so that going back never
 * flashes. One clock refreshes what is shown, at the pace of whoever wants it most often; it rests while the tab is hidden, and a write or
 * the service's stream says at once what is out of date. A failed refresh keeps what is shown and tells its sentence.
 */
import { ApiError, call, isSameAnswer, sentenceOf } from "./api.ts";

interface Loaded {
  data: unknown;
  /** The sentence of the last load, where it failed. */
  error: string | null;
  /** Whether the service said that there is no such thing: to ask again does not help. */
  isGone: boolean;
}

/** How often what is shown is loaded again, in milliseconds, by what was loaded; null: not by the clock. */
type Pace = (data: unknown) => number | null;

interface Watcher {
  draw(): void;
  pace: Pace;
  /** Whether what it shows must not move now. */
  rests?: (() => boolean) | undefined;
}

interface Entry extends Loaded {
  readonly path: string;
  readonly watchers: Set<Watcher>;
  loading: AbortController | null;
  /** When the last load ended, in milliseconds of the page's own clock; -Infinity: it must be loaded. */
  loadedAt: number;
  /** How long the last two took, in milliseconds, the last one first. */
  tookMs: [number, number];
  /** When the last load began: what changed before the service began to tell, nobody told. */
  askedAt: number;
  /** Something of it changed since the last load was begun. */
  isOutdated: boolean;
}

const MAX_KEPT = 60;
/**
 * What changes all the time is loaded again after so long at the earliest, and where a load costs the service more, after so many times that, so
 * that an open page takes a hundredth of its thread for an address and a thirtieth for all of them; but after so long at the latest.
 */
const OUTDATED_MS = 1_000;
const OUTDATED_TIMES = 100;
const OUTDATED_TIMES_EACH = 30;
const OUTDATED_MOST_MS = 10_000;
/** How much slower the clock is for what the service tells of by itself, and how slow it is at most. */
const TOLD_TIMES = 6;
const TOLD_MS = 60_000;
/** What rests while somebody reads is looked at again after so long. */
const REST_MS = 500;
const entries = new Map<string, Entry>();
let timer: ReturnType<typeof setTimeout> | undefined;
/** Whether the service tells by itself when what is at the address changes. */
let isTold: (path: string) => boolean = () => false;
let toldSince = 0;
/** What the quickest load of any took: the way there and back, and next to no work. */
let quickestMs = Number.POSITIVE_INFINITY;

/** What is there of the address now, without loading it. */
export function peek(path: string): Loaded {
  return entries.get(path) ?? NOTHING;
}
const NOTHING: Loaded = { data: undefined, error: null, isGone: false };

/** Shows what is at the address until the answer is called: it is loaded at once, and drawn whenever it has changed. */
export function watch(path: string, watcher: Watcher): () => void {
  const entry = entries.get(path) ?? make(path);
  entry.watchers.add(watcher);
  // Whoever comes back sees what was kept, and what is new a moment later.
  if (entry.watchers.size === 1) entry.loadedAt = Number.NEGATIVE_INFINITY;
  plan();
  return () => {
    entry.watchers.delete(watcher);
    if (entry.watchers.size === 0) stop(entry);
  };
}

/** Puts an answer of a change in the place of what was loaded; a load on its way is older than that, and dropped. */
export function put(path: string, data: unknown): void {
  const entry = entries.get(path) ?? make(path);
  stop(entry);
  show(entry, { data, error: null, isGone: false });
}

/** Says that what begins with the address may be out of date: what is shown is loaded again now, the rest when it is shown. */
export function invalidate(prefix: string): void {
  for (const entry of entries.values()) {
    if (!covers(prefix, entry.path)) continue;
    // What is on its way was asked for before the change.
    stop(entry);
    entry.loadedAt = Number.NEGATIVE_INFINITY;
  }
  plan();
}

/**
 * Says that something at these addresses may have changed, as the service tells it, many times a second where much happens: what is shown is
 * loaded again soon, and what is on its way is waited for. `isFollowed`: whether somebody shows it who asks for it by the clock too.
 */
export function outdate(isMeant: (path: string, isFollowed: boolean) => boolean): void {
  for (const entry of entries.values()) {
    const isFollowed = [...entry.watchers].some(({ pace }) => pace(entry.data) !== null);
    if (isMeant(entry.path, isFollowed)) entry.isOutdated = true;
  }
  plan();
}

/** What the service tells of by itself from now on; the clock asks seldom for that. */
export function relyOn(told: (path: string) => boolean): void {
  isTold = told;
  toldSince = performance.now();
  plan();
}

/** `/a/b` covers itself, `/a/b/c` and `/a/b?x`, not `/a/bc`. */
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
  // What is the same stays the same thing, so that nobody takes it for a change.
  if (!isSame) entry.data = data;
  entry.error = error;
  entry.isGone = isGone;
  entry.loadedAt = performance.now();
  // The last shown is the last to be forgotten.
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

/** What a proxy answers in the service's place says nothing of the thing. */
function isMissing(thrown: unknown): boolean {
  return thrown instanceof ApiError && thrown.status === 404 && thrown.code !== "unknown";
}

/** When the entry is to be loaded next, on the page's own clock; Infinity: by no clock. */
function dueAt(entry: Entry): number {
  if (entry.loadedAt === Number.NEGATIVE_INFINITY) return entry.loadedAt;
  let every = entry.isOutdated ? paceOf(entry) : Number.POSITIVE_INFINITY;
  for (const { pace } of entry.watchers) {
    const ms = pace(entry.data) ?? Number.POSITIVE_INFINITY;
    every = Math.min(
      every,
      isTold(entry.path) && entry.askedAt >= toldSince
        ? Math.max(ms, Math.min(TOLD_TIMES * ms, TOLD_MS))
        : ms,
    );
  }
  return entry.loadedAt + every;
}

/** How often what changes all the time is loaded; one slow load among quick ones says nothing of its cost. */
function paceOf({ tookMs }: Entry): number {
  const costMs = Math.max(0, Math.min(...tookMs) - quickestMs);
  const shown = [...entries.values()].filter(({ watchers }) => watchers.size > 0).length;
  const times = Math.max(OUTDATED_TIMES, OUTDATED_TIMES_EACH * shown);
  return Math.min(OUTDATED_MOST_MS, Math.max(OUTDATED_MS, times * costMs));
}

/** Loads what is due, and wakes again when the next one is. */
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
