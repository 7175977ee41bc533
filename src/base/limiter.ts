/**
 * Counts what a name did within a window of time, in memory: calls, sign-in attempts, writes. A window begins with its first count. A full
 * one is never forgotten before it ends, however many names come after it: where there is no room for another name, the new name is
 * refused; or, where strangers may keep nobody out, it is let in and the oldest one is forgotten. It forgets with the process, and never
 * knows what it counts. Where several nodes serve one database, a window holds only the places that were drawn for this node from those of
 * all (account/shared-limit.ts), so that together they let through the limit and never more.
 */
import type { Clock } from "./clock.ts";

/** Who serves one database. */
export interface Nodes {
  /** Nodes that serve now, this one among them. */
  readonly live: number;
}

/** Places that are wanted of one window. */
export interface PlaceAsk {
  limiter: Limiter;
  name: string;
  amount: number;
}

/** What a node drew of a window, and what is left there for all. */
interface Draw {
  drawn: number;
  left: number;
  endsInMs: number;
  /** Whether there was none where one was wanted. */
  isUsedUp: boolean;
}

/** Where nodes share their limits. */
export interface Places {
  /** How many nodes draw. */
  readonly nodes: number;
  /** Draws places for each of them or, where one has not as many left, for none; the limiters are told what there is. */
  draw(asks: readonly PlaceAsk[]): Promise<void>;
  /** Gives one back that was drawn. */
  giveBack(limiter: Limiter, name: string): void;
}

/** A bound on the memory of one limiter. */
const MAX_WINDOWS = 20_000;
/** Of all windows this part makes room at once: looking for the least costs a look at each, so it is not done for every new name. */
const ROOM_PART = 1 / 16;

/** What other nodes gave back may be drawn: that a limit is used up is believed for so long. */
const USED_UP_MS = 1_000;
/** Of a node's even share: a block, or what it has without drawing, is one of so many. What it does not use is lost to others until the window ends. */
const PARTS = 4;

interface Window {
  count: number;
  /** By the clock that never goes back, so that setting the wall clock frees nobody. */
  endsAtMonotonicMs: number;
  /** Of several nodes: places that this one drew, and when it heard that no more are left. */
  drawn: number;
  /** Of all nodes, when this one drew last. */
  left: number;
  usedUpAtMs: number;
}

/**
 * How several nodes draw the places of a window. `each`: one by one, so the count is exact. `blocks`: many at once, so most calls draw nothing.
 * `above`: each node has a few places without drawing, so calls that anyone can send cost the database nothing at first.
 */
type Drawing = "each" | "blocks" | "above" | "blocks above";

/** What becomes of a new name where all the windows there is room for are full. */
type Crowd = "refuses" | "lets in";

interface LimiterOptions {
  maxWindows?: number;
  crowd?: Crowd;
  /** Tells its windows from those of other limits, where nodes share them. */
  kind?: string;
  /** null: one process has its database for itself. */
  places?: Places | null;
  drawing?: Drawing;
}

export class Limiter {
  /** Of all nodes together. */
  readonly limit: number;
  readonly windowMs: number;
  readonly kind: string;
  readonly places: Places | null;
  readonly #inBlocks: boolean;
  readonly #above: boolean;
  readonly #clock: Clock;
  readonly #maxWindows: number;
  readonly #crowd: Crowd;
  /** In the order they were opened, which is the order in which they end. */
  readonly #windows = new Map<string, Window>();
  /** How many of them are full. */
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
   * When there is room for one more of the name, milliseconds since the epoch; null while there is. Opens nothing. `atMost` bounds the
   * window further than the limit does.
   */
  fullUntil(name: string, atMost = Number.POSITIVE_INFINITY): number | null {
    const nowMs = this.#clock.monotonicMs();
    const window = this.#find(name, nowMs);
    const isFull = window !== undefined && (this.#isFull(window) || this.#countOf(window) >= atMost);
    const blocking = window === undefined ? this.#findCrowd(nowMs) : isFull ? window : null;
    return blocking === null ? null : Math.ceil(this.#clock.now() + blocking.endsAtMonotonicMs - nowMs);
  }

  /** How many more of the name there is room for; of several nodes as it was heard last. */
  left(name: string): number {
    const window = this.#find(name, this.#clock.monotonicMs());
    return window === undefined ? this.limit : Math.max(0, this.limit - this.#countOf(window));
  }

  /** Counts one where there is room for it, and answers null; else what `fullUntil` does, having counted nothing. */
  take(name: string): number | null {
    const resetAtMs = this.fullUntil(name);
    if (resetAtMs === null) this.count(name);
    return resetAtMs;
  }

  /** Of several nodes: whether places have to be drawn before so many more are looked for here. */
  isShort(name: string, amount = 1): boolean {
    if (this.places === null) return false;
    const nowMs = this.#clock.monotonicMs();
    const window = this.#find(name, nowMs);
    if (window === undefined) return amount > this.#undrawn;
    // Of those that are drawn above others none is given back.
    const mayHaveMore = !isUsedUp(window) || (!this.#above && nowMs - window.usedUpAtMs >= USED_UP_MS);
    return mayHaveMore && window.count + amount > this.#placesOf(window);
  }

  /** Whether one more has its place here; where it has none and `fullUntil` says nothing, places have to be drawn. */
  hasPlace(name: string): boolean {
    if (this.places === null) return this.fullUntil(name) === null;
    const window = this.#find(name, this.#clock.monotonicMs());
    return window !== undefined && window.count < this.#placesOf(window);
  }

  /** How many places all nodes draw from. */
  get drawable(): number {
    return this.limit - this.#undrawn * (this.places?.nodes ?? 0);
  }

  /** How many places a draw takes beyond those that are wanted, as far as there are any. */
  get ahead(): number {
    if (!this.#inBlocks || this.places === null) return 0;
    return Math.max(1, Math.floor(this.limit / (this.places.nodes * PARTS))) - 1;
  }

  /** Places were drawn. */
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

  /** Counts one, or `amount` at once; the first opens the name's window. */
  count(name: string, amount = 1): void {
    const nowMs = this.#clock.monotonicMs();
    const window = this.#find(name, nowMs) ?? this.#open(name, nowMs);
    this.#change(window, () => {
      window.count += amount;
    });
  }

  /** Takes one count back, or `amount`. */
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

  /** Of all nodes. */
  #countOf({ count, drawn, left }: Window): number {
    return this.places === null ? count : this.limit - left - drawn + count;
  }

  #placesOf(window: Window): number {
    return window.drawn + this.#undrawn;
  }

  /** What each node has without drawing. */
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

function isUsedUp(window: Window): boolean {
  return window.usedUpAtMs > Number.NEGATIVE_INFINITY;
}
