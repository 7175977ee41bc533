/** GitHub, by its pages on validating deliveries and on webhook payloads, and its own library. */
import type { Sender } from "./sender.ts";

export const github: Sender = {
  name: "github",
  title: "GitHub",
  summary:
    "Tells of pushes, issues, pull requests, releases, sponsors and everything else of a repository or an organisation.",
  verify: {
    scheme: "signature",
    header: "X-Hub-Signature-256",
    signatureKey: "sha256",
    signedPayload: "{body}",
    encoding: "hex",
  },
  map: {
    event_type: "action",
    repository: "repository.full_name",
    login: "sender.login",
    release: "release.tag_name",
  },
  when: { event_type: "published" },
  personEmail: null,
  secret: {
    from: "relay",
    where: "The webhook’s field Secret takes the secret that is made here.",
  },
  register:
    "The repository’s (or organisation’s) Settings, Webhooks, Add webhook: Payload URL, with content type application/json.",
  example: {
    json: {
      action: "published",
      release: {
        id: 198765432,
        tag_name: "v1.4.0",
        name: "1.4.0",
        draft: false,
        prerelease: false,
        html_url: "https://github.com/octo-org/octo-repo/releases/tag/v1.4.0",
      },
      repository: { id: 186853002, full_name: "octo-org/octo-repo", private: false },
      sender: { login: "octocat", id: 583231 },
    },
  },
  eventTypes: [
    { type: "published", meaning: "A release, or an advisory, was published." },
    { type: "opened", meaning: "An issue or a pull request was opened." },
    {
      type: "closed",
      meaning: "An issue or a pull request was closed; `pull_request.merged` says whether it was merged.",
    },
    { type: "created", meaning: "A comment, a star, a sponsorship or the like was made." },
    { type: "completed", meaning: "A workflow run or a check has finished." },
  ],
  pitfalls: [
    "The event’s name is in the header X-GitHub-Event alone, and no map reads headers: choose one event a webhook, or tell them apart by what only they hold, such as `release.tag_name`.",
    "The delivery’s id is in a header too, so that a redelivery is told by its body, within the same UTC day.",
    "`push` and `ping` hold no `action`; a `when` on it ignores both, and the ping that follows the making of a webhook answers 200 all the same.",
    "With the content type application/x-www-form-urlencoded the event is a text inside the form’s field `payload`, which no map reads: choose application/json.",
    "GitHub does not send again by itself what failed: redeliver it under Recent Deliveries, or import it here.",
  ],
  docs: "https://docs.github.com/en/webhooks/using-webhooks/validating-webhook-deliveries",
};
