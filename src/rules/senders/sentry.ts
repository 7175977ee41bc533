/** Sentry, by its page on the integration platform’s webhooks. */
import type { Sender } from "./sender.ts";

export const sentry: Sender = {
  name: "sentry",
  title: "Sentry",
  summary: "Tells of issues, errors, alerts and comments of an organisation.",
  verify: { scheme: "signature", header: "Sentry-Hook-Signature", signedPayload: "{body}", encoding: "hex" },
  map: {
    event_type: "action",
    issue: "data.issue.id",
    title: "data.issue.title",
    project: "data.issue.project.slug",
    level: "data.issue.level",
  },
  when: { event_type: "created" },
  personEmail: null,
  secret: { from: "sender", where: "Settings, Developer Settings, the integration’s page: Client Secret." },
  register:
    "Settings, Developer Settings (Custom Integrations), the internal integration: Webhook URL, and the resources to be told of.",
  example: {
    json: {
      action: "created",
      installation: { uuid: "24b397fc-a86e-43ef-9297-949e21b82480" },
      data: {
        issue: {
          id: "4509877862268928",
          shortId: "SHOP-7",
          title: "TypeError: total is not a number",
          culprit: "sumOrder(order.ts)",
          level: "error",
          status: "unresolved",
          project: { id: "4509866123456789", name: "shop", slug: "shop", platform: "node" },
        },
      },
      actor: { type: "application", id: "sentry", name: "Sentry" },
    },
  },
  eventTypes: [
    { type: "created", meaning: "An issue, an error or a comment is new." },
    { type: "resolved", meaning: "An issue was resolved." },
    { type: "assigned", meaning: "An issue was given to somebody." },
    { type: "triggered", meaning: "An issue alert’s rule was met; the event is in `data.event`." },
    { type: "critical", meaning: "A metric alert went critical; it is in `data.metric_alert`." },
  ],
  pitfalls: [
    "What it is about, such as issue or error, is in the header Sentry-Hook-Resource alone, and no map reads headers: choose few resources, or tell them apart by what only they hold, such as `data.issue`.",
    "Sentry wants an answer within a second.",
    "No id of the delivery is in the body: repeats are told by their body, within the same UTC day.",
  ],
  docs: "https://docs.sentry.io/organization/integrations/integration-platform/webhooks/",
};
