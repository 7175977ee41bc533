/** Hugging Face, by its page on webhooks. */
import type { Sender } from "./sender.ts";

export const huggingFace: Sender = {
  name: "hugging-face",
  title: "Hugging Face",
  summary: "Tells of changes, discussions and comments of models, datasets and Spaces.",
  verify: { scheme: "shared_token", header: "X-Webhook-Secret" },
  map: {
    event_type: "event.action",
    scope: "event.scope",
    repository: "repo.name",
    kind: "repo.type",
    commit: "repo.headSha",
  },
  when: { event_type: "update", scope: "repo.content" },
  personEmail: null,
  secret: { from: "relay", where: "The webhook’s field Secret takes the one made here." },
  register: "Settings, Webhooks, Add a new webhook: target repositories, URL and triggers.",
  example: {
    json: {
      event: { action: "update", scope: "repo.content" },
      repo: {
        type: "model",
        name: "example/some-model",
        id: "621ffdc036468d709f17434d",
        private: false,
        url: {
          web: "https://huggingface.co/example/some-model",
          api: "https://huggingface.co/api/models/example/some-model",
        },
        headSha: "fe8bb9eb5aeb5d6d9c21cd7a5ba0f0d1a2b3c4d5",
        owner: { id: "628b753283ef59b5be89e937" },
      },
      webhook: { id: "6390e855e30d9209411de93b", version: 3 },
    },
  },
  eventTypes: [
    { type: "create", meaning: "A repository, a discussion or a comment is new; `event.scope` says which." },
    { type: "update", meaning: "It was changed; scope repo.content is a commit." },
    { type: "delete", meaning: "It was deleted." },
    { type: "move", meaning: "A repository was renamed." },
  ],
  pitfalls: [
    "The secret is sent as it is and signs nothing: the relay may write records and call URLs; more needs `trustUnsignedEvents`.",
    "No id of the event is in the body: repeats are told by their body, within the same UTC day.",
  ],
  docs: "https://huggingface.co/docs/hub/webhooks",
};
