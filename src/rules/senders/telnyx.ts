/** Telnyx, by its pages on webhooks and their signing. */
import type { Sender } from "./sender.ts";

export const telnyx: Sender = {
  name: "telnyx",
  title: "Telnyx",
  summary: "Tells of messages, calls, faxes and numbers.",
  verify: { scheme: "telnyx" },
  map: {
    event_id: "data.id",
    event_type: "data.event_type",
    from: "data.payload.from.phone_number",
    to: "data.payload.to.0.phone_number",
    text: "data.payload.text",
  },
  when: { event_type: "message.received" },
  personEmail: null,
  secret: { from: "sender", where: "Mission Control, Account, Keys & Credentials, Public Key." },
  register:
    "Mission Control, Messaging, the messaging profile’s Inbound settings: Webhook URL; for calls, the application’s.",
  example: {
    json: {
      data: {
        event_type: "message.received",
        id: "b301ed3f-1490-491f-995f-6e64e69674d4",
        occurred_at: "2026-01-15T12:00:00.000+00:00",
        payload: {
          direction: "inbound",
          from: { carrier: "", phone_number: "+14158675309", status: "webhook_delivered" },
          id: "84cca175-9755-4859-b67f-4730d7f58aa3",
          text: "Hello",
          to: [{ carrier: "Telnyx", phone_number: "+15005550006", status: "webhook_delivered" }],
          type: "SMS",
        },
        record_type: "event",
      },
      meta: { attempt: 1, delivered_to: "https://relay.example.com/hooks/shop/telnyx" },
    },
  },
  eventTypes: [
    { type: "message.received", meaning: "A message came in." },
    { type: "message.finalized", meaning: "A message that was sent is delivered, or could not be." },
    { type: "call.initiated", meaning: "A call begins." },
    { type: "call.hangup", meaning: "A call is over." },
  ],
  pitfalls: [
    "The key is the account’s public key, not the API key.",
    "A repeat’s body differs, as `meta.attempt` is in it; `data.id` is the same.",
  ],
  docs: "https://developers.telnyx.com/docs/messaging/messages/receiving-webhooks",
};
