/** Sanity, by its page on GROQ-powered webhooks and its webhook toolkit. */
import type { Sender } from "./sender.ts";

export const sanity: Sender = {
  name: "sanity",
  title: "Sanity",
  summary: "Tells of documents of a dataset that were made, changed and deleted.",
  verify: {
    scheme: "signature",
    header: "sanity-webhook-signature",
    signatureKey: "v1",
    separator: ",",
    timestampKey: "t",
    signedPayload: "{timestamp}.{body}",
    encoding: "base64url",
  },
  map: { event_id: "_rev", event_type: "_type", document: "_id", title: "title" },
  when: { event_type: "post" },
  personEmail: null,
  secret: { from: "relay", where: "The webhook’s field Secret takes the one made here." },
  register:
    "At sanity.io/manage, the project’s API, Webhooks, Create webhook: URL, dataset, Trigger on, and method POST.",
  example: {
    json: {
      _createdAt: "2026-01-15T11:00:00Z",
      _id: "drink-1042",
      _rev: "fGmhzQvAfEvOPNXmyTOVxb",
      _type: "post",
      _updatedAt: "2026-01-15T12:00:00Z",
      title: "A new post",
    },
  },
  eventTypes: [{ type: "post", meaning: "For example: `_type` is the document’s type in your schema." }],
  pitfalls: [
    "Without a projection the body is the document; with one it is what the projection says: keep _id, _type and _rev in it.",
    'Whether it was made, changed or deleted is not in the document: add "operation": delta::operation() to the projection and map it.',
    "Its timestamp is in milliseconds, and is read so.",
  ],
  docs: "https://www.sanity.io/docs/content-lake/webhooks",
};
