/** GitLab, by its pages on webhooks and webhook events. */
import type { Sender } from "./sender.ts";

export const gitlab: Sender = {
  name: "gitlab",
  title: "GitLab",
  summary:
    "Tells of pushes, merge requests, issues, pipelines, releases and comments of a project or a group.",
  verify: { scheme: "shared_token", header: "X-Gitlab-Token" },
  map: {
    event_type: "object_kind",
    action: "object_attributes.action",
    project: "project.path_with_namespace",
    title: "object_attributes.title",
    author: "user.username",
  },
  when: { event_type: "merge_request", action: "merge" },
  personEmail: null,
  secret: { from: "relay", where: "The webhook’s field Secret token takes the secret that is made here." },
  register: "The project’s (or group’s) Settings, Webhooks, Add new webhook.",
  example: {
    json: {
      object_kind: "merge_request",
      event_type: "merge_request",
      user: { id: 1, name: "Ada Lovelace", username: "ada", email: "ada@example.com" },
      project: {
        id: 2,
        name: "Flight management",
        path_with_namespace: "flightjs/flight-management",
        web_url: "https://gitlab.example.com/flightjs/flight-management",
        default_branch: "main",
      },
      object_attributes: {
        id: 93,
        iid: 16,
        title: "Check what the booking form is given",
        state: "merged",
        action: "merge",
        source_branch: "booking",
        target_branch: "main",
      },
    },
  },
  eventTypes: [
    { type: "push", meaning: "Commits were pushed to a branch; it has no `object_attributes`." },
    {
      type: "merge_request",
      meaning: "A merge request was opened, updated, approved, merged or closed: `action` says which.",
    },
    { type: "issue", meaning: "An issue was opened, updated or closed." },
    { type: "pipeline", meaning: "A pipeline changed its state; `object_attributes.status` says to what." },
    { type: "release", meaning: "A release was made, changed or deleted." },
  ],
  pitfalls: [
    "The token is sent as it is and signs nothing: the relay may write records and call URLs; more needs `trustUnsignedEvents`.",
    "Recent versions can sign by a signing token as Standard Webhooks say: with one, take the scheme `hooks`, which needs no opt-in.",
    "The event’s id is in the header X-Gitlab-Event-UUID, and no map reads headers: repeats are told by their body, within the same UTC day.",
  ],
  docs: "https://docs.gitlab.com/user/project/integrations/webhooks/",
};
