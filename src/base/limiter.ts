/**
 * Counts calls, sign-in attempts or writes of a name within a window of time, in memory. A window begins with its first count, and a full window
 * stays until it ends, however many names follow. If no window can be freed for a new name, the name is refused, or (`lets in`) replaces the
 * oldest name. If several nodes serve one database, a window holds the places that this node drew from those of all nodes
 * (platform/account/shared-limit.ts). Together the nodes then never exceed the limit.
 */
import type { Clock } from "./clock.ts";

/** The nodes that serve one database. */
export interface Nodes {
  /** The number of live nodes, including this one. */
  readonly live: number;
}

/** A request for places in one window. */
export interface PlaceAsk {
  limiter: Limiter;
  name: string;
  amount: number;
}

/** The places that a node drew from a window, and those left for all nodes. */
interface Draw {
  drawn: number;
  left: number;
  endsInMs: number;
  /** True if a place was requested and none was left. */
  isUsedUp: boolean;
}

/** The shared counts from which nodes draw places. */
export interface Places {
  /** The number of nodes that draw. */
  readonly nodes: number;
  /** Draws places for all requests, or for none if a window has too few left. Tells the limiters the result. */
  draw(asks: readonly PlaceAsk[]): Promise<void>;
  /** Gives one drawn place back. */
  giveBack(limiter: Limiter, name: string): void;
}

/** The most windows of one limiter, which bounds its memory. */
const MAX_WINDOWS = 20_000;
/** The part of all windows that is forgotten at once for new names. The search visits every window, so it does not run for every new name. */
const ROOM_PART = 1 / 16;

/** The time that a node assumes that a limit is used up. Other nodes may have returned places since. */
const USED_UP_MS = 1_000;
/**
 * The divisor of a node's even share. It gives the size of a block, or the places without drawing. Other nodes cannot use the rest of the share until
 * the window ends.
 */
const PARTS = 4;

interface Window {
  count: number;
  /** The end in monotonic time, so that setting the wall clock does not end the window. */
  endsAtMonotonicMs: number;
  /** The places that this node drew, with several nodes. `usedUpAtMs` is when the node learned that none are left. */
  drawn: number;
  /** The places left for all nodes when this node last drew. */
  left: number;
  usedUpAtMs: number;
}

/**
 * The ways in which several nodes draw the places of a window. `each`: one by one, so that the count is exact. `blocks`: many at once, so that
 * most calls draw nothing. `above`: each node has a few places without drawing, so that the first calls, which anyone can send, cost the
 * database nothing.
 */
type Drawing = "each" | "blocks" | "above" | "blocks above";

/** The rule for a new name if no window can be freed, because all windows are full. */
type Crowd = "refuses" | "lets in";

interface LimiterOptions {
  maxWindows?: number;
  crowd?: Crowd;
  /** Identifies its windows among those of other limits that nodes share. */
  kind?: string;
  /** Null if a single process uses the database. */
  places?: Places | null;
  drawing?: Drawing;
}

export class Limiter {
  /** The limit of all nodes together. */
  readonly limit: number;
  readonly windowMs: number;
  readonly kind: string;
  readonly places: Places | null;
  readonly #inBlocks: boolean;
  readonly #above: boolean;
  readonly #clock: Clock;
  readonly #maxWindows: number;
  readonly #crowd: Crowd;
  /** The windows in the order in which they were opened, which is the order in which they end. */
  readonly #windows = new Map<string, Window>();
  /** The number of full windows. */
  #full = 0;

  constructor(
    clock: Clock,
    limit: number,
    windowMs: number,
    {
      maxWindows = MAX_WINDOWS,
      crowd = "refuses",
      kind = "",
      places = null,
      drawing = "each",
    }: LimiterOptions = {},
  ) {
    this.#clock = clock;
    this.limit = limit;
    this.windowMs = windowMs;
    this.kind = kind;
    this.places = places;
    this.#inBlocks = drawing === "blocks" || drawing === "blocks above";
    this.#above = drawing === "above" || drawing === "blocks above";
    this.#maxWindows = maxWindows;
    this.#crowd = crowd;
  }

  /**
   * Returns when the name has a place for one more, in milliseconds since the epoch, or null if it has one now. Opens no window. `atMost` bounds
   * the window further than the limit does.
   */
  fullUntil(name: string, atMost = Number.POSITIVE_INFINITY): number | null {
    const nowMs = this.#clock.monotonicMs();
    const window = this.#find(name, nowMs);
    const isFull = window !== undefined && (this.#isFull(window) || this.#countOf(window) >= atMost);
    const blocking = window === undefined ? this.#findCrowd(nowMs) : isFull ? window : null;
    return blocking === null ? null : Math.ceil(this.#clock.now() + blocking.endsAtMonotonicMs - nowMs);
  }

  /** Returns how many more of the name fit. With several nodes, this is as of the last draw. */
  left(name: string): number {
    const window = this.#find(name, this.#clock.monotonicMs());
    return window === undefined ? this.limit : Math.max(0, this.limit - this.#countOf(window));
  }

  /** Counts one and returns null if it fits. Otherwise counts nothing and returns as `fullUntil` does. */
  take(name: string): number | null {
    const resetAtMs = this.fullUntil(name);
    if (resetAtMs === null) this.count(name);
    return resetAtMs;
  }

  /** Returns whether places must be drawn before `amount` more can be counted. Always false in a single process. */
  isShort(name: string, amount = 1): boolean {
    if (this.places === null) return false;
    const nowMs = this.#clock.monotonicMs();
    const window = this.#find(name, nowMs);
    if (window === undefined) return amount > this.#undrawn;
    // Places of a limit that draws `above` are never returned, so a window that is used up stays so.
    const mayHaveMore = !isUsedUp(window) || (!this.#above && nowMs - window.usedUpAtMs >= USED_UP_MS);
    return mayHaveMore && window.count + amount > this.#placesOf(window);
  }

  /** Returns whether one more fits without drawing. If not, and `fullUntil` returns null, places must be drawn. */
  hasPlace(name: string): boolean {
    if (this.places === null) return this.fullUntil(name) === null;
    const window = this.#find(name, this.#clock.monotonicMs());
    return window !== undefined && window.count < this.#placesOf(window);
  }

  /** The number of places that all nodes draw from. */
  get drawable(): number {
    return this.limit - this.#undrawn * (this.places?.nodes ?? 0);
  }

  /** The number of places that a draw takes in advance, beyond those requested. */
  get ahead(): number {
    if (!this.#inBlocks || this.places === null) return 0;
    return Math.max(1, Math.floor(this.limit / (this.places.nodes * PARTS))) - 1;
  }

  /** Records the result of a draw. */
  give(name: string, { drawn, left, endsInMs, isUsedUp }: Draw): void {
    const nowMs = this.#clock.monotonicMs();
    const window = this.#find(name, nowMs) ?? this.#open(name, nowMs);
    this.#change(window, () => {
      window.drawn += drawn;
      window.left = left;
      window.usedUpAtMs = isUsedUp ? nowMs : Number.NEGATIVE_INFINITY;
      window.endsAtMonotonicMs = nowMs + endsInMs;
    });
  }

  /** Counts one, or `amount`. The first count opens the name's window. */
  count(name: string, amount = 1): void {
    const nowMs = this.#clock.monotonicMs();
    const window = this.#find(name, nowMs) ?? this.#open(name, nowMs);
    this.#change(window, () => {
      window.count += amount;
    });
  }

  /** Takes back one count, or `amount`. */
  giveBack(name: string, amount = 1): void {
    const window = this.#find(name, this.#clock.monotonicMs());
    if (window === undefined || window.count <= 0) return;
    const taken = Math.min(amount, window.count);
    this.#change(window, () => {
      window.count -= taken;
    });
    if (this.places === null || this.#inBlocks || this.#above) return;
    for (let one = 0; one < taken; one++) this.#return(name, window);
  }

  #return(name: string, window: Window): void {
    if (window.drawn <= 0) return;
    this.#change(window, () => {
      window.drawn -= 1;
      window.left += 1;
    });
    this.places?.giveBack(this, name);
  }

  #find(name: string, nowMs: number): Window | undefined {
    const window = this.#windows.get(name);
    return window !== undefined && window.endsAtMonotonicMs > nowMs ? window : undefined;
  }

  #open(name: string, nowMs: number): Window {
    this.#forget(name);
    this.#forgetEnded(nowMs);
    if (this.#windows.size >= this.#maxWindows) this.#makeRoom();
    const window = {
      count: 0,
      endsAtMonotonicMs: nowMs + this.windowMs,
      drawn: 0,
      left: this.limit,
      usedUpAtMs: Number.NEGATIVE_INFINITY,
    };
    this.#windows.set(name, window);
    if (this.#isFull(window)) this.#full += 1;
    return window;
  }

  #isFull(window: Window): boolean {
    const isAtLimit = window.count >= this.limit;
    if (this.places === null || isAtLimit) return isAtLimit;
    return isUsedUp(window) && window.count >= this.#placesOf(window);
  }

  /** Returns the count of all nodes together. */
  #countOf({ count, drawn, left }: Window): number {
    return this.places === null ? count : this.limit - left - drawn + count;
  }

  #placesOf(window: Window): number {
    return window.drawn + this.#undrawn;
  }

  /** The places that each node has without drawing. */
  get #undrawn(): number {
    if (!this.#above || this.places === null) return 0;
    return Math.floor(this.limit / (this.places.nodes * PARTS));
  }

  #change(window: Window, change: () => void): void {
    if (this.#isFull(window)) this.#full -= 1;
    change();
    if (this.#isFull(window)) this.#full += 1;
  }

  #forget(name: string): void {
    const window = this.#windows.get(name);
    if (window === undefined) return;
    if (this.#isFull(window)) this.#full -= 1;
    this.#windows.delete(name);
  }

  /** Returns the window that ends first if new names are refused because all windows are full. Otherwise returns null. */
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

  /** Forgets the windows with the lowest counts, except full ones. Among equal counts, it forgets the oldest first. */
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

function isUsedUp(window: Window): boolean {
  return window.usedUpAtMs > Number.NEGATIVE_INFINITY;
}
