/** Zendesk, by its pages on webhooks, their event types and their verification. */
import type { Sender } from "./sender.ts";

export const zendesk: Sender = {
  name: "zendesk",
  title: "Zendesk",
  summary: "Tells of tickets, users, organisations and articles.",
  verify: { scheme: "zendesk" },
  map: {
    event_id: "id",
    event_type: "type",
    ticket: "detail.id",
    subject: "detail.subject",
    status: "detail.status",
  },
  when: { event_type: "zen:event-type:ticket.created" },
  personEmail: null,
  secret: {
    from: "sender",
    where: "Admin Center, Apps and integrations, Webhooks, the webhook’s page: Reveal secret.",
  },
  register:
    "Admin Center, Apps and integrations, Webhooks, Create webhook: Zendesk events; Endpoint URL, method POST, format JSON.",
  example: {
    json: {
      account_id: 22129848,
      detail: {
        actor_id: "8447388090494",
        created_at: "2026-01-15T12:00:00Z",
        id: "5158",
        is_public: true,
        priority: "NORMAL",
        requester_id: "8447388090494",
        status: "OPEN",
        subject: "The form takes no umlauts",
        type: "TASK",
      },
      event: {},
      id: "2b24ef10-19d3-4740-93cf-8f98ec4776c0",
      subject: "zen:ticket:5158",
      time: "2026-01-15T12:00:00Z",
      type: "zen:event-type:ticket.created",
      zendesk_event_version: "2022-06-20",
    },
  },
  eventTypes: [
    { type: "zen:event-type:ticket.created", meaning: "A ticket is new." },
    { type: "zen:event-type:ticket.status_changed", meaning: "A ticket’s status changed." },
    { type: "zen:event-type:ticket.comment_added", meaning: "Somebody wrote on a ticket." },
    { type: "zen:event-type:user.created", meaning: "A user is new." },
  ],
  pitfalls: [
    "A webhook that a trigger or an automation calls sends the body that is written there, not this one: map what you wrote.",
    "A webhook that was never saved is tested with a secret of Zendesk’s documentation: save it first, and test then.",
  ],
  docs: "https://developer.zendesk.com/documentation/webhooks/verifying/",
};
