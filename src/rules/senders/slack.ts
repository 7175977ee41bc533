/** Slack, by its pages on the Events API and on verifying requests, and its own library. */
import type { Sender } from "./sender.ts";

export const slack: Sender = {
  name: "slack",
  title: "Slack",
  summary: "Tells an app of messages, mentions, reactions and members of a workspace.",
  verify: {
    scheme: "signature",
    header: "X-Slack-Signature",
    signatureKey: "v0",
    timestampHeader: "X-Slack-Request-Timestamp",
    signedPayload: "v0:{timestamp}:{body}",
    encoding: "hex",
    handshake: "slack",
  },
  map: {
    event_id: "event_id",
    event_type: "event.type",
    team: "team_id",
    channel: "event.channel",
    user: "event.user",
    text: "event.text",
  },
  when: { event_type: "app_mention" },
  personEmail: null,
  secret: {
    from: "sender",
    where: "At api.slack.com/apps, the app’s Basic Information, App Credentials: Signing Secret.",
  },
  register: "At api.slack.com/apps, the app’s Event Subscriptions: Request URL, and the bot events.",
  example: {
    json: {
      token: "Jhj5dZrVaK7ZwHHjRyZWjbDl",
      team_id: "T061EG9R6",
      api_app_id: "A0PNCHHK2",
      event: {
        type: "app_mention",
        user: "U061F7AUR",
        text: "<@U0LAN0Z89> is anybody there?",
        ts: "1768478400.000200",
        channel: "C061EG9SL",
        event_ts: "1768478400000200",
      },
      type: "event_callback",
      event_id: "Ev0MDYHUEL",
      event_time: 1768478400,
      authed_users: ["U0LAN0Z89"],
    },
  },
  eventTypes: [
    { type: "app_mention", meaning: "Somebody named the app." },
    { type: "message", meaning: "Somebody wrote where the app listens; `subtype` tells edits and the like." },
    { type: "reaction_added", meaning: "Somebody reacted to a message." },
    { type: "team_join", meaning: "Somebody joined the workspace." },
  ],
  pitfalls: [
    "Store the signing secret before the Request URL is entered: Slack asks the URL at once, and only a signed question is answered.",
    "What the app itself writes may come back as a message: a rule that answers must not hear itself.",
    "Slash commands and buttons are forms that wait for an answer, which a relay does not give.",
    "Slack wants an answer within three seconds.",
  ],
  docs: "https://docs.slack.dev/authentication/verifying-requests-from-slack/",
};
