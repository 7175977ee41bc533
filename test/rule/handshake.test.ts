/** The handshakes by which senders test an address: the responses, the checks before them, and the requests that get none. */
import { describe, expect, test } from "bun:test";
import { createHmac } from "node:crypto";
import { checkDefinition } from "../../src/rules/relay/definition.ts";
import { answerHandshake, askHandshake, findHandshake, HandshakeAnswer, type NamedHandshake } from "../../src/rules/verify/handshake.ts";
import { makeCall } from "../kit/sender-call.ts";

const TOKEN = "vt_ownTokenOfTheRelay";
const SECRET = "Qk7bXFQsq4OKAPhAIVqsHMpkNhzCwRnS";
const verifyOf = (name: string) =>
  name === "twitch"
    ? { scheme: "twitch" }
    : { scheme: "signature", algorithm: name === "discord" ? "ed25519" : "hmac-sha256", signedPayload: "v0:{timestamp}:{body}" };
const of = (name: string): NamedHandshake => {
  const found = findHandshake({ ...verifyOf(name), handshake: name });
  if (found === null) throw new Error(name);
  return found;
};
const shown = (answer: HandshakeAnswer | string | null) =>
  answer instanceof HandshakeAnswer ? `${answer.status} ${answer.contentType.split(";")[0]} ${answer.body}` : answer;
const ask = (name: string, search: string, method: "GET" | "HEAD" = "GET") => shown(askHandshake(of(name), method, search, TOKEN));
const answer = (name: string, body: unknown) =>
  shown(answerHandshake(of(name), makeCall({ body: typeof body === "string" ? body : JSON.stringify(body) }), SECRET));

const meta = (change: Record<string, string> = {}) =>
  `?${new URLSearchParams({ "hub.mode": "subscribe", "hub.verify_token": TOKEN, "hub.challenge": "1158201444", ...change })}`;
const MARKUP = ["<script>alert(1)</script>", "<svg/onload=a>", "javascript:alert(1)", "a b", "a\nb", "é", '"', "{{x}}", "%3Cb%3E", ""];

describe("a handshake by GET", () => {
  test("meta: echoes the challenge for the relay's own verify token", () => {
    expect(ask("meta", meta())).toBe("200 text/plain 1158201444");
  });
  const refused: [string, string, string][] = [
    ["another token", meta({ "hub.verify_token": "vt_ownTokenOfTheRelaz" }), "verify_token"],
    ["no token", meta().replace(/&hub.verify_token=[^&]*/, ""), "verify_token"],
    ["the token twice", `${meta()}&hub.verify_token=${TOKEN}`, "verify_token"],
    ["the challenge twice", `${meta()}&hub.challenge=1`, "hub.challenge"],
    ["the mode twice", `${meta()}&hub.mode=subscribe`, "hub.mode"],
    ["another mode", meta({ "hub.mode": "unsubscribe" }), "hub.mode"],
    ["no challenge", meta().replace(/&hub.challenge=[^&]*/, ""), "hub.challenge"],
    ["a challenge of 257 characters", meta({ "hub.challenge": "1".repeat(257) }), "256"],
    ["a query of more than 2,048 characters", `${meta()}&x=${"x".repeat(2_048)}`, "2048"],
  ];
  test.each(refused)("meta: refuses %s", (_what, search, why) => {
    expect(ask("meta", search)).toContain(why);
    expect(ask("meta", search)).not.toContain(TOKEN);
  });
  test("meta: is no handshake without hub.* parameters or by HEAD", () => {
    expect(ask("meta", "")).toBeNull();
    expect(ask("meta", "?challenge=1")).toBeNull();
    expect(ask("meta", meta(), "HEAD")).toBeNull();
  });
  test("dropbox: echoes one short challenge", () => {
    expect(ask("dropbox", "?challenge=dBmx-_8")).toBe("200 text/plain dBmx-_8");
    expect(ask("dropbox", "?challenge=a&challenge=b")).toContain("twice");
    expect(ask("dropbox", `?challenge=${"a".repeat(256)}`)).toStartWith("200 ");
    expect(ask("dropbox", `?challenge=${"a".repeat(257)}`)).toContain("256");
    expect(ask("dropbox", "?other=1")).toBeNull();
    expect(ask("dropbox", "?challenge=a", "HEAD")).toBeNull();
  });
  test.each(MARKUP)("echoes only harmless characters: %j", (challenge) => {
    expect(ask("dropbox", `?${new URLSearchParams({ challenge })}`)).toContain("challenge has characters other than");
    expect(ask("meta", meta({ "hub.challenge": challenge }))).toContain("hub.challenge has characters other than");
    expect(answer("slack", { type: "url_verification", challenge })).toContain("challenge has characters other than");
    expect(answer("zoom", { event: "endpoint.url_validation", payload: { plainToken: challenge } })).toContain("plainToken");
  });
  test("probe: responds to HEAD and GET with an empty body", () => {
    expect(ask("probe", "")).toBe("200 text/plain ");
    expect(ask("probe", "?a=%3Cb%3E", "HEAD")).toBe("200 text/plain ");
  });
  test.each(["slack", "zoom", "discord", "twitch"])("%s has no handshake by GET", (name) => {
    expect(ask(name, meta())).toBeNull();
    expect(ask(name, "?challenge=1")).toBeNull();
  });
});

describe("a handshake by a verified request", () => {
  test("slack: echoes the challenge of url_verification", () => {
    expect(answer("slack", { token: "x", challenge: "3eZbrw1aBm2rZgRNFdxV2595E9CY3gmdALWMmHkvFXO7tYXAYM8P", type: "url_verification" })).toBe(
      "200 text/plain 3eZbrw1aBm2rZgRNFdxV2595E9CY3gmdALWMmHkvFXO7tYXAYM8P",
    );
    expect(answer("slack", { type: "event_callback", challenge: "a" })).toBeNull();
    expect(answer("slack", { type: "url_verification", challenge: ["a"] })).toContain("challenge");
  });
  test("zoom: returns the token with its HMAC, and refuses text that could be an event's signed payload", () => {
    const plainToken = "qgg8vlvZRS6UYooatFL8Aw";
    const encryptedToken = createHmac("sha256", SECRET).update(plainToken).digest("hex");
    expect(answer("zoom", { event: "endpoint.url_validation", payload: { plainToken }, event_ts: 1 })).toBe(
      `200 application/json {"plainToken":"${plainToken}","encryptedToken":"${encryptedToken}"}`,
    );
    for (const forged of ["v0:1768478400:{}", "v0:1:a", "a".repeat(101), 1, null])
      expect(answer("zoom", { event: "endpoint.url_validation", payload: { plainToken: forged } })).toContain("plainToken");
    expect(answer("zoom", { event: "meeting.started", payload: { plainToken } })).toBeNull();
    expect(answer("zoom", { event: "endpoint.url_validation", payload: null })).toContain("plainToken");
  });
  test("discord: handles the ping of interactions and of webhook events, but no event", () => {
    expect(answer("discord", { type: 1, id: "1", application_id: "2" })).toBe('200 application/json {"type":1}');
    expect(answer("discord", { version: 1, application_id: "2", type: 0 })).toBe("204 application/json ");
    expect(answer("discord", { version: 1, application_id: "2", type: 1, event: { type: "ENTITLEMENT_CREATE" } })).toBeNull();
    expect(answer("discord", { type: 2, data: { name: "buy" } })).toBeNull();
    expect(answer("discord", { type: "1" })).toBeNull();
  });
  test("twitch: echoes the challenge of a pending subscription", () => {
    const subscription = { status: "webhook_callback_verification_pending" };
    expect(answer("twitch", { challenge: "pogchamp-kappa-360noscope-vohiyo", subscription })).toBe("200 text/plain pogchamp-kappa-360noscope-vohiyo");
    expect(answer("twitch", { challenge: "a", subscription: { status: "enabled" } })).toBeNull();
    expect(answer("twitch", { challenge: "a", subscription, event: {} })).toBeNull();
  });
  test.each(["slack", "zoom", "discord", "twitch"])("%s: has no handshake for a body that is no object", (name) => {
    for (const body of ["[]", "null", "1", "{", "type=1"]) expect(answer(name, body)).toBeNull();
  });
  test.each(["meta", "dropbox", "probe"])("%s has no handshake by a verified request", (name) => {
    expect(answer(name, { type: "url_verification", challenge: "a" })).toBeNull();
  });
});

describe("verify.handshake", () => {
  const fieldsOf = (verify: Record<string, unknown>) => {
    const checked = checkDefinition({
      name: "paid",
      trigger: { kind: "receiver", verify, map: {} },
      actions: [{ type: "call_url", url: "https://example.com/" }],
    });
    return "problems" in checked ? checked.problems.map(({ field, message }) => `${field}: ${message}`) : [];
  };
  const SIGNED = { scheme: "signature", header: "x-signature" };
  const good: Record<string, unknown>[] = [
    { ...SIGNED, handshake: "meta" },
    { ...SIGNED, handshake: "slack" },
    { ...SIGNED, timestampHeader: "x-time", signedPayload: "v0:{timestamp}:{body}", handshake: "zoom" },
    { ...SIGNED, timestampHeader: "x-time", handshake: "zoom" },
    { ...SIGNED, signedPayload: "{url}{body}", handshake: "zoom" },
    { ...SIGNED, algorithm: "ed25519", timestampHeader: "x-time", signedPayload: "{timestamp}{body}", handshake: "discord" },
    { scheme: "shared_token", handshake: "probe" },
    { scheme: "hooks", handshake: "dropbox" },
    { scheme: "twitch", handshake: "twitch" },
  ];
  test.each(good)("%j is valid", (verify) => {
    expect(fieldsOf(verify)).toEqual([]);
  });
  const bad: [Record<string, unknown>, string][] = [
    [{ ...SIGNED, handshake: "other" }, "trigger.verify.handshake"],
    [{ scheme: "shared_token", handshake: "slack" }, "use scheme signature with algorithm hmac-sha256 over {body}"],
    [{ scheme: "shared_token", handshake: "zoom" }, "use scheme signature with algorithm hmac-sha256 over {body}"],
    [{ ...SIGNED, signedPayload: "{token}", tokenField: "token", handshake: "zoom" }, "over {body}"],
    [{ ...SIGNED, signedPayload: "{params}", handshake: "slack" }, "over {body}"],
    [{ ...SIGNED, handshake: "zoom" }, "signedPayload {body}, that signature would verify an event: set signedPayload to v0:{timestamp}:{body}"],
    [{ ...SIGNED, timestampHeader: "x-time", signedPayload: "v0-{timestamp}-{body}", handshake: "zoom" }, "with signedPayload v0-{timestamp}-{body}"],
    [{ ...SIGNED, handshake: "discord" }, "algorithm ed25519"],
    [{ ...SIGNED, handshake: "twitch" }, "use scheme twitch"],
    [{ scheme: "hooks", handshake: "slack" }, "over {body}"],
  ];
  test.each(bad)("%j is refused, because its check would be skipped", (verify, why) => {
    const [told, ...others] = fieldsOf(verify);
    expect(told).toContain("trigger.verify.handshake");
    expect(told).toContain(why);
    expect(others).toEqual([]);
  });
});
