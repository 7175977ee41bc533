/**
 * email_person: a plain-text mail to the event's person, from the verified sender domain's word for its kind. Caps, the owner's switch and
 * the sender rule are checked before the mail is intended; it is never sent twice, and never to anyone but the person.
 * Source: the specification's "Actions" and "Limits", decisions section 5.
 */
import { type Static, Type } from "typebox";
import { MAX_EMAIL_TEXT_CHARS, MAX_SUBJECT_CHARS } from "../ground/limit.ts";
import type { MailOutcome, OutgoingMail } from "../mail/mailer.ts";
import type { SendingAction } from "./contract.ts";
import { checkTemplateText, words } from "./shape.ts";

const shape = Type.Object(
  {
    type: Type.Literal("email_person", {
      ...words({ description: "Email the person.", expects: '"email_person"' }),
    }),
    subject: Type.String({
      minLength: 1,
      maxLength: MAX_SUBJECT_CHARS,
      ...words({
        description: "The subject, one line; {{paths}} are filled in.",
        expects: `a text of 1 to ${MAX_SUBJECT_CHARS} characters`,
        templated: true,
      }),
    }),
    text: Type.String({
      minLength: 1,
      maxLength: MAX_EMAIL_TEXT_CHARS,
      ...words({
        description: "The text, sent as plain text; {{paths}} are filled in.",
        expects: `a text of 1 to 10,000 characters`,
        templated: true,
      }),
    }),
    kind: Type.Optional(
      Type.Union([Type.Literal("event"), Type.Literal("account")], {
        ...words({
          description: "Which of the sender domain's words it goes from; event when absent.",
          expects: '"event" or "account"',
        }),
      }),
    ),
  },
  {
    additionalProperties: false,
    ...words({
      description: "Sends the person the event is about a plain-text e-mail.",
      expects: "an action object",
    }),
  },
);

export type EmailPerson = Static<typeof shape>;

export const emailPerson: SendingAction<EmailPerson, OutgoingMail, MailOutcome> = {
  type: "email_person",
  title: "Email the person",
  effect: "mails",
  shape,
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

  async intend() {
    throw new Error("being written");
  },
  send: (plan, _run, doors) => doors.mailer.send(plan),
  async settle() {
    throw new Error("being written");
  },
  async settleUnknown() {
    throw new Error("being written");
  },
};
