/** Mailgun, by its pages on securing webhooks and on event structure. */
import type { Sender } from "./sender.ts";

export const mailgun: Sender = {
  name: "mailgun",
  title: "Mailgun",
  summary: "Tells what became of mails: delivered, failed, complained of, opened, clicked, unsubscribed.",
  verify: {
    scheme: "signature",
    signatureField: "signature.signature",
    timestampField: "signature.timestamp",
    tokenField: "signature.token",
    signedPayload: "{timestamp}{token}",
    encoding: "hex",
  },
  map: {
    event_id: "event-data.id",
    event_type: "event-data.event",
    recipient: "event-data.recipient",
    severity: "event-data.severity",
  },
  when: { event_type: "failed", severity: "permanent" },
  personEmail: "event-data.recipient",
  secret: {
    from: "sender",
    where: "Sending, Webhooks: HTTP webhook signing key.",
  },
  register: "Sending, Webhooks, Add webhook, for the domain.",
  example: {
    json: {
      signature: {
        timestamp: "1768478400",
        token: "86d45e896f37828902249604eb3476905faa1d11f13ba82023",
        signature: "0000000000000000000000000000000000000000000000000000000000000000",
      },
      "event-data": {
        id: "G9Bn5sl1TC6nu79C8C0bwg",
        event: "failed",
        severity: "permanent",
        reason: "suppress-bounce",
        timestamp: 1768478400.123,
        recipient: "ada@example.com",
        "delivery-status": { code: 605, message: "Not delivering to previously bounced address" },
        message: { headers: { "message-id": "20260115120000.1.2B7A@mg.example.com" } },
      },
    },
  },
  eventTypes: [
    { type: "delivered", meaning: "The recipient’s server took the mail." },
    {
      type: "failed",
      meaning: "It was not delivered; `severity` is permanent, or temporary while it is tried again.",
    },
    { type: "complained", meaning: "The recipient called it spam." },
    { type: "unsubscribed", meaning: "The recipient unsubscribed." },
    { type: "clicked", meaning: "The recipient followed a link." },
  ],
  pitfalls: [
    "Mailgun signs a token and a time, not the event: the relay may write records and call URLs; to act on people it needs `trustUnsignedEvents`, and whoever captures a call can send one body of their own with it.",
    "It sends again for eight hours after a failure, first after five minutes: a repeat that carries the first attempt’s time is refused as too old. Import what was missed.",
    "A webhook of a domain wins over the account’s; the signing key is the account’s own.",
  ],
  docs: "https://documentation.mailgun.com/docs/mailgun/user-manual/webhooks/securing-webhooks",
};
