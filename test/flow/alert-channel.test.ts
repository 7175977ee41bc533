/** Alert channels over the API: what a save refuses, that secrets never come back, the audit, and the test of a channel. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { MINUTE_MS } from "../../src/base/limit.ts";
import { raiseAlert } from "../../src/platform/audit/alert.ts";
import { CHANNEL_KIND_NAMES } from "../../src/platform/channel/channel-kind.ts";
import { FakeCaller, type Reply } from "../kit/fake-caller.ts";
import { type RunningService, startRunningService } from "../kit/running-service.ts";

const SLACK = "https://hooks.slack.com/services/T012/B012/secretOfTheWebhook";
const WEBHOOK = "https://example.com/alerts?key=secretOfTheAddress";
const EXAMPLES: Readonly<Record<string, Record<string, string>>> = {
  slack: { url: SLACK },
  discord: { url: "https://discord.com/api/webhooks/123/secretOfDiscord" },
  telegram: { token: "123456789:secretOfTheTelegramBot12345", chatId: "-1001234567890" },
  ntfy: { topic: "secret-topic" },
  pagerduty: { routingKey: "0123456789abcdef0123456789abcdef" },
  webhook: { url: WEBHOOK },
};
const answer = (status: number, body = ""): Reply => ({ kind: "answered", ok: status < 300, status, body, headers: {} });

let running: RunningService;
let caller: FakeCaller;
beforeAll(async () => {
  caller = new FakeCaller();
  running = await startRunningService({ environments: ["development", "production"], ports: { caller } });
});
afterAll(() => running[Symbol.asyncDispose]());
beforeEach(async () => {
  caller.reply = () => answer(200);
  caller.requests.length = 0;
  for (const { id } of (await running.api("GET", "/alert-channels")).body.channels) await running.api("DELETE", `/alert-channels/${id}`);
});

const add = (body: Record<string, unknown>) => running.api("POST", "/alert-channels", body);
const made = async (kind = "slack") => (await add({ kind, fields: EXAMPLES[kind] })).body.channel;
const audited = async (action: string) => (await running.api("GET", `/audit?action=${action}`)).body.items;

describe("a new channel", () => {
  test.each([...CHANNEL_KIND_NAMES])("of kind %s is listed without its secrets", async (kind) => {
    const { status, body } = await add({ kind, name: "Ops", fields: EXAMPLES[kind] });
    expect(status).toBe(201);
    expect(body.channel).toMatchObject({ kind, name: "Ops", codes: null, triedAt: null, result: null, failingAt: null });
    const { kinds, channels } = (await running.api("GET", "/alert-channels")).body;
    expect(channels).toEqual([body.channel]);
    const { fields } = kinds.find((one: { kind: string }) => one.kind === kind);
    const secrets = fields.filter((field: { isSecret: boolean }) => field.isSecret).map(({ name }: { name: string }) => name);
    const shown = JSON.stringify([body.channel, channels, await audited("alert_channel.created")]);
    for (const name of secrets.filter((one: string) => EXAMPLES[kind]?.[one] !== undefined)) {
      expect(shown).not.toContain(EXAMPLES[kind]?.[name] as string);
      expect(body.channel.fingerprints[name]).toMatch(/^hmac:[0-9a-f]{16}$/);
    }
    expect(body.signingSecret === null).toBe(kind !== "webhook");
    const stored = await running.rows<{ text: string; secret: Uint8Array }>("SELECT fields || fingerprints AS text, secret FROM alert_channel");
    const rows = stored.map(({ text, secret }) => text + Buffer.from(secret).toString("latin1")).join();
    for (const name of secrets) if (EXAMPLES[kind]?.[name] !== undefined) expect(rows).not.toContain(EXAMPLES[kind]?.[name] as string);
  });

  test.each([
    ["no address", { kind: "slack", fields: {} }, "`fields.url` is missing, and Slack needs its Webhook URL."],
    [
      "an address of another service",
      { kind: "slack", fields: { url: "https://evil.example/x" } },
      "`fields.url` is not a valid Webhook URL of Slack",
    ],
    [
      "a server with a password, which every viewer would see",
      { kind: "ntfy", fields: { server: "https://ann:pw@ntfy.example.com", topic: "t" } },
      "`fields.server` is not a valid Server of ntfy",
    ],
    [
      "a server with a token",
      { kind: "ntfy", fields: { server: "https://ntfy.example.com/?auth=QmVhcmVy", topic: "t" } },
      "`fields.server` is not a valid Server of ntfy",
    ],
    [
      "an address that only begins alike",
      { kind: "discord", fields: { url: "https://discord.com.evil.example/api/webhooks/1/x" } },
      "`fields.url` is not a valid Webhook URL",
    ],
    ["a field of another kind", { kind: "slack", fields: { url: SLACK, token: "x" } }, "`fields.token` is no field of Slack: its fields are url."],
    ["a token with a path", { kind: "telegram", fields: { token: "1/../x", chatId: "1" } }, "`fields.token` is not a valid Bot token"],
    ["plain http", { kind: "webhook", fields: { url: "http://example.com/" } }, "`fields.url` is refused: url is plain http"],
    ["an IP address", { kind: "webhook", fields: { url: "https://10.0.0.1/" } }, "`fields.url` is refused: url names an IP address"],
    [
      "a password in the address",
      { kind: "webhook", fields: { url: "https://a:b@example.com/" } },
      "`fields.url` is refused: url contains a user name",
    ],
    [
      "the service itself",
      { kind: "webhook", fields: { url: "https://relay.example.test/x" } },
      "`fields.url` is refused: url is this service's own host",
    ],
    [
      "a private name",
      { kind: "ntfy", fields: { server: "https://ntfy.lan", topic: "x" } },
      "`fields.server` names a private host, and Relay calls only public ones",
    ],
    ["a name of two lines", { kind: "slack", name: "a\nb", fields: EXAMPLES.slack }, "`name` holds a newline or a tab"],
    ["an empty name", { kind: "slack", name: " ", fields: EXAMPLES.slack }, "`name` is empty or longer than 60 characters"],
    ["an unknown kind", { kind: "pager", fields: {} }, "kind"],
    ["an unknown code", { kind: "slack", fields: EXAMPLES.slack, codes: ["relay_fails"] }, "codes"],
    ["no code", { kind: "slack", fields: EXAMPLES.slack, codes: [] }, "codes"],
  ])("with %s is refused", async (_, body, message) => {
    const refused = await add(body);
    expect([refused.status, refused.body.code]).toEqual([400, "invalid_input"]);
    expect(refused.body.message).toContain(message);
    expect((await running.api("GET", "/alert-channels")).body.channels).toEqual([]);
  });

  test("beyond twenty is refused", async () => {
    for (let nth = 0; nth < 20; nth++) expect((await add({ kind: "slack", fields: EXAMPLES.slack })).status).toBe(201);
    const { status, body } = await add({ kind: "slack", fields: EXAMPLES.slack });
    expect([status, body.message]).toEqual([400, "The environment has 20 alert channels, which is the limit: remove one first."]);
  });
});

describe("a change", () => {
  test("keeps what it leaves out, and the secret that signs", async () => {
    const before = await made("webhook");
    const { status, body } = await running.api("PUT", `/alert-channels/${before.id}`, { name: "On call", codes: ["relay_failed"] });
    expect([status, body.channel]).toEqual([200, { ...before, name: "On call", codes: ["relay_failed"] }]);
    const moved = (await running.api("PUT", `/alert-channels/${before.id}`, { fields: { url: "https://example.com/other" }, codes: null })).body
      .channel;
    expect(moved.codes).toBeNull();
    expect(moved.fingerprints.signingSecret).toBe(before.fingerprints.signingSecret);
    expect(moved.fingerprints.url).not.toBe(before.fingerprints.url);
    expect(JSON.stringify(await audited("alert_channel.changed"))).not.toContain("example.com");
  });

  test("removes an optional field with an empty text", async () => {
    const { channel } = (await add({ kind: "ntfy", fields: { topic: "x", token: "tk_abcdefghij", server: "https://ntfy.example.com" } })).body;
    const after = (await running.api("PUT", `/alert-channels/${channel.id}`, { fields: { token: "", server: "" } })).body.channel;
    expect([after.fields, Object.keys(after.fingerprints)]).toEqual([{ server: "https://ntfy.sh" }, ["topic"]]);
  });

  test.each(["PUT", "POST", "DELETE"])("of a channel of another environment is not found with %s", async (method) => {
    const { id } = await made();
    const path = `/alert-channels/${id}${method === "POST" ? "/test" : ""}`;
    const { status } = await running.api(method, path, method === "PUT" ? {} : undefined, "production");
    expect(status).toBe(404);
  });
});

describe("a test", () => {
  test("sends a message now and returns the answer of the service", async () => {
    const { id } = await made();
    const { body } = await running.api("POST", `/alert-channels/${id}/test`);
    expect(body).toEqual({ ok: true, message: "Slack answered 200." });
    expect(caller.requests.map(({ url, local }) => [url, local])).toEqual([[SLACK, false]]);
    expect(caller.requests[0]?.body).toContain("test of the alert channel Slack");
    caller.reply = () => answer(404, "no_service");
    const failed = (await running.api("POST", `/alert-channels/${id}/test`)).body;
    expect(failed.ok).toBe(false);
    expect(failed.message).toStartWith("Slack answered 404 (no_service): this address does not exist any more");
    expect((await running.api("GET", "/alert-channels")).body.channels[0]).toMatchObject({ result: failed.message, failingAt: null });
    expect((await running.api("GET", "/problems")).body.items).toEqual([]);
    expect((await audited("alert_channel.tested")).length).toBeGreaterThanOrEqual(2);
  });

  test("opens and resolves an incident of PagerDuty", async () => {
    const { id } = await made("pagerduty");
    await running.api("POST", `/alert-channels/${id}/test`);
    expect(caller.requests.map(({ body }) => JSON.parse(body).event_action)).toEqual(["trigger", "resolve"]);
  });

  test("that succeeds resolves the problem of the channel", async () => {
    const { id } = await made();
    caller.reply = () => answer(410, "channel_is_archived");
    const rows = await running.rows<{ id: number }>("SELECT id FROM environment WHERE name = 'development'");
    const alert = {
      environmentId: Number(rows[0]?.id),
      code: "relay_failed",
      target: "relay:orders",
      message: "It died.",
      nowMs: running.clock.now(),
    } as const;
    await running.service.store.write("app", (tx) => raiseAlert(tx, alert));
    await running.clock.advance(3 * MINUTE_MS);
    const open = async () =>
      (await running.api("GET", "/problems")).body.items.map(({ code, target }: { code: string; target: string }) => [code, target]);
    expect(await open()).toEqual([["alert_channel_failing", `channel:${id}`]]);
    const { needs } = (await running.api("GET", "/overview")).body;
    expect(needs.map(({ code }: { code: string }) => code)).toContain("alert_channel_failing");
    caller.reply = () => answer(200);
    await running.api("POST", `/alert-channels/${id}/test`);
    expect(await open()).toEqual([]);
    await running.clock.advance(2 * MINUTE_MS);
    expect(caller.requests.at(-1)?.body).toContain("orders: dead events");
  });
});
