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
import { Refusal } from "../ground/refusal.ts";
import { WindowCap, wideNetworkOf } from "../ground/window-cap.ts";

/** A bound on the memory; each one costs a right password. */
const MAX_KNOWN = 20_000;

/** One window that an attempt needs room in. */
interface Need {
  cap: WindowCap;
  limit: number;
  name: string;
  where: string;
}

export class SigninCap {
  readonly #addresses: WindowCap;
  readonly #networks: WindowCap;
  readonly #accounts: WindowCap;
  /** Devices and addresses that the account signed in from: strangers open none of these, so none of theirs crowds one out. */
  readonly #places: WindowCap;
  readonly #linkAddresses: WindowCap;
  readonly #linkNetworks: WindowCap;
  /** Accounts with an address they signed in from. */
  readonly #known = new Set<string>();

  constructor(clock: Clock) {
    const cap = (limit: number) => new WindowCap(clock, limit, PASSWORD_WINDOW_MS);
    this.#addresses = cap(MAX_PASSWORDS_PER_ADDRESS);
    this.#networks = cap(MAX_PASSWORDS_PER_NETWORK);
    this.#accounts = cap(MAX_PASSWORDS_PER_ACCOUNT);
    this.#places = cap(MAX_PASSWORDS_PER_ACCOUNT);
    this.#linkAddresses = cap(MAX_LINK_TRIES_PER_ADDRESS);
    this.#linkNetworks = cap(MAX_LINK_TRIES_PER_NETWORK);
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
    for (const { cap, name } of this.#needs(address, account, device)) cap.giveBack(name);
    this.#remember(placeKey(address, account));
  }

  /**
   * Counts a one-time link that does not work, by address alone; refuses as `count`. One that works is neither counted nor refused: nobody
   * guesses one, and it is the owner's way in where strangers at the same address used up everything else.
   */
  countDeadLink(address: string): void {
    this.#take(
      needAddress(
        address,
        this.#linkAddresses,
        MAX_LINK_TRIES_PER_ADDRESS,
        this.#linkNetworks,
        MAX_LINK_TRIES_PER_NETWORK,
      ),
    );
  }

  #needs(address: string, account: string, device: string | null): Need[] {
    const limit = MAX_PASSWORDS_PER_ACCOUNT;
    const cap = this.#places;
    if (device !== null) return [{ cap, limit, name: placeKey(device, account), where: "from this device" }];
    const place = placeKey(address, account);
    if (this.#known.has(place)) return [{ cap, limit, name: place, where: "from this address" }];
    return [
      ...needAddress(
        address,
        this.#addresses,
        MAX_PASSWORDS_PER_ADDRESS,
        this.#networks,
        MAX_PASSWORDS_PER_NETWORK,
      ),
      { cap: this.#accounts, limit, name: accountKey(account), where: "on this account" },
    ];
  }

  /** Looks at every window before it counts in any: a refused attempt must not open a window, nor fill another one. */
  #take(needs: readonly Need[]): void {
    for (const { cap, limit, name, where } of needs) {
      const resetAtMs = cap.fullUntil(name);
      if (resetAtMs === null) continue;
      throw new Refusal(
        "signin_capped",
        `The limit of ${limit} sign-in attempts ${where} in ${PASSWORD_WINDOW_MS / 60_000} minutes is reached: wait until resetAt, or reset the password with relay admin reset.`,
        { resetAtMs },
      );
    }
    for (const { cap, name } of needs) cap.count(name);
  }

  #remember(key: string): void {
    this.#known.delete(key);
    this.#known.add(key);
    const [oldest] = this.#known;
    if (this.#known.size > MAX_KNOWN && oldest !== undefined) this.#known.delete(oldest);
  }
}

function needAddress(
  address: string,
  byAddress: WindowCap,
  addressLimit: number,
  byNetwork: WindowCap,
  networkLimit: number,
): Need[] {
  const own: Need = { cap: byAddress, limit: addressLimit, name: address, where: "from this address" };
  const network = wideNetworkOf(address);
  if (network === null) return [own];
  return [own, { cap: byNetwork, limit: networkLimit, name: network, where: `from the network ${network}` }];
}

function placeKey(place: string, account: string): string {
  return `${accountKey(account)} from ${place}`;
}

function accountKey(account: string): string {
  return account.trim().toLowerCase();
}
