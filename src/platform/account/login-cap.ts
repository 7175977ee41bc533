/**
 * Limits of command-line logins, in memory: logins begun per address and network, polls per login (the interval of RFC 8628, which grows with
 * each early poll), and wrong codes per owner.
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

/** Tolerance for a poll that a clock or the network makes early. */
const POLL_TOLERANCE_MS = 1_000;

export class LoginCap {
  readonly #clock: Clock;
  readonly #addresses: Limiter;
  readonly #networks: Limiter;
  readonly #tries: Limiter;
  /** The earliest time of the next poll, and the current interval, by device code. */
  readonly #polls = new Map<string, { notBeforeMs: number; seconds: number }>();

  constructor(clock: Clock, places: Places | null = null) {
    const limiter = (kind: string, limit: number) =>
      new Limiter(clock, limit, LOGIN_LIFE_MS, { kind: `login ${kind}`, places });
    this.#clock = clock;
    this.#addresses = limiter("address", MAX_LOGINS_PER_ADDRESS);
    this.#networks = limiter("network", MAX_LOGINS_PER_NETWORK);
    this.#tries = limiter("try", MAX_LOGIN_CODE_TRIES);
  }

  /** Counts a new login. Throws `login_capped`. */
  async countLogin(source: string): Promise<void> {
    const needs = needsOfSource(source, this.#addresses, this.#networks);
    await drawPlaces(needs);
    const full = takeAll(needs);
    if (full === null) return;
    throw new Refusal(
      "login_capped",
      `${full.need.limiter.limit} logins were started from this address in ten minutes: answer one of them in the dashboard, or wait until resetAt.`,
      { resetAtMs: full.resetAtMs },
    );
  }

  /** Counts a poll of a waiting login. Throws `slow_down` if the poll came before its interval ended. */
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
        `The login is polled too often: poll it every ${seconds} seconds from now on.`,
        { details: { interval: seconds } },
      );
  }

  /** Counts an attempt to enter a code before the code is checked. Throws `login_capped` after too many wrong codes. */
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

  /** Gives the attempt back after the code proved right. */
  releaseTry(ownerId: string): void {
    this.#tries.giveBack(ownerId);
  }
}
