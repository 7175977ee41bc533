/** Mux, by its pages on webhooks and on verifying their signatures. */
import type { Sender } from "./sender.ts";

export const mux: Sender = {
  name: "mux",
  title: "Mux",
  summary: "Tells of videos, uploads and live streams.",
  verify: {
    scheme: "signature",
    header: "Mux-Signature",
    signatureKey: "v1",
    separator: ",",
    timestampKey: "t",
    signedPayload: "{timestamp}.{body}",
    encoding: "hex",
  },
  map: {
    event_id: "id",
    event_type: "type",
    asset: "data.id",
    playback: "data.playback_ids.0.id",
    passthrough: "data.passthrough",
  },
  when: { event_type: "video.asset.ready" },
  personEmail: null,
  secret: { from: "sender", where: "Settings, Webhooks, the webhook’s row: Show signing secret." },
  register: "Settings, Webhooks, Create new webhook, in the environment of the videos.",
  example: {
    json: {
      type: "video.asset.ready",
      id: "3a56ac3d-33da-4366-855b-f592d898409d",
      created_at: "2026-01-15T12:00:00.000000Z",
      object: { type: "asset", id: "0201p02fGKPE7MrbC269XRD7LpcHhrmbu0002" },
      environment: { name: "Production", id: "j0863n" },
      data: {
        id: "0201p02fGKPE7MrbC269XRD7LpcHhrmbu0002",
        status: "ready",
        duration: 8.2,
        passthrough: "order-1042",
        playback_ids: [{ policy: "public", id: "a1B2c3D4e5F6g7H8i9" }],
      },
      attempts: [],
    },
  },
  eventTypes: [
    { type: "video.asset.ready", meaning: "A video can be played." },
    { type: "video.asset.errored", meaning: "A video could not be made." },
    { type: "video.upload.asset_created", meaning: "An upload became a video." },
    { type: "video.live_stream.active", meaning: "A live stream can be seen." },
    { type: "video.live_stream.idle", meaning: "A live stream is over." },
  ],
  pitfalls: ["Each webhook and each environment has a signing secret of its own."],
  docs: "https://www.mux.com/docs/core/verify-webhook-signatures",
};
