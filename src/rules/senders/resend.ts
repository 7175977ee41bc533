/** Resend, by its pages on webhooks and their event types, and Svix. */
import type { Sender } from "./sender.ts";

export const resend: Sender = {
  name: "resend",
  title: "Resend",
  summary: "Tells what became of mails: sent, delivered, bounced, complained of, opened, clicked.",
  verify: { scheme: "hooks" },
  map: { event_type: "type", mail: "data.email_id", recipient: "data.to.0", subject: "data.subject" },
  when: { event_type: "email.bounced" },
  personEmail: "data.to.0",
  secret: {
    from: "sender",
    where: "Webhooks, the webhook’s page: Signing Secret, which starts with whsec_.",
  },
  register: "Webhooks, Add Webhook: Endpoint and the events.",
  example: {
    json: {
      type: "email.bounced",
      created_at: "2026-01-15T12:00:00.126Z",
      data: {
        email_id: "56761188-7520-42d8-8898-ff6fc54ce618",
        created_at: "2026-01-15T11:59:58.894Z",
        from: "Shop <shop@example.com>",
        to: ["ada@example.com"],
        subject: "Your order",
        bounce: {
          type: "Permanent",
          subType: "Suppressed",
          message: "The recipient's address bounced before.",
        },
      },
    },
  },
  eventTypes: [
    { type: "email.delivered", meaning: "The recipient’s server took the mail." },
    { type: "email.bounced", meaning: "The recipient’s server refused it for good." },
    { type: "email.complained", meaning: "The recipient called it spam." },
    { type: "email.opened", meaning: "It was opened, where that is counted." },
    { type: "email.received", meaning: "A mail arrived; its text is not in the event." },
  ],
  pitfalls: [
    "The message’s id is in the header svix-id, which is what repeats are told by: the map needs no event_id.",
    "A mail to several recipients has several under `data.to`; the map reads the first.",
  ],
  docs: "https://resend.com/docs/dashboard/webhooks/introduction",
};
