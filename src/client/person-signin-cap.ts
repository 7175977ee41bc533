/**
 * How many codes may be asked for and how many tries made within an hour, in memory: per network address and IPv6 network, per e-mail
 * address, per e-mail address and network, and of an environment as a whole. Whatever refuses, refuses every address alike, whether or
 * not anybody has it. It never knows a code, and forgets with the process.
 */
import type { Clock } from "../ground/clock.ts";
import {
  MAX_CODES_PER_ADDRESS,
  MAX_CODES_PER_EMAIL,
  MAX_CODES_PER_EMAIL_AND_NETWORK,
  MAX_CODES_PER_NETWORK,
  MAX_SIGNINS_PER_ADDRESS,
  MAX_SIGNINS_PER_NETWORK,
  type RaisableLimits,
  SIGNIN_WINDOW_MS,
} from "../ground/limit.ts";
import { Refusal } from "../ground/refusal.ts";
import { WindowCap, wideNetworkOf } from "../ground/window-cap.ts";
import { toEmailKey } from "../people/email-address.ts";
import type { CodeHolder } from "./person-code.ts";

/** One window that a request needs room in. */
interface Need {
  cap: WindowCap;
  name: string;
  /** Until "wait until resetAt". */
  sentence: string;
  /** How much it counts: 1 unless told. */
  amount?: number;
}

export class PersonSigninCap {
  readonly #limits: Pick<RaisableLimits, "codesPerHour" | "strangerCodesPerHour">;
  readonly #codesBySource: WindowCap;
  readonly #codesByNetwork: WindowCap;
  readonly #codesByEmail: WindowCap;
  readonly #codesByEmailAndNetwork: WindowCap;
  readonly #codes: WindowCap;
  readonly #strangerCodes: WindowCap;
  readonly #triesBySource: WindowCap;
  readonly #triesByNetwork: WindowCap;

  constructor(clock: Clock, limits: Pick<RaisableLimits, "codesPerHour" | "strangerCodesPerHour">) {
    const cap = (limit: number) => new WindowCap(clock, limit, SIGNIN_WINDOW_MS);
    this.#limits = limits;
    this.#codesBySource = cap(MAX_CODES_PER_ADDRESS);
    this.#codesByNetwork = cap(MAX_CODES_PER_NETWORK);
    this.#codesByEmail = cap(MAX_CODES_PER_EMAIL);
    this.#codesByEmailAndNetwork = cap(MAX_CODES_PER_EMAIL_AND_NETWORK);
    this.#codes = cap(limits.codesPerHour);
    this.#strangerCodes = cap(limits.strangerCodesPerHour);
    this.#triesBySource = cap(MAX_SIGNINS_PER_ADDRESS);
    this.#triesByNetwork = cap(MAX_SIGNINS_PER_NETWORK);
  }

  /** Whether all of the environment's codes of the hour are asked for. */
  isUsedUp({ environmentId }: CodeHolder): boolean {
    return this.#codes.fullUntil(String(environmentId)) !== null;
  }

  /**
   * Counts a request for a code; refuses with `code_capped`, having counted nothing. A person who signed in from this network before
   * (`isKnown`) is refused by no limit that others can fill, and counted in none of them. Answers whether the code may leave: not one for an
   * address that nobody has (`isStranger`), once strangers used up what the hour holds for them. Such a one takes nothing of the
   * environment's hour, the rest of which is for the people it has.
   */
  countCode(source: string, holder: CodeHolder, by: { isKnown: boolean; isStranger: boolean }): boolean {
    const { environmentId, email, network } = holder;
    const environment = String(environmentId);
    const name = `${environment} ${toEmailKey(email)}`;
    const isCrowded = by.isStranger && this.#strangerCodes.fullUntil(environment) !== null;
    const needs = this.#needsFrom(
      source,
      this.#codesBySource,
      MAX_CODES_PER_ADDRESS,
      this.#codesByNetwork,
      MAX_CODES_PER_NETWORK,
      "sign-in codes",
    );
    needs.push({
      cap: this.#codesByEmailAndNetwork,
      name: `${name} ${network}`,
      sentence: `The limit of ${MAX_CODES_PER_EMAIL_AND_NETWORK} sign-in codes an hour for one e-mail address from one network is reached: use the newest one, or`,
    });
    if (!by.isKnown) {
      needs.push(
        {
          cap: this.#codesByEmail,
          name,
          sentence: `The limit of ${MAX_CODES_PER_EMAIL} sign-in codes an hour for this e-mail address is reached: use the newest one, or`,
        },
        {
          cap: this.#codes,
          name: environment,
          sentence: `The limit of ${this.#limits.codesPerHour} sign-in codes an hour of this app is reached:`,
          amount: isCrowded ? 0 : 1,
        },
      );
    }
    take("code_capped", needs);
    if (by.isStranger && !isCrowded) this.#strangerCodes.count(environment);
    return !isCrowded;
  }

  /** Counts a try to sign in; refuses with `signin_capped`. */
  countTry(source: string): void {
    take(
      "signin_capped",
      this.#needsFrom(
        source,
        this.#triesBySource,
        MAX_SIGNINS_PER_ADDRESS,
        this.#triesByNetwork,
        MAX_SIGNINS_PER_NETWORK,
        "sign-ins",
      ),
    );
  }

  #needsFrom(
    source: string,
    bySource: WindowCap,
    sourceLimit: number,
    byNetwork: WindowCap,
    networkLimit: number,
    what: string,
  ): Need[] {
    const sentence = (limit: number, where: string) =>
      `The limit of ${limit} ${what} an hour from ${where} is reached:`;
    const own: Need = {
      cap: bySource,
      name: source,
      sentence: sentence(sourceLimit, "this network address"),
    };
    const network = wideNetworkOf(source);
    if (network === null) return [own];
    return [
      own,
      { cap: byNetwork, name: network, sentence: sentence(networkLimit, `the network ${network}`) },
    ];
  }
}

/** Counts in every window, or refuses and counts in none. */
function take(code: "code_capped" | "signin_capped", needs: readonly Need[]): void {
  for (const { cap, name, sentence } of needs) {
    const resetAtMs = cap.fullUntil(name);
    if (resetAtMs !== null) throw new Refusal(code, `${sentence} wait until resetAt.`, { resetAtMs });
  }
  for (const { cap, name, amount = 1 } of needs) if (amount > 0) cap.count(name, amount);
}
