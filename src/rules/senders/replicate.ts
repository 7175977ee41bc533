/** Replicate, by its pages on receiving and verifying webhooks; Standard Webhooks. */
import type { Sender } from "./sender.ts";

export const replicate: Sender = {
  name: "replicate",
  title: "Replicate",
  summary: "Tells how a prediction or a training goes.",
  verify: { scheme: "hooks" },
  map: { event_type: "status", prediction: "id", model: "model", version: "version" },
  when: { event_type: ["succeeded", "failed"] },
  personEmail: null,
  secret: {
    from: "sender",
    where: "Its API alone: GET https://api.replicate.com/v1/webhooks/default/secret; it starts with whsec_.",
  },
  register:
    "The field `webhook` of each prediction that is asked for; `webhook_events_filter` says of what it tells.",
  example: {
    json: {
      id: "ufawqhfynnddngldkgtslldrkq",
      model: "replicate/hello-world",
      version: "5c7d5dc6dd8bf75c1acaa8565735e7986bc5b66206b55cca93cb72c9bf15ccaa",
      status: "succeeded",
      created_at: "2026-01-15T11:59:50.034Z",
      started_at: "2026-01-15T11:59:51.000Z",
      completed_at: "2026-01-15T12:00:00.000Z",
      input: { text: "Ada" },
      output: "hello Ada",
      error: null,
      metrics: { predict_time: 8.9 },
    },
  },
  eventTypes: [
    { type: "starting", meaning: "The prediction has begun." },
    { type: "processing", meaning: "It runs." },
    { type: "succeeded", meaning: "It has a result, in `output`." },
    { type: "failed", meaning: "It failed; `error` says why." },
    { type: "canceled", meaning: "It was called off." },
  ],
  pitfalls: [
    "The body is the prediction, whose `id` is the same every time: as event_id it would let the first call run and no other. Repeats are told by the header webhook-id.",
    "Ask for `completed` alone in webhook_events_filter: a prediction tells of its logs too.",
  ],
  docs: "https://replicate.com/docs/topics/webhooks/verify-webhook",
};
