/**
 * The kinds of alert channels as data: the fields that a user gives, the request, and the meaning of each status. A kind has no code.
 * `{{name}}` in a template is a field or a value of the message; channel-request.ts lists these and leaves out what has no value.
 */
import type { Json } from "../../base/json.ts";

export interface ChannelField {
  name: string;
  title: string;
  /** The place where the user finds it. */
  help: string;
  /** True if it is sealed and never shown again. */
  isSecret: boolean;
  /** The value if the user gives none. null: the field stays empty. Absent: the field is required. */
  otherwise?: string | null;
  /** The pattern that a value must match completely. */
  pattern: string;
  example: string;
}

/** Statuses from the first to the last. */
type Statuses = readonly (readonly [from: number, to: number])[];

/** `ok`: accepted. `wait`: too many requests. `wrong`: a repetition gets the same answer. `retry`: a later repetition may succeed. */
export type Meaning = "ok" | "wait" | "wrong" | "retry";

export interface ChannelKind {
  title: string;
  fields: readonly ChannelField[];
  url: string;
  /** Headers next to `Content-Type: application/json`. */
  headers: Readonly<Record<string, string>>;
  /** The body of a message with an open alert. */
  open: Json;
  /** The body of a message with resolved alerts only. */
  resolved: Json;
  /** The characters to escape in `{{title}}` and `{{text}}`. */
  escape: "none" | "slack" | "discord" | "html";
  /** The most bytes of `{{text}}`, escaped. With title and link it fits the service's limit. */
  maxTextBytes: number;
  /** True if a request holds one alert. Otherwise it holds as many as fit. */
  isSingle: boolean;
  /** The most requests of a minute, below the service's limit. */
  perMinute: number;
  /** The statuses of each meaning. Every other status means `retry`. */
  answers: Readonly<Record<Exclude<Meaning, "retry">, Statuses>>;
  /** The path of the reason in a JSON response, such as `error.message`. null: the response is a text. */
  reasonPath: string | null;
  /** The path of the seconds to wait in a JSON response. null: only the header Retry-After. */
  retryAfterPath: string | null;
  /** True if Relay signs the request as it signs notices. */
  signs: boolean;
}

/** Relay follows no redirect. 408 and 425 ask for a repetition. */
const WRONG: Statuses = [
  [300, 407],
  [409, 424],
  [426, 428],
  [430, 499],
];
const WAIT: Statuses = [[429, 429]];
const SUCCESS: Statuses = [[200, 299]];
const WEB_URL = "https?://\\S{1,1990}";

const SLACK: Json = {
  text: "{{title}}",
  blocks: [
    { type: "section", text: { type: "plain_text", text: "{{title}}", emoji: false } },
    { type: "section", text: { type: "plain_text", text: "{{text}}", emoji: false } },
    { type: "section", text: { type: "mrkdwn", text: "<{{link}}|Open in Relay>" } },
  ],
  unfurl_links: false,
};
const DISCORD: Json = {
  content: "**{{title}}**\n{{text}}\n<{{link}}>",
  allowed_mentions: { parse: [] },
};
const TELEGRAM: Json = {
  chat_id: "{{chatId}}",
  text: "<b>{{title}}</b>\n{{text}}\n{{link}}",
  parse_mode: "HTML",
  link_preview_options: { is_disabled: true },
};
const ntfy = (priority: number, tag: string): Json => ({
  topic: "{{topic}}",
  title: "{{title}}",
  message: "{{text}}",
  priority,
  tags: [tag],
  click: "{{link}}",
});
const WEBHOOK: Json = {
  id: "{{messageId}}",
  type: "relay.alerts",
  app: "{{app}}",
  environment: "{{environment}}",
  test: "{{test}}",
  title: "{{title}}",
  url: "{{link}}",
  alerts: "{{alerts}}",
};

export const CHANNEL_KINDS: Readonly<Record<string, ChannelKind>> = {
  slack: {
    title: "Slack",
    fields: [
      {
        name: "url",
        title: "Webhook URL",
        help: "In Slack, open your app under api.slack.com/apps, then Incoming Webhooks › Add New Webhook to Workspace, and choose the channel.",
        isSecret: true,
        pattern: "https://hooks\\.slack(-gov)?\\.com/\\S{1,900}",
        example: "https://hooks.slack.com/services/T000/B000/XXXX",
      },
    ],
    url: "{{url}}",
    headers: {},
    open: SLACK,
    resolved: SLACK,
    escape: "slack",
    maxTextBytes: 2_800,
    isSingle: false,
    perMinute: 10,
    answers: { ok: SUCCESS, wait: WAIT, wrong: WRONG },
    reasonPath: null,
    retryAfterPath: null,
    signs: false,
  },
  discord: {
    title: "Discord",
    fields: [
      {
        name: "url",
        title: "Webhook URL",
        help: "In Discord, open Server Settings › Integrations › Webhooks › New Webhook, choose the channel, then Copy Webhook URL.",
        isSecret: true,
        pattern: "https://(?:(?:canary|ptb)\\.)?discord(?:app)?\\.com/api/(?:v\\d+/)?webhooks/\\S{1,900}",
        example: "https://discord.com/api/webhooks/1234567890/XXXX",
      },
    ],
    url: "{{url}}",
    headers: {},
    open: DISCORD,
    resolved: DISCORD,
    escape: "discord",
    maxTextBytes: 1_300,
    isSingle: false,
    perMinute: 10,
    answers: { ok: SUCCESS, wait: WAIT, wrong: WRONG },
    reasonPath: "message",
    retryAfterPath: "retry_after",
    signs: false,
  },
  telegram: {
    title: "Telegram",
    fields: [
      {
        name: "token",
        title: "Bot token",
        help: "Create a bot with @BotFather (/newbot), which then shows the token. Add the bot to the group or channel.",
        isSecret: true,
        pattern: "\\d{5,20}:[A-Za-z0-9_-]{20,100}",
        example: "123456789:AAxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
      },
      {
        name: "chatId",
        title: "Chat ID",
        help: "The number of the chat, which is negative for a group, or the @name of a public channel. The bot's getUpdates shows the number after a message.",
        isSecret: false,
        pattern: "-?\\d{1,20}|@[A-Za-z0-9_]{4,64}",
        example: "-1001234567890",
      },
    ],
    url: "https://api.telegram.org/bot{{token}}/sendMessage",
    headers: {},
    open: TELEGRAM,
    resolved: TELEGRAM,
    escape: "html",
    maxTextBytes: 2_800,
    isSingle: false,
    perMinute: 10,
    answers: { ok: SUCCESS, wait: WAIT, wrong: WRONG },
    reasonPath: "description",
    retryAfterPath: "parameters.retry_after",
    signs: false,
  },
  ntfy: {
    title: "ntfy",
    fields: [
      {
        name: "server",
        title: "Server",
        help: "The address of your ntfy server. Leave it empty for ntfy.sh.",
        isSecret: false,
        otherwise: "https://ntfy.sh",
        // The field is not secret, so it has no password and no query, which could hold a token.
        pattern: "https?://[^\\s?#@]{1,1990}",
        example: "https://ntfy.example.com",
      },
      {
        name: "topic",
        title: "Topic",
        help: "The topic that you subscribe to. On a server without access control, everyone who knows it reads the alerts.",
        isSecret: true,
        pattern: "[A-Za-z0-9_-]{1,64}",
        example: "relay-alerts-7Zq2",
      },
      {
        name: "token",
        title: "Access token",
        help: "For a protected topic: Account › Access tokens in the ntfy web app.",
        isSecret: true,
        otherwise: null,
        pattern: "tk_[A-Za-z0-9]{8,64}",
        example: "tk_AgQdq7mVBoFD37zQVN29RhuMzNIz2",
      },
    ],
    url: "{{server}}",
    headers: { authorization: "Bearer {{token}}" },
    open: ntfy(4, "warning"),
    resolved: ntfy(3, "white_check_mark"),
    escape: "none",
    maxTextBytes: 3_500,
    isSingle: false,
    perMinute: 10,
    answers: { ok: SUCCESS, wait: WAIT, wrong: WRONG },
    reasonPath: "error",
    retryAfterPath: null,
    signs: false,
  },
  pagerduty: {
    title: "PagerDuty",
    fields: [
      {
        name: "routingKey",
        title: "Integration key",
        help: "In PagerDuty, open the service, then Integrations › Add an integration › Events API V2, and copy the integration key.",
        isSecret: true,
        pattern: "[A-Za-z0-9]{32}",
        example: "0123456789abcdef0123456789abcdef",
      },
      {
        name: "host",
        title: "Host",
        help: "Leave it empty for the US region. In the EU region it is events.eu.pagerduty.com.",
        isSecret: false,
        otherwise: "events.pagerduty.com",
        pattern: "events\\.(eu\\.)?pagerduty\\.com",
        example: "events.eu.pagerduty.com",
      },
    ],
    url: "https://{{host}}/v2/enqueue",
    headers: {},
    open: {
      routing_key: "{{routingKey}}",
      event_action: "trigger",
      dedup_key: "{{dedupKey}}",
      client: "Relay Service",
      client_url: "{{link}}",
      payload: {
        summary: "{{title}}",
        source: "{{app}} {{environment}}",
        severity: "error",
        timestamp: "{{at}}",
        component: "{{target}}",
        class: "{{code}}",
        custom_details: { description: "{{text}}" },
      },
      links: [{ href: "{{link}}", text: "Open in Relay" }],
    },
    resolved: {
      routing_key: "{{routingKey}}",
      event_action: "resolve",
      dedup_key: "{{dedupKey}}",
    },
    escape: "none",
    maxTextBytes: 4_000,
    isSingle: true,
    perMinute: 30,
    answers: { ok: SUCCESS, wait: WAIT, wrong: WRONG },
    reasonPath: "message",
    retryAfterPath: null,
    signs: false,
  },
  webhook: {
    title: "Webhook",
    fields: [
      {
        name: "url",
        title: "URL",
        help: "An https address of yours. It gets a JSON body, signed as call_url signs its notices.",
        isSecret: true,
        pattern: WEB_URL,
        example: "https://example.com/relay-alerts",
      },
    ],
    url: "{{url}}",
    headers: {},
    open: WEBHOOK,
    resolved: WEBHOOK,
    escape: "none",
    maxTextBytes: 20_000,
    isSingle: false,
    perMinute: 10,
    answers: { ok: SUCCESS, wait: WAIT, wrong: WRONG },
    reasonPath: null,
    retryAfterPath: null,
    signs: true,
  },
};

export const CHANNEL_KIND_NAMES = Object.keys(CHANNEL_KINDS);
