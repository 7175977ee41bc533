/** Persona, by its pages on webhooks and their best practices. */
import type { Sender } from "./sender.ts";

export const persona: Sender = {
  name: "persona",
  title: "Persona",
  summary: "Tells of identity checks: begun, completed, approved, declined.",
  verify: {
    scheme: "signature",
    header: "Persona-Signature",
    signatureKey: "v1",
    separator: ",",
    timestampKey: "t",
    signedPayload: "{timestamp}.{body}",
    encoding: "hex",
  },
  map: {
    event_id: "data.id",
    event_type: "data.attributes.name",
    inquiry: "data.attributes.payload.data.id",
    status: "data.attributes.payload.data.attributes.status",
    reference: "data.attributes.payload.data.attributes.reference-id",
  },
  when: { event_type: "inquiry.approved" },
  personEmail: null,
  secret: {
    from: "sender",
    where: "Webhooks, the webhook’s page: Webhook secret, which starts with wbhsec_.",
  },
  register: "Webhooks, Create webhook: URL and the enabled events.",
  example: {
    json: {
      data: {
        type: "event",
        id: "evt_XGuYWp7WuDzNxie5z16s7sGJ",
        attributes: {
          name: "inquiry.approved",
          "created-at": "2026-01-15T12:00:00.000Z",
          payload: {
            data: {
              type: "inquiry",
              id: "inq_2CVZ4HyVg7qaboXz2PUHknAn",
              attributes: {
                status: "approved",
                "reference-id": "ada",
                "created-at": "2026-01-15T11:50:00.000Z",
                "completed-at": "2026-01-15T11:59:00.000Z",
              },
            },
          },
        },
      },
    },
  },
  eventTypes: [
    { type: "inquiry.completed", meaning: "Somebody went through the whole check." },
    { type: "inquiry.approved", meaning: "The check was approved." },
    { type: "inquiry.declined", meaning: "The check was declined." },
    { type: "inquiry.expired", meaning: "The check was not finished in time." },
  ],
  pitfalls: [
    "While a secret is being changed the header holds two signatures with a space between, of which this recipe reads the last: change the secret here as soon as it is changed there.",
    "The names of fields follow the webhook’s API version and key style: this map is for names with hyphens.",
    "Give each inquiry a reference-id: it is how the person is told.",
  ],
  docs: "https://docs.withpersona.com/webhooks",
};
