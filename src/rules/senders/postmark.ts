/** Postmark, by its pages on webhooks. */
import type { Sender } from "./sender.ts";

export const postmark: Sender = {
  name: "postmark",
  title: "Postmark",
  summary: "Tells what became of mails: delivered, bounced, complained of, opened, clicked.",
  verify: { scheme: "shared_token" },
  map: { event_id: "ID", event_type: "RecordType", kind: "Type", recipient: "Email", mail: "MessageID" },
  when: { event_type: "Bounce", kind: "HardBounce" },
  personEmail: "Email",
  secret: {
    from: "relay",
    where: "The webhook’s Custom headers: X-Webhook-Token with the secret that is made here.",
  },
  register: "The server’s message stream, Webhooks, Add webhook.",
  example: {
    json: {
      RecordType: "Bounce",
      MessageStream: "outbound",
      ID: 42323002,
      Type: "HardBounce",
      TypeCode: 1,
      Name: "Hard bounce",
      Tag: "order",
      MessageID: "883953f4-6105-42a2-a16a-77a8eac79483",
      ServerID: 23,
      Description: "The server was unable to deliver your message.",
      Email: "ada@example.com",
      From: "shop@example.com",
      BouncedAt: "2026-01-15T12:00:00.000Z",
      Inactive: true,
      CanActivate: true,
      Subject: "Your order",
    },
  },
  eventTypes: [
    { type: "Bounce", meaning: "A mail bounced; `Type` is HardBounce, SoftBounce or another." },
    { type: "Delivery", meaning: "The recipient’s server took the mail." },
    { type: "SpamComplaint", meaning: "The recipient called it spam." },
    { type: "Open", meaning: "It was opened, where that is counted." },
    { type: "SubscriptionChange", meaning: "A recipient’s address was suppressed, or is no longer." },
  ],
  pitfalls: [
    "Postmark does not sign: the token is sent as it is, so the relay may write records and call URLs; more needs `trustUnsignedEvents`.",
    "`ID` and `Email` are a bounce’s and a complaint’s; a delivery has `Recipient` and no id of its own: remove event_id for it.",
  ],
  docs: "https://postmarkapp.com/developer/webhooks/webhooks-overview",
};
