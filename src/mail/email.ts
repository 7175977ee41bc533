/**
 * Every mail as a row: intended before it leaves, then what became of it. The caps are counted here, from the rows themselves, so that a
 * restart forgets nothing. It never sends.
 */
import { toIso, toIsoOrNull } from "../ground/clock.ts";
import { newId } from "../ground/id.ts";
import { DAY_MS, HOUR_MS, type RaisableLimits } from "../ground/limit.ts";
import { type Page, type PageRequest, readSeq } from "../ground/page.ts";
import { Refusal } from "../ground/refusal.ts";
import type { Reader, Writer } from "../store/port.ts";
import { equals, walkPage } from "../store/walk.ts";
import type { MailOutcome, MailTrouble } from "./mailer.ts";

type EmailKind = "event" | "account" | "alert" | "signin";
export const EMAIL_STATES = ["intended", "sent", "failed", "mailbox", "unknown"] as const;
type EmailState = (typeof EMAIL_STATES)[number];

interface EmailRow {
  seq: number;
  id: string;
  personId: string | null;
  recipient: string;
  sender: string;
  kind: EmailKind;
  subject: string;
  text: string;
  state: EmailState;
  /** One sentence: why it was not sent, or why that is not known. */
  message: string | null;
  reason: MailTrouble | null;
  relayName: string | null;
  eventId: string | null;
  createdAt: number;
  /** When its text began to leave; null: it did not. */
  leftAt: number | null;
  finishedAt: number | null;
}

export interface EmailView {
  id: string;
  person: string | null;
  to: string;
  from: string;
  kind: EmailKind;
  subject: string;
  text: string;
  state: EmailState;
  message: string | null;
  reason: MailTrouble | null;
  relay: string | null;
  eventId: string | null;
  createdAt: string;
  finishedAt: string | null;
}

const COLUMNS = `seq, id, person_id AS personId, recipient, sender, kind, subject, text, state, message, reason,
  relay_name AS relayName, event_id AS eventId, created_at AS createdAt, left_at AS leftAt, finished_at AS finishedAt`;

/** The mail as the API shows it. */
function viewEmail(row: EmailRow): EmailView {
  return {
    id: row.id,
    person: row.personId,
    to: row.recipient,
    from: row.sender,
    kind: row.kind,
    subject: row.subject,
    text: row.text,
    state: row.state,
    message: row.message,
    reason: row.reason,
    relay: row.relayName,
    eventId: row.eventId,
    createdAt: toIso(row.createdAt),
    finishedAt: toIsoOrNull(row.finishedAt),
  };
}

interface NewEmail {
  environmentId: number;
  personId: string | null;
  recipient: string;
  sender: string;
  kind: EmailKind;
  /** One line. */
  subject: string;
  text: string;
  relayName: string | null;
  eventId: string | null;
  nowMs: number;
}

/** Writes the mail as `intended`; answers its id. */
export async function intendEmail(tx: Writer, email: NewEmail): Promise<string> {
  const id = newId("eml", email.nowMs);
  await tx.run(
    `INSERT INTO email (id, environment_id, person_id, recipient, sender, kind, subject, text, state, relay_name, event_id,
       created_at)
     VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, 'intended', ?9, ?10, ?11)`,
    id,
    email.environmentId,
    email.personId,
    email.recipient,
    email.sender,
    email.kind,
    email.subject,
    email.text,
    email.relayName,
    email.eventId,
    email.nowMs,
  );
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
  const sql =
    "UPDATE email SET state = ?2, message = ?3, reason = ?4, finished_at = ?5 WHERE id = ?1 AND state = 'intended'";
  await tx.run(sql, id, end.state, end.message ?? null, end.reason ?? null, nowMs);
}

/** Takes a mail whose end is unknown to be sent once more; its `leftAt` stays, so that a crash on the way leaves it unknown again. */
export async function retakeUnknownEmail(tx: Writer, id: string, sender: string): Promise<void> {
  const sql = `UPDATE email SET state = 'intended', sender = ?2, message = NULL, reason = NULL, finished_at = NULL
    WHERE id = ?1 AND state = 'unknown'`;
  await tx.run(sql, id, sender);
}

/** The end that a mailer's outcome is. */
export function endOf(outcome: MailOutcome): EmailEnd {
  if (!("message" in outcome)) return { state: outcome.kind };
  return { state: outcome.kind, message: outcome.message, reason: outcome.reason };
}

/** The newest mail to a person that an event caused, or null. */
export function findNewestEmail(
  tx: Reader,
  of: { environmentId: number; personId: string; eventId: string },
): Promise<EmailRow | null> {
  const sql = `SELECT ${COLUMNS} FROM email WHERE person_id = ?1 AND environment_id = ?2 AND event_id = ?3 ORDER BY seq DESC LIMIT 1`;
  return tx.get<EmailRow>(sql, of.personId, of.environmentId, of.eventId);
}

export function findEmail(tx: Reader, environmentId: number, id: string): Promise<EmailRow | null> {
  const sql = `SELECT ${COLUMNS} FROM email WHERE environment_id = ?1 AND id = ?2`;
  return tx.get<EmailRow>(sql, environmentId, id);
}

/** Removes a mail that certainly did not leave and makes room for the one that is intended in its place. */
export async function withdrawEmail(tx: Writer, id: string): Promise<void> {
  const sql = "DELETE FROM email WHERE id = ?1 AND left_at IS NULL AND state IN ('intended', 'failed')";
  await tx.run(sql, id);
}

/**
 * One sentence naming the cap that one more mail would break, or null. Mails of an app's relays (in all its environments) count for a
 * rolling hour, a person's event mails for a UTC day; a mail that failed did not leave and does not count. Sign-in codes have a budget of
 * their own (`client/person-signin.ts`), so that strangers who ask for codes never keep an event's mail from leaving.
 */
export async function findBrokenCap(
  tx: Reader,
  mail: { appId: string; personId: string; kind: "event" | "account"; nowMs: number },
  limits: Pick<RaisableLimits, "emailsPerHour" | "eventEmailsPerPersonPerDay">,
): Promise<string | null> {
  const hour = await tx.get<{ count: number }>(
    `SELECT COUNT(*) AS count FROM email WHERE environment_id IN (SELECT id FROM environment WHERE app_id = ?1)
       AND created_at > ?2 AND state <> 'failed' AND kind IN ('event', 'account') AND relay_name IS NOT NULL`,
    mail.appId,
    mail.nowMs - HOUR_MS,
  );
  if ((hour?.count ?? 0) >= limits.emailsPerHour) {
    return `The app sent ${limits.emailsPerHour} mails within an hour, its limit: this one is tried again later.`;
  }
  if (mail.kind === "account") return null;
  const day = await tx.get<{ count: number }>(
    `SELECT COUNT(*) AS count FROM email WHERE person_id = ?1 AND created_at >= ?2 AND state <> 'failed' AND kind = 'event'`,
    mail.personId,
    mail.nowMs - (mail.nowMs % DAY_MS),
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
  return await walkPage<EmailRow, EmailView>(
    tx,
    {
      from: `email INDEXED BY ${person === undefined ? "email_by_environment" : "email_by_person"}`,
      columns: COLUMNS,
      key: "seq",
      led: [equals("environment_id", environmentId), equals("person_id", person)],
      fits: [equals("kind", kind), equals("state", state)],
      cost: "octet_length(text)",
      after: readSeq(request.after),
      limit: request.limit,
    },
    viewEmail,
  );
}

/** One mail as the API shows it. Refuses with `not_found`. */
export async function requireEmailView(tx: Reader, environmentId: number, id: string): Promise<EmailView> {
  const row = await findEmail(tx, environmentId, id);
  if (row !== null) return viewEmail(row);
  throw new Refusal("not_found", "No mail with this id exists here; the list of emails shows them.");
}
