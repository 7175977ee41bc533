/** SendGrid, by its pages on the event webhook and its security features. */
import type { Sender } from "./sender.ts";

export const sendgrid: Sender = {
  name: "sendgrid",
  title: "SendGrid",
  summary: "Tells what became of mails: delivered, bounced, dropped, complained of, opened, clicked.",
  verify: {
    scheme: "signature",
    algorithm: "ecdsa-p256-sha256",
    header: "X-Twilio-Email-Event-Webhook-Signature",
    timestampHeader: "X-Twilio-Email-Event-Webhook-Timestamp",
    signedPayload: "{timestamp}{body}",
    encoding: "base64",
  },
  map: { event_id: "0.sg_event_id", event_type: "0.event", recipient: "0.email", mail: "0.sg_message_id" },
  when: {},
  personEmail: "0.email",
  secret: {
    from: "sender",
    where:
      "Settings, Mail Settings, Event Webhook, the webhook’s Security features: Verification Key, a public key.",
  },
  register: "Settings, Mail Settings, Event Webhook: Post URL, the events, and Enable Signed Event Webhook.",
  example: {
    json: [
      {
        email: "ada@example.com",
        timestamp: 1768478400,
        "smtp-id": "<14c5d75ce93.dfd.64b469@ismtpd-555>",
        event: "bounce",
        category: ["order"],
        sg_event_id: "rWVYmVk90MjZJ9iohOBa3w==",
        sg_message_id: "14c5d75ce93.dfd.64b469.filter0001.16648.5515E0B88.0",
        reason: "550 5.1.1 unknown user",
        status: "5.1.1",
        type: "bounce",
      },
    ],
  },
  eventTypes: [
    { type: "delivered", meaning: "The recipient’s server took the mail." },
    { type: "bounce", meaning: "The recipient’s server refused it." },
    { type: "dropped", meaning: "SendGrid did not send it, such as to an address that bounced before." },
    { type: "spamreport", meaning: "The recipient called it spam." },
    { type: "unsubscribe", meaning: "The recipient unsubscribed." },
  ],
  pitfalls: [
    "Events come in lists, and a call is one event here: the map reads the first of the list. With more than a few mails, let call_url hand the whole list to a server of yours.",
    "A `when` on the first one’s type ignores the rest of the list with it: leave it out, or ask for one event type alone.",
  ],
  docs: "https://www.twilio.com/docs/sendgrid/for-developers/tracking-events/getting-started-event-webhook-security-features",
};
