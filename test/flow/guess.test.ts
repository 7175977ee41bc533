/**
 * Tests the guess of a relay from one request. The signed example of every known sender is guessed as that sender or by the same recipe, and requests of
 * unknown senders are guessed from their headers and bodies. Nothing is saved, and the secret is in no answer and no log.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { createHmac, generateKeyPairSync, type KeyObject, sign as signByKey } from "node:crypto";
import type { RequestGuess } from "../../src/insight/simulate/guess-request.ts";
import { checkDefinition } from "../../src/rules/relay/definition.ts";
import { SENDERS } from "../../src/rules/senders/registry.ts";
import type { Sender } from "../../src/rules/senders/sender.ts";
import { type RunningService, startRunningService } from "../kit/running-service.ts";
import { bodyOf, SIGNERS, secretOf } from "../kit/sender-signer.ts";

const URL = "https://relay.example.test/hooks/app_test/captured";
let running: RunningService;

beforeAll(async () => {
  running = await startRunningService();
});
afterAll(() => running[Symbol.asyncDispose]());

interface Sent {
  body: string;
  contentType?: string;
  headers?: Record<string, string>;
  search?: string;
  url?: string;
  secret?: string;
}

async function guess(sent: Sent): Promise<RequestGuess> {
  const { status, body } = await running.api("POST", "/relays/guess", sent);
  expect([status, body.message]).toEqual([200, undefined]);
  return body.guess;
}

/** The problems of the definition with an action, which is all that it lacks. */
function problemsOf({ definition }: RequestGuess): unknown {
  const actions = [{ type: "write_record", collection: "log", data: { a: "b" } }];
  const checked = checkDefinition({ ...definition, actions }, running.clock.now());
  return "problems" in checked ? checked.problems : [];
}

async function signExample(sender: Sender, nowMs = running.clock.now()): Promise<Sent & { headers: Record<string, string> }> {
  const { body, contentType } = bodyOf(sender.example);
  const signer = SIGNERS[sender.name];
  if (signer === undefined) throw new Error(`nothing signs as ${sender.name} does`);
  const signed = await signer.sign({ body, secret: secretOf(signer), nowMs, url: URL });
  return { body, contentType, url: URL, ...signed };
}

const plainVerify = ({ handshake: _, toleranceSeconds: __, ...verify }: Record<string, unknown>) => verify;

describe("the signed example of a known sender", () => {
  test.each(SENDERS.map((sender) => [sender.title, sender] as const))("%s", async (_title, sender) => {
    const sent = await signExample(sender);
    const signer = SIGNERS[sender.name];
    const secret = signer === undefined ? "" : secretOf(signer);
    const found = await guess({ ...sent, secret });
    expect({ sender: found.sender?.name, verify: plainVerify(found.verify.value) }).toEqual({
      sender: sender.name,
      verify: plainVerify(sender.verify),
    });
    expect([found.verify.verified, found.sender?.why.endsWith(".")]).toEqual([true, true]);
    expect(problemsOf(found)).toEqual([]);
    const trigger = found.definition.trigger as { map: Record<string, string> };
    expect(new Set(Object.values(trigger.map)).isSupersetOf(new Set(Object.values(sender.map)))).toBe(true);
    expect(found.eventType?.path).toBe(sender.map.event_type as string);
    expect(JSON.stringify(found)).not.toContain(secret);
  });

  test("verifies after any time, with another secret it does not, and without one it is not tried", async () => {
    const stripe = SENDERS.find(({ name }) => name === "stripe") as Sender;
    const secret = secretOf(SIGNERS.stripe as NonNullable<(typeof SIGNERS)["stripe"]>);
    const sent = await signExample(stripe, running.clock.now() - 3 * 86_400_000);
    expect((await guess({ ...sent, secret })).verify.verified).toBe(true);
    const other = await guess({ ...sent, secret: secret.replace("Q", "R") });
    expect([other.verify.verified, other.verify.why]).toEqual([false, expect.stringContaining("does not verify")]);
    expect((await guess(sent)).verify.verified).toBe(null);
  });

  test("is recognized by its body if nothing but the body was pasted", async () => {
    const names = ["stripe", "paddle", "lemon-squeezy", "polar", "chargebee", "revenuecat", "calendly"];
    const found: unknown[] = [];
    for (const name of names) {
      const sender = SENDERS.find((one) => one.name === name) as Sender;
      const { sender: guessed, verify } = await guess({ ...bodyOf(sender.example), secret: "Qk7bXFQsq4OKAPhAIVqs" });
      found.push([guessed?.name, verify.verified]);
    }
    expect(found).toEqual(names.map((name) => [name, null]));
  });
});

const SECRET = "Qk7bXFQsq4OKAPhAIVqsHMpkNhzCwRnS";
const NOW = "1768478400";
const hmac = (text: string, encoding: "hex" | "base64" | "base64url" = "hex", hash = "sha256") =>
  createHmac(hash, SECRET).update(text).digest(encoding);
const ORDER = '{"id":"evt_7","type":"order.paid","data":{"id":"ord_1","customer":{"id":"cus_9","email":"ada@example.com"}}}';
const ED25519 = generateKeyPairSync("ed25519");
const P256 = generateKeyPairSync("ec", { namedCurve: "P-256" });
const pem = (key: KeyObject): string => key.export({ format: "pem", type: "spki" }).toString();
const FORM = "event_id=e1&event=order.paid&customer_email=ada%40example.com";

/** Requests of unknown senders: the request, whether the secret is needed to know the recipe, and what is guessed. */
const UNKNOWN: readonly (readonly [what: string, sent: Sent, verify: object])[] = [
  [
    "an HMAC in hex after sha256=, as GitHub sends it",
    { body: ORDER, headers: { "X-Acme-Signature": `sha256=${hmac(ORDER)}` } },
    { scheme: "signature", header: "x-acme-signature", signatureKey: "sha256", signedPayload: "{body}", encoding: "hex" },
  ],
  [
    "the newer of two hashes",
    { body: ORDER, headers: { "X-Acme-Signature": hmac(ORDER, "hex", "sha1"), "X-Acme-Signature-256": hmac(ORDER) } },
    { scheme: "signature", header: "x-acme-signature-256", signedPayload: "{body}", encoding: "hex" },
  ],
  [
    "an HMAC in base64",
    { body: ORDER, headers: { "X-Acme-Hmac": hmac(ORDER, "base64") } },
    { scheme: "signature", header: "x-acme-hmac", signedPayload: "{body}", encoding: "base64" },
  ],
  [
    "an HMAC with SHA-1",
    { body: ORDER, headers: { "X-Acme-Signature": hmac(ORDER, "hex", "sha1") } },
    { scheme: "signature", algorithm: "hmac-sha1", header: "x-acme-signature", signedPayload: "{body}", encoding: "hex" },
  ],
  [
    "an HMAC with SHA-512",
    { body: ORDER, headers: { "X-Acme-Signature": hmac(ORDER, "hex", "sha512") } },
    { scheme: "signature", algorithm: "hmac-sha512", header: "x-acme-signature", signedPayload: "{body}", encoding: "hex" },
  ],
  [
    "t=…,v1=… in a header of its own",
    { body: ORDER, headers: { "X-Acme-Signature": `t=${NOW},v1=${hmac(`${NOW}.${ORDER}`)},v0=${hmac("old")}` } },
    {
      scheme: "signature",
      header: "x-acme-signature",
      signatureKey: "v1",
      separator: ",",
      timestampKey: "t",
      signedPayload: "{timestamp}.{body}",
      encoding: "hex",
    },
  ],
  [
    "ts=…;h1=… with a colon, which only the secret shows",
    { body: ORDER, headers: { "X-Acme-Signature": `ts=${NOW};h1=${hmac(`${NOW}:${ORDER}`)}` }, secret: SECRET },
    {
      scheme: "signature",
      header: "x-acme-signature",
      signatureKey: "h1",
      separator: ";",
      timestampKey: "ts",
      signedPayload: "{timestamp}:{body}",
      encoding: "hex",
    },
  ],
  [
    "a signature and a timestamp in two headers",
    { body: ORDER, headers: { "X-Acme-Signature": hmac(`${NOW}.${ORDER}`), "X-Acme-Timestamp": NOW } },
    { scheme: "signature", header: "x-acme-signature", timestampHeader: "x-acme-timestamp", signedPayload: "{timestamp}.{body}", encoding: "hex" },
  ],
  [
    "a timestamp that the sender does not sign, which only the secret shows",
    { body: ORDER, headers: { "X-Acme-Signature": hmac(ORDER), "X-Acme-Timestamp": NOW }, secret: SECRET },
    { scheme: "signature", header: "x-acme-signature", signedPayload: "{body}", encoding: "hex" },
  ],
  [
    "v0=… as Slack sends it",
    { body: ORDER, headers: { "X-Acme-Signature": `v0=${hmac(`v0:${NOW}:${ORDER}`)}`, "X-Acme-Request-Timestamp": NOW } },
    {
      scheme: "signature",
      header: "x-acme-signature",
      signatureKey: "v0",
      timestampHeader: "x-acme-request-timestamp",
      signedPayload: "v0:{timestamp}:{body}",
      encoding: "hex",
    },
  ],
  [
    "Standard Webhooks",
    { body: ORDER, headers: { "webhook-id": "msg_1", "webhook-timestamp": NOW, "webhook-signature": `v1,${hmac("x", "base64")}` } },
    { scheme: "hooks" },
  ],
  [
    "Ed25519 with a timestamp header",
    {
      body: ORDER,
      headers: {
        "X-Signature-Ed25519": signByKey(null, Buffer.from(NOW + ORDER), ED25519.privateKey).toString("hex"),
        "X-Signature-Timestamp": NOW,
      },
      secret: pem(ED25519.publicKey),
    },
    {
      scheme: "signature",
      algorithm: "ed25519",
      header: "X-Signature-Ed25519",
      timestampHeader: "X-Signature-Timestamp",
      signedPayload: "{timestamp}{body}",
      encoding: "hex",
    },
  ],
  [
    "Ed25519 in a header that does not say so, which only the key shows",
    {
      body: ORDER,
      headers: { "X-Acme-Signature": signByKey(null, Buffer.from(ORDER), ED25519.privateKey).toString("base64") },
      secret: pem(ED25519.publicKey),
    },
    { scheme: "signature", algorithm: "ed25519", header: "x-acme-signature", signedPayload: "{body}", encoding: "base64" },
  ],
  [
    "ECDSA with a public key",
    {
      body: ORDER,
      headers: { "X-Acme-Signature": signByKey("sha256", Buffer.from(ORDER), P256.privateKey).toString("base64") },
      secret: pem(P256.publicKey),
    },
    { scheme: "signature", algorithm: "ecdsa-p256-sha256", header: "x-acme-signature", signedPayload: "{body}", encoding: "base64" },
  ],
  ["a token in a header", { body: ORDER, headers: { "X-Acme-Token": SECRET } }, { scheme: "shared_token", header: "x-acme-token" }],
  [
    "the secret in a header without the name of a token",
    { body: ORDER, headers: { "X-Acme-Origin": SECRET }, secret: SECRET },
    { scheme: "shared_token", header: "x-acme-origin" },
  ],
  ["a token in the query", { body: ORDER, headers: { accept: "*/*" }, search: `?key=${SECRET}` }, { scheme: "shared_token", query: "key" }],
  [
    "a form",
    { body: FORM, headers: { "X-Acme-Signature": hmac(FORM) } },
    { scheme: "signature", header: "x-acme-signature", signedPayload: "{body}", encoding: "hex" },
  ],
  ["a request without any proof", { body: ORDER, headers: { accept: "*/*" } }, { scheme: "shared_token" }],
];

/** The recipe without what is the default anyway. */
function shortRecipe(verify: Record<string, unknown>): object {
  const defaults: Record<string, unknown> = { algorithm: "hmac-sha256", encoding: "hex" };
  return Object.fromEntries(Object.entries(verify).filter(([name, value]) => defaults[name] !== value));
}

describe("the recipe of an unknown sender", () => {
  test.each(UNKNOWN)("%s", async (_what, sent, verify) => {
    const found = await guess(sent);
    expect(shortRecipe(found.verify.value)).toEqual(shortRecipe(verify as Record<string, unknown>));
    expect(found.verify.verified).toBe(sent.secret === undefined ? null : true);
    expect([found.verify.why.endsWith("."), problemsOf(found)]).toEqual([true, []]);
    const isProven = JSON.stringify(verify).includes("token")
      ? sent.headers?.["X-Acme-Token"] !== undefined || sent.search !== undefined
      : !_what.startsWith("Standard");
    if (isProven && sent.secret === undefined) expect((await guess({ ...sent, secret: SECRET })).verify).toMatchObject({ verified: true });
  });

  test.each([
    ["a wrong secret", { body: ORDER, headers: { "X-Acme-Signature": hmac(ORDER) }, secret: SECRET.replace("Q", "R") }, "does not verify"],
    ["a secret that is too short to save", { body: ORDER, headers: { "X-Acme-Signature": hmac(ORDER) }, secret: "abc" }, "too short"],
    ["a secret after a word", { body: ORDER, headers: { Authorization: `Bearer ${SECRET}` }, secret: SECRET }, "after another word"],
  ])("%s is not verified, and the reason says why", async (_what, sent, why) => {
    const { verify } = await guess(sent);
    expect([verify.verified, verify.why]).toEqual([false, expect.stringContaining(why)]);
    expect(verify.why).not.toContain(sent.secret);
  });
});

const meaning = ({ eventType, eventId, person, customer }: RequestGuess) => ({
  type: eventType?.path ?? null,
  id: eventId?.path ?? eventId?.header ?? null,
  person: person?.path ?? null,
  customer: customer?.path ?? null,
});

/** Bodies of unknown senders, and the paths that are guessed. */
const BODIES: readonly (readonly [what: string, body: string, found: Partial<ReturnType<typeof meaning>>])[] = [
  ["an envelope with data", ORDER, { type: "type", id: "id", person: "data.customer.email", customer: "data.customer.id" }],
  ["an object without an envelope, whose id is not the event's", '{"id":7,"status":"paid","email":"a@b.example"}', { person: "email" }],
  [
    "names with two words",
    '{"eventId":"1","eventType":"A","userEmail":"a@b.example","userId":"u"}',
    { type: "eventType", id: "eventId", person: "userEmail", customer: "userId" },
  ],
  ["a member event", '{"event":{"id":"1","type":"x.y"},"data":{"id":2}}', { type: "event.type", id: "event.id" }],
  ["a better name than type", '{"type":"notification","topic":"a.b","id":"n1","data":{}}', { type: "topic", id: "id" }],
  ["an action with a dot", '{"type":"payment","action":"payment.created","id":"x","data":{"id":"y"}}', { type: "action", id: "id" }],
  ["a list at the top", '[{"event_id":"1","event":"bounce","email":"a@b.example"}]', { type: "0.event", id: "0.event_id", person: "0.email" }],
  ["a list of events", '{"events":[{"id":"1","type":"a.b","data":{}}]}', { type: "events.0.type", id: "events.0.id" }],
  [
    "an address in a list",
    '{"type":"user.created","data":{"email_addresses":[{"email_address":"a@b.example"}]}}',
    { type: "type", person: "data.email_addresses.0.email_address" },
  ],
  [
    "the customer's address among others",
    '{"event":"sale","merchant":{"email":"m@b.example"},"order":{"buyer":{"email":"a@b.example"}}}',
    { type: "event", person: "order.buyer.email" },
  ],
  ["a form", FORM, { type: "event", id: "event_id", person: "customer_email" }],
  ["a text that is no JSON", "hello", {}],
  ["an empty body", "", {}],
  ["only numbers", "[1,2,3]", {}],
];

test.each([
  ["a hash that Relay does not check", { "X-Acme-Signature": createHmac("md5", SECRET).update(ORDER).digest("hex") }, "a signature in another form"],
  ["a signature with RSA", { "X-Acme-Signature": Buffer.alloc(256, 7).toString("base64") }, "a signature in another form"],
  ["a token that changes with each request", { Authorization: "Bearer eyJhbGciOiJIUzI1NiJ9.eyJhIjoxfQ.abc" }, "a JSON Web Token"],
])("%s is named as such, and no recipe is guessed", async (_what, headers, why) => {
  const { verify } = await guess({ body: ORDER, headers });
  expect([verify.value, verify.why]).toEqual([{ scheme: "shared_token" }, expect.stringContaining(why)]);
});

/** Bodies that a stranger can send to a capture. */
const ODD: readonly (readonly [what: string, body: string])[] = [
  ["names that no path can read", '{"a.b":{"email":"a@b.example"},"{{x}}":{"id":"evt_1"}," type":"a.b","__proto__":{"type":"x.y"}}'],
  ["deep lists", `${"[".repeat(400)}1${"]".repeat(400)}`],
  ["a list that is too deep", `${"[".repeat(5_000)}1${"]".repeat(5_000)}`],
  ["many values", `{${Array.from({ length: 5_000 }, (_, at) => `"user${at}":{"email":"a${at}@b.example"}`).join()}}`],
  ["values of odd types", '{"type":null,"id":{},"event":[],"email":1e999,"customer":true,"data":"x"}'],
  ["long values", `{"type":"${"a".repeat(5_000)}","id":"${"b".repeat(5_000)}","email":"${"c".repeat(5_000)}@b.example","data":{}}`],
  ["markup and invisible characters", '{"type":"<script>.\u202e","id":"\u0007evt","email":"<a@b.example>","data":{}}'],
  ["numbers with many digits", '{"id":9007199254740993123,"type":"a.b","data":{}}'],
];
test.each(ODD)("a body with %s gives a definition that can be saved", async (_what, body) => {
  const headers = { "X-Acme-Signature": hmac(body), "User-Agent": '"><b>' };
  for (const contentType of ["application/json", "application/x-www-form-urlencoded", "text/xml"]) {
    const found = await guess({ body, headers, contentType, secret: SECRET });
    expect([problemsOf(found), found.verify.verified]).toEqual([[], true]);
    for (const { value } of [found.eventType, found.person, found.customer].filter((one) => one !== null))
      expect(value.length).toBeLessThanOrEqual(200);
  }
});

test("a pasted body of an unknown sender asks for its headers", async () => {
  const { sender, verify } = await guess({ body: ORDER, secret: SECRET });
  expect([sender, verify.verified, verify.why]).toEqual([null, null, expect.stringContaining("Give the headers too")]);
});

describe("the meaning of the values", () => {
  const headers = { "X-Acme-Signature": hmac("x") };
  test.each(BODIES)("%s", async (_what, body, found) => {
    const guessed = await guess({ body, headers });
    expect(meaning(guessed)).toEqual({ type: null, id: null, person: null, customer: null, ...found });
    const trigger = guessed.definition.trigger as { map: Record<string, string>; when?: Record<string, string> };
    const wanted = { event_id: found.id, event_type: found.type, person_email: found.person, customer_id: found.customer };
    expect(trigger.map).toEqual(Object.fromEntries(Object.entries(wanted).flatMap(([name, path]) => (path == null ? [] : [[name, path]]))));
    expect(trigger.when).toEqual(guessed.eventType === null ? undefined : { event_type: guessed.eventType.value });
    expect(guessed.definition.actions).toEqual([]);
  });

  test("a path with an index says that it is fixed", async () => {
    const { person } = await guess({ body: '[{"email":"a@b.example"}]', headers });
    expect(person?.why).toContain("The path always reads item 0 of the list.");
  });

  test("the header that a scheme takes the ID from is named, and needs no map", async () => {
    const sent = { "webhook-id": "msg_1", "webhook-timestamp": NOW, "webhook-signature": `v1,${hmac("x", "base64")}` };
    const { eventId, definition } = await guess({ body: '{"type":"a.b","data":{}}', headers: sent });
    expect(eventId).toMatchObject({ path: null, header: "webhook-id", value: "msg_1" });
    expect((definition.trigger as { map: object }).map).toEqual({ event_type: "type" });
  });

  test("an address that the sender does not sign is mapped under a name without effect", async () => {
    const { person, definition } = await guess({ body: ORDER, headers: { "X-Acme-Token": SECRET } });
    expect(person?.why).toContain("trustUnsignedEvents");
    expect((definition.trigger as { map: object }).map).toMatchObject({ email: "data.customer.email" });
  });
});

describe("the name", () => {
  test.each([
    ["of the known sender", { "Stripe-Signature": "t=1,v1=x" }, "stripe"],
    ["of the header", { "X-Acme-Pay-Signature": hmac("x") }, "acme-pay"],
    ["of the user agent", { "X-Signature": hmac("x"), "User-Agent": "Acme-Webhooks/1.0" }, "acme"],
    ["of nothing", { "X-Signature": hmac("x"), "User-Agent": "axios/1.0" }, "new-relay"],
  ])("%s", async (_what, headers, name) => {
    expect((await guess({ body: "{}", headers })).definition.name).toBe(name);
  });

  test("is free in the environment", async () => {
    const actions = [{ type: "call_url", url: "https://shop.example.com/hook" }];
    const trigger = { kind: "receiver", verify: { scheme: "hooks" }, map: {} };
    expect((await running.api("POST", "/relays", { definition: { name: "acme", trigger, actions } })).status).toBe(201);
    expect((await guess({ body: "{}", headers: { "X-Acme-Signature": hmac("x") } })).definition.name).toBe("acme-2");
  });
});

test.each([
  ["a header that HTTP does not have", { body: "{}", headers: { "a b": "c" } }, "headers"],
  ["a body above the limit of a receiver", { body: "é".repeat(200_000) }, "body"],
  ["no body", {}, "body"],
])("%s is refused", async (_what, sent, field) => {
  const { status, body } = await running.api("POST", "/relays/guess", sent);
  expect([status, body.code, body.message]).toEqual([400, "invalid_input", expect.stringContaining(field)]);
});

test("nothing was saved, and the secret is in no log line", async () => {
  expect((await running.rows<{ name: string }>("SELECT name FROM relay")).map(({ name }) => name)).toEqual(["acme"]);
  expect(running.logged.join("\n")).not.toContain(SECRET);
  expect(await running.rows("SELECT DISTINCT action FROM audit")).toEqual([{ action: "relay.created" }]);
});

test.each([
  ["a member of the name of a built-in property", { body: '{"constructor":{"type":"a.b","id":"1"}}' }],
  ["a body that is null", { body: "null", contentType: "application/json" }],
  ["a body that is only a text", { body: '"a@example.com"', contentType: "application/json" }],
  ["a token in a header whose name no recipe can have", { body: "{}", headers: { ["h".repeat(200)]: SECRET }, secret: SECRET }],
  ["a token in a query parameter whose name no recipe can have", { body: "{}", search: `?a[b]=${SECRET}`, secret: SECRET }],
])("%s is guessed as a definition that can be saved", async (_what, sent) => {
  expect(problemsOf(await guess(sent))).toEqual([]);
});
