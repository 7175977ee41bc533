/** CircleCI, by its pages on outbound webhooks. */
import type { Sender } from "./sender.ts";

export const circleci: Sender = {
  name: "circleci",
  title: "CircleCI",
  summary: "Tells of workflows and jobs that have finished.",
  verify: {
    scheme: "signature",
    header: "circleci-signature",
    signatureKey: "v1",
    signedPayload: "{body}",
    encoding: "hex",
  },
  map: {
    event_id: "id",
    event_type: "type",
    status: "workflow.status",
    workflow: "workflow.name",
    project: "project.slug",
  },
  when: { event_type: "workflow-completed" },
  personEmail: null,
  secret: { from: "relay", where: "The webhook’s field Secret token takes the secret that is made here." },
  register: "The project’s Project Settings, Webhooks, Add Webhook.",
  example: {
    json: {
      type: "workflow-completed",
      id: "3888f21b-eaa7-38e3-8f3d-75a63bba8895",
      happened_at: "2026-01-15T12:00:00.317Z",
      webhook: { id: "cf8c4fdd-0587-4da1-b4ca-4846e9640af9", name: "Relay" },
      project: { id: "84996744-a854-4f5e-aea3-04e2851dc1d2", name: "shop", slug: "github/example/shop" },
      organization: { id: "f22b6566-597d-46d5-ba74-99ef5bb3d85c", name: "example" },
      workflow: {
        id: "fda08377-fe7e-46b1-8992-3a7aaecac9c3",
        name: "build-test-deploy",
        status: "success",
        created_at: "2026-01-15T11:58:00Z",
        stopped_at: "2026-01-15T12:00:00Z",
      },
      pipeline: { id: "1285fe1d-d3a6-44fc-8886-8979558254c4", number: 130 },
    },
  },
  eventTypes: [
    {
      type: "workflow-completed",
      meaning: "A workflow has ended; `workflow.status` is success, failed, error, canceled or unauthorized.",
    },
    { type: "job-completed", meaning: "A job has ended; it is in `job`." },
  ],
  pitfalls: [
    "A project has at most five webhooks.",
    "Without a secret token nothing is signed, and every call is refused.",
  ],
  docs: "https://circleci.com/docs/guides/integration/outbound-webhooks/",
};
