/**
 * Alert channels over real connections: the bytes that arrive, a redirect, private addresses, a service that hangs or answers without an end. A canary
 * at a private address must count no connection, and no secret may appear in a result or the log.
 */
import { afterAll, beforeAll, beforeEach, expect, test } from "bun:test";
import { createServer, type Server } from "node:net";
import { CALL_TIMEOUT_MS, MINUTE_MS } from "../../src/base/limit.ts";
import { raiseAlert } from "../../src/platform/audit/alert.ts";
import { createCaller } from "../../src/platform/outbound/caller.ts";
import { signNotice } from "../../src/platform/outbound/notice-signature.ts";
import { makeAuthority } from "../kit/certificate.ts";
import { poll } from "../kit/patience.ts";
import { type RunningService, startRunningService } from "../kit/running-service.ts";
import { VirtualClock } from "../kit/virtual-clock.ts";

interface Arrived {
  url: string;
  headers: Headers;
  body: string;
}

let running: RunningService;
let canary: Server;
let connections = 0;
let canaryPort = 0;
let arrived: Arrived[] = [];
let respond: () => Response | Promise<Response>;
const callClock = new VirtualClock(Date.UTC(2026, 0, 15, 12));
const authority = makeAuthority("Channels");
const sink = Bun.serve({
  port: 0,
  hostname: "127.0.0.1",
  tls: authority.issue(["sink.test"]),
  async fetch(request) {
    arrived.push({ url: request.url, headers: request.headers, body: await request.text() });
    return await respond();
  },
});

beforeAll(async () => {
  canary = createServer((socket) => {
    connections += 1;
    socket.destroy();
  });
  await new Promise<void>((resolve) => canary.listen(0, "127.0.0.1", resolve));
  const address = canary.address();
  canaryPort = typeof address === "object" && address !== null ? address.port : 0;
  const addresses: Readonly<Record<string, string>> = {
    "sink.test": "127.0.0.1",
    "private.test": "127.0.0.1",
    "ten.test": "10.0.0.1",
    "metadata.test": "169.254.169.254",
  };
  const caller = createCaller({
    concurrency: 8,
    ownHosts: () => [],
    allowPrivate: ["sink.test"],
    clock: callClock,
    lookup: async (host) => (Object.hasOwn(addresses, host) ? [addresses[host] ?? ""] : []),
    certificateAuthorities: [authority.cert],
  });
  running = await startRunningService({ ports: { caller } });
});
afterAll(async () => {
  await running[Symbol.asyncDispose]();
  await sink.stop(true);
  canary.close();
});
beforeEach(() => {
  arrived = [];
  respond = () => new Response(null, { status: 204 });
});

async function add(kind: string, fields: Record<string, string>): Promise<{ id: string; signingSecret: string | null }> {
  const { status, body } = await running.api("POST", "/alert-channels", { kind, fields });
  expect(status).toBe(201);
  return { id: body.channel.id, signingSecret: body.signingSecret };
}

async function tried(kind: string, fields: Record<string, string>): Promise<{ ok: boolean; message: string }> {
  const { id } = await add(kind, fields);
  const { body } = await running.api("POST", `/alert-channels/${id}/test`);
  await running.api("DELETE", `/alert-channels/${id}`);
  return body;
}

const at = (path: string, host = "sink.test", port = sink.port): string => `https://${host}:${port}${path}`;

test("a webhook gets JSON with both kinds of signatures", async () => {
  const { id, signingSecret } = await add("webhook", { url: at("/alerts?key=secretOfTheQuery") });
  expect((await running.api("POST", `/alert-channels/${id}/test`)).body).toEqual({ ok: true, message: "Webhook answered 204." });
  await running.api("DELETE", `/alert-channels/${id}`);
  const [request] = arrived;
  expect(request?.url).toEndWith("/alerts?key=secretOfTheQuery");
  expect(request?.headers.get("content-type")).toBe("application/json");
  expect(request?.headers.get("x-service-signature")).toBe(signNotice(signingSecret ?? "", request?.body ?? "", callClock.now()));
  expect(request?.headers.get("webhook-id")).toBe(JSON.parse(request?.body ?? "{}").id);
  expect(request?.headers.get("webhook-signature")).toMatch(/^v1,/);
});

test("ntfy gets its token and no signature", async () => {
  expect(await tried("ntfy", { server: at(""), topic: "relay-alerts", token: "tk_abcdefghij" })).toEqual({ ok: true, message: "ntfy answered 204." });
  const [request] = arrived;
  expect(request?.headers.get("authorization")).toBe("Bearer tk_abcdefghij");
  expect([...(request?.headers.keys() ?? [])].filter((name) => name.includes("signature") || name.startsWith("webhook-"))).toEqual([]);
  expect(JSON.parse(request?.body ?? "{}")).toMatchObject({ topic: "relay-alerts", priority: 4 });
});

test("a redirect to a private address is not followed", async () => {
  respond = () => Response.redirect(`http://127.0.0.1:${canaryPort}/`, 307);
  const { ok, message } = await tried("webhook", { url: at("/x") });
  expect([ok, message]).toEqual([false, "Webhook answered 307, a redirect, and Relay follows none: enter the address that it leads to."]);
});

test.each(["private.test", "ten.test", "metadata.test"])(
  "the name %s of a private address is not called, and the reason names the option",
  async (host) => {
    const { ok, message } = await tried("webhook", { url: at("/x", host, canaryPort) });
    expect(ok).toBe(false);
    expect(message).toContain("only public addresses are called");
    expect(message).toContain("--allow-private (RELAY_ALLOW_PRIVATE)");
  },
);

test("a service that does not answer ends with the timeout of a call", async () => {
  let release = (): void => undefined;
  respond = () =>
    new Promise((resolve) => {
      release = () => resolve(new Response("late"));
    });
  const ended = tried("webhook", { url: at("/x") });
  await poll(
    () => arrived.length,
    (count) => count === 1,
  );
  await callClock.advance(CALL_TIMEOUT_MS);
  expect((await ended).message).toContain("did not answer within 10 seconds");
  release();
});

test("a huge response becomes one short line", async () => {
  respond = () => new Response(`bad\u0007 <b>${"x".repeat(1_000_000)}`, { status: 400 });
  const { message } = await tried("webhook", { url: at("/x") });
  expect(message.length).toBeLessThan(400);
  expect(message).not.toContain("\u0007");
});

test("an alert reaches the service, and nothing secret reaches the log", async () => {
  const { id } = await add("webhook", { url: at("/alerts?key=secretOfTheQuery") });
  const [environment] = await running.rows<{ id: number }>("SELECT id FROM environment WHERE name = 'development'");
  const alert = {
    environmentId: Number(environment?.id),
    code: "events_dropped",
    target: "relay:orders",
    message: "quoted 4711",
    nowMs: running.clock.now(),
  } as const;
  await running.service.store.write("app", (tx) => raiseAlert(tx, alert));
  await running.clock.advance(2 * MINUTE_MS);
  await poll(
    async () => (await running.api("GET", "/alert-channels")).body.channels[0]?.result,
    (result) => result === "Webhook answered 204.",
  );
  expect(JSON.parse(arrived[0]?.body ?? "{}").alerts).toMatchObject([{ state: "open", code: "events_dropped", target: "relay:orders" }]);
  expect(arrived[0]?.body).not.toContain("4711");
  expect(running.logged.join("\n")).not.toContain("secretOfTheQuery");
  await running.api("DELETE", `/alert-channels/${id}`);
});

test("the canary counted no connection", () => {
  expect(connections).toBe(0);
});
