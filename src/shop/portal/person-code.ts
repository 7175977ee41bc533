/**
 * E-mailed sign-in codes: six digits, ten minutes, several valid together. The store holds a keyed digest alone. It decides whether a code
 * is right, never who the person is; and what its mail says. A server's row of that mail holds the code blanked, as rows are read by keys and
 * backups; local development's mailbox is how the code arrives, so there it stands.
 *
 * Whoever asks for a code ends no other one, and whoever types wrong ones burns only what they may: a code takes five wrong tries from the
 * network that asked for it, and three from all others together, so that a stranger leaves the five of the person's own network alone.
 *
 * Guessing stays hopeless: a code is compared at most 5 + 3 = 8 times with a wrong one, and an address gets at most 10 codes an hour
 * (further ones only where its person signed in before). So of 80 comparisons an hour, each right once in 1,000,000, an attacker with any
 * number of networks expects one in 12,500 hours, and has an even chance after 8,664 hours: a year, in which the person gets ten mails an
 * hour. On all addresses of an environment together the 100 codes of an hour allow 800 comparisons.
 */
import { randomBytes, randomInt, timingSafeEqual } from "node:crypto";
import { type Clock, sleep } from "../../base/clock.ts";
import {
  CODE_DIGITS,
  CODE_LIFE_MS,
  MAX_CODE_TRIES,
  MAX_FOREIGN_CODE_TRIES,
  MINUTE_MS,
} from "../../base/limit.ts";
import type { MailTrouble } from "../../base/problem-code.ts";
import { Refusal } from "../../base/refusal.ts";
import { findApp } from "../../platform/account/app.ts";
import type { Environment } from "../../platform/account/environment.ts";
import { recordIntendedEmail } from "../../platform/mail/email.ts";
import { readMailSettings } from "../../platform/mail/mail-settings.ts";
import { makeSubject, makeText, type OutgoingMail } from "../../platform/mail/mailer.ts";
import { findSenderAddress } from "../../platform/mail/sender-domain.ts";
import type { Sealer } from "../../platform/secret/seal.ts";
import type { Reader, Store, Writer } from "../../store/port.ts";
import { bytes, defineTable, given, integer, type RowOf, text } from "../../store/table.ts";
import { findPersonByEmail, toEmailKey } from "../people/person.ts";

/** Whose code, and from which network it is asked for or typed. */
export interface CodeHolder {
  environmentId: number;
  email: string;
  network: string;
}

const PERSON_CODE = defineTable({
  name: "person_code",
  key: ["id"],
  columns: {
    id: given(),
    environmentId: integer(),
    emailKey: text(),
    codeDigest: bytes(),
    networkDigest: bytes(),
    wrongTries: integer(),
    /** Wrong tries from networks that had not asked for it. */
    foreignTries: integer(),
    expiresAt: integer(),
  },
});

/** A new code, each as likely as any other. */
export function makeCode(): string {
  return String(randomInt(10 ** CODE_DIGITS)).padStart(CODE_DIGITS, "0");
}

/** Keeps the code beside the address's others, and forgets every code that has ended. Null keeps one that nobody can type. Answers its end. */
export async function storeCode(
  tx: Writer,
  sealer: Sealer,
  holder: CodeHolder,
  code: string | null,
  nowMs: number,
): Promise<number> {
  const expiresAt = nowMs + CODE_LIFE_MS;
  await tx.run("DELETE FROM person_code WHERE expires_at <= ?1", nowMs);
  await PERSON_CODE.insert(tx, {
    environmentId: holder.environmentId,
    emailKey: toEmailKey(holder.email),
    codeDigest: digestCode(sealer, holder, code ?? randomBytes(CODE_DIGITS * 4).toString("hex")),
    networkDigest: digestNetwork(sealer, holder),
    wrongTries: 0,
    foreignTries: 0,
    expiresAt,
  });
  return expiresAt;
}

/**
 * Whether the code is one of the address's live ones, all of which it then uses up. A wrong try is counted on each code it was compared
 * with; so the caller must let the transaction commit, whatever the answer.
 */
export async function redeemCode(
  tx: Writer,
  sealer: Sealer,
  holder: CodeHolder,
  code: string,
  nowMs: number,
): Promise<boolean> {
  const { environmentId } = holder;
  const emailKey = toEmailKey(holder.email);
  const digest = digestCode(sealer, holder, code);
  const network = digestNetwork(sealer, holder);
  const live = "WHERE environment_id = $environmentId AND email_key = $emailKey AND expires_at > $nowMs";
  const kept = await PERSON_CODE.all(tx, live, { environmentId, emailKey, nowMs });
  const isOwn = (one: RowOf<typeof PERSON_CODE>): boolean => timingSafeEqual(one.networkDigest, network);
  const open = kept.filter((one) =>
    isOwn(one) ? one.wrongTries < MAX_CODE_TRIES : one.foreignTries < MAX_FOREIGN_CODE_TRIES,
  );
  if (open.filter((one) => timingSafeEqual(one.codeDigest, digest)).length > 0) {
    const sql = "DELETE FROM person_code WHERE environment_id = ?1 AND email_key = ?2";
    await tx.run(sql, environmentId, emailKey);
    return true;
  }
  for (const one of open) {
    const tries = isOwn(one) ? { wrongTries: one.wrongTries + 1 } : { foreignTries: one.foreignTries + 1 };
    await PERSON_CODE.change(tx, one, tries);
  }
  return false;
}

/** Of a network as an address's person uses it: the same address and network give the same, and nothing is learned of either. */
export function digestNetwork(sealer: Sealer, { environmentId, email, network }: CodeHolder): Uint8Array {
  return sealer.digest(`person network\n${environmentId}\n${toEmailKey(email)}\n${network}`);
}

/** Bound to environment and address, so that a digest says nothing about any other. */
function digestCode(
  sealer: Sealer,
  { environmentId, email }: Pick<CodeHolder, "environmentId" | "email">,
  code: string,
): Uint8Array {
  return sealer.digest(`person code\n${environmentId}\n${toEmailKey(email)}\n${code}`);
}

/** Somebody waits for the answer, and a connection without one ends after 30 seconds. */
export const CODE_MAIL_WITHIN_MS = 20_000;

interface CodeMail {
  appId: string;
  environmentId: number;
  /** The address as it was given; a person who has it is mailed under their own spelling. */
  email: string;
  code: string;
  nowMs: number;
}

/** Writes the mail as intended, to leave from this address; answers what to hand to the mailer. */
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

/** Gives the sign-in mails sent to an address before anybody had it to the person who now does, so that an erasure finds them. */
export async function claimCodeMails(
  tx: Writer,
  of: { environmentId: number; personId: string; email: string; nowMs: number },
): Promise<void> {
  // Codes live for minutes: what was sent before the last hour led to nothing.
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

/** `code_not_sent`, for this reason. */
export function rejectCodeMail(why: string, todo: string): Refusal {
  return new Refusal("code_not_sent", `The sign-in code was not sent, as ${why}: ${todo}.`);
}

/** Why no code can leave, and the way out, both as parts of a sentence. */
interface SenderProblem {
  why: string;
  todo: string;
}

/** The address that codes leave from, where `local` is whether mail stays in the mailbox; looked up before anyone looks at whose code it would be. */
export async function findCodeSender(
  tx: Reader,
  environment: Environment,
  local: boolean,
): Promise<string | SenderProblem> {
  const settings = readMailSettings(environment);
  if (!settings.sends) {
    return {
      why: "the owner's sends switch is off",
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

/** Of the one address that was typed, or of the end of this process. */
const SINGLE_MAIL_TROUBLES: readonly MailTrouble[] = ["recipient_refused", "stopped", "not_composed"];
/** Such a server may take the next mail: failing for so long, it stands in the way of all. */
const TRANSIENT_TROUBLES: readonly MailTrouble[] = [
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

/** Whether a code's mail that failed for this reason says that none leaves: at once where it cannot mend itself, else once no other left for a while. */
export async function blocksAllCodes(
  tx: Reader,
  { environmentId, nowMs }: { environmentId: number; nowMs: number },
  reason: MailTrouble,
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
    `${code} is your code to sign in to ${appName}.\n\nIt works once, for ${CODE_LIFE_MS / MINUTE_MS} minutes. If you did not ask for it, ignore this mail: nobody signs in without the code.\n`,
  );
}

/** So many of the newest sends say how a send goes, found among so many of the newest mails. */
const SENDS_LOOKED_AT = 20;
const MAILS_LOOKED_AT = 200;

/**
 * Waits as long as one of the environment's newest codes took to be sent, and answers whether that one failed: so a code that is held back
 * is answered just as one that left, as late and as well. Without it the time of an answer would tell whether anybody has the address.
 * The rows say it, so that neither a restart nor another environment's mail server makes a difference. One that failed for its recipient
 * says nothing of others', and whoever asked for it may have chosen that recipient.
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
