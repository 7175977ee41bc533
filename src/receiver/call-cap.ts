/**
 * The caps of receiver calls, in memory, in windows of one minute: unverified calls by address, new events by app, and by relay the verified
 * calls that become no event. It never counts what it refuses, and decides what a refused caller is told.
 */
import type { Clock } from "../ground/clock.ts";
import { CAP_WINDOW_MS, MAX_UNCOUNTED_US, type RaisableLimits } from "../ground/limit.ts";
import { Limiter } from "../ground/limiter.ts";
import { Refusal } from "../ground/refusal.ts";

export type CallLimits = Pick<
  RaisableLimits,
  "verifiedEventsPerMinute" | "eventlessCallsPerMinute" | "unverifiedCallsPerMinute"
>;

export class CallCaps {
  readonly #unverified: Limiter;
  readonly #events: Limiter;
  readonly #eventless: Limiter;

  constructor(limits: CallLimits, clock: Clock) {
    this.#unverified = new Limiter(clock, limits.unverifiedCallsPerMinute, CAP_WINDOW_MS);
    this.#events = new Limiter(clock, limits.verifiedEventsPerMinute, CAP_WINDOW_MS);
    this.#eventless = new Limiter(clock, limits.eventlessCallsPerMinute, CAP_WINDOW_MS);
  }

  /** Counts an unverified call of the address; over the cap it is told that instead of `refusal`. */
  countUnverified(source: string, refusal: Refusal): Refusal {
    const resetAtMs = this.#unverified.take(source);
    return resetAtMs === null ? refusal : this.#refuseSource(resetAtMs);
  }

  /** What an address is told whose minute is full, before anything costly is done for it; null: it is not full. */
  findFullSource(source: string): Refusal | null {
    const resetAtMs = this.#unverified.fullUntil(source);
    return resetAtMs === null ? null : this.#refuseSource(resetAtMs);
  }

  #refuseSource(resetAtMs: number): Refusal {
    return new Refusal(
      "source_capped",
      `More than ${this.#unverified.limit} unverified calls in a minute came from this address; fix the sender and try again after resetAt.`,
      { resetAtMs },
    );
  }

  /** What is told of an event that is one too many for the app; null: there is room for one. Counts nothing. */
  findFullApp(appId: string): Refusal | null {
    const resetAtMs = this.#events.fullUntil(appId);
    if (resetAtMs === null) return null;
    return new Refusal(
      "receiver_capped",
      `This app received more than ${this.#events.limit} verified events in a minute; send the event again after resetAt.`,
      { resetAtMs },
    );
  }

  countEvent(appId: string): void {
    this.#events.count(appId);
  }

  /** An event that was counted was not stored after all. */
  giveEventBack(appId: string): void {
    this.#events.giveBack(appId);
  }

  /** Counts a verified call that becomes no event; refuses with `receiver_capped` over the relay's bound. */
  countEventless(relayId: string): void {
    const resetAtMs = this.#eventless.take(relayId);
    if (resetAtMs === null) return;
    throw new Refusal(
      "receiver_capped",
      `This relay received more than ${this.#eventless.limit} calls in a minute that become no event: duplicates, what its when ignores, bodies that are not JSON; send the call again after resetAt.`,
      { resetAtMs },
    );
  }
}

/** Work on a call that has not verified: past the bound it asks, once, whether it may go on; `look` throws where it may not. */
export class WorkMeter {
  readonly #look: () => void;
  #spentUs = 0;
  #asks = true;

  constructor(look: () => void) {
    this.#look = look;
  }

  charge(microseconds: number): void {
    if (!this.#asks) return;
    this.#spentUs += microseconds;
    if (this.#spentUs <= MAX_UNCOUNTED_US) return;
    this.#asks = false;
    this.#look();
  }

  /** The call has verified: what it costs from here on is its own. */
  stop(): void {
    this.#asks = false;
  }
}
