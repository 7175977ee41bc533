/** Cal.com, by its page on webhooks. */
import type { Sender } from "./sender.ts";

export const calCom: Sender = {
  name: "cal-com",
  title: "Cal.com",
  summary: "Tells of bookings that were made, moved, paid and cancelled, and of meetings.",
  verify: { scheme: "signature", header: "X-Cal-Signature-256", signedPayload: "{body}", encoding: "hex" },
  map: {
    event_type: "triggerEvent",
    booking: "payload.uid",
    title: "payload.title",
    start: "payload.startTime",
    email: "payload.attendees.0.email",
  },
  when: { event_type: "BOOKING_CREATED" },
  personEmail: "payload.attendees.0.email",
  secret: { from: "relay", where: "The webhook’s field Secret takes the one made here." },
  register: "Settings, Developer, Webhooks, New: Subscriber URL and the events.",
  example: {
    json: {
      triggerEvent: "BOOKING_CREATED",
      createdAt: "2026-01-15T12:00:00.000Z",
      payload: {
        title: "30 minutes between Grace Hopper and Ada Lovelace",
        startTime: "2026-01-16T16:00:00.000Z",
        endTime: "2026-01-16T16:30:00.000Z",
        eventTypeId: 48213,
        organizer: {
          id: 9021,
          name: "Grace Hopper",
          email: "grace@example.com",
          timeZone: "America/New_York",
        },
        attendees: [{ email: "ada@example.com", name: "Ada Lovelace", timeZone: "Europe/Berlin" }],
        uid: "8f2b6c1a9d3e4a7fb5c21e6f9a0d4b7c",
        bookingId: 5502391,
        status: "ACCEPTED",
      },
    },
  },
  eventTypes: [
    { type: "BOOKING_CREATED", meaning: "A booking was made and taken." },
    { type: "BOOKING_RESCHEDULED", meaning: "A booking was moved." },
    { type: "BOOKING_CANCELLED", meaning: "A booking was cancelled." },
    { type: "BOOKING_PAID", meaning: "A booking was paid." },
    {
      type: "MEETING_ENDED",
      meaning: "The meeting is over; its fields stand beside triggerEvent, not under `payload`.",
    },
  ],
  pitfalls: [
    "No id of the event is in the body: repeats are told by their body, within the same UTC day.",
    "A template of your own for the body changes what the map can read.",
    "Without a secret the header says no-secret-provided, and every call is refused.",
  ],
  docs: "https://cal.com/docs/developing/guides/automation/webhooks",
};
