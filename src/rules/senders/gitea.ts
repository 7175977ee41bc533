/** Gitea, by its source (services/webhook) and its page on webhooks. */
import type { Sender } from "./sender.ts";

export const gitea: Sender = {
  name: "gitea",
  title: "Gitea",
  summary: "Tells of pushes, issues, pull requests and releases of a repository on a Gitea server.",
  verify: { scheme: "signature", header: "X-Gitea-Signature", signedPayload: "{body}", encoding: "hex" },
  map: {
    event_type: "action",
    repository: "repository.full_name",
    login: "sender.login",
    release: "release.tag_name",
  },
  when: { event_type: "published" },
  personEmail: null,
  secret: { from: "relay", where: "The webhook’s field Secret takes the secret that is made here." },
  register:
    "The repository’s (or organisation’s) Settings, Webhooks, Add Webhook, Gitea: method POST, content type application/json.",
  example: {
    json: {
      action: "published",
      release: {
        id: 14,
        tag_name: "v1.4.0",
        target_commitish: "main",
        name: "1.4.0",
        draft: false,
        prerelease: false,
      },
      repository: { id: 7, name: "tools", full_name: "ada/tools", private: false, default_branch: "main" },
      sender: { id: 3, login: "ada", full_name: "Ada Lovelace" },
    },
  },
  eventTypes: [
    { type: "published", meaning: "A release was published." },
    { type: "opened", meaning: "An issue or a pull request was opened." },
    {
      type: "closed",
      meaning: "An issue or a pull request was closed; `pull_request.merged` says whether it was merged.",
    },
    { type: "created", meaning: "A comment was written." },
  ],
  pitfalls: [
    "The event’s name is in the header X-Gitea-Event alone, and no map reads headers: choose one event a webhook, or tell them apart by what only they hold.",
    "A push holds no `action`: a `when` on it ignores pushes.",
    "Only content type application/json is read: as a form the event is a text inside the field `payload`.",
    "A server that may not call private addresses refuses a receiver in its own network: its setting ALLOWED_HOST_LIST lets it.",
  ],
  docs: "https://docs.gitea.com/usage/webhooks",
};
