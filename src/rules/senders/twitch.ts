/** Twitch EventSub, by its page on handling webhook events. */
import type { Sender } from "./sender.ts";

export const twitch: Sender = {
  name: "twitch",
  title: "Twitch",
  summary: "Tells of streams, followers, subscriptions and channel points (EventSub).",
  verify: { scheme: "twitch", handshake: "twitch" },
  map: { event_type: "subscription.type", channel: "event.broadcaster_user_name", user: "event.user_name" },
  when: { event_type: "channel.follow" },
  personEmail: null,
  secret: { from: "relay", where: "The subscription’s field transport.secret takes the one made here." },
  register:
    "Its API alone: POST https://api.twitch.tv/helix/eventsub/subscriptions with transport.method webhook, transport.callback and transport.secret.",
  example: {
    json: {
      subscription: {
        id: "f1c2a387-161a-49f9-a165-0f21d7a4e1c4",
        type: "channel.follow",
        version: "2",
        status: "enabled",
        cost: 0,
        condition: { broadcaster_user_id: "1337" },
        transport: { method: "webhook", callback: "https://relay.example.com/hooks/shop/twitch" },
        created_at: "2026-01-15T11:00:00.123Z",
      },
      event: {
        user_id: "1234",
        user_login: "ada",
        user_name: "Ada",
        broadcaster_user_id: "1337",
        broadcaster_user_login: "grace",
        broadcaster_user_name: "Grace",
        followed_at: "2026-01-15T12:00:00.123Z",
      },
    },
  },
  eventTypes: [
    { type: "channel.follow", meaning: "Somebody follows the channel." },
    { type: "channel.subscribe", meaning: "Somebody subscribed for the first time." },
    { type: "channel.channel_points_custom_reward_redemption.add", meaning: "Somebody redeemed a reward." },
    { type: "stream.online", meaning: "The stream has begun." },
  ],
  pitfalls: [
    "The message’s id is in the header Twitch-Eventsub-Message-Id, which is what repeats are told by: the map needs no event_id.",
    "Make the relay first: Twitch asks the URL as soon as the subscription is made.",
    "A subscription that Twitch took away (revoked) is told with the status in `subscription.status` and no `event`.",
  ],
  docs: "https://dev.twitch.tv/docs/eventsub/handling-webhook-events/",
};
