/** Discord, by its page on webhook events. */
import type { Sender } from "./sender.ts";

export const discord: Sender = {
  name: "discord",
  title: "Discord",
  summary: "Tells an app of people who install it, and of what they buy (webhook events).",
  verify: {
    scheme: "signature",
    algorithm: "ed25519",
    header: "X-Signature-Ed25519",
    timestampHeader: "X-Signature-Timestamp",
    signedPayload: "{timestamp}{body}",
    encoding: "hex",
    handshake: "discord",
  },
  map: {
    event_type: "event.type",
    user: "event.data.user.id",
    username: "event.data.user.username",
    time: "event.timestamp",
  },
  when: { event_type: "APPLICATION_AUTHORIZED" },
  personEmail: null,
  secret: { from: "sender", where: "The Developer Portal, the app’s General Information: Public Key." },
  register: "The Developer Portal, the app’s Webhooks: Endpoint, and the events.",
  example: {
    json: {
      version: 1,
      application_id: "1234560123453231555",
      type: 1,
      event: {
        type: "APPLICATION_AUTHORIZED",
        timestamp: "2026-01-15T12:00:00.130532",
        data: {
          integration_type: 1,
          scopes: ["applications.commands"],
          user: { id: "80351110224678912", username: "ada", global_name: "Ada" },
        },
      },
    },
  },
  eventTypes: [
    { type: "APPLICATION_AUTHORIZED", meaning: "Somebody installed the app." },
    { type: "APPLICATION_DEAUTHORIZED", meaning: "Somebody took it away." },
    { type: "ENTITLEMENT_CREATE", meaning: "Somebody bought something of the app." },
    { type: "ENTITLEMENT_DELETE", meaning: "What was bought is no longer theirs." },
  ],
  pitfalls: [
    "Store the public key before the endpoint is entered: Discord asks the URL at once, also with a wrong signature, which must be refused.",
    "Messages of a server are not told this way; an app reads them by the gateway.",
    "No id of the event is in the body: repeats are told by their body, within the same UTC day.",
  ],
  docs: "https://docs.discord.com/developers/events/webhook-events",
};
