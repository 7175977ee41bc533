/**
 * Caps sign-in attempts, per address and per account, in memory. An attempt is counted before the password is looked at, so that
 * parallel guesses gain nothing, and given back when it was right. An address that the account once signed in from has a window of its own,
 * so that strangers who guess cannot lock the owner out. It never looks at a password, and it forgets with the process.
 */
import type { Clock } from "../ground/clock.ts";
import { Refusal } from "../ground/refusal.ts";

const WINDOW_MS = 15 * 60_000;
const ATTEMPTS_PER_ACCOUNT = 10;
const ATTEMPTS_PER_ADDRESS = 30;
/** A bound on the memory; beyond it the oldest windows are forgotten. */
const MAX_WINDOWS = 20_000;

interface Window {
  attempts: number;
  /** By the clock that never goes back, so that setting the wall clock frees nobody. */
  endsAtMonotonicMs: number;
}

export class SigninCap {
  readonly #clock: Clock;
  readonly #windows = new Map<string, Window>();
  /** Windows of addresses that signed in rightly, by their key. */
  readonly #known = new Set<string>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Counts an attempt from `address` on `account`. Refuses with `signin_capped` and `resetAtMs`; a refused attempt is not counted. */
  count(address: string, account: string): void {
    const byAddress = this.#open(addressKey(address));
    const byAccount = this.#open(this.#accountKey(address, account));
    this.#refuseFull(byAddress, ATTEMPTS_PER_ADDRESS, "from this address");
    this.#refuseFull(byAccount, ATTEMPTS_PER_ACCOUNT, "on this account");
    byAddress.attempts += 1;
    byAccount.attempts += 1;
  }

  /** The attempt was right: the account starts afresh, and the address gets this attempt back. */
  succeeded(address: string, account: string): void {
    this.#windows.delete(this.#accountKey(address, account));
    this.#remember(knownKey(address, account));
    const byAddress = this.#windows.get(addressKey(address));
    if (byAddress !== undefined && byAddress.attempts > 0) byAddress.attempts -= 1;
  }

  #accountKey(address: string, account: string): string {
    const known = knownKey(address, account);
    return this.#known.has(known) ? known : accountKey(account);
  }

  #remember(key: string): void {
    this.#known.delete(key);
    this.#known.add(key);
    const [oldest] = this.#known;
    if (this.#known.size > MAX_WINDOWS && oldest !== undefined) this.#known.delete(oldest);
  }

  #open(key: string): Window {
    const nowMs = this.#clock.monotonicMs();
    const known = this.#windows.get(key);
    if (known !== undefined && known.endsAtMonotonicMs > nowMs) return known;
    const fresh: Window = { attempts: 0, endsAtMonotonicMs: nowMs + WINDOW_MS };
    this.#windows.delete(key);
    this.#windows.set(key, fresh);
    this.#forgetOldest();
    return fresh;
  }

  #forgetOldest(): void {
    for (const key of this.#windows.keys()) {
      if (this.#windows.size <= MAX_WINDOWS) return;
      this.#windows.delete(key);
    }
  }

  #refuseFull(window: Window, limit: number, where: string): void {
    if (window.attempts < limit) return;
    const leftMs = window.endsAtMonotonicMs - this.#clock.monotonicMs();
    throw new Refusal(
      "signin_capped",
      `The limit of ${limit} sign-in attempts ${where} in 15 minutes is reached: wait until resetAt, or reset the password with relay admin reset.`,
      { resetAtMs: this.#clock.now() + leftMs },
    );
  }
}

function addressKey(address: string): string {
  return `address ${address}`;
}

function knownKey(address: string, account: string): string {
  return `${accountKey(account)} from ${address}`;
}

function accountKey(account: string): string {
  return `account ${account.trim().toLowerCase()}`;
}
