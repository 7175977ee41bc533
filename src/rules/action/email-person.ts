/**
 * email_person: sends a mail to the event's person from the verified sender domain. Caps, the owner's switch and the sender rule are
 * checked before the mail is intended. It is never sent twice, and never to anyone else. Source: the specification's "Actions" and
 * "Limits", decisions section 5.
 */
import { type Static, Type } from "typebox";
import { isJsonObject, type JsonObject, scalarText } from "../../base/json.ts";
import { MAX_EMAIL_TEXT_CHARS, MAX_SUBJECT_CHARS } from "../../base/limit.ts";
import { failFinally, failForNow } from "../../base/outcome.ts";
import { lockAppLimits } from "../../platform/account/app.ts";
import { findEnvironmentById } from "../../platform/account/environment.ts";
import {
  deleteUnsentEmail,
  findEmail,
  findExceededCap,
  findNewestEmail,
  finishEmail,
  recordIntendedEmail,
  toEmailEnd,
} from "../../platform/mail/email.ts";
import { alertUnknownMail, MAY_HAVE_BEEN_SENT } from "../../platform/mail/interrupted-mail.ts";
import { readMailSettings } from "../../platform/mail/mail-settings.ts";
import { findMailStop } from "../../platform/mail/mail-stop.ts";
import {
  listTruncations,
  type MailOutcome,
  makeSubject,
  makeText,
  type OutgoingMail,
} from "../../platform/mail/mailer.ts";
import { findSenderAddress } from "../../platform/mail/sender-domain.ts";
import { checkTemplateText, isVisible } from "../../platform/template/template.ts";
import type { Writer } from "../../store/port.ts";
import { type ActionRun, findActingPerson, type SendingAction } from "./contract.ts";
import { defineActionShape } from "./shape.ts";

const words = defineActionShape(
  "email_person",
  "Email the person",
  "Sends a plain-text email to the event's person.",
  {
    subject: Type.String({
      minLength: 1,
      maxLength: MAX_SUBJECT_CHARS,
      description: "The subject, on one line; {{paths}} are filled in.",
      expects: `a text of 1 to ${MAX_SUBJECT_CHARS} characters`,
      templated: true,
    }),
    text: Type.String({
      minLength: 1,
      maxLength: MAX_EMAIL_TEXT_CHARS,
      description: "The text of the mail, as plain text; {{paths}} are filled in.",
      expects: `a text of 1 to 10,000 characters`,
      templated: true,
    }),
    kind: Type.Optional(
      Type.Union([Type.Literal("event"), Type.Literal("account")], {
        description:
          "The sender address: the domain's event address or its account address; event when absent.",
        expects: '"event" or "account"',
      }),
    ),
  },
);

export type EmailPerson = Static<typeof words.shape>;

export const emailPerson: SendingAction<EmailPerson, OutgoingMail, MailOutcome> = {
  ...words,
  effect: "mails",
  sends: true,
  repeats: false,
  needsPerson: () => true,
  check: (action) => [
    ...checkTemplateText("subject", action.subject),
    ...checkTemplateText("text", action.text),
  ],
  references: () => [],
  target: () => "person",
  examples: [
    { type: "email_person", subject: "Thank you", text: "Your order is on its way." },
    {
      type: "email_person",
      subject: "Your invoice {{mapped.invoice_id}}",
      text: "Hello {{person.email}}, we could not charge your card.",
      kind: "account",
    },
  ],

  async intend(tx, action, run) {
    const { person, failure } = await findActingPerson(tx, run);
    if (failure !== null) return failure;
    const rendered = { subject: run.render(action.subject), text: run.render(action.text) };
    const [subject, text] = [makeSubject(rendered.subject), makeText(rendered.text)];
    const blank = isVisible(subject) ? (isVisible(text) ? null : "text") : "subject";
    if (blank !== null) {
      const message = `The mail's ${blank} is empty once its {{paths}} are filled in: correct the relay's ${blank} or its map, then replay the event.`;
      return failFinally("mail_empty", message);
    }
    for (const cut of listTruncations(rendered)) run.warn(cut);
    const environment = await findEnvironmentById(tx, run.environmentId);
    if (environment === null || !readMailSettings(environment).sends) {
      return failForNow(
        "sends_off",
        "Sending mail is turned off in the settings: turn it on with relay settings set mail.sends on.",
      );
    }
    const kind = action.kind ?? "event";
    const stop = { environmentId: run.environmentId, personId: person.id };
    if (kind === "event" && (await findMailStop(tx, stop)) !== null) {
      return { outcome: "skipped", code: "mail_unsubscribed", message: UNSUBSCRIBED };
    }
    const verified = await findSenderAddress(tx, run.environmentId, kind);
    if (verified === null && !run.local) {
      const message =
        "Mail needs a verified sender domain, and this environment has none: set one with relay domain set, then run relay domain verify.";
      return { ...failForNow("sender_domain_required", message), continues: true };
    }
    const cap = { appId: run.appId, personId: person.id, kind, nowMs: run.nowMs };
    // The count is sent without waiting for the lock, and runs after it.
    const [, broken] = await Promise.all([
      lockAppLimits(tx, run.appId),
      findExceededCap(tx, cap, run.limits),
    ]);
    if (broken !== null) return failForNow("email_capped", broken);
    const mail = {
      environmentId: run.environmentId,
      from: verified ?? `${kind}@localhost`,
      to: person.email,
      subject,
      text,
      ...(kind === "event" ? { stopFor: person.id } : {}),
    };
    const emailId = await recordIntendedEmail(tx, {
      ...mail,
      personId: person.id,
      recipient: mail.to,
      sender: mail.from,
      kind,
      relayName: run.relay.name,
      eventId: run.event.id,
      nowMs: run.nowMs,
    });
    return { plan: { ...mail, emailId }, mark: { email: emailId } };
  },

  send: (plan, _run, ports) => ports.mailer.send(plan),

  preview: ({ from, to, subject, text }) => ({ sends: { from, to, subject, text }, refused: null }),

  async settle(tx, plan, sent, run) {
    await finishEmail(tx, plan.emailId, toEmailEnd(sent), run.nowMs);
    const after = { email: plan.emailId, from: plan.from, to: plan.to, subject: plan.subject };
    switch (sent.kind) {
      case "sent":
        return { outcome: "done", after };
      case "mailbox":
        return { outcome: "done", message: "Stored in the mailbox: local development sends no mail.", after };
      case "unknown":
        await notifyUnknownMail(tx, run);
        return { outcome: "done", message: `${MAY_HAVE_BEEN_SENT} ${sent.message}`, after };
      case "failed":
        return {
          outcome: "failed",
          code: sent.retry ? "mail_not_sent" : "mail_refused",
          message: sent.message,
          // Waiting does not help against a permanent failure (decisions, "definition-level failures").
          final: !sent.retry,
        };
    }
  },

  async conclude(tx, run, mark) {
    if (run.person === null) throw new Error("email_person began without a person.");
    const id = isJsonObject(mark ?? null) ? scalarText((mark as JsonObject).email) : null;
    const of = { environmentId: run.environmentId, personId: run.person.id, eventId: run.event.id };
    const row = id === null ? await findNewestEmail(tx, of) : await findEmail(tx, run.environmentId, id);
    const left =
      row !== null && (row.leftAt !== null || !(row.state === "intended" || row.state === "failed"));
    if (!left) {
      if (row !== null) await deleteUnsentEmail(tx, row.id);
      return null;
    }
    const after = { email: row.id, from: row.sender, to: row.recipient, subject: row.subject };
    if (row.state === "sent" || row.state === "mailbox") return { outcome: "done", after };
    if (row.state === "intended") {
      const end = { state: "unknown", reason: "stopped", message: MAY_HAVE_BEEN_SENT } as const;
      await finishEmail(tx, row.id, end, run.nowMs);
      await notifyUnknownMail(tx, run);
    }
    return { outcome: "done", message: MAY_HAVE_BEEN_SENT, after };
  },
};

const UNSUBSCRIBED =
  "The person unsubscribed from mail of kind event: an owner can allow it again on the dashboard's Mail page.";

function notifyUnknownMail(tx: Writer, { environmentId, relay, nowMs }: ActionRun): Promise<void> {
  return alertUnknownMail(tx, { environmentId, relayName: relay.name, count: 1, nowMs });
}
