/**
 * The mail that carries a sign-in code: whether the environment can send it, its words, its row. A server's row holds the code blanked,
 * as rows are read by keys and backups; local development's mailbox is how the code arrives, so there it stands.
 * Source: decisions, section 5 ("e-mail"); the specification's "Limits".
 */
import { randomInt } from "node:crypto";
import { findApp } from "../account/app.ts";
import type { Environment } from "../account/environment.ts";
import { type Clock, sleep } from "../ground/clock.ts";
import { CODE_DIGITS, CODE_LIFE_MS } from "../ground/limit.ts";
import { Refusal } from "../ground/refusal.ts";
import { intendEmail } from "../mail/email.ts";
import { readMailSettings } from "../mail/mail-settings.ts";
import { makeSubject, makeText } from "../mail/mail-text.ts";
import type { OutgoingMail } from "../mail/mailer.ts";
import { findSenderAddress } from "../mail/sender-domain.ts";
import { findPersonByEmail } from "../people/person.ts";
import type { Reader, Writer } from "../store/port.ts";

export interface CodeMail {
  appId: string;
  environmentId: number;
  /** The address as it was given; a person who has it is mailed under their own spelling. */
  email: string;
  code: string;
  nowMs: number;
}

/** Writes the mail as intended, to leave from this address; answers what to hand to the mailer. */
export async function intendCodeMail(
  tx: Writer,
  mail: CodeMail,
  from: string,
  local: boolean,
): Promise<OutgoingMail> {
  const { environmentId, appId, email, nowMs } = mail;
  const person = await findPersonByEmail(tx, environmentId, email);
  const name = (await findApp(tx, appId))?.name ?? appId;
  const subject = makeSubject(`Your code to sign in to ${name}`);
  const text = writeText(name, mail.code);
  const to = person?.email ?? email;
  const emailId = await intendEmail(tx, {
    environmentId,
    personId: person?.id ?? null,
    recipient: to,
    sender: from,
    kind: "account",
    subject,
    text: local ? text : writeText(name, "•".repeat(CODE_DIGITS)),
    relayName: null,
    eventId: null,
    nowMs,
  });
  return { environmentId, emailId, from, to, subject, text };
}

/** Gives the sign-in mails sent to an address before anybody had it to the person who now does, so that an erasure finds them. */
export async function claimCodeMails(
  tx: Writer,
  of: { environmentId: number; personId: string; email: string; nowMs: number },
): Promise<void> {
  // Codes live for minutes: what was sent before the last hour led to nothing.
  await tx.run(
    `UPDATE email SET person_id = ?1 WHERE environment_id = ?2 AND created_at >= ?3
       AND person_id IS NULL AND kind = 'account' AND lower(recipient) = lower(?4)`,
    of.personId,
    of.environmentId,
    of.nowMs - 6 * CODE_LIFE_MS,
    of.email,
  );
}

/** `code_not_sent`, for this reason. */
export function refuseCodeMail(why: string, todo: string): Refusal {
  return new Refusal("code_not_sent", `The sign-in code was not sent, as ${why}: ${todo}.`);
}

/**
 * The address that codes leave from, where `local` is whether mail stays in the mailbox. Refuses with `code_not_sent` where none can
 * leave, before anyone looks at whose code it would be.
 */
export async function requireCodeSender(
  tx: Reader,
  environment: Environment,
  local: boolean,
): Promise<string> {
  const environmentId = environment.id;
  const settings = readMailSettings(environment);
  if (!settings.sends) {
    throw refuseCodeMail("the owner's sends switch is off", "turn it on in the mail settings");
  }
  const verified = await findSenderAddress(tx, environmentId, "account");
  if (verified !== null && (local || settings.smtp !== null)) return verified;
  if (local) return "account@localhost";
  throw verified === null
    ? refuseCodeMail("this environment has no verified sender domain", "verify one in the mail settings")
    : refuseCodeMail("this environment has no SMTP server", "set one in the mail settings");
}

function writeText(appName: string, code: string): string {
  return makeText(
    `${code} is your code to sign in to ${appName}.\n\nIt works once, for ${CODE_LIFE_MS / 60_000} minutes. If you did not ask for it, ignore this mail: nobody signs in without the code.\n`,
  );
}

/** Of so many of the newest sends is remembered how they went. */
const SENDS_REMEMBERED = 20;

/**
 * How the newest codes were sent, so that a code that is held back is answered just as one that left: as late, and as well. Without it
 * the time of an answer would tell whether anybody has the address.
 */
export class SendPace {
  readonly #clock: Clock;
  readonly #sends: { tookMs: number; failed: boolean }[] = [];

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Notes a send that began at `startedAt` by the clock that never goes back. */
  note(startedAt: number, failed: boolean): void {
    this.#sends.push({ tookMs: this.#clock.monotonicMs() - startedAt, failed });
    if (this.#sends.length > SENDS_REMEMBERED) this.#sends.shift();
  }

  /** Waits as long as one of the newest sends, and answers whether that one failed. */
  async pretend(): Promise<boolean> {
    const like = this.#sends[randomInt(Math.max(1, this.#sends.length))];
    if (like === undefined) return false;
    if (like.tookMs > 0) await sleep(this.#clock, like.tookMs);
    return like.failed;
  }
}
