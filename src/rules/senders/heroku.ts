/** Heroku, by its article on app webhooks. */
import type { Sender } from "./sender.ts";

export const heroku: Sender = {
  name: "heroku",
  title: "Heroku",
  summary: "Tells of releases, builds, dynos, add-ons and domains of an app.",
  verify: {
    scheme: "signature",
    header: "Heroku-Webhook-Hmac-SHA256",
    signedPayload: "{body}",
    encoding: "base64",
  },
  map: {
    event_id: "id",
    event_type: "action",
    resource: "resource",
    app: "data.app.name",
    status: "data.status",
  },
  when: { resource: "release", event_type: "update" },
  personEmail: null,
  secret: {
    from: "either",
    where:
      "The command heroku webhooks:add takes the one made here with --secret, or makes one and shows it once.",
  },
  register:
    "The app’s More, View webhooks, Create Webhook; or heroku webhooks:add -i api:release -l sync -u <receiver URL>.",
  example: {
    json: {
      id: "6d4c0f4e-5b2a-4f43-9f53-8f1c9f3e7a21",
      action: "update",
      resource: "release",
      actor: { id: "8c4f1e70-2f3e-4b64-9a0d-6b8f2d1c7e55", email: "ada@example.com" },
      data: {
        id: "b9a7f0d3-6d2e-4c0a-a1f5-0e3b7c9d8f12",
        app: { id: "0f0d1b8e-7a6c-4d5e-9f80-1a2b3c4d5e6f", name: "shop" },
        status: "succeeded",
        version: 42,
        description: "Deploy 709d658d",
      },
      created_at: "2026-01-15T12:00:00Z",
      published_at: "2026-01-15T12:00:01Z",
      sequence: null,
      version: "application/vnd.heroku+json; version=3",
    },
  },
  eventTypes: [
    { type: "create", meaning: "Something was made; `resource` says what, such as build or release." },
    { type: "update", meaning: "It changed, such as a release whose `data.status` became succeeded." },
    { type: "destroy", meaning: "It was removed." },
  ],
  pitfalls: [
    "Level `notify` is told once and not again after a failure; `sync` is sent again until it was taken.",
    "Type and resource are two fields: a `when` names both.",
  ],
  docs: "https://devcenter.heroku.com/articles/app-webhooks",
};
