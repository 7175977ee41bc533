/** Bitbucket Cloud, by its pages on managing webhooks and event payloads. */
import type { Sender } from "./sender.ts";

export const bitbucket: Sender = {
  name: "bitbucket",
  title: "Bitbucket",
  summary: "Tells of pushes, pull requests and builds of a repository on Bitbucket Cloud.",
  verify: {
    scheme: "signature",
    header: "X-Hub-Signature",
    signatureKey: "sha256",
    signedPayload: "{body}",
    encoding: "hex",
  },
  map: {
    repository: "repository.full_name",
    branch: "push.changes.0.new.name",
    commit: "push.changes.0.new.target.hash",
    actor: "actor.display_name",
  },
  when: {},
  personEmail: null,
  secret: {
    from: "either",
    where: "The webhook’s field Secret takes the one made here, or makes one to be pasted here.",
  },
  register: "The repository’s Repository settings, Webhooks, Add webhook.",
  example: {
    json: {
      push: {
        changes: [
          {
            new: {
              type: "branch",
              name: "main",
              target: {
                type: "commit",
                hash: "709d658dc5b6d6afcd46049c2f332ee3f515a67d",
                message: "Mend the form",
              },
            },
            created: false,
            forced: false,
            closed: false,
          },
        ],
      },
      repository: { type: "repository", full_name: "example/shop", name: "shop", is_private: true },
      actor: { type: "user", display_name: "Ada Lovelace", nickname: "ada" },
    },
  },
  eventTypes: [
    { type: "repo:push", meaning: "Commits were pushed: what this recipe’s map is for." },
    { type: "pullrequest:created", meaning: "A pull request was opened; it is in `pullrequest`." },
    { type: "pullrequest:fulfilled", meaning: "A pull request was merged." },
    { type: "repo:commit_status_updated", meaning: "A build of a commit changed its state." },
  ],
  pitfalls: [
    "The event’s name is in the header X-Event-Key alone, and no map reads headers: choose one event a webhook.",
    "Without a secret Bitbucket signs nothing, and every call is refused.",
    "A push of several branches is one event with several `changes`; the map reads the first, and a branch that was deleted has no `new`.",
  ],
  docs: "https://support.atlassian.com/bitbucket-cloud/docs/manage-webhooks/",
};
