/** Jira Cloud, by its page on webhooks. */
import type { Sender } from "./sender.ts";

export const jira: Sender = {
  name: "jira",
  title: "Jira",
  summary: "Tells of issues, comments, sprints and versions of Jira Cloud.",
  verify: {
    scheme: "signature",
    header: "X-Hub-Signature",
    signatureKey: "sha256",
    signedPayload: "{body}",
    encoding: "hex",
  },
  map: {
    event_type: "webhookEvent",
    issue: "issue.key",
    summary: "issue.fields.summary",
    status: "issue.fields.status.name",
    user: "user.displayName",
  },
  when: { event_type: "jira:issue_created" },
  personEmail: null,
  secret: {
    from: "either",
    where: "The webhook’s field Secret takes the one made here, or makes one to be pasted here.",
  },
  register: "Settings, System, Advanced, WebHooks, Create a WebHook.",
  example: {
    json: {
      timestamp: 1768478400000,
      webhookEvent: "jira:issue_created",
      issue_event_type_name: "issue_created",
      user: { accountId: "5f8a1b2c3d4e5f0a1b2c3d4e", displayName: "Ada Lovelace", active: true },
      issue: {
        id: "10142",
        key: "ENG-482",
        fields: {
          summary: "The form takes no umlauts",
          issuetype: { id: "10001", name: "Bug" },
          status: { id: "10000", name: "To Do" },
          priority: { id: "3", name: "Medium" },
          project: { id: "10005", key: "ENG", name: "Engineering" },
        },
      },
    },
  },
  eventTypes: [
    { type: "jira:issue_created", meaning: "An issue was made." },
    { type: "jira:issue_updated", meaning: "An issue was changed; `changelog.items` says what." },
    { type: "jira:issue_deleted", meaning: "An issue was deleted." },
    { type: "comment_created", meaning: "A comment was written." },
  ],
  pitfalls: [
    "Without a secret Jira signs nothing, and every call is refused.",
    "What an automation rule sends (Send web request) is not signed: it may carry a header of its own, for which take the scheme shared_token.",
    "No id of the delivery is in the body: repeats are told by their body, within the same UTC day.",
  ],
  docs: "https://developer.atlassian.com/cloud/jira/platform/webhooks/",
};
