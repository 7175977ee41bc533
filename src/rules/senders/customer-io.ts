/** Customer.io, by its page on reporting webhooks. */
import type { Sender } from "./sender.ts";

export const customerIo: Sender = {
  name: "customer-io",
  title: "Customer.io",
  summary: "Tells what became of messages: sent, delivered, opened, clicked, bounced, unsubscribed.",
  verify: {
    scheme: "signature",
    header: "X-CIO-Signature",
    timestampHeader: "X-CIO-Timestamp",
    signedPayload: "v0:{timestamp}:{body}",
    encoding: "hex",
  },
  map: {
    event_id: "event_id",
    event_type: "metric",
    kind: "object_type",
    recipient: "data.recipient",
    customer: "data.customer_id",
  },
  when: { event_type: "bounced", kind: "email" },
  personEmail: "data.recipient",
  secret: {
    from: "sender",
    where: "Data & Integrations, Integrations, Reporting Webhooks: Webhook signing key.",
  },
  register:
    "Data & Integrations, Integrations, Reporting Webhooks, Add Reporting Webhook: Webhook Endpoint and the events.",
  example: {
    json: {
      data: {
        campaign_id: 9,
        action_id: 13,
        customer_id: "0200102",
        delivery_id: "RPILAgUBcRhIBqSfeiIwdIYJKxTY",
        recipient: "ada@example.com",
        subject: "Your order",
        failure_message: "550 unknown user",
      },
      event_id: "01E4C4CT6YDC7Y5M7FE1GWWPQJ",
      metric: "bounced",
      object_type: "email",
      timestamp: 1768478400,
    },
  },
  eventTypes: [
    { type: "delivered", meaning: "The message arrived." },
    { type: "bounced", meaning: "The recipient’s server refused it." },
    { type: "spammed", meaning: "The recipient called it spam." },
    { type: "clicked", meaning: "The recipient followed a link." },
    { type: "unsubscribed", meaning: "The recipient unsubscribed." },
  ],
  pitfalls: [
    "What happened and to what are two fields, `metric` and `object_type`: a `when` names both.",
    "Customer.io wants an answer within four seconds.",
  ],
  docs: "https://docs.customer.io/integrations/data-out/connections/webhooks/",
};
