/** Calendly, by its pages on webhook subscriptions and their signatures. */
import type { Sender } from "./sender.ts";

export const calendly: Sender = {
  name: "calendly",
  title: "Calendly",
  summary: "Tells of appointments that were booked and cancelled.",
  verify: {
    scheme: "signature",
    header: "Calendly-Webhook-Signature",
    signatureKey: "v1",
    separator: ",",
    timestampKey: "t",
    signedPayload: "{timestamp}.{body}",
    encoding: "hex",
  },
  map: {
    event_id: "payload.uri",
    event_type: "event",
    email: "payload.email",
    name: "payload.name",
    meeting: "payload.event",
  },
  when: { event_type: "invitee.created" },
  personEmail: "payload.email",
  secret: {
    from: "relay",
    where: "The subscription’s field signing_key takes the secret that is made here.",
  },
  register:
    "Its API alone: POST https://api.calendly.com/webhook_subscriptions with url, events, organization, scope and signing_key.",
  example: {
    json: {
      created_at: "2026-01-15T12:00:00.000000Z",
      created_by: "https://api.calendly.com/users/AAAAAAAAAAAAAAAA",
      event: "invitee.created",
      payload: {
        email: "ada@example.com",
        name: "Ada Lovelace",
        status: "active",
        timezone: "Europe/Berlin",
        rescheduled: false,
        event: "https://api.calendly.com/scheduled_events/8f2b6c1a-9d3e-4a7f-b5c2-1e6f9a0d4b7c",
        uri: "https://api.calendly.com/scheduled_events/8f2b6c1a-9d3e-4a7f-b5c2-1e6f9a0d4b7c/invitees/1a4d7e2b-5c8f-4a1d-9b3e-6f0c8d2a5b7e",
      },
    },
  },
  eventTypes: [
    { type: "invitee.created", meaning: "Somebody booked an appointment, also by moving an earlier one." },
    {
      type: "invitee.canceled",
      meaning: "An appointment was cancelled; `payload.rescheduled` is true where it was moved.",
    },
  ],
  pitfalls: [
    "No id of the event is in the body: event_id is the invitee, which is told of once a type. Make a relay a type, or remove event_id.",
    "Webhooks need a paid plan.",
  ],
  docs: "https://developer.calendly.com/api-docs/4c305798a61d3-webhook-signatures",
};
