/**
 * Counts what a name did within a window of time, in memory: calls, sign-in attempts, writes. A window begins with its first count. A full
 * one is never forgotten before it ends, however many names come after it: where there is no room for another name, the new name is
 * refused; or, where strangers may keep nobody out, it is let in and the oldest one is forgotten. It forgets with the process, and never
 * knows what it counts. Where nodes serve one database side by side, a limit is split evenly, and never to more than the limit together; a
 * node's windows go on where others come or go, so that in such a minute as many may pass as after a restart.
 */
import type { Clock } from "./clock.ts";
import { sharingNetworksOf, wideNetworkOf } from "./network.ts";

export interface Nodes {
  /** Nodes that serve now, this one among them. */
  readonly live: number;
  /** The place of this one among them, from 0: the first ones take what an even split leaves over. */
  readonly rank: number;
}

/** A process that has its database for itself. */
export const ALONE: Nodes = { live: 1, rank: 0 };

/** What this node may let through of a limit. */
export function shareOf(limit: number, { live, rank }: Nodes): number {
  if (live <= 1) return limit;
  return Math.floor(limit / live) + (rank < limit % live ? 1 : 0);
}

/** A bound on the memory of one limiter. */
const MAX_WINDOWS = 20_000;
/** Of all windows this part makes room at once: looking for the least costs a look at each, so it is not done for every new name. */
const ROOM_PART = 1 / 16;

interface Window {
  count: number;
  /** By the clock that never goes back, so that setting the wall clock frees nobody. */
  endsAtMonotonicMs: number;
}

/** What becomes of a new name where all the windows there is room for are full. */
type Crowd = "refuses" | "lets in";

interface LimiterOptions {
  maxWindows?: number;
  crowd?: Crowd;
  /** Among whom the limit is shared. */
  nodes?: Nodes;
}

export class Limiter {
  /** Of all nodes together. */
  readonly limit: number;
  readonly #clock: Clock;
  readonly #nodes: Nodes;
  readonly #windowMs: number;
  readonly #maxWindows: number;
  readonly #crowd: Crowd;
  /** In the order they were opened, which is the order in which they end. */
  readonly #windows = new Map<string, Window>();
  /** How many of them are full, where each may hold `#share`. */
  #full = 0;
  #share: number;

  constructor(
    clock: Clock,
    limit: number,
    windowMs: number,
    { maxWindows = MAX_WINDOWS, crowd = "refuses", nodes = ALONE }: LimiterOptions = {},
  ) {
    this.#clock = clock;
    this.limit = limit;
    this.#windowMs = windowMs;
    this.#maxWindows = maxWindows;
    this.#crowd = crowd;
    this.#nodes = nodes;
    this.#share = shareOf(limit, nodes);
  }

  /**
   * When there is room for one more of the name, milliseconds since the epoch; null while there is. Opens nothing. `atMost` bounds the
   * window further than the limit does.
   */
  fullUntil(name: string, atMost = Number.POSITIVE_INFINITY): number | null {
    const nowMs = this.#clock.monotonicMs();
    if (this.#shareNow() === 0) return this.#clock.now() + this.#windowMs;
    const window = this.#find(name, nowMs);
    const isFull = window !== undefined && (this.#isFull(window) || window.count >= atMost);
    const blocking = window === undefined ? this.#findCrowd(nowMs) : isFull ? window : null;
    return blocking === null ? null : Math.ceil(this.#clock.now() + blocking.endsAtMonotonicMs - nowMs);
  }

  /** How many more of the name there is room for. */
  left(name: string): number {
    const share = this.#shareNow();
    return Math.max(0, share - (this.#find(name, this.#clock.monotonicMs())?.count ?? 0));
  }

  /** Counts one where there is room for it, and answers null; else what `fullUntil` does, having counted nothing. */
  take(name: string): number | null {
    const resetAtMs = this.fullUntil(name);
    if (resetAtMs === null) this.count(name);
    return resetAtMs;
  }

  /** Counts one, or `amount` at once; the first opens the name's window. */
  count(name: string, amount = 1): void {
    this.#shareNow();
    const nowMs = this.#clock.monotonicMs();
    let window = this.#find(name, nowMs);
    if (window === undefined) {
      this.#forget(name);
      this.#forgetEnded(nowMs);
      if (this.#windows.size >= this.#maxWindows) this.#makeRoom();
      window = { count: 0, endsAtMonotonicMs: nowMs + this.#windowMs };
      this.#windows.set(name, window);
    }
    this.#add(window, amount);
  }

  /** Takes one count back, or `amount`. */
  giveBack(name: string, amount = 1): void {
    this.#shareNow();
    const window = this.#find(name, this.#clock.monotonicMs());
    if (window !== undefined && window.count > 0) this.#add(window, -Math.min(amount, window.count));
  }

  #find(name: string, nowMs: number): Window | undefined {
    const window = this.#windows.get(name);
    return window !== undefined && window.endsAtMonotonicMs > nowMs ? window : undefined;
  }

  #isFull(window: Window): boolean {
    return window.count >= this.#share;
  }

  /** What a window here may hold; nodes come and go. */
  #shareNow(): number {
    const share = shareOf(this.limit, this.#nodes);
    if (share === this.#share) return share;
    this.#share = share;
    this.#full = 0;
    for (const window of this.#windows.values()) if (this.#isFull(window)) this.#full += 1;
    return share;
  }

  #add(window: Window, amount: number): void {
    if (this.#isFull(window)) this.#full -= 1;
    window.count += amount;
    if (this.#isFull(window)) this.#full += 1;
  }

  #forget(name: string): void {
    const window = this.#windows.get(name);
    if (window === undefined) return;
    if (this.#isFull(window)) this.#full -= 1;
    this.#windows.delete(name);
  }

  /** The first window to end where all that there is room for are full; else null. */
  #findCrowd(nowMs: number): Window | null {
    if (this.#crowd === "lets in" || this.#full < this.#maxWindows) return null;
    this.#forgetEnded(nowMs);
    return this.#full < this.#maxWindows ? null : (this.#windows.values().next().value ?? null);
  }

  #forgetEnded(nowMs: number): void {
    for (const [name, window] of this.#windows) {
      if (window.endsAtMonotonicMs > nowMs) return;
      this.#forget(name);
    }
  }

  #makeRoom(): void {
    const [oldest] = this.#windows.keys();
    if (this.#crowd === "refuses" || this.#full < this.#maxWindows) this.#forgetLeast();
    else if (oldest !== undefined) this.#forget(oldest);
  }

  /** Forgets, of the windows that are not full, those with the least in them, and of those the oldest. */
  #forgetLeast(): void {
    const byCount = new Map<number, string[]>();
    for (const [name, window] of this.#windows) {
      if (this.#isFull(window)) continue;
      const names = byCount.get(window.count);
      if (names === undefined) byCount.set(window.count, [name]);
      else names.push(name);
    }
    let left = Math.ceil(this.#maxWindows * ROOM_PART);
    for (const [, names] of [...byCount].sort(([one], [other]) => one - other)) {
      for (const name of names.slice(0, left)) this.#forget(name);
      left -= names.length;
      if (left <= 0) return;
    }
  }
}

/** A window that a request needs room in. */
interface Need {
  limiter: Limiter;
  name: string;
  /** How much it counts: 1 unless told; 0 only looks. */
  amount?: number;
  /** A bound of this window below its limiter's own. */
  atMost?: number;
}

/** The first window without room, and when it has some; null where each has room. Counts nothing. */
export function findFull<One extends Need>(needs: readonly One[]): { need: One; resetAtMs: number } | null {
  for (const need of needs) {
    const resetAtMs = need.limiter.fullUntil(need.name, need.atMost);
    if (resetAtMs !== null) return { need, resetAtMs };
  }
  return null;
}

/** Counts in every window, having looked at all of them before; or in none, and answers the first one without room and when it has some. */
export function takeAll<One extends Need>(needs: readonly One[]): { need: One; resetAtMs: number } | null {
  const full = findFull(needs);
  if (full !== null) return full;
  for (const { limiter, name, amount = 1 } of needs) if (amount > 0) limiter.count(name, amount);
  return null;
}

/** A caller's own window, and that of the wide network it belongs to where there is one. */
export function needsOfSource(
  source: string,
  own: Limiter,
  wide: Limiter,
): (Need & { network: string | null })[] {
  const network = wideNetworkOf(source);
  const ownNeed = { limiter: own, name: source, network: null };
  return network === null ? [ownNeed] : [ownNeed, { limiter: wide, name: network, network }];
}

/**
 * What each network of a caller may take of a limit that others share: one more only while the limit has as much left as the network has
 * taken, times its weight. One network stops at half of the limit, two at a third each, and k leave the part 1 / (k + 1) for others.
 */
export function needsOfShare(
  source: string,
  shared: { limiter: Limiter; name: string },
  byNetwork: Limiter,
): (Need & { network: string })[] {
  const left = shared.limiter.left(shared.name);
  return sharingNetworksOf(source).map(({ network, weight }) => ({
    limiter: byNetwork,
    name: `${shared.name} ${network}`,
    network,
    atMost: weight * left,
  }));
}
