/**
 * What keeps logins of the command line slow, in memory: how many an address begins, how often one polls (the interval of RFC 8628, longer by its
 * step each time it was not kept), how many wrong codes an owner types.
 */
import type { Clock } from "../../base/clock.ts";
import {
  LOGIN_LIFE_MS,
  LOGIN_POLL_SECONDS,
  MAX_LOGIN_CODE_TRIES,
  MAX_LOGINS_PER_ADDRESS,
  MAX_LOGINS_PER_NETWORK,
  MAX_WAITING_LOGINS,
} from "../../base/limit.ts";
import { drawPlaces, needsOfSource, takeAll } from "../../base/limit-window.ts";
import { Limiter, type Places } from "../../base/limiter.ts";
import { Refusal } from "../../base/refusal.ts";

/** What a clock or a network makes early is none the earlier. */
const POLL_TOLERANCE_MS = 1_000;

export class LoginCap {
  readonly #clock: Clock;
  readonly #addresses: Limiter;
  readonly #networks: Limiter;
  readonly #tries: Limiter;
  /** By the login's id: when it may be asked for again, and after how long. */
  readonly #polls = new Map<string, { notBeforeMs: number; seconds: number }>();

  constructor(clock: Clock, places: Places | null = null) {
    const limiter = (kind: string, limit: number) =>
      new Limiter(clock, limit, LOGIN_LIFE_MS, { kind: `login ${kind}`, places });
    this.#clock = clock;
    this.#addresses = limiter("address", MAX_LOGINS_PER_ADDRESS);
    this.#networks = limiter("network", MAX_LOGINS_PER_NETWORK);
    this.#tries = limiter("try", MAX_LOGIN_CODE_TRIES);
  }

  /** Counts a login that begins. Refuses with `login_capped`. */
  async countLogin(source: string): Promise<void> {
    const needs = needsOfSource(source, this.#addresses, this.#networks);
    await drawPlaces(needs);
    const full = takeAll(needs);
    if (full === null) return;
    throw new Refusal(
      "login_capped",
      `${full.need.limiter.limit} logins were begun from this address in ten minutes: answer one of them in the dashboard, or wait until resetAt.`,
      { resetAtMs: full.resetAtMs },
    );
  }

  /** Notes that a login that waits was asked for. Refuses with `slow_down` what came before its interval was over. */
  countPoll(deviceCode: string): void {
    const nowMs = this.#clock.monotonicMs();
    const last = this.#polls.get(deviceCode);
    const early = last !== undefined && nowMs < last.notBeforeMs;
    const seconds = (last?.seconds ?? LOGIN_POLL_SECONDS) + (early ? LOGIN_POLL_SECONDS : 0);
    this.#polls.delete(deviceCode);
    this.#polls.set(deviceCode, { notBeforeMs: nowMs + seconds * 1000 - POLL_TOLERANCE_MS, seconds });
    const [oldest] = this.#polls.keys();
    if (this.#polls.size > MAX_WAITING_LOGINS && oldest !== undefined) this.#polls.delete(oldest);
    if (early)
      throw new Refusal(
        "slow_down",
        `The login is asked for too often: ask every ${seconds} seconds from now on.`,
        { details: { interval: seconds } },
      );
  }

  /** Counts a code that an owner types, before it is looked at. Refuses with `login_capped` after as many wrong ones as one may. */
  async countTry(ownerId: string): Promise<void> {
    await drawPlaces([{ limiter: this.#tries, name: ownerId }]);
    const resetAtMs = this.#tries.take(ownerId);
    if (resetAtMs === null) return;
    throw new Refusal(
      "login_capped",
      `${MAX_LOGIN_CODE_TRIES} wrong codes were typed in ten minutes: wait until resetAt, then type the one that your terminal shows.`,
      { resetAtMs },
    );
  }

  /** There is a login of that code: the try is given back. */
  releaseTry(ownerId: string): void {
    this.#tries.giveBack(ownerId);
  }
}
