/**
 * What is dear to count is kept for a while, and counted once for everyone who asks meanwhile: ten times as long as the counting took, so that
 * it is at hand beside millions of events, and is never stale where it costs nothing.
 */
import type { Clock } from "../../base/clock.ts";
import type { Store } from "../../store/port.ts";

const TIMES = 10;
/** What took less is counted anew each time. */
const DEAR_MS = 100;
const MAX_MS = 20_000;
/** What is older by no more than that is told while it is counted anew, so that who looks again waits for nothing. */
const STALE_MS = 60_000;

interface Kept {
  value: Promise<unknown>;
  /** On the clock that nobody sets; Infinity: it is being counted. */
  untilMs: number;
}

const keptOf = new WeakMap<Store, Map<string, Kept>>();

/** `key`: what is counted of which environment. */
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
