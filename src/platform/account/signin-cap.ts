/**
 * Caps sign-in attempts: per address, per IPv6 network, per account. An attempt is counted before the password is looked at, so
 * that parallel guesses gain nothing, and given back when it was right; a refused one opens and counts nothing. A place that signed in to the
 * account before has a window of its own and spends no other, so that strangers who guess cannot lock the owner out. It never looks at a
 * password, and never decides which places are known.
 */
import type { Clock } from "../../base/clock.ts";
import {
  MAX_LINK_TRIES_PER_ADDRESS,
  MAX_LINK_TRIES_PER_NETWORK,
  MAX_PASSWORDS_PER_ACCOUNT,
  MAX_PASSWORDS_PER_ADDRESS,
  MAX_PASSWORDS_PER_NETWORK,
  PASSWORD_WINDOW_MS,
} from "../../base/limit.ts";
import { drawPlaces, needsOfSource, takeAll } from "../../base/limit-window.ts";
import { Limiter, type Places } from "../../base/limiter.ts";
import { Refusal } from "../../base/refusal.ts";

/** A place that the account signed in from before: a device (its cookie's name, already verified) or a network (owner-network.ts). */
export interface KnownPlace {
  kind: "device" | "address";
  name: string;
}

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
  /** Places that the account signed in from: strangers open none of these windows, so none of theirs crowds one out. */
  readonly #places: Limiter;
  readonly #linkAddresses: Limiter;
  readonly #linkNetworks: Limiter;

  constructor(clock: Clock, places: Places | null = null) {
    const limiter = (kind: string, limit: number) =>
      new Limiter(clock, limit, PASSWORD_WINDOW_MS, { kind: `password ${kind}`, places });
    this.#addresses = limiter("address", MAX_PASSWORDS_PER_ADDRESS);
    this.#networks = limiter("network", MAX_PASSWORDS_PER_NETWORK);
    this.#accounts = limiter("account", MAX_PASSWORDS_PER_ACCOUNT);
    this.#places = limiter("place", MAX_PASSWORDS_PER_ACCOUNT);
    this.#linkAddresses = limiter("link address", MAX_LINK_TRIES_PER_ADDRESS);
    this.#linkNetworks = limiter("link network", MAX_LINK_TRIES_PER_NETWORK);
  }

  /** As `count`, also where several nodes share the limits: the places are drawn before. */
  async countAttempt(address: string, account: string, place: KnownPlace | null = null): Promise<void> {
    await drawPlaces(this.#needs(address, account, place));
    this.count(address, account, place);
  }

  /** Counts a password for `account`. Refuses with `signin_capped` and `resetAtMs`, having counted nothing. */
  count(address: string, account: string, place: KnownPlace | null = null): void {
    this.#take(this.#needs(address, account, place));
  }

  /** The password was right: the attempt is given back. */
  releaseAttempt(address: string, account: string, place: KnownPlace | null = null): void {
    for (const { limiter, name } of this.#needs(address, account, place)) limiter.giveBack(name);
  }

  /**
   * Counts a one-time link that does not work, by address alone; refuses as `count`. One that works is neither counted nor refused: nobody
   * guesses one, and it is the owner's way in where strangers at the same address used up everything else.
   */
  async countInvalidLink(address: string): Promise<void> {
    const needs = needSource(address, this.#linkAddresses, this.#linkNetworks);
    await drawPlaces(needs);
    this.#take(needs);
  }

  #needs(address: string, account: string, place: KnownPlace | null): Need[] {
    if (place !== null)
      return [
        {
          limiter: this.#places,
          name: `${accountKey(account)} from ${place.name}`,
          where: `from this ${place.kind}`,
        },
      ];
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
}

function needSource(address: string, byAddress: Limiter, byNetwork: Limiter): Need[] {
  return needsOfSource(address, byAddress, byNetwork).map((need) => ({
    ...need,
    where: need.network === null ? "from this address" : `from the network ${need.network}`,
  }));
}

function accountKey(account: string): string {
  return account.trim().toLowerCase();
}
