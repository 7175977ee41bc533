/**
 * Signing in to an app with an e-mailed code. Asking for a code goes the same way for every address, so that it tells nobody who
 * exists; a person is created only once a code came back from their mailbox, through the door of every invite and under its cap.
 */
import type { Clock } from "../ground/clock.ts";
import {
  MAX_CODES_PER_ADDRESS,
  MAX_CODES_PER_EMAIL,
  MAX_SIGNINS_PER_ADDRESS,
  type RaisableLimits,
  SIGNIN_WINDOW_MS,
} from "../ground/limit.ts";
import { Refusal } from "../ground/refusal.ts";
import type { RefusalCode } from "../ground/refusal-code.ts";
import { WindowCap } from "../ground/window-cap.ts";
import { finishEmail } from "../mail/email.ts";
import type { Mailer, MailOutcome } from "../mail/mailer.ts";
import { parseEmailAddress, toEmailKey } from "../people/email-address.ts";
import { markSignedIn, type PersonRow } from "../people/person.ts";
import { invitePerson } from "../people/person-invite.ts";
import type { Sealer } from "../secret/seal.ts";
import type { Store, Writer } from "../store/port.ts";
import { claimCodeMails, intendCodeMail, refuseCodeMail } from "./code-mail.ts";
import { keepCode, makeCode, redeemCode } from "./person-code.ts";
import { createPersonSession } from "./person-session.ts";

export interface SigninRooms {
  store: Store;
  clock: Clock;
  sealer: Sealer;
  mailer: Mailer;
  /** Local development: mail stays in the mailbox and needs no sender domain. */
  local: boolean;
  limits: RaisableLimits;
}

/** Where somebody signs in, and from where. */
export interface SigninPlace {
  appId: string;
  environmentId: number;
  /** Who lets people in, in words: `key:<id>` of the app key. */
  by: string;
  /** The caller's network address, for caps. */
  source: string;
}

export interface SignedIn {
  person: PersonRow;
  token: string;
  expiresAt: number;
}

export class PersonSignin {
  readonly #rooms: SigninRooms;
  readonly #codesByEmail: WindowCap;
  readonly #codesBySource: WindowCap;
  readonly #signinsBySource: WindowCap;

  constructor(rooms: SigninRooms) {
    this.#rooms = rooms;
    this.#codesByEmail = new WindowCap(rooms.clock, MAX_CODES_PER_EMAIL, SIGNIN_WINDOW_MS);
    this.#codesBySource = new WindowCap(rooms.clock, MAX_CODES_PER_ADDRESS, SIGNIN_WINDOW_MS);
    this.#signinsBySource = new WindowCap(rooms.clock, MAX_SIGNINS_PER_ADDRESS, SIGNIN_WINDOW_MS);
  }

  /**
   * Mails a code to the address, whether or not anybody has it; an earlier code ends. Answers when the code ends. Refuses with
   * `invalid_input` (no address), `code_capped` and `code_not_sent`.
   */
  async requestCode(place: SigninPlace, given: string): Promise<{ expiresAt: number }> {
    const { store, sealer, mailer, clock, local, limits } = this.#rooms;
    const email = requireAddress(given);
    this.#countRequest(place, email);
    const code = makeCode();
    const nowMs = clock.now();
    const { appId, environmentId } = place;
    const { mail, expiresAt } = await store.write("app", async (tx) => ({
      mail: await intendCodeMail(tx, { appId, environmentId, email, code, nowMs }, { local, limits }),
      expiresAt: await keepCode(tx, sealer, { environmentId, email }, code, nowMs),
    }));
    const sent = await mailer.send(mail);
    const end = { state: sent.kind, message: "message" in sent ? sent.message : null };
    await store.write("app", (tx) => finishEmail(tx, mail.emailId, end, clock.now()));
    refuseUnsent(sent);
    return { expiresAt };
  }

  /**
   * Starts a session for whoever holds the address's code, which is used up. Refuses with `invalid_input`, `signin_capped`,
   * `code_invalid`, and to the holder of a right code alone with `person_suspended` and `invite_capped`.
   */
  async signIn(place: SigninPlace, given: { email: string; code: string }): Promise<SignedIn> {
    const email = requireAddress(given.email);
    this.#countSignin(place);
    const code = given.code.replaceAll(/\s/g, "");
    const done = await this.#rooms.store.write("app", (tx) => this.#redeem(tx, place, email, code));
    if (done instanceof Refusal) throw done;
    return done;
  }

  /** Answers a refusal instead of throwing it where the tries must stay counted and the code used up. */
  async #redeem(tx: Writer, place: SigninPlace, email: string, code: string): Promise<SignedIn | Refusal> {
    const { sealer, clock, limits } = this.#rooms;
    const { environmentId } = place;
    const nowMs = clock.now();
    if (!(await redeemCode(tx, sealer, { environmentId, email }, code, nowMs))) {
      return new Refusal(
        "code_invalid",
        "The code is wrong, used, older than ten minutes or was tried too often: type the newest one, or ask for another.",
      );
    }
    const { person } = await invitePerson(tx, {
      environmentId,
      email,
      createdBy: place.by,
      nowMs,
      invitesPerDay: limits.invitesPerDay,
    });
    if (person.status === "suspended") {
      return new Refusal(
        "person_suspended",
        "This person is suspended and cannot sign in: ask the app's owner.",
      );
    }
    const at = { environmentId, personId: person.id, nowMs };
    await claimCodeMails(tx, { ...at, email });
    await markSignedIn(tx, at);
    return { person: { ...person, status: "active" }, ...(await createPersonSession(tx, at)) };
  }

  #countRequest({ environmentId, source }: SigninPlace, email: string): void {
    const name = `${environmentId} ${toEmailKey(email)}`;
    refuseFull(
      this.#codesBySource.fullUntil(source),
      "code_capped",
      `The limit of ${MAX_CODES_PER_ADDRESS} sign-in codes an hour from this network address is reached: wait until resetAt.`,
    );
    refuseFull(
      this.#codesByEmail.fullUntil(name),
      "code_capped",
      `The limit of ${MAX_CODES_PER_EMAIL} sign-in codes an hour for this e-mail address is reached: use the newest one, or wait until resetAt.`,
    );
    this.#codesBySource.count(source);
    this.#codesByEmail.count(name);
  }

  #countSignin({ source }: SigninPlace): void {
    refuseFull(
      this.#signinsBySource.fullUntil(source),
      "signin_capped",
      `The limit of ${MAX_SIGNINS_PER_ADDRESS} sign-ins an hour from this network address is reached: wait until resetAt.`,
    );
    this.#signinsBySource.count(source);
  }
}

/** In one composition, so that two spellings that count as one address are one mailbox too. */
function requireAddress(given: string): string {
  const email = parseEmailAddress(given.normalize("NFC"));
  if (email !== null) return email;
  throw new Refusal("invalid_input", "`email` is not an e-mail address: use one such as name@example.com.");
}

function refuseFull(resetAtMs: number | null, code: RefusalCode, sentence: string): void {
  if (resetAtMs !== null) throw new Refusal(code, sentence, { resetAtMs });
}

/** A mail whose end is not known may well have left, so it counts as sent. */
function refuseUnsent(sent: MailOutcome): void {
  if (sent.kind !== "failed") return;
  throw refuseCodeMail("the mail server did not take it", "ask for another one in a moment");
}
