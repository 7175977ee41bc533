/**
 * Every mail as a row, written as `intended` before it is sent and then with its result. Caps are counted from the rows, so that a restart
 * resets none. This file never sends.
 */

import { type Static, Type } from "typebox";
import { MAIL_FAILURES, type MailFailureCode } from "../../base/code/mail-code.ts";
import { newId } from "../../base/id.ts";
import { DAY_MS, HOUR_MS, type RaisableLimits } from "../../base/limit.ts";
import type { Page, PageRequest } from "../../base/page.ts";
import {
  orNull as nullOr,
  oneOf,
  payloadText,
  show,
  textOrNull,
  time,
  timeOrNull,
} from "../../base/schema.ts";
import { equals, walkPage } from "../../store/index-scan.ts";
import type { Reader, Writer } from "../../store/port.ts";
import { defineTable, given, integer, orNull, type RowOf, text } from "../../store/table.ts";
import type { MailOutcome } from "./mailer.ts";

export const EMAIL_KINDS = ["event", "account", "alert", "signin"] as const;
type EmailKind = (typeof EMAIL_KINDS)[number];
export const EMAIL_STATES = ["intended", "sent", "failed", "mailbox", "unknown"] as const;
type EmailState = (typeof EMAIL_STATES)[number];

export const EMAIL = defineTable({
  name: "email",
  key: ["id"],
  columns: {
    seq: given(),
    id: text(),
    environmentId: integer(),
    personId: orNull(text()),
    recipient: text(),
    sender: text(),
    kind: text<EmailKind>(),
    subject: text(),
    text: text(),
    state: text<EmailState>(),
    /** One sentence that says why the mail was not sent, or why that is unknown. */
    message: orNull(text()),
    reason: orNull(text<MailFailureCode>()),
    relayName: orNull(text()),
    eventId: orNull(text()),
    createdAt: integer(),
    /** The time when the transmission of its text began; null: it did not. */
    leftAt: orNull(integer()),
    finishedAt: orNull(integer()),
  },
});

type EmailRow = RowOf<typeof EMAIL>;

export const emailView = Type.Object({
  id: Type.String(),
  person: textOrNull,
  to: Type.String(),
  from: Type.String(),
  kind: oneOf(EMAIL_KINDS),
  subject: payloadText,
  text: payloadText,
  state: oneOf(EMAIL_STATES),
  message: textOrNull,
  reason: nullOr(oneOf(Object.keys(MAIL_FAILURES) as MailFailureCode[])),
  relay: textOrNull,
  eventId: textOrNull,
  createdAt: time,
  finishedAt: timeOrNull,
});
export type EmailView = Static<typeof emailView>;

function viewEmail(row: EmailRow): EmailView {
  const renamed = { person: row.personId, to: row.recipient, from: row.sender, relay: row.relayName };
  return show(emailView, { ...row, ...renamed });
}

type NewEmail = Pick<
  EmailRow,
  | "environmentId"
  | "personId"
  | "recipient"
  | "sender"
  | "kind"
  | "subject"
  | "text"
  | "relayName"
  | "eventId"
>;

/** Writes the mail as `intended` and returns its id. */
export async function recordIntendedEmail(
  tx: Writer,
  { nowMs, ...email }: NewEmail & { nowMs: number },
): Promise<string> {
  const id = newId("eml", nowMs);
  const open = { state: "intended", message: null, reason: null, leftAt: null, finishedAt: null } as const;
  await EMAIL.insert(tx, { ...email, id, ...open, createdAt: nowMs });
  return id;
}

/**
 * Marks that the transmission of the mail's text starts. The mark is durable before the first byte is sent, so that after a crash a mail that
 * certainly was not sent differs from one that may have been. Returns false if the mail must not be sent: it ended already or its person was
 * erased.
 */
export async function markTextLeft(tx: Writer, id: string, nowMs: number): Promise<boolean> {
  const sql = `UPDATE email SET left_at = ?2 WHERE id = ?1 AND state = 'intended' AND recipient <> 'erased'
    AND NOT EXISTS (SELECT 1 FROM person WHERE person.id = email.person_id AND person.status = 'erased')`;
  return (await tx.run(sql, id, nowMs)) > 0;
}

interface EmailEnd {
  state: Exclude<EmailState, "intended">;
  /** A sentence of Relay, never the words of a mail server. */
  message?: string | null;
  reason?: MailFailureCode | null;
}

/** Records the result of an intended mail. */
export async function finishEmail(tx: Writer, id: string, end: EmailEnd, nowMs: number): Promise<void> {
  const { state, message = null, reason = null } = end;
  const sql = `UPDATE email SET state = $state, message = $message, reason = $reason, finished_at = $nowMs
    WHERE id = $id AND state = 'intended'`;
  await tx.run(sql, { id, state, message, reason, nowMs });
}

/**
 * Reopens a mail with an unknown result to send it once more. Its `leftAt` stays, so that a crash during the transmission leaves it unknown
 * again.
 */
export async function reopenUnknownEmail(tx: Writer, id: string, sender: string): Promise<void> {
  const sql = `UPDATE email SET state = 'intended', sender = ?2, message = NULL, reason = NULL, finished_at = NULL
    WHERE id = ?1 AND state = 'unknown'`;
  await tx.run(sql, id, sender);
}

/** Converts a mailer's outcome into the result to store. */
export function toEmailEnd(outcome: MailOutcome): EmailEnd {
  if (!("message" in outcome)) return { state: outcome.kind };
  return { state: outcome.kind, message: outcome.message, reason: outcome.reason };
}

/** Finds the newest mail to a person that an event caused. */
export function findNewestEmail(
  tx: Reader,
  of: { environmentId: number; personId: string; eventId: string },
): Promise<EmailRow | null> {
  const rest = `WHERE person_id = $personId AND environment_id = $environmentId AND event_id = $eventId
    ORDER BY seq DESC LIMIT 1`;
  return EMAIL.get(tx, rest, of);
}

export function findEmail(tx: Reader, environmentId: number, id: string): Promise<EmailRow | null> {
  return EMAIL.find(tx, { environmentId, id });
}

/** Deletes a mail that certainly was not sent, before another one replaces it. */
export async function deleteUnsentEmail(tx: Writer, id: string): Promise<void> {
  const sql = "DELETE FROM email WHERE id = ?1 AND left_at IS NULL AND state IN ('intended', 'failed')";
  await tx.run(sql, id);
}

/**
 * Finds the cap that one more mail would exceed, as a sentence, or null. Mails of an app's relays (in all its environments) count for a
 * rolling hour, a person's event mails for a UTC day. Failed mails do not count, nor do mails dated in the future, which a clock that was set
 * back would otherwise count for too long. Sign-in codes have their own budget (portal/person-signin.ts), so that strangers who ask for codes
 * never block an event's mail.
 */
export async function findExceededCap(
  tx: Reader,
  mail: { appId: string; personId: string; kind: "event" | "account"; nowMs: number },
  limits: Pick<RaisableLimits, "emailsPerHour" | "eventEmailsPerPersonPerDay">,
): Promise<string | null> {
  if ((await countRelayEmails(tx, mail.appId, mail.nowMs)) >= limits.emailsPerHour) {
    return `The app sent ${limits.emailsPerHour} mails within an hour, which is its limit: this mail is retried later.`;
  }
  if (mail.kind === "account") return null;
  const dayMs = mail.nowMs - (mail.nowMs % DAY_MS);
  const day = await tx.get<{ count: number }>(
    `SELECT COUNT(*) AS count FROM email WHERE person_id = ?1 AND created_at >= ?2 AND created_at < ?3 AND state <> 'failed' AND kind = 'event'`,
    mail.personId,
    dayMs,
    dayMs + DAY_MS,
  );
  if ((day?.count ?? 0) < limits.eventEmailsPerPersonPerDay) return null;
  return `The person got ${limits.eventEmailsPerPersonPerDay} event mails today (UTC), which is the limit: this mail is retried later.`;
}

/** Counts the mails that the relays of an app sent within the last hour. */
export async function countRelayEmails(tx: Reader, appId: string, nowMs: number): Promise<number> {
  const hour = await tx.get<{ count: number }>(
    `SELECT COUNT(*) AS count FROM email WHERE environment_id IN (SELECT id FROM environment WHERE app_id = ?1)
       AND created_at > ?2 AND created_at < ?3 AND state <> 'failed' AND kind IN ('event', 'account') AND relay_name IS NOT NULL`,
    appId,
    nowMs - HOUR_MS,
    nowMs + HOUR_MS,
  );
  return hour?.count ?? 0;
}

interface EmailFilter {
  person?: string | undefined;
  kind?: EmailKind | undefined;
  state?: EmailState | undefined;
}

/** Lists one page of mails, newest first. */
export async function listEmails(
  tx: Reader,
  environmentId: number,
  request: PageRequest,
  filter: EmailFilter = {},
): Promise<Page<EmailView>> {
  const { person, kind, state } = filter;
  const walk = {
    index: person === undefined ? "email_by_environment" : "email_by_person",
    key: "seq",
    led: [equals("environment_id", environmentId), equals("person_id", person)],
    fits: [equals("kind", kind), equals("state", state)],
    cost: "octet_length(text)",
  } as const;
  return await walkPage(tx, EMAIL, request, walk, viewEmail);
}

/** Finds one mail as the API shows it. Throws `not_found`. */
export async function requireEmailView(tx: Reader, environmentId: number, id: string): Promise<EmailView> {
  const sentence = `There is no mail ${id} in this environment: relay emails list shows the existing ones.`;
  return viewEmail(await EMAIL.require(tx, { environmentId, id }, sentence));
}

/** The subject of a test mail. */
export const TEST_SUBJECT = "Test mail";
/** The most of the newest mails that are read to find one. */
const MAX_SEARCHED = 1_000;

/** Finds when the newest test mail was sent. */
export function findTestMailAt(tx: Reader, environmentId: number): Promise<number | null> {
  const fits = `kind = 'account' AND state = 'sent' AND subject = '${TEST_SUBJECT}'`;
  return findLastFinishedAt(tx, environmentId, fits);
}

/** Finds when the last mail of a kind without an event failed. */
export function findLastFailedMailAt(
  tx: Reader,
  environmentId: number,
  kind: EmailKind,
): Promise<number | null> {
  return findLastFinishedAt(tx, environmentId, `kind = '${kind}' AND state = 'failed' AND event_id IS NULL`);
}

async function findLastFinishedAt(tx: Reader, environmentId: number, fits: string): Promise<number | null> {
  const sql = `SELECT max(finished_at) AS at FROM (SELECT kind, state, subject, event_id, finished_at FROM email INDEXED BY email_by_environment
      WHERE environment_id = ?1 ORDER BY seq DESC LIMIT ${MAX_SEARCHED}) AS newest WHERE ${fits}`;
  return (await tx.get<{ at: number | null }>(sql, environmentId))?.at ?? null;
}
