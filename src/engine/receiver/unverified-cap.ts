/**
 * Caps the unverified requests of each address. Any caller can send them, so the first few of a minute cost no query. Nodes that share a database
 * share the cap.
 */
import type { Clock } from "../../base/clock.ts";
import { CAP_WINDOW_MS } from "../../base/limit.ts";
import { drawPlaces } from "../../base/limit-window.ts";
import { Limiter, type Places } from "../../base/limiter.ts";
import type { Refusal } from "../../base/refusal.ts";
import { CappedSources } from "./rejection.ts";

/** The most addresses whose unverified requests are counted. A flood from more addresses rejects no other address. */
const MAX_SOURCES = 50_000;

export class UnverifiedCap {
  readonly #limiter: Limiter;
  readonly #capped: CappedSources;

  constructor(clock: Clock, limit: number, places: Places | null) {
    const sharing = { kind: "unverified", places, drawing: "above" } as const;
    const options = { ...sharing, maxWindows: MAX_SOURCES, crowd: "lets in" } as const;
    this.#limiter = new Limiter(clock, limit, CAP_WINDOW_MS, options);
    this.#capped = new CappedSources(limit);
  }

  /** Counts a request of the address. Returns its refusal, or that of the cap. It asks the database only if this node has no place left. */
  reject(source: string, makeRefusal: () => Refusal): Refusal | Promise<Refusal> {
    const count = (): Refusal => this.#take(source) ?? makeRefusal();
    return this.#limiter.isShort(source) ? this.#draw(source).then(count) : count();
  }

  /** Counts a request of the address that is answered. Returns the refusal over the cap, or null. */
  async take(source: string): Promise<Refusal | null> {
    await this.#draw(source);
    return this.#take(source);
  }

  /** Returns the refusal of an address that is over its cap, or null. It counts nothing. */
  findRefusal(source: string): Refusal | null {
    const resetAtMs = this.#limiter.fullUntil(source);
    return resetAtMs === null ? null : this.#capped.reject(resetAtMs);
  }

  #take(source: string): Refusal | null {
    const resetAtMs = this.#limiter.take(source);
    return resetAtMs === null ? null : this.#capped.reject(resetAtMs);
  }

  /** Draws a place of the shared cap. This node counts by itself if the database is unavailable. */
  #draw(source: string): Promise<void> {
    return drawPlaces([{ limiter: this.#limiter, name: source }]).catch(() => undefined);
  }
}
