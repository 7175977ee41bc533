/** EasyPost, by its guide to webhook security and its library. */
import type { Sender } from "./sender.ts";

export const easypost: Sender = {
  name: "easypost",
  title: "EasyPost",
  summary: "Tells of parcels on their way, batches, refunds and payments.",
  verify: {
    scheme: "signature",
    header: "X-Hmac-Signature",
    signatureKey: "hmac-sha256-hex",
    signedPayload: "{body}",
    encoding: "hex",
  },
  map: {
    event_id: "id",
    event_type: "description",
    tracker: "result.id",
    tracking_code: "result.tracking_code",
    status: "result.status",
  },
  when: { event_type: "tracker.updated", status: "delivered" },
  personEmail: null,
  secret: { from: "relay", where: "The webhook’s field webhook_secret takes the one made here." },
  register:
    "Webhooks & Events, Add webhook; or POST https://api.easypost.com/v2/webhooks with url and webhook_secret.",
  example: {
    json: {
      id: "evt_b3f1c2d4e5a64f7b8c9d0e1f2a3b4c5d",
      object: "Event",
      mode: "production",
      description: "tracker.updated",
      previous_attributes: { status: "out_for_delivery" },
      status: "pending",
      created_at: "2026-01-15T12:00:00Z",
      updated_at: "2026-01-15T12:00:00Z",
      result: {
        id: "trk_c8e0edb5bb284caa934a0d3db23a148z",
        object: "Tracker",
        mode: "production",
        tracking_code: "9400110898825022579493",
        status: "delivered",
        carrier: "USPS",
      },
    },
  },
  eventTypes: [
    { type: "tracker.created", meaning: "A parcel is followed." },
    { type: "tracker.updated", meaning: "A parcel’s state changed; `result.status` says to what." },
    { type: "batch.updated", meaning: "A batch of shipments changed its state." },
    { type: "refund.successful", meaning: "A label was paid back." },
  ],
  pitfalls: [
    "Without a webhook_secret nothing is signed, and every call is refused.",
    "EasyPost sends again what was not taken within seven seconds.",
  ],
  docs: "https://docs.easypost.com/guides/webhooks-guide",
};
