/** Tests the cause of a rejected request. One row per difference that the service finds by trying, and cases in which it must not claim a cause. */
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { createHmac, generateKeyPairSync, sign } from "node:crypto";
import { makeOrders, receiverDefinition, writeOrder } from "../kit/relay-definition.ts";
import { APP, type RunningService, startRunningService } from "../kit/running-service.ts";
import { START_MS } from "../kit/virtual-clock.ts";

const SECRET = "Qk7bXFQsq4OKAPhAIVqsHMpkNhzCwRnS";
const OTHER = "anotherSecretOfTwentyFour1";
const WHSEC_KEY = "c2VjcmV0LWtleS1vZi1hLXNlbmRlci0wMTIzNDU2Nzg5";
const NOW = String(START_MS / 1000);
const URL_OF = `https://relay.example.test/hooks/${APP}/orders`;
const BODY = '{"id":"a","type":"order.paid","note":"a: b, c"}';
const JSON_TYPE = { "content-type": "application/json" };
const WRONG = "the signature does not match; the secret or the recipe differs from the sender's";

type Hash = "sha1" | "sha256" | "sha512";
type Form = "hex" | "base64" | "base64url";
const mac = (text: string, form: Form = "hex", hash: Hash = "sha256", key: string | Buffer = SECRET): string =>
  createHmac(hash, key).update(text).digest(form);

const PLAIN = { scheme: "signature", header: "x-signature", signedPayload: "{body}" };
const TIMED = {
  scheme: "signature",
  header: "x-signature",
  signatureKey: "v1",
  timestampKey: "t",
  signedPayload: "{timestamp}.{body}",
};
const SPLIT = {
  scheme: "signature",
  header: "x-signature",
  timestampHeader: "x-timestamp",
  signedPayload: "{timestamp}.{body}",
};
const BY_URL = { scheme: "signature", header: "x-signature", signedPayload: "{url}{body}" };

interface Sent {
  verify?: Record<string, unknown>;
  secret?: string;
  headers?: Record<string, string>;
  body?: string;
  search?: string;
}

let running: RunningService;

beforeEach(async () => {
  running = await startRunningService({ environments: ["development", "production"] });
  await makeOrders(running);
});

afterEach(async () => {
  await running[Symbol.asyncDispose]();
});

async function save(verify: Record<string, unknown>, secret: string | undefined, environment?: "production"): Promise<void> {
  const definition = receiverDefinition({ verify, actions: [writeOrder] });
  const saved = await running.api("POST", "/relays", { definition, ...(secret === undefined ? {} : { secret }) }, environment);
  if (saved.status !== 201) throw new Error(JSON.stringify(saved.body));
}

const send = (sent: Sent) =>
  running.hook("orders", {
    headers: { ...JSON_TYPE, ...sent.headers },
    body: sent.body ?? BODY,
    ...(sent.search === undefined ? {} : { search: sent.search }),
  });

async function cause(environment: "development" | "production" = "development"): Promise<string> {
  const { body } = await running.api("GET", "/calls", undefined, environment);
  return body.items[0].cause;
}

const late = (seconds: number): string => String(START_MS / 1000 - seconds);
const says = (change: string): string => `${WRONG}; it verifies with ${change}`;

/** Matches causes that only the sender or another base URL can fix, not a save. */
const UNAPPLIED = /which a recipe does not do|the receiver URL (under|and|with)|the body (as|with)/;

/** Applies exactly what the cause says to the relay, its secret, the URL or the clock, and returns the status of the repeated request. */
async function applyAndSend(told: string, sent: Sent): Promise<number> {
  const { verify = PLAIN, secret = SECRET, search } = sent;
  const [, change = ""] = /it verifies with (.*)/.exec(told) ?? [];
  const fields = new Map([...change.matchAll(/\b([a-zA-Z]+) `([^`]*)`/g)].map(([, name = "", value]) => [name, value]));
  const applied: Record<string, unknown> = fields.has("scheme") ? {} : { ...verify };
  for (const [name, value] of fields) if (!/secret stored together/.test(change) || change.indexOf(`${name} \`${value}`) === 0) applied[name] = value;
  for (const [, name = ""] of change.matchAll(/\bno ([a-zA-Z]+)\b/g)) delete applied[name];
  const [word = "", rest = ""] = secret.split(" ");
  const stored = /secret without whsec_/.test(change)
    ? secret.replace("whsec_", "")
    : /secret with whsec_/.test(change)
      ? `whsec_${secret}`
      : /stored together with the word/.test(change)
        ? `${sent.headers?.authorization?.split(" ")[0]} ${secret}`
        : /stored without the word/.test(change)
          ? rest || word
          : secret;
  const isAppended =
    /nothing appended to the receiver URL|the request URL has text after the receiver URL, and the sender signs the URL; everything else/.test(told);
  const [, seconds] = /(?:not|off by) (\d+) seconds/.exec(told) ?? [];
  const { version } = (await running.api("GET", "/relays/orders")).body.relay;
  const definition = receiverDefinition({ verify: applied, actions: [writeOrder] });
  const saved = await running.api("PUT", "/relays/orders", { definition, version });
  if (saved.status !== 200) throw new Error(JSON.stringify([applied, saved.body]));
  if (stored !== secret || fields.has("scheme")) await running.api("PUT", "/relays/orders/secret", { value: stored });
  const again = () => send({ ...sent, ...(isAppended ? { search: "" } : search === undefined ? {} : { search }) });
  if (seconds === undefined) return (await again()).status;
  // The clock may be ahead or behind, so the test tries both.
  running.clock.jump(-Number(seconds) * 1_000);
  const back = await again();
  if (back.status === 200) return 200;
  running.clock.jump(2 * Number(seconds) * 1_000);
  return (await again()).status;
}

describe("the cause names the difference with which a rejected request verifies", () => {
  const rows: [string, Sent, string][] = [
    [
      "only the body is signed",
      { verify: TIMED, headers: { "x-signature": `t=${NOW},v1=${mac(BODY)}` } },
      says("no timestampKey and signedPayload `{body}`"),
    ],
    [
      "the timestamp is signed too",
      { verify: PLAIN, headers: { "x-signature": mac(`${NOW}.${BODY}`), "x-timestamp": NOW } },
      says("timestampHeader `x-timestamp` and signedPayload `{timestamp}.{body}`"),
    ],
    [
      "no separator between timestamp and body",
      { verify: SPLIT, headers: { "x-signature": mac(`${NOW}${BODY}`), "x-timestamp": NOW } },
      says("signedPayload `{timestamp}{body}`"),
    ],
    [
      "a word before the timestamp",
      { verify: SPLIT, headers: { "x-signature": mac(`v0:${NOW}:${BODY}`), "x-timestamp": NOW } },
      says("signedPayload `v0:{timestamp}:{body}`"),
    ],
    ["base64 instead of hex", { verify: PLAIN, headers: { "x-signature": mac(BODY, "base64") } }, says("encoding `base64`")],
    ["hex instead of base64", { verify: { ...PLAIN, encoding: "base64" }, headers: { "x-signature": mac(BODY) } }, says("encoding `hex`")],
    ["another hash", { verify: PLAIN, headers: { "x-signature": mac(BODY, "hex", "sha1") } }, says("algorithm `hmac-sha1`")],
    [
      "another hash and encoding",
      { verify: PLAIN, headers: { "x-signature": mac(BODY, "base64", "sha512") } },
      says("algorithm `hmac-sha512` and encoding `base64`"),
    ],
    ["a prefix the recipe does not name", { verify: PLAIN, headers: { "x-signature": `sha256=${mac(BODY)}` } }, says("signatureKey `sha256`")],
    [
      "no prefix where the recipe names one",
      { verify: { ...PLAIN, signatureKey: "sha256" }, headers: { "x-signature": mac(BODY) } },
      "header x-signature has no part named sha256; it verifies with no signatureKey",
    ],
    [
      "another part's name",
      { verify: TIMED, headers: { "x-signature": `t=${NOW},s=${mac(`${NOW}.${BODY}`)}` } },
      "header x-signature has no part named v1; it verifies with signatureKey `s`",
    ],
    [
      "another separator",
      { verify: TIMED, headers: { "x-signature": `t=${NOW};v1=${mac(`${NOW}.${BODY}`)}` } },
      "header x-signature has no part named v1; it verifies with separator `;`",
    ],
    [
      "another header",
      { verify: PLAIN, headers: { "x-hub-signature-256": `sha256=${mac(BODY)}` } },
      "header x-signature is missing; it verifies with header `x-hub-signature-256` and signatureKey `sha256`",
    ],
    [
      "another timestamp header",
      { verify: SPLIT, headers: { "x-signature": mac(`${NOW}.${BODY}`), "x-request-timestamp": NOW } },
      "the timestamp is missing or is not 1 to 13 digits; it verifies with timestampHeader `x-request-timestamp`",
    ],
    [
      "the secret decoded from whsec_",
      { verify: PLAIN, secret: `whsec_${WHSEC_KEY}`, headers: { "x-signature": mac(BODY, "hex", "sha256", Buffer.from(WHSEC_KEY, "base64")) } },
      says("the secret decoded from the base64 after whsec_, which a recipe does not do"),
    ],
    [
      "the secret without whsec_",
      { verify: PLAIN, secret: `whsec_${WHSEC_KEY}`, headers: { "x-signature": mac(BODY, "hex", "sha256", WHSEC_KEY) } },
      says("the secret without whsec_ in front of it"),
    ],
    [
      "the secret with whsec_",
      { verify: PLAIN, secret: WHSEC_KEY, headers: { "x-signature": mac(BODY, "hex", "sha256", `whsec_${WHSEC_KEY}`) } },
      says("the secret with whsec_ in front of it"),
    ],
    [
      "the secret decoded from base64",
      { verify: PLAIN, secret: WHSEC_KEY, headers: { "x-signature": mac(BODY, "hex", "sha256", Buffer.from(WHSEC_KEY, "base64")) } },
      says("the secret decoded from base64, which a recipe does not do"),
    ],
    [
      "a Standard Webhooks sender",
      {
        verify: PLAIN,
        secret: `whsec_${WHSEC_KEY}`,
        headers: {
          "webhook-id": "msg_1",
          "webhook-timestamp": NOW,
          "webhook-signature": `v1,${mac(`msg_1.${NOW}.${BODY}`, "base64", "sha256", Buffer.from(WHSEC_KEY, "base64"))}`,
        },
      },
      "header x-signature is missing; it verifies with scheme `hooks`",
    ],
    [
      "a recipe's sender for a relay that expects Standard Webhooks",
      { verify: { scheme: "hooks" }, secret: `whsec_${WHSEC_KEY}`, headers: { "x-signature": mac(BODY, "hex", "sha256", `whsec_${WHSEC_KEY}`) } },
      "one of the headers hooks-id, hooks-timestamp and hooks-signature is missing; it verifies with scheme `signature`, header `x-signature` and signedPayload `{body}`",
    ],
    [
      "the secret itself is sent",
      { verify: PLAIN, headers: { "x-token": SECRET } },
      "header x-signature is missing; it verifies with scheme `shared_token` and header `x-token`",
    ],
    [
      "a token in another header, after a word",
      { verify: { scheme: "shared_token" }, headers: { authorization: `Bearer ${SECRET}` } },
      "the token is neither in header x-webhook-token nor in query parameter token; it verifies with header `authorization` and the secret stored together with the word before it in header `authorization`",
    ],
    [
      "a token in another query parameter",
      { verify: { scheme: "shared_token" }, search: `?key=${SECRET}` },
      "the token is neither in header x-webhook-token nor in query parameter token; it verifies with query `key`",
    ],
    [
      "a token without the word that is stored with it",
      { verify: { scheme: "shared_token" }, secret: `Bearer ${SECRET}`, headers: { "x-webhook-token": SECRET } },
      "the value of header x-webhook-token is not the secret; it verifies with the secret stored without the word before it",
    ],
    [
      "a signature for a relay that expects a token",
      { verify: { scheme: "shared_token" }, headers: { "x-signature": mac(BODY) } },
      "the token is neither in header x-webhook-token nor in query parameter token; it verifies with scheme `signature`, header `x-signature` and signedPayload `{body}`",
    ],
    [
      "the URL under http",
      { verify: BY_URL, headers: { "x-signature": mac(`${URL_OF.replace("https", "http")}${BODY}`) } },
      says("the receiver URL with http instead of https"),
    ],
    [
      "the URL with a trailing slash",
      { verify: BY_URL, headers: { "x-signature": mac(`${URL_OF}/${BODY}`) } },
      says("the receiver URL and a slash at its end"),
    ],
    [
      "the URL with its port",
      { verify: BY_URL, headers: { "x-signature": mac(`${URL_OF.replace("test/", "test:443/")}${BODY}`) } },
      says("the receiver URL with its port written out"),
    ],
    [
      "the host of a forwarding header",
      {
        verify: BY_URL,
        headers: { "x-signature": mac(`${URL_OF.replace("relay.example.test", "shop.example.org")}${BODY}`), "x-forwarded-host": "shop.example.org" },
      },
      says("the receiver URL with the host of the header x-forwarded-host"),
    ],
    [
      "an appended query that is signed",
      { verify: BY_URL, search: "?shop=1", headers: { "x-signature": mac(`${URL_OF}?shop=1${BODY}`) } },
      "the request URL has text after the receiver URL, and the sender signs the URL; it verifies with the receiver URL and everything after it, including the query string",
    ],
    [
      "an appended query that is not signed",
      { verify: BY_URL, search: "?shop=1", headers: { "x-signature": mac(`${URL_OF}${BODY}`) } },
      "the request URL has text after the receiver URL, and the sender signs the URL; everything else verifies",
    ],
    [
      "JSON that was serialized again, without its white space",
      { verify: PLAIN, body: JSON.stringify(JSON.parse(BODY), null, 4), headers: { "x-signature": mac(BODY) } },
      says("the body as JSON without white space"),
    ],
    [
      "JSON that was serialized again, with its white space",
      { verify: PLAIN, headers: { "x-signature": mac('{"id": "a", "type": "order.paid", "note": "a: b, c"}') } },
      says("the body as JSON with a space after each colon and comma"),
    ],
    ["a lost newline", { verify: PLAIN, headers: { "x-signature": mac(`${BODY}\n`) } }, says("the body with a newline at its end")],
    [
      "a wrong clock, with the difference",
      { verify: TIMED, headers: { "x-signature": `t=${late(912)},v1=${mac(`${late(912)}.${BODY}`)}` } },
      "the timestamp is 912 seconds old, and at most 300 are allowed; everything else verifies, so the sender's clock or this server's clock is off by 912 seconds, or the request was signed that long ago and was delayed or sent again",
    ],
    [
      "a clock that is ahead, because no request arrives early",
      { verify: TIMED, headers: { "x-signature": `t=${late(-912)},v1=${mac(`${late(-912)}.${BODY}`)}` } },
      "the timestamp is 912 seconds ahead, and at most 300 are allowed; everything else verifies, so the sender's clock or this server's clock is off by 912 seconds",
    ],
    [
      "a wrong clock, and another signed text",
      { verify: TIMED, headers: { "x-signature": `t=${late(-400)},v1=${mac(`${late(-400)}:${BODY}`)}` } },
      "the timestamp is 400 seconds ahead, and at most 300 are allowed; it verifies with signedPayload `{timestamp}:{body}` and a timestamp that is not 400 seconds off",
    ],
    [
      "a timestamp in another header that is out of range too",
      { verify: SPLIT, headers: { "x-signature": mac(`${late(912)}.${BODY}`), "x-request-timestamp": late(912) } },
      "the timestamp is missing or is not 1 to 13 digits; it verifies with timestampHeader `x-request-timestamp` and a timestamp that is not 912 seconds off",
    ],
    [
      "an appended query together with another difference",
      { verify: BY_URL, search: "?shop=1", headers: { "x-signature": mac(`${URL_OF}${BODY}`, "base64") } },
      "the request URL has text after the receiver URL, and the sender signs the URL; it verifies with encoding `base64` and nothing appended to the receiver URL",
    ],
    [
      "a comma where the relay's parts use a semicolon",
      { verify: { ...TIMED, separator: ";" }, headers: { "x-signature": `t=${NOW},v1=${mac(`${NOW}.${BODY}`)}` } },
      "header x-signature has no part named v1; it verifies with separator `,`",
    ],
    [
      "fields of the present recipe that do not fit the other signed text",
      { verify: { ...TIMED, separator: ";", toleranceSeconds: 60 }, headers: { "x-signature": mac(BODY) } },
      "header x-signature has no part named v1; it verifies with no signatureKey, no separator, no timestampKey, no toleranceSeconds and signedPayload `{body}`",
    ],
    [
      "an unsigned token",
      {
        verify: { scheme: "signature", header: "x-signature", signedPayload: "{token}", tokenField: "id" },
        headers: { "x-signature": mac(BODY) },
      },
      says("signedPayload `{body}` and no tokenField"),
    ],
  ];
  test.each(rows)("%s", async (_rule, sent, told) => {
    await save(sent.verify ?? PLAIN, sent.secret ?? SECRET);
    const answer = await send(sent);
    expect(answer.status).toBe(401);
    expect(answer.body).toEqual({
      code: "bad_signature",
      message: expect.stringMatching(/^The signature did not verify;/),
    });
    expect(await cause()).toBe(told);
    if (!UNAPPLIED.test(told)) expect(await applyAndSend(told, sent)).toBe(200);
  });

  test("the rows cover enough causes that a save can fix", () => {
    expect(rows.filter(([, , told]) => !UNAPPLIED.test(told)).length).toBeGreaterThanOrEqual(32);
    expect(rows.filter(([, , told]) => /seconds (off|old|ahead)/.test(told) && !UNAPPLIED.test(told)).length).toBeGreaterThanOrEqual(4);
  });

  test("a public key's sender signs another text", async () => {
    const pair = generateKeyPairSync("ed25519");
    const key = pair.publicKey.export({ format: "der", type: "spki" }).toString("base64");
    const verify = { ...SPLIT, algorithm: "ed25519", signedPayload: "{timestamp}{body}" };
    await save(verify, key);
    const signature = sign(null, Buffer.from(`${NOW}.${BODY}`), pair.privateKey).toString("base64");
    await send({ headers: { "x-signature": signature, "x-timestamp": NOW } });
    expect(await cause()).toBe(says("signedPayload `{timestamp}.{body}` and encoding `base64`"));
  });
});

describe("the cause names the secret of", () => {
  test("another environment with another recipe", async () => {
    await save(PLAIN, SECRET);
    await save(TIMED, OTHER, "production");
    await send({ headers: { "x-signature": mac(BODY, "hex", "sha256", OTHER) } });
    expect(await cause()).toBe(says("the secret of the relay with this name in production"));
    expect(await cause("production")).toContain("; it verifies with no signatureKey, no timestampKey and signedPayload `{body}`");
  });

  test("another environment's processor settings", async () => {
    const put = async (processorSecret: string, environment: "development" | "production") => {
      const saved = await running.api("PUT", "/settings", { version: 1, processorSecret }, environment);
      expect(saved.status).toBe(200);
    };
    await put(SECRET, "development");
    await put(OTHER, "production");
    await save({ scheme: "processor" }, undefined);
    await send({ headers: { "stripe-signature": `t=${NOW},v1=${mac(`${NOW}.${BODY}`, "hex", "sha256", OTHER)}` } });
    expect(await cause()).toBe(says("the processor secret of production"));
  });

  test("another relay of the environment", async () => {
    await save(PLAIN, SECRET);
    const definition = { ...receiverDefinition({ verify: PLAIN }), name: "refunds" };
    await running.api("POST", "/relays", { definition, secret: OTHER });
    await send({ headers: { "x-signature": mac(BODY, "hex", "sha256", OTHER) } });
    expect(await cause()).toBe(says("the secret of the relay refunds"));
  });

  test("the overlap of a rotation, together with another difference", async () => {
    await save(PLAIN, OTHER);
    await running.api("PUT", "/relays/orders/secret", { value: SECRET, overlapSeconds: 3_600 });
    await send({ headers: { "x-signature": mac(BODY, "base64", "sha256", OTHER) } });
    expect(await cause()).toBe(says("encoding `base64` and the secret before the current one"));
  });
});

describe("the cause claims no more than is known", () => {
  const bad = { headers: { "x-signature": mac(BODY, "hex", "sha256", "nobodysSecretOfTwentyFour1") } };
  const good = { headers: { "x-signature": mac(BODY) } };

  test("an unknown signature before any verified request: it says that none has verified", async () => {
    await save(PLAIN, SECRET);
    await send(bad);
    expect(await cause()).toBe(`${WRONG}. No request has verified here yet`);
  });

  test("an unknown signature after verified requests without a local change: it names a rotation", async () => {
    await save(PLAIN, SECRET);
    expect((await send(good)).status).toBe(200);
    await running.clock.advance(60_000);
    await send(bad);
    expect(await cause()).toBe(
      `${WRONG}. Requests verified until 2026-01-15T12:00:00.000Z, and nothing was changed here since then: the sender may have a new secret`,
    );
  });

  test("an unknown signature within a minute of a verified request: it names no rotation", async () => {
    await save(PLAIN, SECRET);
    await send(good);
    await running.clock.advance(59_000);
    await send(bad);
    expect(await cause()).toBe(`${WRONG}. Another request verified at 2026-01-15T12:00:00.000Z, less than a minute before`);
  });

  test("a changed secret and definition since the last verified request: it names both and asks nothing", async () => {
    await save(PLAIN, SECRET);
    await send(good);
    await running.clock.advance(60_000);
    await running.api("PUT", "/relays/orders/secret", { value: OTHER });
    await running.clock.advance(60_000);
    const definition = receiverDefinition({ verify: { ...PLAIN, header: "X-Signature" } });
    const { version } = (await running.api("GET", "/relays/orders")).body.relay;
    expect((await running.api("PUT", "/relays/orders", { definition, version })).status).toBe(200);
    await send(bad);
    expect(await cause()).toBe(
      `${WRONG}. Requests verified until 2026-01-15T12:00:00.000Z, and the secret was changed here at 2026-01-15T12:01:00.000Z and the definition was changed here at 2026-01-15T12:02:00.000Z`,
    );
  });

  const rows: [string, Sent, string][] = [
    ["a scanner's request names nothing", {}, "header x-signature is missing"],
    [
      "similar headers are named, never their values",
      { headers: { "x-signatur": "planted", "x-hub-token": "planted" } },
      "header x-signature is missing; the request has headers with a similar name: `x-signatur` and `x-hub-token`",
    ],
    [
      "for a missing timestamp, headers named like a time are similar, and signatures are not",
      { verify: SPLIT, headers: { "x-signature": mac("x"), "x-hub-token": "planted", "x-sent-time": "planted" } },
      "the timestamp is missing or is not 1 to 13 digits; the request has a header with a similar name: `x-sent-time`",
    ],
    [
      "a header with unusual characters in its name is not named",
      { headers: { "signature-planted.example.org": "1", "`x-signature`-planted": "1" } },
      "header x-signature is missing",
    ],
    [
      "a value that is no signature says nothing about the secret",
      { headers: { "x-signature": "planted" } },
      `${WRONG}; the received value does not have the form of a signature. No request has verified here yet`,
    ],
    [
      "a stale request with an unknown secret is stale, without a claim about clocks",
      { verify: TIMED, headers: { "x-signature": `t=${late(912)},v1=${mac("x")}` } },
      "the timestamp is 912 seconds old, and at most 300 are allowed",
    ],
    [
      "a host in a header is not named if it explains nothing",
      { verify: BY_URL, headers: { "x-signature": mac("x"), "x-forwarded-host": "planted.example.org" } },
      `${WRONG}. No request has verified here yet`,
    ],
  ];
  test.each(rows)("%s", async (_rule, sent, told) => {
    await save(sent.verify ?? PLAIN, SECRET);
    await send(sent);
    expect(await cause()).toBe(told);
    expect(JSON.stringify(await running.rows("SELECT * FROM recent_request"))).not.toContain("planted");
    expect(running.logged.join("")).not.toContain("planted");
  });
});
