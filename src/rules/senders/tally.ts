/** Tally, by its page on webhooks. */
import type { Sender } from "./sender.ts";

export const tally: Sender = {
  name: "tally",
  title: "Tally",
  summary: "Tells of each response to a form.",
  verify: { scheme: "signature", header: "Tally-Signature", signedPayload: "{body}", encoding: "base64" },
  map: { event_id: "eventId", event_type: "eventType", form: "data.formName", response: "data.responseId" },
  when: { event_type: "FORM_RESPONSE" },
  personEmail: null,
  secret: {
    from: "either",
    where: "The webhook’s Signing secret takes the one made here, or makes one to be pasted here.",
  },
  register: "The form’s Integrations, Webhooks, Connect: Endpoint URL and Add signing secret.",
  example: {
    json: {
      eventId: "a4cb511e-d513-4fa5-baee-b815d718dfd1",
      eventType: "FORM_RESPONSE",
      createdAt: "2026-01-15T12:00:00.000Z",
      data: {
        responseId: "2wgx4n",
        submissionId: "2wgx4n",
        respondentId: "dwQKYm",
        formId: "VwbNEw",
        formName: "Contact us",
        createdAt: "2026-01-15T12:00:00.000Z",
        fields: [
          { key: "question_mVGEg3", label: "Your address", type: "INPUT_EMAIL", value: "ada@example.com" },
        ],
      },
    },
  },
  eventTypes: [{ type: "FORM_RESPONSE", meaning: "Somebody sent the form." }],
  pitfalls: [
    "The answers are a list in the order of the form: `data.fields.0.value` is another answer once the form is rearranged.",
    "Without a signing secret nothing is signed, and every call is refused.",
  ],
  docs: "https://tally.so/help/webhooks",
};
