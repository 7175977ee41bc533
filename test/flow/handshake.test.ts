/**
 * Tests registration handshakes in the running service: each is checked, answered, counted and listed with the requests, and never becomes an event.
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { createHmac, generateKeyPairSync, sign } from "node:crypto";
import type { ServerResponse } from "node:http";
import { HTTPModuleFunctions, verifySlackRequest } from "@slack/bolt";
import { InteractionResponseType, verifyKey } from "discord-interactions";
import { receiverDefinition } from "../kit/relay-definition.ts";
import { APP, type RunningService, startRunningService } from "../kit/running-service.ts";
import { START_MS } from "../kit/virtual-clock.ts";

const SECRET = "Qk7bXFQsq4OKAPhAIVqsHMpkNhzCwRnS";
const BEFORE = "earlierSecretOfTwentyFour1";
const NOW = String(START_MS / 1000);
const pair = generateKeyPairSync("ed25519");
const publicKey = pair.publicKey.export({ format: "pem", type: "spki" }) as string;
const mac = (text: string, key = SECRET) => createHmac("sha256", key).update(text).digest("hex");

const PLAIN = { scheme: "signature", header: "x-hub-signature-256", signatureKey: "sha256" };
const CHAT = {
  scheme: "signature",
  header: "x-slack-signature",
  signatureKey: "v0",
  timestampHeader: "x-slack-request-timestamp",
  signedPayload: "v0:{timestamp}:{body}",
};
const CURVE = {
  scheme: "signature",
  algorithm: "ed25519",
  header: "x-signature-ed25519",
  timestampHeader: "x-signature-timestamp",
  signedPayload: "{timestamp}{body}",
};
const call_url = { type: "call_url", url: "https://example.com/" };
let running: RunningService;
let token = "";

const chat = (body: string, key = SECRET) => ({
  headers: { "content-type": "application/json", "x-slack-request-timestamp": NOW, "x-slack-signature": `v0=${mac(`v0:${NOW}:${body}`, key)}` },
  body,
});
const ping = (body: string) => {
  const signature = sign(null, Buffer.from(`${NOW}${body}`), pair.privateKey).toString("hex");
  return { headers: { "content-type": "application/json", "x-signature-timestamp": NOW, "x-signature-ed25519": signature }, body };
};

async function save(name: string, verify: Record<string, unknown>, secret: string) {
  const definition = receiverDefinition({ name, verify, map: {}, actions: [call_url] });
  const saved = await running.api("POST", "/relays", { definition, secret });
  if (saved.status !== 201) throw new Error(JSON.stringify(saved.body));
  return saved.body.relay;
}

/** Sends a GET or HEAD to the receiver URL. */
async function look(name: string, search = "", method: "GET" | "HEAD" = "GET") {
  const response = await fetch(`${running.service.url}/hooks/${APP}/${name}${search}`, { method, redirect: "manual" });
  return { status: response.status, text: await response.text(), headers: response.headers };
}

const calls = async (relay: string) =>
  (await running.api("GET", `/calls?relay=${relay}`)).body.items as { outcome: string; code: string; cause: string; count: number }[];
const meta = (verifyToken: string, challenge = "1158201444") =>
  `?${new URLSearchParams({ "hub.mode": "subscribe", "hub.verify_token": verifyToken, "hub.challenge": challenge })}`;

beforeAll(async () => {
  running = await startRunningService();
  const relay = await save("meta", { ...PLAIN, handshake: "meta" }, SECRET);
  token = relay.handshake.verifyToken;
  await save("slack", { ...CHAT, handshake: "slack" }, SECRET.toLowerCase());
  await save("zoom", { ...CHAT, handshake: "zoom" }, BEFORE);
  await save("discord", { ...CURVE, handshake: "discord" }, publicKey);
  await save("dropbox", { ...PLAIN, handshake: "dropbox" }, `${SECRET}1`);
  await save("probe", { scheme: "shared_token", handshake: "probe" }, `${SECRET}2`);
  await save("plain", PLAIN, `${SECRET}3`);
});
afterAll(async () => {
  expect(await running.rows("SELECT 1 FROM event")).toEqual([]);
  await running[Symbol.asyncDispose]();
});

/** Expects headers with which no browser executes the text. */
function expectText(headers: Headers, type = "text/plain; charset=utf-8"): void {
  expect(headers.get("content-type")).toBe(type);
  expect(headers.get("x-content-type-options")).toBe("nosniff");
  expect(headers.get("content-security-policy")).toBe("default-src 'none'");
}

test("meta: the relay's page shows its verify token, and only a request with it gets the challenge back", async () => {
  expect(token).toMatch(/^vt_[A-Za-z0-9_-]{32}$/);
  const shown = (await running.api("GET", "/relays/meta")).body.relay.handshake;
  expect(shown).toEqual({ name: "meta", verifyToken: token, message: expect.stringContaining("verify token") });
  const answered = await look("meta", meta(token));
  expect([answered.status, answered.text]).toEqual([200, "1158201444"]);
  expectText(answered.headers);
  for (const search of [meta("vt_other"), meta(token, "<script>"), `${meta(token)}&hub.challenge=2`, `${meta(token)}&x=${"x".repeat(3_000)}`]) {
    const refused = await look("meta", search);
    expect(refused.status).toBe(403);
    expect(refused.text).toContain("handshake_refused");
    expect(refused.text).not.toContain("<script>");
  }
  const [refused, ...rest] = await calls("meta");
  expect(refused).toMatchObject({
    outcome: "refused",
    code: "handshake_refused",
    cause: expect.stringContaining("Meta's challenge was not answered"),
  });
  expect(rest.at(-1)).toMatchObject({ outcome: "answered", code: "handshake", cause: "Meta's challenge was answered" });
  expect(JSON.stringify(await calls("meta"))).not.toContain(token);
});

test("slack: url_verification with a signature that Slack's library accepts gets the library's answer", async () => {
  const body = JSON.stringify({ token: "x", challenge: "3eZbrw1aBm2rZgRNFdxV2595E9CY3gm", type: "url_verification" });
  const sent = chat(body, SECRET.toLowerCase());
  const { "x-slack-signature": signature = "", "x-slack-request-timestamp": at = "" } = sent.headers as Record<string, string>;
  verifySlackRequest({
    signingSecret: SECRET.toLowerCase(),
    body,
    headers: { "x-slack-signature": signature, "x-slack-request-timestamp": Number(at) },
    nowMilliseconds: START_MS,
  });
  let theirs = "";
  const response = { writeHead: () => undefined, end: (text: string) => (theirs = text) };
  HTTPModuleFunctions.buildUrlVerificationResponse(response as unknown as ServerResponse, JSON.parse(body));
  const answered = await running.hook("slack", sent);
  expect(answered.status).toBe(200);
  expect(answered.body).toBe(JSON.parse(theirs).challenge);
  expectText(answered.headers);
  const forged = await running.hook("slack", chat(body, BEFORE));
  expect([forged.status, forged.body.code]).toEqual([401, "bad_signature"]);
  await running.clock.advance(1);
  const odd = await running.hook("slack", chat('{"type":"url_verification","challenge":"<b>"}', SECRET.toLowerCase()));
  expect([odd.status, odd.body.code]).toEqual([403, "handshake_refused"]);
  expect((await calls("slack")).map(({ outcome, code }) => `${outcome} ${code}`)).toEqual([
    "refused handshake_refused",
    "refused bad_signature",
    "answered handshake",
  ]);
});

test("zoom: the token is signed with the secret that verified the request, also with a secret in its overlap", async () => {
  const body = JSON.stringify({ event: "endpoint.url_validation", payload: { plainToken: "qgg8vlvZRS6UYooatFL8Aw" } });
  const signed = (key: string) => ({ plainToken: "qgg8vlvZRS6UYooatFL8Aw", encryptedToken: mac("qgg8vlvZRS6UYooatFL8Aw", key) });
  expect((await running.hook("zoom", chat(body, BEFORE))).body).toEqual(signed(BEFORE));
  await running.api("PUT", "/relays/zoom/secret", { value: `${SECRET}4`, overlapSeconds: 3_600 });
  const answered = await running.hook("zoom", chat(body, `${SECRET}4`));
  expect(answered.body).toEqual(signed(`${SECRET}4`));
  expectText(answered.headers, "application/json");
  expect((await running.hook("zoom", chat(body, BEFORE))).body).toEqual(signed(BEFORE));
  expect((await running.hook("zoom", chat(body, SECRET))).status).toBe(401);
});

test("discord: answers a ping with a valid signature, and rejects an invalid one", async () => {
  const asked = ping('{"type":1}');
  const { "x-signature-ed25519": signature = "", "x-signature-timestamp": at = "" } = asked.headers;
  const { x: key = "" } = pair.publicKey.export({ format: "jwk" });
  expect(await verifyKey(asked.body, signature, at, Buffer.from(key, "base64url").toString("hex"))).toBe(true);
  expect((await running.hook("discord", asked)).body).toEqual({ type: InteractionResponseType.PONG });
  expect((await running.hook("discord", ping('{"version":1,"type":0}'))).status).toBe(204);
  expect((await running.hook("discord", { ...ping('{"type":1}'), body: '{"type":1 }' })).status).toBe(401);
});

test("dropbox and probes: GET and HEAD get an answer", async () => {
  const echoed = await look("dropbox", "?challenge=dBmx8");
  expect([echoed.status, echoed.text]).toEqual([200, "dBmx8"]);
  expectText(echoed.headers);
  expect((await look("dropbox", "?challenge=%3Cb%3E")).status).toBe(403);
  for (const method of ["GET", "HEAD"] as const) {
    const probed = await look("probe", "", method);
    expect([probed.status, probed.text]).toEqual([200, ""]);
  }
});

test("a relay without a handshake answers GET and HEAD like an unknown receiver", async () => {
  for (const search of ["", "?challenge=a", meta(token)]) {
    const there = await look("plain", search);
    const nowhere = await look("nobody", search);
    expect([there.status, there.text]).toEqual([nowhere.status, nowhere.text]);
    expect(there.status).toBe(405);
    expect((await look("plain", search, "HEAD")).status).toBe((await look("nobody", search, "HEAD")).status);
  }
  expect((await look("dropbox")).status).toBe(405);
  expect(await calls("plain")).toEqual([]);
});

test("an address over its limit is rejected with any token, and the request list says so", async () => {
  await running.clock.advance(120_000);
  for (let at = 0; at < 60; at++) await look("meta", meta("vt_guess"));
  const over = await look("meta", meta(token));
  expect([over.status, JSON.parse(over.text).code]).toEqual([429, "source_capped"]);
  expect((await calls("meta"))[0]).toMatchObject({ outcome: "refused", code: "source_capped" });
});

test("a handshake counts as no request in the funnel, and the Test tab shows its step", async () => {
  const funnel = (await running.api("GET", "/relays/probe/funnel")).body.funnel;
  expect(funnel.boxes[0]).toMatchObject({ step: "calls", came: 0 });
  const asked = { body: '{"type":1}' };
  const { steps } =
    (await running.api("POST", "/relays/discord/explain", asked)).body.explanation ??
    (await running.api("POST", "/relays/discord/explain", asked)).body;
  expect(steps.find((one: { step: string }) => one.step === "handshake")).toMatchObject({ outcome: "stops" });
});
