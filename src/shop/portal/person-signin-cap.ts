/**
 * Limits codes and sign-in attempts per hour: per network address and IPv6 network, per email address, per both, and per environment. No network can
 * use up the environment's codes. Every limit treats an address alike, with or without a person.
 */
import type { Clock } from "../../base/clock.ts";
import {
  MAX_CODES_PER_ADDRESS,
  MAX_CODES_PER_EMAIL,
  MAX_CODES_PER_EMAIL_AND_NETWORK,
  MAX_CODES_PER_NETWORK,
  MAX_SIGNINS_PER_ADDRESS,
  MAX_SIGNINS_PER_NETWORK,
  type RaisableLimits,
  SIGNIN_WINDOW_MS,
} from "../../base/limit.ts";
import { drawPlaces, findFull, needsOfShare, needsOfSource, takeAll } from "../../base/limit-window.ts";
import { Limiter, type Places } from "../../base/limiter.ts";
import { Refusal } from "../../base/refusal.ts";
import { toEmailKey } from "../people/person.ts";
import type { CodeHolder } from "./person-code.ts";

/** A limit's window whose count must allow the request. */
interface Need {
  limiter: Limiter;
  name: string;
  /** The sentence before "wait until resetAt". */
  sentence: string;
  /** The amount that the request counts; 1 by default. */
  amount?: number;
  /** A limit below the limiter's own. */
  atMost?: number;
}

/**
 * The kind of decision: the code may be sent, or a budget is used up. `strangers full`: that of addresses without a person. `network full`: the
 * caller's network's part of it.
 */
type CodeAdmission = "sends" | "strangers full" | "network full";

export class PersonSigninCap {
  readonly #codesBySource: Limiter;
  readonly #codesByNetwork: Limiter;
  readonly #codesByEmail: Limiter;
  readonly #codesByEmailAndNetwork: Limiter;
  readonly #codes: Limiter;
  readonly #codesOfNetworks: Limiter;
  readonly #strangerCodes: Limiter;
  readonly #strangerCodesOfNetworks: Limiter;
  readonly #triesBySource: Limiter;
  readonly #triesByNetwork: Limiter;

  constructor(
    clock: Clock,
    limits: Pick<RaisableLimits, "codesPerHour" | "strangerCodesPerHour">,
    places: Places | null,
  ) {
    const limiter = (kind: string, limit: number) =>
      new Limiter(clock, limit, SIGNIN_WINDOW_MS, { kind: `code ${kind}`, places });
    this.#codesBySource = limiter("address", MAX_CODES_PER_ADDRESS);
    this.#codesByNetwork = limiter("network", MAX_CODES_PER_NETWORK);
    this.#codesByEmail = limiter("email", MAX_CODES_PER_EMAIL);
    this.#codesByEmailAndNetwork = limiter("email and network", MAX_CODES_PER_EMAIL_AND_NETWORK);
    this.#codes = limiter("environment", limits.codesPerHour);
    this.#codesOfNetworks = limiter("environment and network", limits.codesPerHour);
    this.#strangerCodes = limiter("stranger", limits.strangerCodesPerHour);
    this.#strangerCodesOfNetworks = limiter("stranger and network", limits.strangerCodesPerHour);
    this.#triesBySource = limiter("try address", MAX_SIGNINS_PER_ADDRESS);
    this.#triesByNetwork = limiter("try network", MAX_SIGNINS_PER_NETWORK);
  }

  /** Reports whether the environment's codes of the hour are used up. */
  isUsedUp({ environmentId }: CodeHolder): boolean {
    return this.#codes.fullUntil(String(environmentId)) !== null;
  }

  /**
   * Counts a request for a code. Throws `code_capped` and then counts nothing. A person who signed in from this network before (`isKnown`) is
   * neither limited by nor counted in windows that others can fill. Returns whether the code may be sent: for an address without a person
   * (`isStranger`) only while the hour's budget for strangers, and this network's part of it, lasts. A held-back code takes nothing from the
   * environment's budget, which is for its people.
   */
  async countCode(
    source: string,
    holder: CodeHolder,
    by: { isKnown: boolean; isStranger: boolean },
  ): Promise<CodeAdmission> {
    const { environmentId, email, network } = holder;
    const environment = String(environmentId);
    const name = `${environment} ${toEmailKey(email)}`;
    const strangers = { limiter: this.#strangerCodes, name: environment };
    if (by.isStranger)
      await drawPlaces([strangers, ...needsOfShare(source, strangers, this.#strangerCodesOfNetworks)]);
    const strangerNeeds = [strangers, ...needsOfShare(source, strangers, this.#strangerCodesOfNetworks)].map(
      (need) => ({ ...need, sentence: "" }),
    );
    const exhausted = by.isStranger ? findFull(strangerNeeds) : null;
    const needs: Need[] = needsFrom(source, this.#codesBySource, this.#codesByNetwork, "sign-in codes");
    needs.push({
      limiter: this.#codesByEmailAndNetwork,
      name: `${name} ${network}`,
      sentence: `The limit of ${MAX_CODES_PER_EMAIL_AND_NETWORK} sign-in codes an hour for one email address from one network is reached: use the newest one, or`,
    });
    if (!by.isKnown) {
      // The network's remaining part is known once its places are drawn.
      if (exhausted === null) await drawPlaces(this.#needsOfEnvironment(source, environment, 1));
      needs.push({
        limiter: this.#codesByEmail,
        name,
        sentence: `The limit of ${MAX_CODES_PER_EMAIL} sign-in codes an hour for this email address is reached: use the newest one, or`,
      });
      needs.push(...this.#needsOfEnvironment(source, environment, exhausted === null ? 1 : 0));
    }
    if (by.isStranger && exhausted === null) needs.push(...strangerNeeds);
    await take("code_capped", needs);
    if (exhausted === null) return "sends";
    return exhausted.need.limiter === this.#strangerCodes ? "strangers full" : "network full";
  }

  #needsOfEnvironment(source: string, environment: string, amount: 0 | 1): Need[] {
    const codes = { limiter: this.#codes, name: environment };
    const { limit } = this.#codes;
    return [
      {
        ...codes,
        amount,
        sentence: `The limit of ${limit} sign-in codes an hour of this app is reached:`,
      },
      ...needsOfShare(source, codes, this.#codesOfNetworks).map((need) => ({
        ...need,
        amount,
        sentence: `The network ${need.network} has used its part of the ${limit} sign-in codes an hour of this app, and the other part is for other networks:`,
      })),
    ];
  }

  /** Counts a sign-in attempt. Throws `signin_capped`. */
  countTry(source: string): Promise<void> {
    return take("signin_capped", needsFrom(source, this.#triesBySource, this.#triesByNetwork, "sign-ins"));
  }
}

function needsFrom(source: string, bySource: Limiter, byNetwork: Limiter, what: string): Need[] {
  return needsOfSource(source, bySource, byNetwork).map((need) => {
    const where = need.network === null ? "this network address" : `the network ${need.network}`;
    return {
      ...need,
      sentence: `The limit of ${need.limiter.limit} ${what} an hour from ${where} is reached:`,
    };
  });
}

/** Counts in every window, or throws and counts in none. */
async function take(code: "code_capped" | "signin_capped", needs: readonly Need[]): Promise<void> {
  await drawPlaces(needs);
  const full = takeAll(needs);
  if (full === null) return;
  throw new Refusal(code, `${full.need.sentence} wait until resetAt.`, { resetAtMs: full.resetAtMs });
}
