/**
 * Mail that a user sends manually: a mail with an unknown result again, or a test of the settings to an owner. Both are written as intended
 * before they are sent, as every mail is.
 */

import type { Clock } from "../../base/clock.ts";
import type { RaisableLimits } from "../../base/limit.ts";
import { Refusal } from "../../base/refusal.ts";
import type { Origin, Reader, Store, Writer } from "../../store/port.ts";
import { lockAppLimits } from "../account/app.ts";
import { findEnvironmentById } from "../account/environment.ts";
import { listAddresses } from "../account/membership.ts";
import { writeAudit } from "../audit/audit.ts";
import { clearUndeliveredAlerts } from "../audit/undelivered-alerts.ts";
import { clearUndeliveredCodes } from "../audit/undelivered-codes.ts";
import {
  type EmailView,
  findExceededCap,
  finishEmail,
  recordIntendedEmail,
  reopenUnknownEmail,
  requireEmailView,
  TEST_SUBJECT,
  toEmailEnd,
} from "./email.ts";
import { MAY_HAVE_BEEN_SENT } from "./interrupted-mail.ts";
import { readMailSettings } from "./mail-settings.ts";
import { findMailStop } from "./mail-stop.ts";
import type { Mailer, MailOutcome, OutgoingMail } from "./mailer.ts";
import { findSenderAddress } from "./sender-domain.ts";

/** A user waits for the answer, and an idle connection ends after 30 seconds. */
const WITHIN_MS = 20_000;

export interface ManualMailDeps {
  store: Store;
  clock: Clock;
  mailer: Mailer;
  /** Local development: mail stays in the mailbox and needs no sender domain. */
  local: boolean;
}

/** The environment, the actor (formatted) and the store's origin. */
interface ManualActor {
  environmentId: number;
  by: string;
  origin: Origin;
}

/**
 * Sends a mail with an unknown result again, to the same person with the same text. A failure leaves it unknown. `requirePerson` throws for a
 * person who may not be mailed now. Returns the mail with its new result. Throws `not_found`, `mail_settled` and `mail_not_possible`.
 */
export async function sendEmailAgain(
  { store, clock, mailer, local }: ManualMailDeps,
  { environmentId, by, origin }: ManualActor,
  id: string,
  requirePerson: (tx: Reader, personId: string) => Promise<unknown>,
): Promise<EmailView> {
  const mail = await store.write(
    origin,
    async (tx): Promise<OutgoingMail> => {
      const row = await requireEmailView(tx, environmentId, id);
      if (row.state !== "unknown" || row.person === null || row.relay === null) {
        throw new Refusal(
          "mail_settled",
          "Only a relay's mail with an unknown result can be sent again by hand; to send a failed mail, replay its event.",
        );
      }
      await requirePerson(tx, row.person);
      const stop = { environmentId, personId: row.person };
      if (row.kind === "event" && (await findMailStop(tx, stop)) !== null) {
        throw new Refusal(
          "mail_not_possible",
          "The person unsubscribed from mail of kind event: allow it again with relay people allow-mail, then send the mail.",
        );
      }
      const from = await requireSender(tx, environmentId, row.kind === "event" ? "event" : "account", local);
      await reopenUnknownEmail(tx, id, from);
      await writeAudit(tx, {
        environmentId,
        nowMs: clock.now(),
        by,
        action: "email.sent_again",
        target: `email:${id}`,
        after: { relay: row.relay, person: row.person },
      });
      const { to, subject, text } = row;
      const plan = { environmentId, emailId: id, from, to, subject, text };
      return row.kind === "event" ? { ...plan, stopFor: row.person } : plan;
    },
    environmentId,
  );
  const outcome = await mailer.send(mail, { withinMs: WITHIN_MS });
  const end = toEmailEnd(outcome);
  const stays = {
    ...end,
    state: "unknown",
    message: `${MAY_HAVE_BEEN_SENT} Sent again by hand: ${end.message}`,
  } as const;
  return finish(store, clock, mail, outcome.kind === "failed" || outcome.kind === "unknown" ? stays : end);
}

interface TestMail {
  appId: string;
  /** An owner's address; the first owner's if absent. */
  to?: string | undefined;
  limits: Pick<RaisableLimits, "emailsPerHour" | "eventEmailsPerPersonPerDay">;
}

/**
 * Sends a test mail to an owner. Returns the mail: its state says whether the server accepted it, and its reason why not. Throws
 * `invalid_input` (no owner has the address) and `mail_not_possible`.
 */
export async function sendTestMail(
  { store, clock, mailer, local }: ManualMailDeps,
  { environmentId, by, origin }: ManualActor,
  { appId, to, limits }: TestMail,
): Promise<EmailView> {
  const mail = await store.write(
    origin,
    async (tx): Promise<OutgoingMail> => {
      const nowMs = clock.now();
      const recipient = await requireOwnerAddress(tx, environmentId, to, local);
      const from = await requireSender(tx, environmentId, "account", local);
      await lockAppLimits(tx, appId);
      const broken = await findExceededCap(tx, { appId, personId: "", kind: "account", nowMs }, limits);
      if (broken !== null) throw new Refusal("mail_not_possible", broken);
      const words = { subject: TEST_SUBJECT, text: TEST_TEXT };
      const emailId = await recordIntendedEmail(tx, {
        environmentId,
        personId: null,
        recipient,
        sender: from,
        kind: "account",
        ...words,
        relayName: null,
        eventId: null,
        nowMs,
      });
      const audit = { environmentId, nowMs, by, action: "email.test" as const, target: `email:${emailId}` };
      await writeAudit(tx, { ...audit, after: { to: recipient } });
      return { environmentId, emailId, from, to: recipient, ...words };
    },
    environmentId,
  );
  const outcome: MailOutcome = await mailer.send(mail, { withinMs: WITHIN_MS });
  const ended = await finish(store, clock, mail, toEmailEnd(outcome));
  if (outcome.kind === "sent")
    await store.write(
      origin,
      async (tx) => {
        await clearUndeliveredAlerts(tx, environmentId, clock.now());
        await clearUndeliveredCodes(tx, environmentId, clock.now());
      },
      environmentId,
    );
  return ended;
}

const TEST_TEXT = "This is a test mail.\n\nIt shows that the mail settings of this environment work.\n";

function finish(
  store: Store,
  clock: Clock,
  { environmentId, emailId }: OutgoingMail,
  end: ReturnType<typeof toEmailEnd>,
): Promise<EmailView> {
  return store.write(
    "app",
    async (tx: Writer) => {
      await finishEmail(tx, emailId, end, clock.now());
      return requireEmailView(tx, environmentId, emailId);
    },
    environmentId,
  );
}

async function requireSender(
  tx: Reader,
  environmentId: number,
  kind: "event" | "account",
  local: boolean,
): Promise<string> {
  const environment = await findEnvironmentById(tx, environmentId);
  if (environment === null || !readMailSettings(environment).sends) {
    throw new Refusal(
      "mail_not_possible",
      "Sending mail is turned off in the settings: turn it on with relay settings set mail.sends on.",
    );
  }
  const verified = await findSenderAddress(tx, environmentId, kind);
  if (verified !== null) return verified;
  if (local) return `${kind}@localhost`;
  throw new Refusal(
    "mail_not_possible",
    "Mail needs a verified sender domain, and this environment has none: set one with relay domain set, then run relay domain verify.",
  );
}

/** Returns the address of a member who may change the settings of the environment; without `to`, the first one's. */
async function requireOwnerAddress(
  tx: Reader,
  environmentId: number,
  to: string | undefined,
  local: boolean,
): Promise<string> {
  const environment = await findEnvironmentById(tx, environmentId);
  const owners = environment === null ? [] : await listAddresses(tx, "edit_settings", environment);
  const wanted = to?.trim().toLowerCase();
  const found = wanted === undefined ? owners[0] : owners.find((email) => email.toLowerCase() === wanted);
  if (found !== undefined) return found;
  if (local && wanted === undefined) return "owner@localhost";
  throw new Refusal(
    "invalid_input",
    "`to` is not an owner's email address: a test mail goes only to owners.",
  );
}
