/** Buildkite, by its page on pipelines’ webhooks. */
import type { Sender } from "./sender.ts";

export const buildkite: Sender = {
  name: "buildkite",
  title: "Buildkite",
  summary: "Tells of builds, jobs and agents.",
  verify: {
    scheme: "signature",
    header: "X-Buildkite-Signature",
    signatureKey: "signature",
    separator: ",",
    timestampKey: "timestamp",
    signedPayload: "{timestamp}.{body}",
    encoding: "hex",
  },
  map: {
    event_type: "event",
    build: "build.id",
    number: "build.number",
    state: "build.state",
    pipeline: "pipeline.slug",
  },
  when: { event_type: "build.finished" },
  personEmail: null,
  secret: { from: "sender", where: "The notification service’s page: Token." },
  register:
    "The organisation’s Settings, Notification Services, Add Webhook: choose to send an HMAC signature in the X-Buildkite-Signature header.",
  example: {
    json: {
      event: "build.finished",
      build: {
        id: "f62a1b4d-10f9-4790-bc1c-e2c3a0c80983",
        number: 27,
        state: "passed",
        branch: "main",
        commit: "a65572555600c07c7ee79a2bd909220e1ca5485b",
        message: "Mend the form",
      },
      pipeline: { id: "849411f9-9e6d-4739-a0d8-e247088e9b52", slug: "shop", name: "Shop" },
      sender: { id: "3d3c3bf0-7d58-4afe-8fe7-b3017d5504de", name: "Ada Lovelace" },
    },
  },
  eventTypes: [
    { type: "build.scheduled", meaning: "A build waits to be run." },
    {
      type: "build.finished",
      meaning: "A build has ended; `build.state` is passed, failed, blocked or canceled.",
    },
    { type: "job.finished", meaning: "A job has ended." },
    { type: "agent.disconnected", meaning: "An agent has left." },
    { type: "ping", meaning: "The test event of the webhook’s page." },
  ],
  pitfalls: [
    "The webhook’s other choice sends the token itself in X-Buildkite-Token, which this recipe does not read.",
    "No id of the delivery is in the body: repeats are told by their body, within the same UTC day.",
  ],
  docs: "https://buildkite.com/docs/apis/webhooks/pipelines",
};
