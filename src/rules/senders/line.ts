/** LINE’s Messaging API, by its pages on webhooks and signatures, and its library. */
import type { Sender } from "./sender.ts";

export const line: Sender = {
  name: "line",
  title: "LINE",
  summary: "Tells an official account’s bot of messages, follows and button presses.",
  verify: { scheme: "signature", header: "x-line-signature", signedPayload: "{body}", encoding: "base64" },
  map: {
    event_id: "events.0.webhookEventId",
    event_type: "events.0.type",
    user: "events.0.source.userId",
    text: "events.0.message.text",
  },
  when: { event_type: "message" },
  personEmail: null,
  secret: { from: "sender", where: "LINE Developers Console, the channel’s Basic settings: Channel secret." },
  register: "LINE Developers Console, the channel’s Messaging API tab: Webhook URL, and Use webhook.",
  example: {
    json: {
      destination: "xxxxxxxxxx",
      events: [
        {
          type: "message",
          mode: "active",
          timestamp: 1768478400000,
          webhookEventId: "01FZ74A0TDDPYRVKNK77XKC3ZR",
          deliveryContext: { isRedelivery: false },
          source: { type: "user", userId: "U4af4980629a1b2c3d4e5f60718293a4b" },
          replyToken: "nHuyWiB7yP5Zw52FIkcQobQuGDXCTA",
          message: { id: "444573844083572737", type: "text", text: "Hello" },
        },
      ],
    },
  },
  eventTypes: [
    { type: "message", meaning: "Somebody wrote." },
    { type: "follow", meaning: "Somebody added the account." },
    { type: "unfollow", meaning: "Somebody blocked it." },
    { type: "postback", meaning: "Somebody pressed a button." },
  ],
  pitfalls: [
    "A call may hold several events, and is one event here: the map reads the first.",
    "The console’s Verify sends an empty list of events: it answers 200, ignored by `when`.",
    "LINE does not send again unless Webhook redelivery is switched on.",
  ],
  docs: "https://developers.line.biz/en/docs/messaging-api/verify-webhook-signature/",
};
