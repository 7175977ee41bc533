/** Every response of a receiver URL to a stranger is short, harmless and asked for by the definition. It is never a text that could sign an event. */
import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { checkDefinition } from "../../src/rules/relay/definition.ts";
import { answerHandshake, askHandshake, findHandshake, HandshakeAnswer } from "../../src/rules/verify/handshake.ts";
import { bindScheme } from "../../src/rules/verify/registry.ts";
import { makeCall, NOW_MS, RECEIVER_URL } from "../kit/sender-call.ts";

const TOKEN = "vt_ownTokenOfTheRelay";
const SECRET = "Qk7bXFQsq4OKAPhAIVqsHMpkNhzCwRnS";
const HARMLESS = /^[A-Za-z0-9._~+/=-]{0,256}$/;
const NAMES = ["meta", "slack", "zoom", "discord", "dropbox", "twitch", "probe"];
const verifyOf = (name: string) =>
  name === "twitch"
    ? { scheme: "twitch" }
    : { scheme: "signature", algorithm: name === "discord" ? "ed25519" : "hmac-sha256", signedPayload: "v0:{timestamp}:{body}" };
const found = (name: string) => {
  const handshake = findHandshake({ ...verifyOf(name), handshake: name });
  if (handshake === null) throw new Error(name);
  return handshake;
};
const field = fc.constantFrom("hub.mode", "hub.challenge", "hub.verify_token", "challenge", "type", "x");
const value = fc.oneof(
  fc.constantFrom(TOKEN, "subscribe", "1158201444", "<script>alert(1)</script>", "\u2028", "\u0000", "a".repeat(300)),
  fc.string({ unit: "binary", maxLength: 300 }),
);

describe("a question by GET", () => {
  test("with any query of any names gets harmless text, and from meta only with its token", () => {
    const query = fc.array(fc.tuple(field, value), { maxLength: 8 });
    fc.assert(
      fc.property(fc.constantFrom(...NAMES), fc.constantFrom("GET" as const, "HEAD" as const), query, (name, method, pairs) => {
        const asked = askHandshake(found(name), method, `?${new URLSearchParams(pairs)}`, TOKEN);
        if (!(asked instanceof HandshakeAnswer)) return asked === null || !asked.includes("<");
        const once = (one: string) => pairs.filter(([other]) => other === one).length === 1;
        const isMeta = pairs.some(([one, said]) => one === "hub.verify_token" && said === TOKEN) && once("hub.verify_token") && once("hub.challenge");
        return HARMLESS.test(asked.body) && asked.contentType.startsWith("text/plain") && (name !== "meta" || isMeta);
      }),
      { numRuns: 2_000 },
    );
  });
  test("with a token that begins alike, is longer or has other letters is refused", () => {
    for (const said of [
      "",
      TOKEN.slice(0, -1),
      `${TOKEN}x`,
      TOKEN.toUpperCase(),
      `${TOKEN}\u0000`,
      "ｖt_ownTokenOfTheRelay",
      `${TOKEN}ö`.slice(0, TOKEN.length - 1),
    ])
      expect(
        askHandshake(
          found("meta"),
          "GET",
          `?${new URLSearchParams({ "hub.mode": "subscribe", "hub.verify_token": said, "hub.challenge": "1" })}`,
          TOKEN,
        ),
      ).toBeString();
  });
});

test("a request with any JSON gets harmless text, JSON with harmless texts, or no answer", () => {
  const body = fc.record(
    {
      type: fc.constantFrom<unknown>("url_verification", 0, 1, 2),
      challenge: fc.oneof(value, fc.jsonValue({ maxDepth: 1 })),
      event: fc.constantFrom<unknown>("endpoint.url_validation", {}, null),
      payload: fc.oneof(fc.record({ plainToken: fc.oneof(value, fc.constantFrom("v0:1768478400:{}", "a:b")) }), fc.jsonValue({ maxDepth: 1 })),
      subscription: fc.constantFrom<unknown>({ status: "webhook_callback_verification_pending" }, null),
    },
    { requiredKeys: [] },
  );
  fc.assert(
    fc.property(fc.constantFrom(...NAMES), body, (name, said) => {
      const answer = answerHandshake(found(name), makeCall({ body: JSON.stringify(said) }), SECRET);
      if (!(answer instanceof HandshakeAnswer)) return true;
      const texts = answer.contentType === "application/json" && answer.body !== "" ? Object.values(JSON.parse(answer.body)) : [answer.body];
      return texts.every((text) => HARMLESS.test(String(text))) && !answer.body.includes(":{");
    }),
    { numRuns: 2_000 },
  );
});

describe("no answer signs a text that verifies as an event", () => {
  const LITERALS = ["", "v0:", "v0-", ".", ":", "_", "-", "a1"];
  const payloads = LITERALS.flatMap((before) => [
    `${before}{body}`,
    ...LITERALS.map((after) => `${before}{timestamp}${after}{body}`),
    `${before}{url}{body}`,
  ]);
  const verifies = payloads.map((signedPayload) => ({
    scheme: "signature",
    header: "x-signature",
    ...(signedPayload.includes("{timestamp}") ? { timestampHeader: "x-time" } : {}),
    signedPayload,
  }));
  const isSaved = (verify: object) => {
    const trigger = { kind: "receiver", verify, map: {} };
    return !("problems" in checkDefinition({ name: "paid", trigger, actions: [{ type: "call_url", url: "https://example.com/" }] }));
  };
  const EVENT = "true";

  test.each(NAMES)("%s", (name) => {
    for (const verify of verifies) {
      const handshake = findHandshake({ ...verify, handshake: name });
      if (handshake === null) throw new Error(name);
      const timestamp = String(Math.floor(NOW_MS / 1000));
      const token = verify.signedPayload.replace("{timestamp}", timestamp).replace("{url}", RECEIVER_URL).replace("{body}", EVENT);
      const asked = { event: "endpoint.url_validation", payload: { plainToken: token }, type: "url_verification", challenge: token };
      const answer = answerHandshake(handshake, makeCall({ body: JSON.stringify(asked) }), SECRET);
      const signed = answer instanceof HandshakeAnswer ? /[0-9a-f]{64}/.exec(answer.body)?.[0] : undefined;
      const headers = { "x-signature": signed ?? "", "x-time": timestamp };
      const verdict = bindScheme(verify)
        ?.prepare(SECRET)
        .verify(makeCall({ body: EVENT, headers, nowMs: NOW_MS }));
      expect([verify.signedPayload, verdict?.verified]).toEqual([verify.signedPayload, false]);
      // A definition that is refused today can come from an earlier version. The service does not answer for it.
      if (!isSaved({ ...verify, handshake: name })) expect(answer).not.toBeInstanceOf(HandshakeAnswer);
    }
  });
});
