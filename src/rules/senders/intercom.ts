/** Intercom, by its pages on setting up webhooks and on webhook models. */
import type { Sender } from "./sender.ts";

export const intercom: Sender = {
  name: "intercom",
  title: "Intercom",
  summary: "Tells of conversations, contacts, tickets and companies.",
  verify: {
    scheme: "signature",
    algorithm: "hmac-sha1",
    header: "X-Hub-Signature",
    signatureKey: "sha1",
    signedPayload: "{body}",
    encoding: "hex",
    handshake: "probe",
  },
  map: {
    event_id: "id",
    event_type: "topic",
    item: "data.item.id",
    email: "data.item.source.author.email",
    text: "data.item.source.body",
  },
  when: { event_type: "conversation.user.created" },
  personEmail: "data.item.source.author.email",
  secret: { from: "sender", where: "Developer Hub, the app’s Basic information: Client secret." },
  register: "Developer Hub, the app’s Webhooks: Endpoint URL and topics.",
  example: {
    json: {
      type: "notification_event",
      topic: "conversation.user.created",
      id: "notif_5f27a9e0-0e33-4a1e-8f7c-2b6d4a9c11f0",
      app_id: "a86dr8yl",
      created_at: 1768478400,
      delivery_attempts: 1,
      first_sent_at: 1768478400,
      data: {
        type: "notification_event_data",
        item: {
          type: "conversation",
          id: "195208945002873",
          created_at: 1768478400,
          source: {
            type: "conversation",
            id: "403982210",
            delivered_as: "customer_initiated",
            body: "<p>Is anybody there?</p>",
            author: {
              type: "user",
              id: "6620fa1e8f2b3c4d5e6f7890",
              name: "Ada Lovelace",
              email: "ada@example.com",
            },
          },
          state: "open",
        },
      },
    },
  },
  eventTypes: [
    { type: "conversation.user.created", meaning: "A contact began a conversation." },
    { type: "conversation.user.replied", meaning: "A contact answered." },
    { type: "conversation.admin.closed", meaning: "A teammate closed a conversation." },
    { type: "contact.user.created", meaning: "A user is new." },
    { type: "ping", meaning: "The test of the endpoint." },
  ],
  pitfalls: [
    "Make the relay first: Intercom looks whether the URL answers before it takes it.",
    "Intercom signs with SHA-1; the event is signed all the same.",
    "A repeat’s body differs, as `delivery_attempts` is in it; event_id is the same.",
    "`data.item` is another object with each topic: the address is under `source.author` in a conversation, under `email` in a contact.",
  ],
  docs: "https://developers.intercom.com/docs/webhooks/setting-up-webhooks",
};
