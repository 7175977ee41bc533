/**
 * Finds problems that only time shows: a streak that lasted long enough, a receiver without any request, and a relay whose silence exceeds its
 * rhythm.
 * The rhythm is the longest usual gap between two events. It is learned only for a relay without events for hours, once a silence, and gaps below
 * an hour count as one hour. A relay with millions of events thus costs a few hundred rows. Local development is skipped, because no provider sends
 * it requests regularly.
 */
import { type Clock, ClockWatch, Loop, toIso } from "../../base/clock.ts";
import { DAY_MS, HOUR_MS, MINUTE_MS } from "../../base/limit.ts";
import type { Log } from "../../base/log.ts";
import type { LiveRelay, LiveRelays, Snapshot } from "../../rules/relay/live-relay.ts";
import { findLastEventAt } from "../../rules/relay/relay-activity.ts";
import { type Reader, type Store, StoreUnavailable } from "../../store/port.ts";
import { firstSeqSince } from "../../store/time-index.ts";
import { CODES, type HealthCode } from "./condition.ts";
import type { Health } from "./health.ts";
import { STREAK_CODES } from "./problem.ts";

const LOOK_EVERY_MS = 5 * MINUTE_MS;
/** After the start, no relay counts as silent or uncalled for this long. A provider retries within this time what it sent while nothing ran. */
const GRACE_MS = HOUR_MS;
/** A difference between wall clock and monotonic time that is larger than this means that the clock was set. */
const CLOCK_SET_MS = 10 * MINUTE_MS;
const UNCALLED_MS = DAY_MS;
/** The time before its last event from which a rhythm is learned: two weekends. */
const LEARNED_MS = 14 * DAY_MS;
/** The fewest events that make a rhythm. */
const MIN_EVENTS = 8;
/** A relay is silent after this many times its longest gap, but not before the minimum. */
const SILENT_GAPS = 2;
const MIN_SILENCE_MS = 6 * HOUR_MS;
/** A history shorter than a week has no weekend yet, so a longer minimum applies. */
const WHOLE_RHYTHM_MS = 7 * DAY_MS;
const MIN_YOUNG_SILENCE_MS = 3 * DAY_MS;

interface Learned {
  lastAtMs: number;
  rhythm: Rhythm | null;
}

interface WatchDeps {
  store: Store;
  clock: Clock;
  log: Log;
  relays: LiveRelays;
  health: Health;
  /** Reports whether this node of several looks for silence; true unless given. */
  looks?: () => boolean;
}

export class SilenceCheck {
  readonly #deps: WatchDeps;
  readonly #clockWatch: ClockWatch;
  readonly #loop: Loop;
  /** The monotonic time since which the clock is trusted and requests could arrive. */
  #trustedSinceMs = 0;
  #learned = new Map<string, Learned>();

  constructor(deps: WatchDeps) {
    this.#deps = deps;
    this.#clockWatch = new ClockWatch(deps.clock, CLOCK_SET_MS);
    this.#loop = new Loop({
      clock: deps.clock,
      everyMs: LOOK_EVERY_MS,
      turn: () => this.#checkAll(),
      onError: (error) => {
        if (!(error instanceof StoreUnavailable))
          deps.log.error("the watch for silent relays failed", { error });
      },
    });
  }

  /** Reads the stored health and starts to check. */
  async start(): Promise<void> {
    const { store, clock, health } = this.#deps;
    const resolved = await store.read((tx) => listResolved(tx, clock.now()));
    await health.start((...run) => isOver(resolved, ...run));
    this.#clockWatch.takeJump();
    this.#trustedSinceMs = clock.monotonicMs();
    void this.#loop.start(LOOK_EVERY_MS);
  }

  /** Stops after the last request, and writes pending changes. */
  async stop(): Promise<void> {
    await this.#loop.stop();
    await this.#deps.health.stop();
  }

  async #checkAll(): Promise<undefined> {
    const { clock, relays, health } = this.#deps;
    const nowMs = clock.monotonicMs();
    if (this.#clockWatch.takeJump() !== 0) this.#trustedSinceMs = nowMs;
    const snapshot = await relays.current();
    const looks = nowMs - this.#trustedSinceMs >= GRACE_MS && this.#deps.looks?.() !== false;
    for (const { relay, code } of await health.refresh(snapshot)) {
      if (code === "relay_silent") this.#forgetSilence(relay);
      const run = STREAK_CODES.find((one) => one === code);
      if (run !== undefined) health.acknowledge(relay.id, run);
    }
    for (const relay of snapshot.relays) {
      health.evaluateStreaks(relay);
      if (looks) await this.#checkCalls(relay);
    }
    await health.flush();
    if (looks) await this.#checkSilence(snapshot);
  }

  async #checkCalls(relay: LiveRelay): Promise<void> {
    const { store, clock, health } = this.#deps;
    const { receiver, local } = relay;
    const { stored, acceptedAt, refusedAt } = health.healthOf(relay.id);
    if (
      receiver === null ||
      receiver.source !== null ||
      local ||
      acceptedAt !== null ||
      refusedAt !== null ||
      stored.uncalledTold
    )
      return;
    const [madeAt, lastAt] = await store.read(async (tx) => [
      await findMadeAt(tx, relay.id),
      await findLastEventAt(tx, relay.environmentId, relay.name),
    ]);
    if (madeAt === null || (lastAt ?? 0) >= madeAt || clock.now() - madeAt < UNCALLED_MS) return;
    health.recordUncalled(relay, formatUncalled(relay.name, madeAt, receiver.url));
  }

  async #checkSilence(snapshot: Snapshot): Promise<void> {
    const learned = new Map<string, Learned>();
    for (const relay of snapshot.relays) {
      if (relay.receiver !== null && !relay.local) await this.#checkRelay(relay, learned);
    }
    this.#learned = learned;
  }

  /** An owner resolved the problem, so this silence is not reported again. */
  #forgetSilence(relay: LiveRelay): void {
    const learned = this.#learned.get(relay.id);
    if (learned !== undefined) learned.rhythm = null;
  }

  async #checkRelay(relay: LiveRelay, learned: Map<string, Learned>): Promise<void> {
    const { store, clock, health } = this.#deps;
    const lastAtMs = await store.read((tx) => findLastEventAt(tx, relay.environmentId, relay.name));
    if (lastAtMs === null) return;
    const silentMs = clock.now() - lastAtMs;
    if (silentMs < MIN_SILENCE_MS) return health.problems.clear(relay, "relay_silent");
    const before = this.#learned.get(relay.id);
    const now =
      before?.lastAtMs === lastAtMs
        ? before
        : {
            lastAtMs,
            rhythm: await store.read((tx) => learnUnlessResolved(tx, relay, lastAtMs, clock.now())),
          };
    learned.set(relay.id, now);
    const { rhythm } = now;
    if (rhythm === null || silentMs <= rhythm.silentAfterMs) return;
    health.problems.raise(relay, "relay_silent", formatSilent(relay.name, lastAtMs, rhythm));
  }
}

function formatUncalled(name: string, madeAtMs: number, url: string): string {
  return `${name} was made at ${toIso(madeAtMs)} and it received no request yet: give its sender the URL ${url}, and test a request with relay send ${name}.`;
}

/** The message is read hours later, so it names no duration until now. */
function formatSilent(name: string, lastAtMs: number, { longestGapMs }: Rhythm): string {
  return `${name} received its last event at ${toIso(lastAtMs)}, and had no gap longer than ${formatHours(longestGapMs)} in the two weeks before. See its requests with relay requests list --relay ${name}, and ask the sender whether it still sends.`;
}

function formatHours(ms: number): string {
  const hours = Math.max(1, Math.round(ms / HOUR_MS));
  if (hours === 1) return "an hour";
  return hours < 48 ? `${hours} hours` : `${Math.round(hours / 24)} days`;
}

interface Rhythm {
  /** The longest usual gap, at least an hour. */
  longestGapMs: number;
  /** The time without an event that counts as silent. */
  silentAfterMs: number;
}

/** Learns the rhythm. Returns null also where an owner resolved the problem of this very silence. */
async function learnUnlessResolved(
  tx: Reader,
  relay: LiveRelay,
  lastAtMs: number,
  nowMs: number,
): Promise<Rhythm | null> {
  const resolved = isOver(await listResolved(tx, nowMs), relay.id, "relay_silent", lastAtMs);
  return resolved ? null : await learnRhythm(tx, relay, lastAtMs);
}

/** Learns the rhythm of the relay's events until `lastAtMs`. Returns null while it has too few since its creation. */
export async function learnRhythm(
  tx: Reader,
  { id, environmentId, name }: { id: string; environmentId: number; name: string },
  lastAtMs: number,
): Promise<Rhythm | null> {
  const relay = { environmentId, name };
  const madeAt = await findMadeAt(tx, id);
  const first = await findEventFrom(tx, relay, Math.max(lastAtMs - LEARNED_MS, madeAt ?? lastAtMs));
  if (first === null) return null;
  const newestSql = `${SELECT_EVENT} AND seq >= $seq ORDER BY seq LIMIT ${MIN_EVENTS}`;
  if ((await tx.all(newestSql, { ...relay, seq: first.seq })).length < MIN_EVENTS) return null;
  let event = first;
  let longestGapMs = HOUR_MS;
  while (event.at < lastAtMs) {
    const next: FoundEvent | null = await findEventFrom(tx, relay, event.at + HOUR_MS);
    if (next === null || next.at <= event.at) break;
    const before = await tx.get<FoundEvent>(`${SELECT_EVENT} AND seq < $seq ORDER BY seq DESC LIMIT 1`, {
      ...relay,
      seq: next.seq,
    });
    longestGapMs = Math.max(longestGapMs, next.at - (before?.at ?? event.at));
    event = next;
  }
  const floorMs = lastAtMs - first.at < WHOLE_RHYTHM_MS ? MIN_YOUNG_SILENCE_MS : MIN_SILENCE_MS;
  return { longestGapMs, silentAfterMs: Math.max(floorMs, SILENT_GAPS * longestGapMs) };
}

/** Finds when the relay was created; null where it was deleted. */
async function findMadeAt(tx: Reader, id: string): Promise<number | null> {
  return (await tx.get<{ at: number }>("SELECT created_at AS at FROM relay WHERE id = ?1", id))?.at ?? null;
}

interface FoundEvent {
  seq: number;
  at: number;
}

const SELECT_EVENT =
  "SELECT seq, created_at AS at FROM event INDEXED BY event_of_relay WHERE name_key = (SELECT key FROM relay_name WHERE environment_id = $environmentId AND name = $name)";

/** Finds the relay's first event that arrived at `ms` or later. */
async function findEventFrom(
  tx: Reader,
  relay: { environmentId: number; name: string },
  ms: number,
): Promise<FoundEvent | null> {
  const seq = await firstSeqSince(tx, "event", ms);
  return tx.get<FoundEvent>(`${SELECT_EVENT} AND seq >= $seq AND created_at >= $ms ORDER BY seq LIMIT 1`, {
    ...relay,
    seq,
    ms,
  });
}

/** The time when the newest cleared problem was raised, by `<code> <relay id>`. */
type Over = ReadonlyMap<string, number>;

/**
 * Lists the cleared problems, so that a problem which an owner resolved while nothing ran does not come back by itself. A problem raised in the
 * future is ignored, because the clock was set back since.
 */
async function listResolved(tx: Reader, nowMs: number): Promise<Over> {
  const rows = await tx.all<{ id: string; code: string; raisedAt: number }>(
    `SELECT relay.id AS id, code, max(raised_at) AS raisedAt FROM problem
     JOIN relay ON relay.environment_id = problem.environment_id AND target = 'relay:' || relay.name
     WHERE cleared_at IS NOT NULL AND raised_at <= ? AND code IN (${CODES.map(() => "?").join(", ")}) GROUP BY relay.id, code`,
    nowMs,
    ...CODES,
  );
  return new Map(rows.map(({ id, code, raisedAt }) => [`${code} ${id}`, raisedAt]));
}

/** Reports whether a problem reported what has lasted since `sinceMs`, and was cleared. */
function isOver(resolved: Over, relayId: string, code: HealthCode, sinceMs: number): boolean {
  return (resolved.get(`${code} ${relayId}`) ?? Number.NEGATIVE_INFINITY) >= sinceMs;
}
