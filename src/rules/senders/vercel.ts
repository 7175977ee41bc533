/** Vercel, by its page on webhooks. */
import type { Sender } from "./sender.ts";

export const vercel: Sender = {
  name: "vercel",
  title: "Vercel",
  summary: "Tells of deployments and projects of a team.",
  verify: {
    scheme: "signature",
    algorithm: "hmac-sha1",
    header: "x-vercel-signature",
    signedPayload: "{body}",
    encoding: "hex",
  },
  map: {
    event_id: "id",
    event_type: "type",
    deployment: "payload.deployment.id",
    url: "payload.deployment.url",
    name: "payload.deployment.name",
    target: "payload.target",
  },
  when: { event_type: "deployment.succeeded" },
  personEmail: null,
  secret: { from: "sender", where: "It is shown once, when the webhook was made." },
  register: "The team’s Settings, Webhooks, Create Webhook (Pro and Enterprise).",
  example: {
    json: {
      id: "9Kd2wR7fXmQ3Vv8c5bYpZ4LhqrN",
      type: "deployment.succeeded",
      createdAt: 1768478400000,
      region: null,
      payload: {
        team: { id: "team_LLHUOMOoDlqOp8wPE4kFo9pE" },
        user: { id: "K4amb7K9dhQC1c3Vg6M4VZur" },
        deployment: {
          id: "dpl_5m3gYqz6JhKGLnvGGqSpVsXQ2vHz",
          name: "shop",
          url: "shop-git-main-example.vercel.app",
          meta: {},
        },
        target: "production",
        project: { id: "prj_8Xc1kQnR3vTz9YbW2fA6mLhE" },
      },
    },
  },
  eventTypes: [
    { type: "deployment.created", meaning: "A deployment has begun." },
    { type: "deployment.succeeded", meaning: "A deployment was built and its checks passed." },
    { type: "deployment.error", meaning: "A deployment failed." },
    { type: "deployment.canceled", meaning: "A deployment was called off." },
    { type: "project.created", meaning: "A project was made." },
  ],
  pitfalls: [
    "Vercel signs with SHA-1; the event is signed all the same.",
    "For an integration’s webhook the key is the integration’s Client Secret, not the webhook’s.",
  ],
  docs: "https://vercel.com/docs/webhooks/webhooks-api",
};
