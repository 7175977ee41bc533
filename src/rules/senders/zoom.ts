/** Zoom, by its page on webhooks. */
import type { Sender } from "./sender.ts";

export const zoom: Sender = {
  name: "zoom",
  title: "Zoom",
  summary: "Tells of meetings, participants, recordings and users.",
  verify: {
    scheme: "signature",
    header: "x-zm-signature",
    signatureKey: "v0",
    timestampHeader: "x-zm-request-timestamp",
    signedPayload: "v0:{timestamp}:{body}",
    encoding: "hex",
    handshake: "zoom",
  },
  map: {
    event_type: "event",
    meeting: "payload.object.id",
    uuid: "payload.object.uuid",
    topic: "payload.object.topic",
    time: "event_ts",
  },
  when: { event_type: "meeting.ended" },
  personEmail: null,
  secret: { from: "sender", where: "At marketplace.zoom.us, the app’s Features, Access: Secret Token." },
  register:
    "At marketplace.zoom.us, the app’s Features, Access, Event Subscription: Event notification endpoint URL, then Validate.",
  example: {
    json: {
      event: "meeting.ended",
      event_ts: 1768478400000,
      payload: {
        account_id: "AAAAAABBBBB",
        object: {
          id: "84392028671",
          uuid: "4nR0iL9Q2mfrfXtEWMnGA",
          host_id: "z8yCxTTTTKWIFKy9d3VA",
          topic: "Weekly talk",
          type: 8,
          start_time: "2026-01-15T11:00:00Z",
          end_time: "2026-01-15T12:00:00Z",
          timezone: "Europe/Berlin",
          duration: 60,
        },
      },
    },
  },
  eventTypes: [
    { type: "meeting.started", meaning: "A meeting began." },
    { type: "meeting.ended", meaning: "A meeting is over." },
    {
      type: "meeting.participant_joined",
      meaning: "Somebody joined; they are in `payload.object.participant`.",
    },
    { type: "recording.completed", meaning: "A recording is ready." },
  ],
  pitfalls: [
    "Store the secret token before Validate is pressed: only a signed question is answered. Zoom asks again every 72 hours.",
    "No id of the event is in the body: repeats are told by their body, within the same UTC day.",
  ],
  docs: "https://developers.zoom.us/docs/api/webhooks/",
};
