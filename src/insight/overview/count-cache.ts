/**
 * Caches counts that are slow. The first caller counts, and callers meanwhile get the same result. A result lives ten times as long as the counting
 * took, so that a slow count is ready and a fast one is never stale.
 */
import type { Clock } from "../../base/clock.ts";
import type { Store } from "../../store/port.ts";

const TIMES = 10;
/** A count that took less than this is not cached. */
const DEAR_MS = 100;
const MAX_MS = 20_000;
/** An expired result of at most this age is returned while it is counted again, so that a reload of the page waits for nothing. */
const STALE_MS = 60_000;

interface Kept {
  value: Promise<unknown>;
  /** The end of its life in monotonic time; Infinity while the count runs. */
  untilMs: number;
}

const keptOf = new WeakMap<Store, Map<string, Kept>>();

/** Counts, or returns the cached result. `key` names what is counted of which environment. */
export function countOnce<Value>(
  { store, clock }: { store: Store; clock: Clock },
  key: string,
  count: () => Promise<Value>,
): Promise<Value> {
  const known = keptOf.get(store) ?? new Map<string, Kept>();
  keptOf.set(store, known);
  const startMs = clock.monotonicMs();
  const found = known.get(key);
  if (found !== undefined && startMs < found.untilMs) return found.value as Promise<Value>;
  const isDear = found !== undefined && startMs < found.untilMs + STALE_MS;
  const value = count();
  const kept: Kept = { value: isDear ? found.value : value, untilMs: Number.POSITIVE_INFINITY };
  for (const [other, { untilMs }] of known) if (startMs >= untilMs + STALE_MS) known.delete(other);
  known.set(key, kept);
  value.then(
    () => {
      const endMs = clock.monotonicMs();
      const tookMs = endMs - startMs;
      kept.value = value;
      if (tookMs < DEAR_MS) known.delete(key);
      else kept.untilMs = endMs + Math.min(MAX_MS, TIMES * tookMs);
    },
    () => known.delete(key),
  );
  return kept.value as Promise<Value>;
}
