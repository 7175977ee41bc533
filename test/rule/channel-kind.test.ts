/**
 * The requests of each kind of alert channel against the format that its service documents: Slack incoming webhooks and Block Kit, Discord Execute
 * Webhook, Telegram sendMessage, ntfy JSON publishing, PagerDuty Events API v2, and the signed webhook of Relay itself.
 */
import { describe, expect, test } from "bun:test";
import { type TSchema, Type } from "typebox";
import { Value } from "typebox/value";
import { CHANNEL_KIND_NAMES, CHANNEL_KINDS, type ChannelKind, type Meaning } from "../../src/platform/channel/channel-kind.ts";
import { type ChannelAlert, type ChannelMessage, countFitting, makeRequest, readResult } from "../../src/platform/channel/channel-request.ts";
import { START_MS } from "../kit/virtual-clock.ts";

const strict = { additionalProperties: false };
const plainText = (maxLength: number) =>
  Type.Object({ type: Type.Literal("plain_text"), text: Type.String({ minLength: 1, maxLength }), emoji: Type.Boolean() }, strict);
const at = Type.String({ pattern: "^2026-01-15T12:\\d\\d:\\d\\d\\.\\d{3}Z$" });
const link = Type.String({ pattern: "^https://relay\\.example\\.com/apps/app_test/development/(alerts|relays/.+)$" });
const ntfy = (priority: number) =>
  Type.Object(
    {
      topic: Type.Literal("relay-alerts"),
      title: Type.String({ maxLength: 250 }),
      message: Type.String({ minLength: 1, maxLength: 4096 }),
      priority: Type.Literal(priority),
      tags: Type.Array(Type.String()),
      click: link,
    },
    strict,
  );
const key = Type.String({ pattern: "^[A-Za-z0-9]{32}$" });
const dedup = Type.String({ minLength: 1, maxLength: 255 });
const webhook = Type.Object(
  {
    id: Type.String({ pattern: "^msg_[0-9a-f]{32}$" }),
    type: Type.Literal("relay.alerts"),
    app: Type.String(),
    environment: Type.Literal("development"),
    test: Type.Boolean(),
    title: Type.String(),
    url: link,
    alerts: Type.Array(
      Type.Object(
        {
          state: Type.Union([Type.Literal("open"), Type.Literal("resolved")]),
          code: Type.String(),
          target: Type.String(),
          title: Type.String(),
          count: Type.Integer(),
          at,
          lastAt: at,
          resolvedAt: Type.Union([at, Type.Null()]),
        },
        strict,
      ),
      { minItems: 1 },
    ),
  },
  strict,
);
const slack = Type.Object(
  {
    text: Type.String({ minLength: 1, maxLength: 3000 }),
    blocks: Type.Tuple([
      Type.Object({ type: Type.Literal("section"), text: plainText(3000) }, strict),
      Type.Object({ type: Type.Literal("section"), text: plainText(3000) }, strict),
      Type.Object(
        {
          type: Type.Literal("section"),
          text: Type.Object({ type: Type.Literal("mrkdwn"), text: Type.String({ pattern: "^<https://[^|<>]+\\|Open in Relay>$" }) }, strict),
        },
        strict,
      ),
    ]),
    unfurl_links: Type.Literal(false),
  },
  strict,
);
const discord = Type.Object(
  {
    content: Type.String({ minLength: 1, maxLength: 2000 }),
    allowed_mentions: Type.Object({ parse: Type.Array(Type.String(), { maxItems: 0 }) }, strict),
  },
  strict,
);
const telegram = Type.Object(
  {
    chat_id: Type.Literal("-100123"),
    text: Type.String({ minLength: 1, maxLength: 4096 }),
    parse_mode: Type.Literal("HTML"),
    link_preview_options: Type.Object({ is_disabled: Type.Literal(true) }, strict),
  },
  strict,
);
const trigger = Type.Object(
  {
    routing_key: key,
    event_action: Type.Literal("trigger"),
    dedup_key: dedup,
    client: Type.String(),
    client_url: link,
    payload: Type.Object(
      {
        summary: Type.String({ minLength: 1, maxLength: 1024 }),
        source: Type.String({ minLength: 1 }),
        severity: Type.Union(["critical", "error", "warning", "info"].map((word) => Type.Literal(word))),
        timestamp: at,
        component: Type.String(),
        class: Type.String(),
        custom_details: Type.Object({ description: Type.String() }, strict),
      },
      strict,
    ),
    links: Type.Array(Type.Object({ href: link, text: Type.String() }, strict)),
  },
  strict,
);
const resolve = Type.Object({ routing_key: key, event_action: Type.Literal("resolve"), dedup_key: dedup }, strict);

/** By kind: example values, the expected URL and headers, and the documented schemas of an open and of a resolved message. */
const FORMATS = {
  slack: {
    values: { url: "https://hooks.slack.com/services/T0/B0/x" },
    url: "https://hooks.slack.com/services/T0/B0/x",
    headers: {},
    open: slack,
    resolved: slack,
  },
  discord: {
    values: { url: "https://discord.com/api/webhooks/1/x" },
    url: "https://discord.com/api/webhooks/1/x",
    headers: {},
    open: discord,
    resolved: discord,
  },
  telegram: {
    values: { token: "12345:abcdefghijklmnopqrstuvwxyz", chatId: "-100123" },
    url: "https://api.telegram.org/bot12345:abcdefghijklmnopqrstuvwxyz/sendMessage",
    headers: {},
    open: telegram,
    resolved: telegram,
  },
  ntfy: {
    values: { server: "https://ntfy.example.com", topic: "relay-alerts", token: "tk_abcdefgh" },
    url: "https://ntfy.example.com",
    headers: { authorization: "Bearer tk_abcdefgh" },
    open: ntfy(4),
    resolved: ntfy(3),
  },
  pagerduty: {
    values: { routingKey: "0123456789abcdef0123456789abcdef", host: "events.pagerduty.com" },
    url: "https://events.pagerduty.com/v2/enqueue",
    headers: {},
    open: trigger,
    resolved: resolve,
  },
  webhook: {
    values: { url: "https://example.com/alerts?key=1", signingSecret: "whsec_c2VjcmV0" },
    url: "https://example.com/alerts?key=1",
    headers: undefined,
    open: webhook,
    resolved: webhook,
  },
} as const;
const KINDS = Object.entries(FORMATS).map(([name, format]) => ({ name, kind: CHANNEL_KINDS[name] as ChannelKind, ...format }));

function alertOf(changes: Partial<ChannelAlert> = {}): ChannelAlert {
  const time = new Date(START_MS).toISOString();
  return {
    state: "open",
    code: "relay_failed",
    target: "relay:orders",
    title: "orders: dead events, 3 times",
    text: "orders: dead events (relay_failed), 3 times\nAn event of the relay is dead.",
    count: 3,
    at: time,
    lastAt: time,
    resolvedAt: null,
    ...changes,
  };
}

const resolved = (changes: Partial<ChannelAlert> = {}): ChannelAlert =>
  alertOf({ state: "resolved", text: "Resolved: orders: dead events (relay_failed)", resolvedAt: new Date(START_MS).toISOString(), ...changes });

function messageOf(...alerts: ChannelAlert[]): ChannelMessage {
  return {
    id: `msg_${"0".repeat(32)}`,
    app: "Ada's Shop",
    appId: "app_test",
    environment: "development",
    isTest: false,
    link: "https://relay.example.com/apps/app_test/development/alerts",
    alerts,
  };
}

const bodyOf = ({ kind, values }: (typeof KINDS)[number], message: ChannelMessage) => JSON.parse(makeRequest(kind, values, message, false).body);
const faults = (schema: TSchema, body: unknown) => [...Value.Errors(schema, body)].map((error) => JSON.stringify(error));

test("every kind has a format here", () => {
  expect(Object.keys(FORMATS)).toEqual([...CHANNEL_KIND_NAMES]);
});

describe.each(KINDS)("$name", (row) => {
  const { kind, values, url, headers } = row;

  test("sends an open and a resolved alert in the documented format, to the documented address", () => {
    for (const [alert, schema] of [
      [alertOf(), row.open],
      [resolved(), row.resolved],
    ] as const) {
      const request = makeRequest(kind, values, messageOf(alert), false);
      expect(faults(schema, JSON.parse(request.body))).toEqual([]);
      expect([request.url, request.headers]).toEqual([url, headers as typeof request.headers]);
    }
  });

  test("says that an alert is resolved", () => {
    expect(JSON.stringify(bodyOf(row, messageOf(resolved())))).toMatch(/resolved?/i);
  });

  test("leaves out an optional field that has no value", () => {
    const required = Object.fromEntries(
      Object.entries(values).filter(([name]) => kind.fields.find((field) => field.name === name)?.otherwise !== null),
    );
    const request = makeRequest(kind, required, messageOf(alertOf()), false);
    expect(JSON.stringify(request)).not.toMatch(/\{\{|undefined|Bearer/);
    expect(faults(row.open, JSON.parse(request.body))).toEqual([]);
  });

  test("fits the service's limit with a huge alert and with many, in any writing", () => {
    for (const letter of ["x", "<", "*", "𝒳", "&", "\ud800"]) {
      const alerts = Array.from({ length: 50 }, () => alertOf({ text: letter.repeat(5_000), title: letter.repeat(5_000) }));
      const message = { ...messageOf(...alerts.slice(0, countFitting(kind, alerts))), app: letter.repeat(100) };
      expect(faults(row.open, JSON.parse(makeRequest(kind, values, message, false).body))).toEqual([]);
    }
    const small = Array.from({ length: 50 }, () => alertOf({ text: "abc" }));
    expect(countFitting(kind, small)).toBe(kind.isSingle ? 1 : 50);
  });

  test("never sends markup, a mention or a placeholder of a name", () => {
    const name = '<!channel> <@U1> @everyone {{token}} {{routingKey}} [x](https://evil.example) *b* `c` <b>"\\';
    const body = bodyOf(row, { ...messageOf(alertOf({ title: name, text: name, target: name })), app: name });
    const text = JSON.stringify(body);
    for (const secret of Object.values<string>(values).filter((value) => value.length > 20))
      expect(text.split(secret).length - 1).toBe(row.name === "pagerduty" ? 1 : 0);
    if (kind.escape === "slack" || kind.escape === "html") expect(text).not.toMatch(/<(!|@|b>\\")/);
    if (kind.escape === "discord") {
      expect(text).not.toMatch(/(?<!\\)@everyone|(?<!\\\\)\[x|(?<!\\\\)`c/);
      expect(body.allowed_mentions).toEqual({ parse: [] });
    }
  });

  test.each([
    [200, "ok"],
    [202, "ok"],
    [204, "ok"],
    [302, "wrong"],
    [400, "wrong"],
    [401, "wrong"],
    [403, "wrong"],
    [404, "wrong"],
    [408, "retry"],
    [410, "wrong"],
    [413, "wrong"],
    [425, "retry"],
    [429, "wait"],
    [500, "retry"],
    [503, "retry"],
  ] as const)("takes the status %d as %s", (status, meaning: Meaning) => {
    const outcome = { kind: "answered", ok: status < 300, status, body: "" } as const;
    const result = readResult(kind, outcome, { secrets: [], nowMs: START_MS });
    expect(result.meaning).toBe(meaning);
    expect(result.message).toStartWith(`${kind.title} answered ${status}`);
  });
});

describe("a response", () => {
  const read = (name: keyof typeof FORMATS, status: number, body: string, headers: Record<string, string> = {}, secrets: string[] = []) =>
    readResult(CHANNEL_KINDS[name] as ChannelKind, { kind: "answered", ok: status < 300, status, body, headers }, { secrets, nowMs: START_MS });
  const date = (seconds: number) => new Date(START_MS + seconds * 1_000).toUTCString();

  test.each([
    ["seconds in the header", read("slack", 429, "", { "retry-after": "30" }), 30_000],
    ["a date in the header", read("slack", 429, "", { "retry-after": date(90) }), 90_000],
    ["a date in the past", read("slack", 429, "", { "retry-after": date(-90) }), 0],
    ["more than an hour", read("slack", 503, "", { "retry-after": "86400" }), 3_600_000],
    ["nothing that can be read", read("slack", 429, "", { "retry-after": "soon" }), null],
    ["fractions in the body of Discord", read("discord", 429, '{"message":"You are being rate limited.","retry_after":0.65,"global":false}'), 650],
    [
      "the body of Telegram",
      read("telegram", 429, '{"ok":false,"error_code":429,"description":"Too Many Requests: retry after 17","parameters":{"retry_after":17}}'),
      17_000,
    ],
  ])("names %s as the time to wait", (_, { waitMs }, expected) => {
    expect(waitMs).toBe(expected);
  });

  test.each([
    ["slack", 404, "no_service", "Slack answered 404 (no_service): this address does not exist any more"],
    ["discord", 404, '{"message": "Unknown Webhook", "code": 10015}', "Discord answered 404 (Unknown Webhook): this address"],
    [
      "telegram",
      400,
      '{"ok":false,"description":"Bad Request: chat not found"}',
      "Telegram answered 400 (Bad Request: chat not found): correct the fields",
    ],
    ["ntfy", 403, '{"code":40301,"http":403,"error":"forbidden"}', "ntfy answered 403 (forbidden): correct"],
    ["pagerduty", 400, '{"status":"invalid event","message":"Event object is invalid"}', "PagerDuty answered 400 (Event object is invalid): correct"],
    ["webhook", 500, "<html><body>Oops</body></html>", "Webhook answered 500: Relay retries."],
    ["webhook", 301, "", "Webhook answered 301, a redirect, and Relay follows none"],
  ] as const)("of %s with %d and %s is explained", (name, status, body, expected) => {
    expect(read(name, status, body).message).toStartWith(expected);
  });

  test("is shown without a secret that the service repeats, on one short line", () => {
    const { message } = read("slack", 400, `bad token-1\nx ${"y".repeat(3_000)}`, {}, ["token-1"]);
    expect(message).toContain("bad … x");
    expect(message).not.toContain("token-1");
    expect(message.length).toBeLessThan(400);
  });

  test.each([
    ['{"message":"Route POST:/hooks/T0/pa%20ss-word?key=abcdefgh not found"}', "Route POST:… not found"],
    ["no route /hooks/T0/pa%20ss-word", "no route …"],
    ["https:\\/\\/example.com\\/hooks\\/T0\\/pa%20ss-word", "T0\\/…"],
    ["unknown hook pa ss-word of key abcdefgh", "unknown hook … of key …"],
  ])("is shown without a part of a secret address: %s", (body, shown) => {
    const { message } = read("webhook", 404, body, {}, ["https://example.com/hooks/T0/pa%20ss-word?key=abcdefgh"]);
    expect(message).toContain(shown);
    for (const part of ["ss-word", "abcdefgh"]) expect(message).not.toContain(part);
  });

  test("of a private address names the option that allows it", () => {
    const outcome = { kind: "refused", code: "private_address", message: "url's host ntfy.lan resolves to 10.0.0.1, a private address." } as const;
    const result = readResult(CHANNEL_KINDS.ntfy as ChannelKind, outcome, { secrets: [], nowMs: START_MS });
    expect([result.meaning, result.message]).toEqual(["wrong", expect.stringContaining("--allow-private (RELAY_ALLOW_PRIVATE)")]);
  });
});

test("a channel's field never has the name of a value of the message", () => {
  const names = ["title", "text", "link", "app", "environment", "test", "messageId", "alerts", "dedupKey", "at", "code", "target"];
  const taken = Object.values(CHANNEL_KINDS).flatMap(({ fields }) => fields.filter(({ name }) => names.includes(name)));
  expect(taken).toEqual([]);
});

test("each field's example matches its pattern", () => {
  for (const { fields } of Object.values(CHANNEL_KINDS))
    for (const { pattern, example } of fields) expect(example).toMatch(new RegExp(`^(?:${pattern})$`));
});
