/**
 * Looks every few minutes whether a receiver went silent against its own rhythm: the longest time it was usually without an event. The rhythm
 * is learned only of a relay that has been without one for hours, and once a silence; gaps shorter than an hour are not told apart, so that
 * learning a relay with millions of events asks for a few hundred rows. Local development is left alone: no provider calls a laptop by a rhythm.
 */
import { type Clock, ClockWatch, Loop, toIso } from "../ground/clock.ts";
import { DAY_MS, HOUR_MS, MINUTE_MS } from "../ground/limit.ts";
import type { Log } from "../ground/log.ts";
import type { LiveRelay, LiveRelays } from "../relay/live-relay.ts";
import { findLastEventAt } from "../relay/relay-view.ts";
import { type Reader, type Store, StoreUnavailable } from "../store/port.ts";
import { firstSeqSince } from "../store/time-order.ts";
import type { FruitlessRuns } from "./fruitless.ts";
import type { HealthCode } from "./fruitless-rule.ts";
import type { ReceiverHealth } from "./health.ts";
import { isOver, listOver } from "./over.ts";

const LOOK_EVERY_MS = 5 * MINUTE_MS;
/** After the start nothing counts as silent yet: what was sent while nothing ran is sent again by then. */
const GRACE_MS = HOUR_MS;
/** A wall clock that moved by so much more or less than the time that passed since the last look was set. */
const CLOCK_SET_MS = 10 * MINUTE_MS;
/** How far back from its last event a rhythm is learned: two weekends. */
const LEARNED_MS = 14 * DAY_MS;
/** With fewer events there is no rhythm yet. */
const MIN_EVENTS = 8;
/** Silent is more than so many times the longest gap, and never less than the floor. */
const SILENT_GAPS = 2;
const MIN_SILENCE_MS = 6 * HOUR_MS;
/** A history shorter than a week has seen no weekend yet, so its floor is one. */
const WHOLE_RHYTHM_MS = 7 * DAY_MS;
const MIN_YOUNG_SILENCE_MS = 3 * DAY_MS;

interface SilenceDeps {
  store: Store;
  clock: Clock;
  log: Log;
  relays: LiveRelays;
}

interface Learned {
  lastAtMs: number;
  rhythm: Rhythm | null;
}

export class SilenceWatch {
  readonly #deps: SilenceDeps;
  readonly #health: ReceiverHealth;
  readonly #fruitless: FruitlessRuns;
  readonly #clockWatch: ClockWatch;
  readonly #loop: Loop;
  #learned = new Map<string, Learned>();
  /** Monotonic: since when the clock is trusted and calls could arrive. */
  #trustedSinceMs = 0;

  constructor(deps: SilenceDeps, health: ReceiverHealth, fruitless: FruitlessRuns) {
    this.#deps = deps;
    this.#health = health;
    this.#fruitless = fruitless;
    this.#clockWatch = new ClockWatch(deps.clock, CLOCK_SET_MS);
    this.#loop = new Loop({
      clock: deps.clock,
      everyMs: LOOK_EVERY_MS,
      turn: () => this.#look(),
      onError: (error) => {
        if (!(error instanceof StoreUnavailable))
          deps.log.error("the watch for silent relays failed", { error });
      },
    });
  }

  start(): void {
    this.#clockWatch.look();
    this.#trustedSinceMs = this.#deps.clock.monotonicMs();
    void this.#loop.start(LOOK_EVERY_MS);
  }

  stop(): Promise<void> {
    return this.#loop.stop();
  }

  async #look(): Promise<undefined> {
    const nowMs = this.#deps.clock.monotonicMs();
    if (this.#clockWatch.look() !== 0) this.#trustedSinceMs = nowMs;
    const snapshot = await this.#deps.relays.current();
    for (const { relay, code } of await this.#health.tend(snapshot)) this.#forget(relay, code);
    await this.#fruitless.look(snapshot, this.#trustedSinceMs);
    if (nowMs - this.#trustedSinceMs < GRACE_MS) return;
    const learned = new Map<string, Learned>();
    for (const relay of snapshot.relays) {
      if (relay.receiver !== null && !relay.local) await this.#lookAt(relay, learned);
    }
    this.#learned = learned;
  }

  /** Somebody resolved a problem by hand: it comes back only with what happens from now on. */
  #forget(relay: LiveRelay, code: HealthCode): void {
    const learned = this.#learned.get(relay.id);
    if (code === "relay_silent" && learned !== undefined) learned.rhythm = null;
    else if (code === "relay_refusing") this.#health.forgetRefusals(relay);
    else this.#fruitless.forget(relay, code);
  }

  async #lookAt(relay: LiveRelay, learned: Map<string, Learned>): Promise<void> {
    const { store, clock } = this.#deps;
    const lastAtMs = await store.read((tx) => findLastEventAt(tx, relay.environmentId, relay.name));
    if (lastAtMs === null) return;
    const silentMs = clock.now() - lastAtMs;
    if (silentMs < MIN_SILENCE_MS) return this.#health.receive(relay);
    const before = this.#learned.get(relay.id);
    const now =
      before?.lastAtMs === lastAtMs
        ? before
        : { lastAtMs, rhythm: await store.read((tx) => learnUnlessSeenTo(tx, relay, lastAtMs, clock.now())) };
    learned.set(relay.id, now);
    const { rhythm } = now;
    if (rhythm === null || silentMs <= rhythm.silentAfterMs) return;
    this.#health.raise(relay, "relay_silent", tellSilent(relay.name, lastAtMs, silentMs, rhythm));
  }
}

function tellSilent(name: string, lastAtMs: number, silentMs: number, { longestGapMs }: Rhythm): string {
  return `${name} received its last event at ${toIso(lastAtMs)}, ${sayHours(silentMs)} ago, and was never without one for more than ${sayHours(longestGapMs)} in the two weeks before: see what does arrive with relay calls list --relay ${name}, and ask the sender whether it still sends.`;
}

function sayHours(ms: number): string {
  const hours = Math.max(1, Math.round(ms / HOUR_MS));
  if (hours === 1) return "an hour";
  return hours < 48 ? `${hours} hours` : `${Math.round(hours / 24)} days`;
}

interface Rhythm {
  /** At least an hour; shorter gaps count as one. */
  longestGapMs: number;
  /** How long without an event counts as silent. */
  silentAfterMs: number;
}

/** null also where this very silence was told and somebody resolved it by hand: nothing else ends one but an event. */
async function learnUnlessSeenTo(
  tx: Reader,
  relay: LiveRelay,
  lastAtMs: number,
  nowMs: number,
): Promise<Rhythm | null> {
  const over = isOver(await listOver(tx, nowMs), relay.id, "relay_silent", lastAtMs);
  return over ? null : await learnRhythm(tx, relay, lastAtMs);
}

/** The rhythm of the relay's events up to `lastAtMs`; null while there are too few since it was made. */
export async function learnRhythm(
  tx: Reader,
  { id, environmentId, name }: { id: string; environmentId: number; name: string },
  lastAtMs: number,
): Promise<Rhythm | null> {
  const relay = { environmentId, name };
  const made = await tx.get<{ at: number }>("SELECT created_at AS at FROM relay WHERE id = ?1", id);
  const first = await findEventFrom(tx, relay, Math.max(lastAtMs - LEARNED_MS, made?.at ?? lastAtMs));
  if (first === null) return null;
  const enough = `${SELECT_EVENT} AND seq >= $seq ORDER BY seq LIMIT ${MIN_EVENTS}`;
  if ((await tx.all(enough, { ...relay, seq: first.seq })).length < MIN_EVENTS) return null;
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

interface FoundEvent {
  seq: number;
  at: number;
}

const SELECT_EVENT =
  "SELECT seq, created_at AS at FROM event WHERE name_key = (SELECT key FROM relay_name WHERE environment_id = $environmentId AND name = $name)";

/** The relay's first event that arrived at `ms` or later. */
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
