/**
 * The mail that carries a sign-in code: whether the environment can send it, its words, its row. A server's row holds the code blanked,
 * as rows are read by keys and backups; local development's mailbox is how the code arrives, so there it stands.
 * Source: decisions, section 5 ("e-mail"); the specification's "Limits".
 */
import { findApp } from "../account/app.ts";
import { findEnvironmentById } from "../account/environment.ts";
import { CODE_DIGITS, CODE_LIFE_MS, type RaisableLimits } from "../ground/limit.ts";
import { Refusal } from "../ground/refusal.ts";
import { findBrokenCap, intendEmail } from "../mail/email.ts";
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

export interface MailRules {
  /** Local development sends nothing: mail stays in the mailbox. */
  local: boolean;
  limits: Pick<RaisableLimits, "emailsPerHour" | "eventEmailsPerPersonPerDay">;
}

/** Writes the mail as intended; answers what to hand to the mailer. Refuses with `code_not_sent` where none can leave. */
export async function intendCodeMail(tx: Writer, mail: CodeMail, rules: MailRules): Promise<OutgoingMail> {
  const { environmentId, appId, email, nowMs } = mail;
  const from = await requireSender(tx, environmentId, rules.local);
  const person = await findPersonByEmail(tx, environmentId, email);
  const cap = { appId, personId: person?.id ?? "", kind: "account", nowMs } as const;
  if ((await findBrokenCap(tx, cap, rules.limits)) !== null) {
    throw refuseCodeMail("the app has sent as many mails within an hour as its limit", "try again later");
  }
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
    text: rules.local ? text : writeText(name, "•".repeat(CODE_DIGITS)),
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

async function requireSender(tx: Reader, environmentId: number, local: boolean): Promise<string> {
  const environment = await findEnvironmentById(tx, environmentId);
  const settings = environment === null ? null : readMailSettings(environment);
  if (settings?.sends !== true) {
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
