/** PagerDuty, by its pages on V3 webhooks and their signatures. */
import type { Sender } from "./sender.ts";

export const pagerduty: Sender = {
  name: "pagerduty",
  title: "PagerDuty",
  summary: "Tells of incidents that were triggered, acknowledged, escalated and resolved.",
  verify: {
    scheme: "signature",
    header: "X-PagerDuty-Signature",
    signatureKey: "v1",
    signedPayload: "{body}",
    encoding: "hex",
  },
  map: {
    event_id: "event.id",
    event_type: "event.event_type",
    incident: "event.data.id",
    title: "event.data.title",
    service: "event.data.service.summary",
  },
  when: { event_type: "incident.triggered" },
  personEmail: null,
  secret: {
    from: "sender",
    where: "It is shown once, when the webhook was made: Webhook subscription created.",
  },
  register: "Integrations, Generic Webhooks (v3), New Webhook: scope and events.",
  example: {
    json: {
      event: {
        id: "01J2Y3ZK9M4Q7R8T2VBN5X0F1A",
        event_type: "incident.triggered",
        resource_type: "incident",
        occurred_at: "2026-01-15T12:00:00Z",
        agent: null,
        client: null,
        data: {
          id: "PT4KHXT",
          type: "incident",
          number: 4821,
          status: "triggered",
          incident_key: "shop-api-errors",
          title: "Many errors in the shop’s API",
          urgency: "high",
          service: { id: "PSVCEX1", type: "service_reference", summary: "shop-api" },
        },
      },
    },
  },
  eventTypes: [
    { type: "incident.triggered", meaning: "An incident began." },
    { type: "incident.acknowledged", meaning: "Somebody took it on." },
    { type: "incident.resolved", meaning: "It is over." },
    { type: "incident.escalated", meaning: "It went to the next level." },
    { type: "pagey.ping", meaning: "The test event of the webhook’s page." },
  ],
  pitfalls: [
    "While a secret is being changed the header holds several signatures; one that matches is enough.",
    "Webhooks of V1 and V2 are not signed, and are refused.",
  ],
  docs: "https://developer.pagerduty.com/docs/webhooks/webhook-signatures/",
};
