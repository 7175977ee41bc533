/** Standard Webhooks, by its specification and its reference library. */
import type { Sender } from "./sender.ts";

export const standardWebhooks: Sender = {
  name: "standard-webhooks",
  title: "Standard Webhooks",
  summary:
    "Any sender that follows the Standard Webhooks specification, such as one that you write yourself.",
  verify: { scheme: "hooks" },
  map: { event_type: "type", time: "timestamp" },
  when: {},
  personEmail: null,
  secret: {
    from: "either",
    where: "The sender shows it, or takes the one made here: whsec_ and base64.",
  },
  register: "Where the sender takes a webhook’s or endpoint’s URL.",
  example: {
    json: {
      type: "invoice.paid",
      timestamp: "2026-01-15T12:00:00.000Z",
      data: { invoice: "inv_1042", amount: 4200, email: "ada@example.com" },
    },
  },
  eventTypes: [
    { type: "invoice.paid", meaning: "For example; each sender has its own, as words with dots between." },
  ],
  pitfalls: [
    "The message’s id is in the header webhook-id (or svix-id, hooks-id), which is what repeats are told by: the map needs no event_id.",
    "The secret’s part after whsec_ is base64 of the key; a sender that shows the key itself needs it encoded and whsec_ before it.",
    "Signatures by a public key (v1a) are not read: let the sender sign with a secret (v1).",
  ],
  docs: "https://www.standardwebhooks.com",
};
