/** Render, by its page on webhooks; Standard Webhooks. */
import type { Sender } from "./sender.ts";

export const render: Sender = {
  name: "render",
  title: "Render",
  summary: "Tells of deploys, builds and the state of services.",
  verify: { scheme: "hooks" },
  map: {
    event_id: "data.id",
    event_type: "type",
    service: "data.serviceName",
    service_id: "data.serviceId",
    status: "data.status",
  },
  when: { event_type: "deploy_ended" },
  personEmail: null,
  secret: {
    from: "sender",
    where: "Integrations, Webhooks, the webhook’s page: Signing secret, which starts with whsec_.",
  },
  register: "Integrations, Webhooks, Create Webhook: URL and the events.",
  example: {
    json: {
      type: "deploy_ended",
      timestamp: "2026-01-15T12:00:00.000000Z",
      data: {
        id: "evt-cph1rs3idesc73a2b2mg",
        serviceId: "srv-cukouhrtq21c73e9scng",
        serviceName: "shop",
        status: "succeeded",
      },
    },
  },
  eventTypes: [
    { type: "deploy_started", meaning: "A deploy has begun." },
    { type: "deploy_ended", meaning: "A deploy has ended; `data.status` says how." },
    { type: "build_ended", meaning: "A build has ended." },
    { type: "server_failed", meaning: "A service failed." },
  ],
  pitfalls: ["Webhooks need a Professional workspace or a higher one."],
  docs: "https://render.com/docs/webhooks",
};
