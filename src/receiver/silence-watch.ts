/**
 * Looks every few minutes whether a receiver went silent against its own rhythm. The rhythm is learned only of a relay that has been
 * without an event for hours, and once a silence. Local development is left alone: no provider calls a laptop by a rhythm.
 */
import { type Clock, toIso } from "../ground/clock.ts";
import { ClockWatch } from "../ground/clock-watch.ts";
import type { Log } from "../ground/log.ts";
import { Loop } from "../ground/loop.ts";
import type { LiveRelay, LiveRelays, Snapshot } from "../relay/live-relay.ts";
import { findLastEventAt } from "../relay/relay-view.ts";
import { type Store, StoreUnavailable } from "../store/port.ts";
import { learnRhythm, MIN_SILENCE_MS, type Rhythm } from "./rhythm.ts";
import type { StandingTroubles } from "./standing-trouble.ts";

const LOOK_EVERY_MS = 5 * 60_000;
/** After the start nothing counts as silent yet: what was sent while nothing ran is sent again by then. */
const GRACE_MS = 3_600_000;
/** A wall clock that moved by so much more or less than the time that passed since the last look was set. */
const CLOCK_SET_MS = 10 * 60_000;
const HOUR_MS = 3_600_000;

export interface SilenceRooms {
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
  readonly #rooms: SilenceRooms;
  readonly #troubles: StandingTroubles;
  readonly #clockWatch: ClockWatch;
  readonly #loop: Loop;
  #learned = new Map<string, Learned>();
  /** Monotonic: since when the clock is trusted and calls could arrive. */
  #trustedSinceMs = 0;

  constructor(rooms: SilenceRooms, troubles: StandingTroubles) {
    this.#rooms = rooms;
    this.#troubles = troubles;
    this.#clockWatch = new ClockWatch(rooms.clock, CLOCK_SET_MS);
    this.#loop = new Loop({
      clock: rooms.clock,
      everyMs: LOOK_EVERY_MS,
      turn: () => this.#look(),
      onError: (error) => {
        if (!(error instanceof StoreUnavailable))
          rooms.log.error("the watch for silent relays failed", { error });
      },
    });
  }

  start(): void {
    this.#clockWatch.look();
    this.#trustedSinceMs = this.#rooms.clock.monotonicMs();
    void this.#loop.start(LOOK_EVERY_MS);
  }

  stop(): Promise<void> {
    return this.#loop.stop();
  }

  async #look(): Promise<undefined> {
    const nowMs = this.#rooms.clock.monotonicMs();
    if (this.#clockWatch.look() !== 0) this.#trustedSinceMs = nowMs;
    const snapshot = await this.#rooms.relays.current();
    if (this.#troubles.size > 0) await this.#clearGone(snapshot);
    if (nowMs - this.#trustedSinceMs < GRACE_MS) return;
    const watched = snapshot.relays.filter((relay) => relay.receiver !== null && !relay.local);
    const learned = new Map<string, Learned>();
    for (const relay of watched) await this.#lookAt(relay, learned);
    this.#learned = learned;
  }

  async #lookAt(relay: LiveRelay, learned: Map<string, Learned>): Promise<void> {
    const { store, clock } = this.#rooms;
    const lastAtMs = await store.read((tx) => findLastEventAt(tx, relay.environmentId, relay.name));
    if (lastAtMs === null) return;
    const silentMs = clock.now() - lastAtMs;
    if (silentMs < MIN_SILENCE_MS) {
      this.#troubles.clear(relay, "relay_silent", tellReceives(relay.name));
      return;
    }
    const before = this.#learned.get(relay.id);
    const now =
      before?.lastAtMs === lastAtMs
        ? before
        : { lastAtMs, rhythm: await store.read((tx) => learnRhythm(tx, relay, lastAtMs)) };
    learned.set(relay.id, now);
    if (now.rhythm === null || silentMs <= now.rhythm.silentAfterMs) return;
    this.#troubles.raise(relay, "relay_silent", tellSilent(relay.name, lastAtMs, silentMs, now.rhythm));
  }

  /** A relay that is deleted, or no receiver any more, has nobody to be silent or to refuse. */
  async #clearGone(snapshot: Snapshot): Promise<void> {
    await this.#troubles.load();
    for (const { relay, code } of this.#troubles.list()) {
      const stands = snapshot.relays.some(
        ({ environmentId, name, receiver }) =>
          environmentId === relay.environmentId && name === relay.name && receiver !== null,
      );
      if (!stands) this.#troubles.clear(relay, code, null);
    }
  }
}

/** What the owner is told when events arrive again. */
export function tellReceives(name: string): string {
  return `${name} receives events again, so its silence is over.`;
}

function tellSilent(name: string, lastAtMs: number, silentMs: number, { longestGapMs }: Rhythm): string {
  return `${name} received its last event at ${toIso(lastAtMs)}, ${sayHours(silentMs)} ago, and was never without one for more than ${sayHours(longestGapMs)} in the two weeks before: see its recent calls for what does arrive, and ask the sender whether it still sends.`;
}

function sayHours(ms: number): string {
  const hours = Math.max(1, Math.round(ms / HOUR_MS));
  if (hours === 1) return "an hour";
  return hours < 48 ? `${hours} hours` : `${Math.round(hours / 24)} days`;
}
