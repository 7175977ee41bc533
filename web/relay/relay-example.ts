/** Templates of definitions. Each is valid and runs without further setup, unless its hint says otherwise. */

interface RelayExample {
  title: string;
  hint: string;
  definition: Readonly<Record<string, unknown>>;
}

export const EXAMPLES: readonly [RelayExample, ...RelayExample[]] = [
  {
    title: "Signed webhook",
    hint: "A Standard Webhooks sender says an order was paid; the buyer gets credits, once per order.",
    definition: {
      name: "order-paid",
      trigger: {
        kind: "receiver",
        verify: { scheme: "hooks" },
        map: { event_id: "id", event_type: "type", person_email: "data.email", order: "data.order_id" },
        when: { event_type: "order.paid" },
      },
      actions: [
        { type: "grant_credits", amount: 10, reason: "Order {{mapped.order}}", ref: "{{mapped.order}}" },
      ],
    },
  },
  {
    title: "Signature in a header",
    hint: "A sender that signs the raw body with HMAC-SHA256; Relay then notifies your server with a signed call.",
    definition: {
      name: "push-received",
      trigger: {
        kind: "receiver",
        verify: {
          scheme: "signature",
          header: "x-hub-signature-256",
          signatureKey: "sha256",
          signedPayload: "{body}",
          encoding: "hex",
        },
        map: { event_type: "action", repository: "repository.full_name" },
      },
      actions: [{ type: "call_url", url: "https://example.com/hooks/push" }],
    },
  },
  {
    title: "Schedule",
    hint: "Every Monday at 09:00 UTC, Relay calls your server. A schedule has no person.",
    definition: {
      name: "weekly-report",
      trigger: { kind: "schedule", every: "1w", on: "monday", at: "09:00" },
      actions: [{ type: "call_url", url: "https://example.com/hooks/report" }],
    },
  },
  {
    title: "Record change",
    hint: "A record of the collection “orders” changes to shipped; its owner gets a mail. Create the collection first.",
    definition: {
      name: "order-shipped",
      trigger: { kind: "data_change", collection: "orders", on: ["updated"], where: { status: "shipped" } },
      actions: [
        {
          type: "email_person",
          subject: "Your order is on its way",
          text: "Hello,\n\nyour order {{record.id}} was shipped today.",
        },
      ],
    },
  },
];
