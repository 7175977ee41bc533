/**
 * The mail of a sign-in code: its sender, its text, and what a failed mail means. On a server the stored mail has the code blanked, because
 * keys and backups can read it. In local development the mailbox shows the code.
 */
import { randomInt } from "node:crypto";
import { type Clock, sleep } from "../../base/clock.ts";
import type { MailFailureCode } from "../../base/code/mail-code.ts";
import { CODE_DIGITS, CODE_LIFE_MS, MINUTE_MS } from "../../base/limit.ts";
import { Refusal } from "../../base/refusal.ts";
import { findApp } from "../../platform/account/app.ts";
import type { Environment } from "../../platform/account/environment.ts";
import { recordIntendedEmail } from "../../platform/mail/email.ts";
import { readMailSettings } from "../../platform/mail/mail-settings.ts";
import { makeSubject, makeText, type OutgoingMail } from "../../platform/mail/mailer.ts";
import { findSenderAddress } from "../../platform/mail/sender-domain.ts";
import type { Reader, Store, Writer } from "../../store/port.ts";
import { findPersonByEmail } from "../people/person.ts";

/** A person waits for the answer, and an idle connection ends after 30 seconds. */
export const CODE_MAIL_WITHIN_MS = 20_000;

interface CodeMail {
  appId: string;
  environmentId: number;
  /** The address as given; a person who has it is mailed under their own spelling. */
  email: string;
  code: string;
  nowMs: number;
}

/** Writes the mail as intended, from this sender. Returns the mail for the mailer. */
export async function recordCodeMail(
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
  const emailId = await recordIntendedEmail(tx, {
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

/** Assigns earlier sign-in mails of an address to the person who now has it, so that an erasure finds them. */
export async function claimCodeMails(
  tx: Writer,
  of: { environmentId: number; personId: string; email: string; nowMs: number },
): Promise<void> {
  // Codes are valid for minutes, so mails older than an hour led to no sign-in.
  await tx.run(
    `UPDATE email SET person_id = $personId WHERE environment_id = $environmentId AND created_at >= $after
       AND person_id IS NULL AND kind = 'account' AND lower(recipient) = lower($email)`,
    {
      personId: of.personId,
      environmentId: of.environmentId,
      after: of.nowMs - 6 * CODE_LIFE_MS,
      email: of.email,
    },
  );
}

/** Returns the rejection `code_not_sent` with its reason and remedy. */
export function rejectCodeMail(why: string, todo: string): Refusal {
  return new Refusal("code_not_sent", `The sign-in code was not sent, because ${why}: ${todo}.`);
}

/** The reason why no code can be sent, and the remedy, both as parts of a sentence. */
interface SenderProblem {
  why: string;
  todo: string;
}

/**
 * Finds the sender of codes. `local`: mail stays in the mailbox. It is looked up before the code's recipient, so that the answer does not
 * depend on who has the address.
 */
export async function findCodeSender(
  tx: Reader,
  environment: Environment,
  local: boolean,
): Promise<string | SenderProblem> {
  const settings = readMailSettings(environment);
  if (!settings.sends) {
    return {
      why: "sending mail is turned off in the settings",
      todo: "turn it on with relay settings set mail.sends on",
    };
  }
  const verified = await findSenderAddress(tx, environment.id, "account");
  if (verified !== null && (local || settings.smtp !== null)) return verified;
  if (local) return "account@localhost";
  return verified === null
    ? {
        why: "this environment has no verified sender domain",
        todo: "set one with relay domain set, then relay domain verify",
      }
    : { why: "this environment has no SMTP server", todo: "set one with relay settings set mail.smtp" };
}

/** Troubles of the one typed address, or of the end of this process. */
const SINGLE_MAIL_TROUBLES: readonly MailFailureCode[] = ["recipient_refused", "stopped", "not_composed"];
/** Troubles after which the server may accept the next mail; if they last, they block all mail. */
const TRANSIENT_TROUBLES: readonly MailFailureCode[] = [
  "name_not_found",
  "connection_refused",
  "not_connected",
  "timed_out",
  "connection_lost",
  "server_trouble",
  "sender_refused",
  "text_refused",
];
const TRANSIENT_PERIOD_MS = 15 * MINUTE_MS;

/**
 * Reports whether a failed mail means that no code can be sent: at once for a permanent trouble, otherwise after no other mail was sent for a
 * while.
 */
export async function blocksAllCodes(
  tx: Reader,
  { environmentId, nowMs }: { environmentId: number; nowMs: number },
  reason: MailFailureCode,
): Promise<boolean> {
  if (SINGLE_MAIL_TROUBLES.includes(reason)) return false;
  if (!TRANSIENT_TROUBLES.includes(reason)) return true;
  const rows = await tx.all<{ state: string; createdAt: number }>(
    `SELECT state, created_at AS createdAt FROM (
       SELECT seq, kind, relay_name, state, created_at FROM email WHERE environment_id = ?1 ORDER BY seq DESC LIMIT ${MAILS_LOOKED_AT}) AS newest
     WHERE kind = 'account' AND relay_name IS NULL AND state <> 'intended' ORDER BY seq DESC LIMIT ${SENDS_LOOKED_AT}`,
    environmentId,
  );
  const left = rows.findIndex(({ state }) => state !== "failed");
  const failed = left === -1 ? rows : rows.slice(0, left);
  return nowMs - (failed.at(-1)?.createdAt ?? nowMs) >= TRANSIENT_PERIOD_MS;
}

function writeText(appName: string, code: string): string {
  return makeText(
    `${code} is your code to sign in to ${appName}.\n\nIt works once, for ${CODE_LIFE_MS / MINUTE_MS} minutes. If you did not ask for it, ignore this mail: signing in needs the code.\n`,
  );
}

/** The most recent sends to compare, and the most recent mails to search for them. */
const SENDS_LOOKED_AT = 20;
const MAILS_LOOKED_AT = 200;

/**
 * Simulates sending a code that is held back: waits as long as a recent send took, and returns whether that one failed. Otherwise the duration
 * of the answer would reveal whether a person has the address. Durations come from stored rows, so neither a restart nor another environment's
 * mail server matters. Sends that failed for their recipient are excluded, because the caller may have chosen the recipient.
 */
export async function simulateSend(store: Store, clock: Clock, environmentId: number): Promise<boolean> {
  const sends = await store.read((tx) =>
    tx.all<{ tookMs: number; failed: number }>(
      `SELECT finished_at - created_at AS tookMs, state = 'failed' AS failed FROM (
         SELECT seq, kind, relay_name, state, reason, created_at, finished_at FROM email WHERE environment_id = ?1 ORDER BY seq DESC LIMIT ${MAILS_LOOKED_AT})
       WHERE kind = 'account' AND relay_name IS NULL AND finished_at BETWEEN created_at AND created_at + ?2
         AND reason IS NOT 'recipient_refused' ORDER BY seq DESC LIMIT ${SENDS_LOOKED_AT}`,
      environmentId,
      CODE_MAIL_WITHIN_MS,
    ),
  );
  const like = sends[randomInt(Math.max(1, sends.length))];
  if (like === undefined) return false;
  if (like.tookMs > 0) await sleep(clock, like.tookMs);
  return like.failed === 1;
}
