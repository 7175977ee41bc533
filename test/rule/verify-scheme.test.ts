import { describe, expect, test } from "bun:test";
import { createHmac } from "node:crypto";
import { Value } from "typebox/value";
import { hooks } from "../../src/rules/verify/hooks.ts";
import { processor } from "../../src/rules/verify/processor.ts";
import { findScheme, RENAMED_SCHEME, SCHEMES } from "../../src/rules/verify/registry.ts";
import { sharedToken } from "../../src/rules/verify/shared-token.ts";
import { bytes, EVENT, JSON_TYPE, makeCall, NOW_MS, NOW_SECONDS, outcome, RECEIVER_URL, SECRET } from "../kit/sender-call.ts";

const BAD = "00".repeat(32);
const NAMED = ["telnyx", "hubspot", "zendesk", "box", "twitch", "adyen"];

/** The schemes of senders. The scheme receiver verifies nothing itself. */
const SIGNING = SCHEMES.filter(({ name }) => name !== "receiver");

describe("the schemes", () => {
  test("are signature, processor, hooks and shared_token, then the senders that no recipe can describe", () => {
    expect(SCHEMES.map((scheme) => scheme.name)).toEqual(["signature", "processor", "hooks", "shared_token", ...NAMED, "receiver"]);
    for (const scheme of SCHEMES) expect(findScheme(scheme.name)).toBe(scheme);
  });

  test("do not include hmac_sha256_header, nor a name that every object has", () => {
    expect(RENAMED_SCHEME).toBe("hmac_sha256_header");
    for (const name of [RENAMED_SCHEME, "constructor", "__proto__", ""]) expect(findScheme(name)).toBeNull();
  });

  test("processor and hooks have no fields, and each refuses an unknown one", () => {
    for (const scheme of SCHEMES) {
      expect(Value.Check(scheme.shape, { ...(scheme.examples[0] as object | undefined), secret: "x" })).toBe(false);
    }
    expect(Value.Check(processor.shape, { scheme: "processor", header: "X" })).toBe(false);
    expect(Value.Check(hooks.shape, { scheme: "hooks", header: "X" })).toBe(false);
  });

  test("all sign the event except shared_token", () => {
    const signing = SIGNING.filter((scheme) => scheme.signsEvent(scheme.examples[0] as never));
    expect(signing.map((scheme) => scheme.name)).toEqual(["signature", "processor", "hooks", ...NAMED]);
  });

  test("use the processor's own secret for processor, a public key for telnyx, and a shared secret otherwise", () => {
    const needs = SCHEMES.map(({ name, secretNeed, examples }) => [name, secretNeed(examples[0] as never)]);
    expect(needs.filter(([, need]) => need !== "shared")).toEqual([
      ["processor", "processor"],
      ["telnyx", "public_key"],
      ["receiver", "source"],
    ]);
  });

  test.each(SIGNING.map((scheme) => [scheme.name, scheme] as const))("%s verifies what it signs", (_name, scheme) => {
    if (scheme.name === "telnyx") return; // The key of telnyx is a pair, which verify-named.test.ts tests.
    const secret = scheme.name === "hooks" ? `whsec_${SECRET}` : scheme.name === "adyen" ? "ab12".repeat(16) : SECRET;
    const fields = scheme.examples[0] as never;
    const draft = { body: bytes(EVENT), contentType: JSON_TYPE, receiverUrl: RECEIVER_URL, nowMs: NOW_MS };
    const { headers, body, search } = scheme.sign(fields, secret, draft);
    expect(outcome(scheme.prepare(fields, secret).verify(makeCall({ headers, body, search })))).toBe("verified");
    const other = scheme.prepare(fields, `${secret}BBBB`);
    expect(outcome(other.verify(makeCall({ headers, body, search })))).toBe("bad_signature");
  });
});

function processorSignature(seconds: number, secret = SECRET): string {
  return createHmac("sha256", secret).update(`${seconds}.${EVENT}`).digest("hex");
}

describe("processor", () => {
  const now = NOW_MS / 1000;
  const good = `t=${now},v1=${processorSignature(now)}`;
  const at = (seconds: number) => `t=${seconds},v1=${processorSignature(seconds)}`;
  const rows: [string, Record<string, string>, string][] = [
    ["reads processor-signature", { "Processor-Signature": good }, "verified"],
    ["reads stripe-signature too", { "Stripe-Signature": good }, "verified"],
    ["uses the first available family, never a second", { "processor-signature": `t=${now},v1=${BAD}`, "stripe-signature": good }, "bad_signature"],
    ["skips the parts of other versions", { "processor-signature": `${good},v0=${BAD}` }, "verified"],
    ["has a five-minute window: 300 seconds old", { "processor-signature": at(now - 300) }, "verified"],
    ["has a five-minute window: 301 seconds old", { "processor-signature": at(now - 301) }, "bad_signature"],
    ["has a five-minute window: 301 seconds ahead", { "processor-signature": at(now + 301) }, "bad_signature"],
    ["refuses a ninth signature", { "processor-signature": `${good}${`,v1=${BAD}`.repeat(8)}` }, "too_many_signatures"],
    ["needs its header", {}, "bad_signature"],
    ["needs a timestamp", { "processor-signature": `v1=${processorSignature(now)}` }, "bad_signature"],
  ];
  test.each(rows)("%s", (_rule, headers, expected) => {
    expect(outcome(processor.prepare({ scheme: "processor" }, SECRET).verify(makeCall({ headers })))).toBe(expected);
  });
});

describe("hooks", () => {
  const secret = `whsec_${SECRET}`;
  const sign = (id: string, seconds: string | number, key: string | Buffer = Buffer.from(SECRET, "base64")) =>
    `v1,${createHmac("sha256", key).update(`${id}.${seconds}.${EVENT}`).digest("base64")}`;
  const family = (name: string, id = "msg_1", seconds: string | number = NOW_SECONDS, signature = sign(id, seconds)) => ({
    [`${name}-id`]: id,
    [`${name}-timestamp`]: String(seconds),
    [`${name}-signature`]: signature,
  });
  const now = NOW_MS / 1000;
  const bad = `v1,${Buffer.alloc(32).toString("base64")}`;
  const good = sign("msg_1", NOW_SECONDS);
  const rows: [string, Record<string, string>, string][] = [
    ["reads hooks-id, hooks-timestamp, hooks-signature", family("hooks"), "verified"],
    ["reads the webhook- family too", family("webhook"), "verified"],
    ["reads the svix- family too", family("svix"), "verified"],
    ["uses the first complete family, never a second", { ...family("hooks", "msg_1", now, bad), ...family("svix") }, "bad_signature"],
    ["skips an incomplete family", { "hooks-id": "msg_9", "hooks-signature": bad, ...family("svix") }, "verified"],
    ["never mixes families", { "hooks-id": "msg_1", "webhook-timestamp": NOW_SECONDS, "svix-signature": good }, "bad_signature"],
    ["signs the id", { ...family("hooks"), "hooks-id": "msg_2" }, "bad_signature"],
    ["signs the timestamp", { ...family("hooks"), "hooks-timestamp": String(now + 1) }, "bad_signature"],
    ["has a five-minute window: 300 seconds old", family("hooks", "msg_1", now - 300), "verified"],
    ["has a five-minute window: 301 seconds old", family("hooks", "msg_1", now - 301), "bad_signature"],
    ["has a five-minute window: 301 seconds ahead", family("hooks", "msg_1", now + 301), "bad_signature"],
    ["accepts any of several signatures", family("hooks", "msg_1", now, `${bad} ${good}`), "verified"],
    ["skips other versions", family("hooks", "msg_1", now, `v1a,x ${good}`), "verified"],
    ["never accepts a good signature under another version", family("hooks", "msg_1", now, good.replace("v1", "v2")), "bad_signature"],
    ["reads eight entries", family("hooks", "msg_1", now, `${`${bad} `.repeat(7)}${good}`), "verified"],
    ["refuses a ninth entry, whatever its version", family("hooks", "msg_1", now, `${good}${" v9,x".repeat(8)}`), "too_many_signatures"],
    ["never accepts a bare signature", family("hooks", "msg_1", now, good.slice(3)), "bad_signature"],
    ["does not use the key's text as the key", family("hooks", "msg_1", now, sign("msg_1", now, secret)), "bad_signature"],
    ["refuses an empty id", family("hooks", "", now), "bad_signature"],
  ];
  test.each(rows)("%s", (_rule, headers, expected) => {
    expect(outcome(hooks.prepare({ scheme: "hooks" }, secret).verify(makeCall({ headers })))).toBe(expected);
  });

  test("the verdict carries the sender's own event id and the window's end", () => {
    const verdict = hooks.prepare({ scheme: "hooks" }, secret).verify(makeCall({ headers: family("svix") }));
    expect(verdict).toEqual({
      verified: true,
      onceText: null,
      expiresAtMs: NOW_MS + 301_000,
      senderEventId: "msg_1",
    });
  });

  test("refuses every request with a stored secret in another format", () => {
    for (const stored of ["", SECRET, "whsec_", "whsec_not base64!"]) {
      const verdict = hooks.prepare({ scheme: "hooks" }, stored).verify(makeCall({ headers: family("hooks") }));
      expect(outcome(verdict)).toBe("bad_signature");
    }
  });
});

describe("shared_token", () => {
  const own = { scheme: "shared_token", header: "Authorization", query: "key" } as const;
  const rows: [string, { header?: string; query?: string }, Record<string, string>, string, string][] = [
    ["accepts the token in header x-webhook-token", {}, { "X-Webhook-Token": SECRET }, "", "verified"],
    ["accepts the token in query token", {}, {}, `?token=${SECRET}`, "verified"],
    ["accepts a right query with a wrong header", {}, { "x-webhook-token": "x" }, `?token=${SECRET}`, "verified"],
    ["accepts a right header with a wrong query", {}, { "x-webhook-token": SECRET }, "?token=x", "verified"],
    ["ignores other query parameters", {}, {}, `?a=1&token=${SECRET}&b`, "verified"],
    ["replaces the default by a named header", own, { "x-webhook-token": SECRET }, "", "bad_signature"],
    ["replaces the default by a named query", own, {}, `?token=${SECRET}`, "bad_signature"],
    ["reads a named header", own, { authorization: SECRET }, "", "verified"],
    ["reads a named query", own, {}, `?key=${SECRET}`, "verified"],
    ["refuses no token", {}, {}, "", "bad_signature"],
    ["refuses an empty token", {}, { "x-webhook-token": "" }, "?token=", "bad_signature"],
    ["refuses a beginning of the token", {}, { "x-webhook-token": SECRET.slice(0, -1) }, "", "bad_signature"],
    ["refuses a longer token", {}, { "x-webhook-token": `${SECRET}x` }, "", "bad_signature"],
    ["refuses another case", {}, { "x-webhook-token": SECRET.toLowerCase() }, "", "bad_signature"],
    ["refuses another token of the same length", {}, { "x-webhook-token": "x".repeat(SECRET.length) }, "", "bad_signature"],
    ["refuses characters outside ASCII", {}, {}, `?token=${"é".repeat(SECRET.length)}`, "bad_signature"],
  ];
  test.each(rows)("%s", (_rule, fields, headers, search, expected) => {
    const verifier = sharedToken.prepare({ scheme: "shared_token", ...fields }, SECRET);
    expect(outcome(verifier.verify(makeCall({ headers, search })))).toBe(expected);
  });

  test("accepts a token with a space inside, as in Bearer", () => {
    const token = `Bearer ${SECRET}`;
    const verifier = sharedToken.prepare({ scheme: "shared_token", header: "authorization" }, token);
    expect(outcome(verifier.verify(makeCall({ headers: { authorization: token } })))).toBe("verified");
    expect(outcome(verifier.verify(makeCall({ headers: { authorization: SECRET } })))).toBe("bad_signature");
  });

  test("refuses every request with an empty stored secret", () => {
    const verifier = sharedToken.prepare({ scheme: "shared_token" }, "");
    expect(outcome(verifier.verify(makeCall({ headers: { "x-webhook-token": "" }, search: "?token=" })))).toBe("bad_signature");
  });
});
