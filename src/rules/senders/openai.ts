/** OpenAI, by its guide to webhooks; Standard Webhooks. */
import type { Sender } from "./sender.ts";

export const openai: Sender = {
  name: "openai",
  title: "OpenAI",
  summary: "Tells that a response, a batch, a fine-tuning or an evaluation has ended.",
  verify: { scheme: "hooks" },
  map: { event_id: "id", event_type: "type", object: "data.id", time: "created_at" },
  when: { event_type: "response.completed" },
  personEmail: null,
  secret: { from: "sender", where: "It is shown once, when the endpoint was made; it starts with whsec_." },
  register: "The project’s Settings, Webhooks, Create: URL and event types.",
  example: {
    json: {
      object: "event",
      id: "evt_685343a1381c819085d44c354e1b330e",
      type: "response.completed",
      created_at: 1768478400,
      data: { id: "resp_67890c2e3a5c8190b1d2e3f4a5b6c7d8" },
    },
  },
  eventTypes: [
    { type: "response.completed", meaning: "A response in the background is ready." },
    { type: "response.failed", meaning: "A response in the background failed." },
    { type: "batch.completed", meaning: "A batch has ended." },
    { type: "fine_tuning.job.succeeded", meaning: "A fine-tuning has ended well." },
  ],
  pitfalls: [
    "The event holds ids alone: the result is fetched by `data.id`, which call_url’s server may do.",
  ],
  docs: "https://platform.openai.com/docs/guides/webhooks",
};
