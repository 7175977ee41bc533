/**
 * Every mail as a row: intended before it leaves, then what became of it. The caps are counted here, from the rows themselves, so that a
 * restart forgets nothing. It never sends.
 */

import { type Static, Type } from "typebox";
import { newId } from "../../base/id.ts";
import { DAY_MS, HOUR_MS, type RaisableLimits } from "../../base/limit.ts";
import type { Page, PageRequest } from "../../base/page.ts";
import { MAIL_TROUBLES, type MailTrouble } from "../../base/problem-code.ts";
import { orNull as nullOr, oneOf, show, textOrNull, time, timeOrNull } from "../../base/schema.ts";
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
    /** One line. */
    subject: text(),
    text: text(),
    state: text<EmailState>(),
    /** One sentence: why it was not sent, or why that is not known. */
    message: orNull(text()),
    reason: orNull(text<MailTrouble>()),
    relayName: orNull(text()),
    eventId: orNull(text()),
    createdAt: integer(),
    /** When its text began to leave; null: it did not. */
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
  subject: Type.String(),
  text: Type.String(),
  state: oneOf(EMAIL_STATES),
  message: textOrNull,
  reason: nullOr(oneOf(Object.keys(MAIL_TROUBLES) as MailTrouble[])),
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

/** Writes the mail as `intended`; answers its id. */
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
 * Marks that the mail's text is about to leave; durable before its first byte does, so that a crash tells a mail that certainly did not
 * leave from one that may have. Answers whether it may leave: its row must still wait for its end, and its person must not be erased.
 */
export async function markTextLeft(tx: Writer, id: string, nowMs: number): Promise<boolean> {
  const sql = `UPDATE email SET left_at = ?2 WHERE id = ?1 AND state = 'intended' AND recipient <> 'erased'
    AND NOT EXISTS (SELECT 1 FROM person WHERE person.id = email.person_id AND person.status = 'erased')`;
  return (await tx.run(sql, id, nowMs)) > 0;
}

/** How a mail ended. */
interface EmailEnd {
  state: Exclude<EmailState, "intended">;
  /** One sentence of ours, never a mail server's words. */
  message?: string | null;
  reason?: MailTrouble | null;
}

/** What became of an intended mail. */
export async function finishEmail(tx: Writer, id: string, end: EmailEnd, nowMs: number): Promise<void> {
  const { state, message = null, reason = null } = end;
  const sql = `UPDATE email SET state = $state, message = $message, reason = $reason, finished_at = $nowMs
    WHERE id = $id AND state = 'intended'`;
  await tx.run(sql, { id, state, message, reason, nowMs });
}

/** Takes a mail whose end is unknown to be sent once more; its `leftAt` stays, so that a crash on the way leaves it unknown again. */
export async function reopenUnknownEmail(tx: Writer, id: string, sender: string): Promise<void> {
  const sql = `UPDATE email SET state = 'intended', sender = ?2, message = NULL, reason = NULL, finished_at = NULL
    WHERE id = ?1 AND state = 'unknown'`;
  await tx.run(sql, id, sender);
}

/** The end that a mailer's outcome is. */
export function toEmailEnd(outcome: MailOutcome): EmailEnd {
  if (!("message" in outcome)) return { state: outcome.kind };
  return { state: outcome.kind, message: outcome.message, reason: outcome.reason };
}

/** The newest mail to a person that an event caused, or null. */
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

/** Removes a mail that certainly did not leave and makes room for the one that is intended in its place. */
export async function deleteUnsentEmail(tx: Writer, id: string): Promise<void> {
  const sql = "DELETE FROM email WHERE id = ?1 AND left_at IS NULL AND state IN ('intended', 'failed')";
  await tx.run(sql, id);
}

/**
 * One sentence naming the cap that one more mail would break, or null. Mails of an app's relays (in all its environments) count for a
 * rolling hour, a person's event mails for a UTC day; a mail that failed did not leave and does not count, nor does one that a clock dated which
 * stood ahead and was set back since: it would fill the cap until then. Sign-in codes have a budget of their own (`portal/person-signin.ts`), so
 * that strangers who ask for codes never keep an event's mail from leaving.
 */
export async function findExceededCap(
  tx: Reader,
  mail: { appId: string; personId: string; kind: "event" | "account"; nowMs: number },
  limits: Pick<RaisableLimits, "emailsPerHour" | "eventEmailsPerPersonPerDay">,
): Promise<string | null> {
  const hour = await tx.get<{ count: number }>(
    `SELECT COUNT(*) AS count FROM email WHERE environment_id IN (SELECT id FROM environment WHERE app_id = ?1)
       AND created_at > ?2 AND created_at < ?3 AND state <> 'failed' AND kind IN ('event', 'account') AND relay_name IS NOT NULL`,
    mail.appId,
    mail.nowMs - HOUR_MS,
    mail.nowMs + HOUR_MS,
  );
  if ((hour?.count ?? 0) >= limits.emailsPerHour) {
    return `The app sent ${limits.emailsPerHour} mails within an hour, its limit: this one is tried again later.`;
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
  return `The person got ${limits.eventEmailsPerPersonPerDay} event mails today (UTC), the limit: this one is tried again later.`;
}

interface EmailFilter {
  person?: string | undefined;
  kind?: EmailKind | undefined;
  state?: EmailState | undefined;
}

/** Newest first. */
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

/** One mail as the API shows it. Refuses with `not_found`. */
export async function requireEmailView(tx: Reader, environmentId: number, id: string): Promise<EmailView> {
  const sentence = `There is no mail ${id} in this environment: relay emails list shows the ones there are.`;
  return viewEmail(await EMAIL.require(tx, { environmentId, id }, sentence));
}
