/** Typeform, by its pages on webhooks and on securing them. */
import type { Sender } from "./sender.ts";

export const typeform: Sender = {
  name: "typeform",
  title: "Typeform",
  summary: "Tells of each response to a form.",
  verify: {
    scheme: "signature",
    header: "Typeform-Signature",
    signatureKey: "sha256",
    signedPayload: "{body}",
    encoding: "base64",
  },
  map: {
    event_id: "event_id",
    event_type: "event_type",
    form: "form_response.form_id",
    title: "form_response.definition.title",
    response: "form_response.token",
  },
  when: { event_type: "form_response" },
  personEmail: null,
  secret: { from: "relay", where: "The webhook’s Edit: the field Secret takes the one made here." },
  register: "The form’s Connect, Webhooks, Add a webhook; then switch it on.",
  example: {
    json: {
      event_id: "01KF0Q8ZV5M9W3D7T2R6Y4X1CB",
      event_type: "form_response",
      form_response: {
        form_id: "A1b2C3",
        token: "6f3e8a1c9d2b47a0b6e5f1a2c3d4e5f6",
        landed_at: "2026-01-15T11:58:00Z",
        submitted_at: "2026-01-15T12:00:00Z",
        definition: {
          id: "A1b2C3",
          title: "Contact us",
          fields: [{ id: "JwWggjAKtOk2", title: "Your address?", type: "email", ref: "email" }],
        },
        answers: [
          {
            type: "email",
            email: "ada@example.com",
            field: { id: "JwWggjAKtOk2", type: "email", ref: "email" },
          },
        ],
      },
    },
  },
  eventTypes: [
    { type: "form_response", meaning: "Somebody sent the form." },
    {
      type: "form_response_partial",
      meaning: "Somebody left it half filled in, where the form tells of that.",
    },
  ],
  pitfalls: [
    "Answers come in the order of the questions that were asked, and one that was skipped is missing: `form_response.answers.0.email` is the address only where that question is always the first. A hidden field, `form_response.hidden.email`, stays where it is.",
    "Without a secret Typeform signs nothing, and every call is refused.",
  ],
  docs: "https://www.typeform.com/developers/webhooks/secure-your-webhooks/",
};
