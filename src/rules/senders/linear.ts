/** Linear, by its page on webhooks. */
import type { Sender } from "./sender.ts";

export const linear: Sender = {
  name: "linear",
  title: "Linear",
  summary: "Tells of issues, comments, projects and cycles of a workspace.",
  verify: { scheme: "signature", header: "Linear-Signature", signedPayload: "{body}", encoding: "hex" },
  map: {
    event_type: "type",
    action: "action",
    issue: "data.identifier",
    title: "data.title",
    actor: "actor.name",
  },
  when: { event_type: "Issue", action: "create" },
  personEmail: null,
  secret: { from: "sender", where: "Settings, API, Webhooks, the webhook’s page: Signing secret." },
  register: "Settings, API, Webhooks, New webhook.",
  example: {
    json: {
      action: "create",
      type: "Issue",
      createdAt: "2026-01-15T12:00:00.084Z",
      webhookTimestamp: 1768478400084,
      webhookId: "3e9c1b2a-8f47-4c6d-9a1e-7b5d2c4f8e91",
      organizationId: "b6a1d4e2-9c3f-4a7b-8e2d-1f6c9a4b7d3e",
      actor: { id: "d4f8a2c1-6e9b-4d3a-8f1c-2b7e5a9d4c6f", type: "user", name: "Ada Lovelace" },
      data: {
        id: "7c2e4f1a-9b3d-4a6e-8c5f-1d7b3e9a2c4f",
        identifier: "ENG-483",
        number: 483,
        title: "The form takes no umlauts",
        priority: 2,
      },
      url: "https://linear.app/example/issue/ENG-483",
    },
  },
  eventTypes: [
    { type: "Issue", meaning: "An issue; `action` is create, update or remove." },
    { type: "Comment", meaning: "A comment on an issue." },
    { type: "Project", meaning: "A project." },
    { type: "Cycle", meaning: "A cycle." },
  ],
  pitfalls: [
    "`webhookId` is the webhook’s, not the event’s: as event_id it would let one event run and no other. The delivery’s id is in the header Linear-Delivery, which no map reads.",
    "The time of sending is in the body, `webhookTimestamp`, and is signed with it, but is not checked here: a captured call is told by its body within the same UTC day.",
  ],
  docs: "https://linear.app/developers/webhooks",
};
