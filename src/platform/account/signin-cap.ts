/**
 * Limits sign-in attempts per address, per IPv6 network and per account. An attempt is counted before the password is checked, so that
 * parallel guesses gain nothing, and is given back if the password was right. A device or network that signed in to the account before has its
 * own window, so that guessing strangers cannot lock the owner out.
 */
import type { Clock } from "../../base/clock.ts";
import {
  MAX_LINK_TRIES_PER_ADDRESS,
  MAX_LINK_TRIES_PER_NETWORK,
  MAX_OIDC_SIGNINS_PER_ADDRESS,
  MAX_OIDC_SIGNINS_PER_NETWORK,
  MAX_PASSWORDS_PER_ACCOUNT,
  MAX_PASSWORDS_PER_ADDRESS,
  MAX_PASSWORDS_PER_NETWORK,
  PASSWORD_WINDOW_MS,
} from "../../base/limit.ts";
import { drawPlaces, needsOfSource, takeAll } from "../../base/limit-window.ts";
import { Limiter, type Places } from "../../base/limiter.ts";
import { Refusal } from "../../base/refusal.ts";

/** A device (its verified cookie) or network (owner-network.ts) that signed in to the account before. */
export interface KnownPlace {
  kind: "device" | "address";
  name: string;
}

/** A limit's window whose count must allow the attempt. */
interface Need {
  limiter: Limiter;
  name: string;
  where: string;
}

export class SigninCap {
  readonly #addresses: Limiter;
  readonly #networks: Limiter;
  readonly #accounts: Limiter;
  /** Windows of known devices and networks. Strangers open no windows here, so they cannot evict one. */
  readonly #places: Limiter;
  readonly #linkAddresses: Limiter;
  readonly #linkNetworks: Limiter;
  readonly #oidcAddresses: Limiter;
  readonly #oidcNetworks: Limiter;

  constructor(clock: Clock, places: Places | null = null) {
    const limiter = (kind: string, limit: number) =>
      new Limiter(clock, limit, PASSWORD_WINDOW_MS, { kind: `password ${kind}`, places });
    this.#addresses = limiter("address", MAX_PASSWORDS_PER_ADDRESS);
    this.#networks = limiter("network", MAX_PASSWORDS_PER_NETWORK);
    this.#accounts = limiter("account", MAX_PASSWORDS_PER_ACCOUNT);
    this.#places = limiter("place", MAX_PASSWORDS_PER_ACCOUNT);
    this.#linkAddresses = limiter("link address", MAX_LINK_TRIES_PER_ADDRESS);
    this.#linkNetworks = limiter("link network", MAX_LINK_TRIES_PER_NETWORK);
    this.#oidcAddresses = limiter("oidc address", MAX_OIDC_SIGNINS_PER_ADDRESS);
    this.#oidcNetworks = limiter("oidc network", MAX_OIDC_SIGNINS_PER_NETWORK);
  }

  /** Counts an attempt as `count` does, after drawing its places from the limits that nodes share. */
  async countAttempt(address: string, account: string, place: KnownPlace | null = null): Promise<void> {
    await drawPlaces(this.#needs(address, account, place));
    this.count(address, account, place);
  }

  /** Counts a password attempt for `account`. Throws `signin_capped` with `resetAtMs`, and then counts nothing. */
  count(address: string, account: string, place: KnownPlace | null = null): void {
    this.#take(this.#needs(address, account, place));
  }

  /** Gives the attempt back after the password proved right. */
  releaseAttempt(address: string, account: string, place: KnownPlace | null = null): void {
    for (const { limiter, name } of this.#needs(address, account, place)) limiter.giveBack(name);
  }

  /**
   * Counts an invalid one-time link, by address only. Throws as `count`. A valid link is neither counted nor rejected: links cannot be
   * guessed, and a link is the owner's way in if strangers used up every other limit.
   */
  async countInvalidLink(address: string): Promise<void> {
    const needs = needSource(address, this.#linkAddresses, this.#linkNetworks);
    await drawPlaces(needs);
    this.#take(needs);
  }

  /** Counts the start of a sign-in at the OpenID provider, by address only. Throws as `count`. */
  async countOidcSignin(address: string): Promise<void> {
    const needs = needSource(address, this.#oidcAddresses, this.#oidcNetworks);
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

  /** A rejected attempt must neither open nor fill a window. */
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
