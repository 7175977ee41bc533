/** Telegram’s Bot API, by its reference of setWebhook and Update. */
import type { Sender } from "./sender.ts";

export const telegram: Sender = {
  name: "telegram",
  title: "Telegram",
  summary: "Tells a bot of messages, button presses, members and payments.",
  verify: { scheme: "shared_token", header: "X-Telegram-Bot-Api-Secret-Token" },
  map: {
    event_id: "update_id",
    chat: "message.chat.id",
    chat_type: "message.chat.type",
    from: "message.from.username",
    text: "message.text",
  },
  when: { chat_type: "private" },
  personEmail: null,
  secret: { from: "relay", where: "The parameter secret_token of setWebhook takes the one made here." },
  register: "Its API alone: POST https://api.telegram.org/bot<token>/setWebhook with url and secret_token.",
  example: {
    json: {
      update_id: 397587257,
      message: {
        message_id: 486,
        from: { id: 927485618, is_bot: false, first_name: "Ada", username: "ada", language_code: "en" },
        chat: { id: 927485618, first_name: "Ada", username: "ada", type: "private" },
        date: 1768478400,
        text: "/start",
      },
    },
  },
  eventTypes: [
    { type: "private", meaning: "`message.chat.type` of a message to the bot alone." },
    { type: "group", meaning: "`message.chat.type` of a message in a group." },
    { type: "supergroup", meaning: "`message.chat.type` of a message in a large group." },
    { type: "channel", meaning: "`channel_post.chat.type` of a post in a channel." },
  ],
  pitfalls: [
    "An update has no type: it is told by which field it holds, such as message, edited_message or callback_query. `allowed_updates` of setWebhook says which are sent.",
    "The token is sent as it is and signs nothing: the relay may write records and call URLs; more needs `trustUnsignedEvents`.",
    "The port of the receiver URL must be 443, 80, 88 or 8443.",
  ],
  docs: "https://core.telegram.org/bots/api#setwebhook",
};
