/**
 * Caps sign-in attempts in memory: per address, per IPv6 network, per account. An attempt is counted before the password is looked at, so
 * that parallel guesses gain nothing, and given back when it was right; a refused one opens and counts nothing. A device that signed in to
 * the account before (it shows a cookie signed here), or an address that did, has a window of its own and spends no other, so that
 * strangers who guess cannot lock the owner out. It never looks at a password; the addresses are forgotten with the process, the devices not.
 */
import type { Clock } from "../ground/clock.ts";
import {
  MAX_LINK_TRIES_PER_ADDRESS,
  MAX_LINK_TRIES_PER_NETWORK,
  MAX_PASSWORDS_PER_ACCOUNT,
  MAX_PASSWORDS_PER_ADDRESS,
  MAX_PASSWORDS_PER_NETWORK,
  PASSWORD_WINDOW_MS,
} from "../ground/limit.ts";
import { ALONE, Limiter, type Nodes, needsOfSource, takeAll } from "../ground/limiter.ts";
import { Refusal } from "../ground/refusal.ts";

/** A bound on the memory; each one costs a right password. */
const MAX_KNOWN = 20_000;

/** One window that an attempt needs room in. */
interface Need {
  limiter: Limiter;
  name: string;
  where: string;
}

export class SigninCap {
  readonly #addresses: Limiter;
  readonly #networks: Limiter;
  readonly #accounts: Limiter;
  /** Devices and addresses that the account signed in from: strangers open none of these, so none of theirs crowds one out. */
  readonly #places: Limiter;
  readonly #linkAddresses: Limiter;
  readonly #linkNetworks: Limiter;
  /** Accounts with an address they signed in from. */
  readonly #known = new Set<string>();

  constructor(clock: Clock, nodes: Nodes = ALONE) {
    const limiter = (limit: number) => new Limiter(clock, limit, PASSWORD_WINDOW_MS, { nodes });
    this.#addresses = limiter(MAX_PASSWORDS_PER_ADDRESS);
    this.#networks = limiter(MAX_PASSWORDS_PER_NETWORK);
    this.#accounts = limiter(MAX_PASSWORDS_PER_ACCOUNT);
    this.#places = limiter(MAX_PASSWORDS_PER_ACCOUNT);
    this.#linkAddresses = limiter(MAX_LINK_TRIES_PER_ADDRESS);
    this.#linkNetworks = limiter(MAX_LINK_TRIES_PER_NETWORK);
  }

  /** Whether the account signed in from this device (its cookie's name, already verified; null: none) or address before. */
  knows(address: string, account: string, device: string | null): boolean {
    return device !== null || this.#known.has(placeKey(address, account));
  }

  /** Counts a password for `account`. Refuses with `signin_capped` and `resetAtMs`, having counted nothing. */
  count(address: string, account: string, device: string | null = null): void {
    this.#take(this.#needs(address, account, device));
  }

  /** The password was right: the attempt is given back, and the address is known from now on. */
  succeeded(address: string, account: string, device: string | null = null): void {
    for (const { limiter, name } of this.#needs(address, account, device)) limiter.giveBack(name);
    this.#remember(placeKey(address, account));
  }

  /**
   * Counts a one-time link that does not work, by address alone; refuses as `count`. One that works is neither counted nor refused: nobody
   * guesses one, and it is the owner's way in where strangers at the same address used up everything else.
   */
  countDeadLink(address: string): void {
    this.#take(needSource(address, this.#linkAddresses, this.#linkNetworks));
  }

  #needs(address: string, account: string, device: string | null): Need[] {
    const limiter = this.#places;
    if (device !== null) return [{ limiter, name: placeKey(device, account), where: "from this device" }];
    const place = placeKey(address, account);
    if (this.#known.has(place)) return [{ limiter, name: place, where: "from this address" }];
    return [
      ...needSource(address, this.#addresses, this.#networks),
      { limiter: this.#accounts, name: accountKey(account), where: "on this account" },
    ];
  }

  /** A refused attempt must not open a window, nor fill another one. */
  #take(needs: readonly Need[]): void {
    const full = takeAll(needs);
    if (full === null) return;
    const { need, resetAtMs } = full;
    throw new Refusal(
      "signin_capped",
      `The limit of ${need.limiter.limit} sign-in attempts ${need.where} in ${PASSWORD_WINDOW_MS / 60_000} minutes is reached: wait until resetAt, or reset the password with relay admin reset.`,
      { resetAtMs },
    );
  }

  #remember(key: string): void {
    this.#known.delete(key);
    this.#known.add(key);
    const [oldest] = this.#known;
    if (this.#known.size > MAX_KNOWN && oldest !== undefined) this.#known.delete(oldest);
  }
}

function needSource(address: string, byAddress: Limiter, byNetwork: Limiter): Need[] {
  return needsOfSource(address, byAddress, byNetwork).map((need) => ({
    ...need,
    where: need.network === null ? "from this address" : `from the network ${need.network}`,
  }));
}

function placeKey(place: string, account: string): string {
  return `${accountKey(account)} from ${place}`;
}

function accountKey(account: string): string {
  return account.trim().toLowerCase();
}
