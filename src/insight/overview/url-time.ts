/**
 * Measures how long called URLs took to answer, from the runs of the newest events. Reads a bounded number of events of each relay that calls a
 * URL.
 */
import { type Static, Type } from "typebox";
import { orNull, textOrNull } from "../../base/schema.ts";
import { RUN_RESULTS } from "../../engine/event/run.ts";
import type { LiveRelays } from "../../rules/relay/live-relay.ts";
import { yieldToEventLoop } from "../../store/index-scan.ts";
import type { Store } from "../../store/port.ts";
import { firstSeqAbout } from "../../store/time-index.ts";

/** Events read altogether, at least of one relay, and in one step. */
const MAX_EVENTS = 400;
const MIN_EVENTS = 20;
const STEP = 10;
const MAX_RESULTS_BYTES = 32 * 1024;

export const urlTimesView = Type.Object({
  /** The number of measured calls. */
  calls: Type.Integer(),
  /** The median and the 95th percentile; null where no call was measured. */
  p50Ms: orNull(Type.Integer()),
  p95Ms: orNull(Type.Integer()),
  /** The relay whose call took the longest. */
  slowest: textOrNull,
});
export type UrlTimesView = Static<typeof urlTimesView>;

interface UrlTimesContext {
  environmentId: number;
  relays: Pick<LiveRelays, "current">;
  sinceMs: number;
}

export async function showUrlTimes(
  store: Store,
  { environmentId, relays, sinceMs }: UrlTimesContext,
): Promise<UrlTimesView> {
  const snapshot = await relays.current();
  const callers = snapshot.relays
    .filter((relay) => relay.environmentId === environmentId)
    .filter(({ actions }) => actions.some(({ type }) => type === "call_url"))
    .slice(0, MAX_EVENTS / MIN_EVENTS);
  const from = await store.read((tx) => firstSeqAbout(tx, "event", sinceMs));
  const most = Math.floor(MAX_EVENTS / Math.max(1, callers.length));
  const times: { relay: string; tookMs: number }[] = [];
  for (const { name, nameKey } of callers) {
    const read = await readTimes(store, { nameKey, from, most });
    times.push(...read.map((tookMs) => ({ relay: name, tookMs })));
  }
  times.sort((one, other) => one.tookMs - other.tookMs);
  const at = (share: number) => times[Math.ceil(times.length * share) - 1]?.tookMs ?? null;
  return { calls: times.length, p50Ms: at(0.5), p95Ms: at(0.95), slowest: times.at(-1)?.relay ?? null };
}

async function readTimes(
  store: Store,
  { nameKey, from, most }: { nameKey: number; from: number; most: number },
): Promise<number[]> {
  const times: number[] = [];
  let before = Number.MAX_SAFE_INTEGER;
  for (let read = 0; read < most; read += STEP) {
    const values = { nameKey, from, before, step: STEP, bytes: MAX_RESULTS_BYTES };
    const rows = await store.read((tx) => tx.all<{ seq: number; results: string | null }>(NEWEST, values));
    for (const { results } of rows)
      if (results !== null)
        for (const one of RUN_RESULTS.read({ results }).results)
          if (one.type === "call_url" && "tookMs" in one && typeof one.tookMs === "number")
            times.push(one.tookMs);
    await yieldToEventLoop();
    const last = rows.at(-1);
    if (last === undefined || new Set(rows.map(({ seq }) => seq)).size < STEP) break;
    before = last.seq;
  }
  return times;
}

const NEWEST = `SELECT newest.seq AS seq, CASE WHEN octet_length(run.results) <= $bytes THEN run.results END AS results FROM (
    SELECT seq FROM event INDEXED BY event_of_relay WHERE name_key = $nameKey AND seq >= $from AND seq < $before ORDER BY seq DESC LIMIT $step) AS newest
  LEFT JOIN run ON run.event_seq = newest.seq ORDER BY newest.seq DESC`;
