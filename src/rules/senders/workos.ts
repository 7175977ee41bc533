/** WorkOS, by its page on webhooks and its library. */
import type { Sender } from "./sender.ts";

export const workos: Sender = {
  name: "workos",
  title: "WorkOS",
  summary: "Tells of users, sessions, connections and directories.",
  verify: {
    scheme: "signature",
    header: "WorkOS-Signature",
    signatureKey: "v1",
    separator: ",",
    timestampKey: "t",
    signedPayload: "{timestamp}.{body}",
    encoding: "hex",
  },
  map: { event_id: "id", event_type: "event", object: "data.id", email: "data.email" },
  when: { event_type: "user.created" },
  personEmail: "data.email",
  secret: { from: "sender", where: "Webhooks, the endpoint’s page: Signing secret." },
  register: "Webhooks, Create webhook: endpoint URL and events.",
  example: {
    json: {
      id: "event_01J4QF7R2N8T6R3P0M5NDS8WYA",
      event: "user.created",
      data: {
        object: "user",
        id: "user_01J4QF6VN8T6R3P0M5NDS8WYB",
        email: "ada@example.com",
        first_name: "Ada",
        last_name: "Lovelace",
        email_verified: true,
        created_at: "2026-01-15T12:00:00.000Z",
        updated_at: "2026-01-15T12:00:00.000Z",
      },
      created_at: "2026-01-15T12:00:01.104Z",
    },
  },
  eventTypes: [
    { type: "user.created", meaning: "A user signed up." },
    { type: "user.deleted", meaning: "A user was deleted." },
    { type: "dsync.user.created", meaning: "A directory has a new user." },
    { type: "dsync.user.deleted", meaning: "A directory’s user is gone." },
    { type: "connection.activated", meaning: "A single sign-on connection works." },
  ],
  pitfalls: ["Its timestamp is in milliseconds, and is read so."],
  docs: "https://workos.com/docs/events/data-syncing/webhooks",
};
