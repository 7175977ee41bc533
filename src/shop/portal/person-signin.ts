/**
 * Sign-in to an app with an emailed code. A request for a code takes the same path and gets the same answer for every address, so that it does not
 * reveal who exists, even if the code is held back: for an address without a person, once strangers used up the hour's budget, or if only invited
 * people may sign in. A person is created only after the code came back.
 */

import type { Clock } from "../../base/clock.ts";
import { type RaisableLimits, SIGNIN_WINDOW_MS } from "../../base/limit.ts";
import { Limiter, type Places } from "../../base/limiter.ts";
import { siteOf } from "../../base/network.ts";
import { Refusal } from "../../base/refusal.ts";
import {
  type Environment,
  findEnvironmentById,
  isAlertEnabled,
  readSettingsSection,
} from "../../platform/account/environment.ts";
import { raiseAlert } from "../../platform/audit/alert.ts";
import { clearUndeliveredCodes, recordUndeliveredCodes } from "../../platform/audit/undelivered-codes.ts";
import { finishEmail, toEmailEnd } from "../../platform/mail/email.ts";
import type { Mailer, OutgoingMail } from "../../platform/mail/mailer.ts";
import type { Sealer } from "../../platform/secret/seal.ts";
import type { Reader, Store, Writer } from "../../store/port.ts";
import { findPersonByEmail, markSignedIn, type PersonRow, parseEmailAddress } from "../people/person.ts";
import { signUpPerson } from "../people/person-invite.ts";
import {
  blocksAllCodes,
  CODE_MAIL_WITHIN_MS,
  claimCodeMails,
  findCodeSender,
  recordCodeMail,
  rejectCodeMail,
  simulateSend,
} from "./code-mail.ts";
import { type CodeHolder, digestNetwork, makeCode, redeemCode, storeCode } from "./person-code.ts";
import { createPersonSession, isKnownNetwork, recordNetwork } from "./person-session.ts";
import { PersonSigninCap } from "./person-signin-cap.ts";

export const SIGNIN_SECTION = "signin";

/** Reports whether only existing people (invited, or created by an event) may sign in; default: no. */
export function isInvitedOnly(environment: Pick<Environment, "settings">): boolean {
  return readSettingsSection(environment, SIGNIN_SECTION).invitedOnly === true;
}

interface SigninDeps {
  store: Store;
  clock: Clock;
  sealer: Sealer;
  mailer: Mailer;
  /** Local development: mail stays in the mailbox and needs no sender domain. */
  local: boolean;
  limits: RaisableLimits;
  /** The places where several nodes count shared limits. */
  places?: Places | null;
}

/** The app and environment of a sign-in, and its caller. */
export interface SigninContext {
  appId: string;
  environmentId: number;
  /** The formatted app key: `key:<id>`. */
  by: string;
  /** The caller's network address, for caps. */
  source: string;
}

interface SignedIn {
  person: PersonRow;
  token: string;
  expiresAt: number;
}

/** The requester of a code: the person with the address, and whether they signed in from this network before. */
interface Asker {
  environment: Environment;
  person: PersonRow | null;
  isKnown: boolean;
}

export class PersonSignin {
  readonly #deps: SigninDeps;
  readonly #cap: PersonSigninCap;
  /** Budgets that an owner was notified of within the hour, so that a flood of rejected requests writes nothing. */
  readonly #notices: Limiter;

  constructor(deps: SigninDeps) {
    this.#deps = deps;
    this.#cap = new PersonSigninCap(deps.clock, deps.limits, deps.places ?? null);
    this.#notices = new Limiter(deps.clock, 1, SIGNIN_WINDOW_MS);
  }

  /**
   * Mails a code to the address, whether or not a person has it; earlier codes stay valid. Returns when the code expires. Throws
   * `invalid_input` (not an address), `code_capped` and `code_not_sent`.
   */
  async requestCode(context: SigninContext, given: string): Promise<{ expiresAt: number }> {
    const { store, clock, local } = this.#deps;
    const email = requireAddress(given);
    const holder = holderOf(context, email);
    const asker = await store.read((tx) => this.#findAsker(tx, holder));
    const { environment, person, isKnown } = asker;
    if (!isKnown && this.#cap.isUsedUp(holder) && this.#isNoticeDue(environment, "codesPerHour")) {
      await store.write("app", (tx) => this.#notifyOwner(tx, environment, "codesPerHour"), environment.id);
    }
    const isStranger = person === null;
    const admission = await this.#cap.countCode(context.source, holder, { isKnown, isStranger });
    const isCrowded = admission !== "sends";
    const isClosed = isStranger && isInvitedOnly(environment);
    const usedUp = admission === "network full" ? "strangerCodesOfNetwork" : "strangerCodesPerHour";
    const isNoticeDue = isCrowded && !isClosed && this.#isNoticeDue(environment, usedUp);
    const sender = await store.read((tx) => findCodeSender(tx, environment, local));
    if (typeof sender !== "string") {
      const why = `${sender.why}: ${sender.todo}.`;
      await recordUndeliveredCodes(store, environment.id, { why, nowMs: clock.now() });
      throw rejectCodeMail(sender.why, sender.todo);
    }
    const stored = await store.write(
      "app",
      async (tx) => {
        if (isNoticeDue) await this.#notifyOwner(tx, environment, usedUp);
        return await this.#storeCode(tx, context.appId, holder, isCrowded || isClosed ? null : sender);
      },
      environment.id,
    );
    const failed =
      stored.mail === null ? await simulateSend(store, clock, environment.id) : await this.#send(stored.mail);
    if (failed) throw rejectCodeMail("the mail server rejected it", "request another one in a moment");
    return { expiresAt: stored.expiresAt };
  }

  /**
   * Starts a session if the code is right, which uses it up. Throws `invalid_input`, `signin_capped`, `code_invalid`, and only for a right
   * code `person_suspended` and `signup_capped`.
   */
  async signIn(context: SigninContext, given: { email: string; code: string }): Promise<SignedIn> {
    const email = requireAddress(given.email);
    await this.#cap.countTry(context.source);
    const code = given.code.replaceAll(/\s/g, "");
    const done = await this.#deps.store.write(
      "app",
      (tx) => this.#redeem(tx, context, email, code),
      context.environmentId,
    );
    if (done instanceof Refusal) throw done;
    return done;
  }

  /** Returns a rejection instead of throwing it, so that the transaction commits the counted try or the used code. */
  async #redeem(
    tx: Writer,
    context: SigninContext,
    email: string,
    code: string,
  ): Promise<SignedIn | Refusal> {
    const { sealer, clock, limits } = this.#deps;
    const { environmentId } = context;
    const holder = holderOf(context, email);
    const nowMs = clock.now();
    const { person: known, environment } = await this.#findAsker(tx, holder);
    const isRight = await redeemCode(tx, sealer, holder, code, nowMs);
    // A code sent before the app became invited-only creates no new person.
    if (!isRight || (known === null && isInvitedOnly(environment))) {
      return new Refusal(
        "code_invalid",
        "The code is wrong, used, older than ten minutes or was tried too often: type the newest one, or request another.",
      );
    }
    const signUp = {
      environmentId,
      email,
      createdBy: context.by,
      nowMs,
      signupsPerDay: limits.signupsPerDay,
    };
    const { person } = await signUpPerson(tx, signUp);
    if (person.status === "suspended") {
      return new Refusal(
        "person_suspended",
        "This person is suspended and cannot sign in: ask the app's owner.",
      );
    }
    const at = { environmentId, personId: person.id, nowMs };
    await claimCodeMails(tx, { ...at, email });
    await markSignedIn(tx, at);
    await recordNetwork(tx, { personId: person.id, network: digestNetwork(sealer, holder), nowMs });
    return { person: { ...person, status: "active" }, ...(await createPersonSession(tx, at)) };
  }

  async #findAsker(tx: Reader, holder: CodeHolder): Promise<Asker> {
    const environment = await findEnvironmentById(tx, holder.environmentId);
    if (environment === null) throw new Refusal("not_found", "This environment no longer exists.");
    const person = await findPersonByEmail(tx, holder.environmentId, holder.email);
    const nowMs = this.#deps.clock.now();
    const network = digestNetwork(this.#deps.sealer, holder);
    const isKnown = person !== null && (await isKnownNetwork(tx, { personId: person.id, network, nowMs }));
    return { environment, person, isKnown };
  }

  /** Stores the code and, unless it is held back (no sender), its mail. */
  async #storeCode(
    tx: Writer,
    appId: string,
    holder: CodeHolder,
    from: string | null,
  ): Promise<{ mail: OutgoingMail | null; expiresAt: number }> {
    const { sealer, clock, local } = this.#deps;
    const { environmentId, email } = holder;
    const nowMs = clock.now();
    const code = from === null ? null : makeCode();
    const mail =
      from === null || code === null
        ? null
        : await recordCodeMail(tx, { appId, environmentId, email, code, nowMs }, from, local);
    return { mail, expiresAt: await storeCode(tx, sealer, holder, code, nowMs) };
  }

  /** Sends the mail and returns whether it certainly failed. An unknown result counts as sent. */
  async #send(mail: OutgoingMail): Promise<boolean> {
    const { store, mailer, clock } = this.#deps;
    const sent = await mailer.send(mail, { withinMs: CODE_MAIL_WITHIN_MS });
    await store.write(
      "app",
      async (tx) => {
        await finishEmail(tx, mail.emailId, toEmailEnd(sent), clock.now());
        if (sent.kind === "sent" || sent.kind === "mailbox")
          await clearUndeliveredCodes(tx, mail.environmentId, clock.now());
      },
      mail.environmentId,
    );
    if (sent.kind !== "failed") return false;
    const at = { environmentId: mail.environmentId, nowMs: clock.now() };
    if (await store.read((tx) => blocksAllCodes(tx, at, sent.reason)))
      await recordUndeliveredCodes(store, at.environmentId, { why: sent.message, nowMs: at.nowMs });
    return true;
  }

  /**
   * Reports whether to notify the owner of a used-up budget now, at most once an hour. Must be called outside of a transaction, which may run
   * twice.
   */
  #isNoticeDue(environment: Environment, limit: keyof typeof USED_UP): boolean {
    return (
      isAlertEnabled(environment, "codes_capped") && this.#notices.take(`${environment.id} ${limit}`) === null
    );
  }

  /** Alerts only the owner: the caller gets the usual answer. */
  async #notifyOwner(tx: Writer, environment: Environment, limit: keyof typeof USED_UP): Promise<void> {
    const { clock, limits } = this.#deps;
    await raiseAlert(tx, {
      environmentId: environment.id,
      code: "codes_capped",
      target: "signin:codes",
      message: USED_UP[limit](limits),
      nowMs: clock.now(),
    });
  }
}

const USED_UP = {
  codesPerHour: ({ codesPerHour }: RaisableLimits) =>
    `More than ${codesPerHour} sign-in codes were requested within an hour, which is the limit of this environment. Until the hour is over, people can sign in only on devices where they signed in before. Raise RELAY_LIMIT_CODES_PER_HOUR if these are your visitors.`,
  strangerCodesPerHour: ({ strangerCodesPerHour }: RaisableLimits) =>
    `More than ${strangerCodesPerHour} codes were requested within an hour for unknown addresses, which is the limit of this environment. Until the hour is over, unknown addresses get no code and new people cannot sign up. Existing people can still sign in. Raise RELAY_LIMIT_STRANGER_CODES_PER_HOUR if these are your visitors.`,
  strangerCodesOfNetwork: ({ strangerCodesPerHour }: RaisableLimits) =>
    `One network used its part of the ${strangerCodesPerHour} sign-in codes an hour for unknown addresses. New people of that network get no code until the hour is over. All others can still sign up. Raise RELAY_LIMIT_STRANGER_CODES_PER_HOUR if these are your visitors.`,
};

/** An IPv6 network is the /48, because its holder changes addresses at will. */
function holderOf({ environmentId, source }: SigninContext, email: string): CodeHolder {
  return { environmentId, email, network: siteOf(source) };
}

/** Normalizes the composition, so that equal addresses reach the same mailbox. */
function requireAddress(given: string): string {
  const email = parseEmailAddress(given.normalize("NFC"));
  if (email !== null) return email;
  throw new Refusal("invalid_input", "`email` is not an email address: use one such as name@example.com.");
}
