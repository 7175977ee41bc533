/**
 * Senders whose signatures no recipe can describe. The tests sign requests by the senders' documentation, not with the code under test. Signed
 * examples of the documentation are used unchanged.
 */
import { describe, expect, test } from "bun:test";
import { createHmac, generateKeyPairSync, sign } from "node:crypto";
import { readPastedSecret } from "../../src/platform/secret/secret-text.ts";
import type { VerifyFields } from "../../src/rules/verify/contract.ts";
import { bindScheme } from "../../src/rules/verify/registry.ts";
import { diagnoseSignature } from "../../src/rules/verify/signature-diagnosis.ts";
import { bytes, type CallChange, makeCall, NOW_MS, outcome, RECEIVER_URL } from "../kit/sender-call.ts";

const HEX_KEY = "44782DEF547AAA06C910C43932B1EB0C71FC68D9D0C057550C48EC2ACF6BA056";
const pair = generateKeyPairSync("ed25519");
const telnyxKey = pair.publicKey.export({ format: "der", type: "spki" }).subarray(-32).toString("base64");
const mac = (key: string | Buffer, text: string, encoding: "base64" | "hex" = "base64") => createHmac("sha256", key).update(text).digest(encoding);
const iso = (atMs: number) => new Date(atMs).toISOString();

interface Sent {
  headers: Record<string, string>;
  body: string;
}

interface Sender {
  scheme: string;
  secret: string;
  other: string;
  body: string;
  /** Signs at a moment, as the sender's documentation says. */
  send(body: string, atMs: number, secret: string): Sent;
  /** The headers that verification requires. */
  needs: string[];
  toleranceSeconds: number;
}

const EVENT = '{"id":"evt_1","type":"order.paid"}';
const SENDERS: Sender[] = [
  {
    scheme: "telnyx",
    secret: telnyxKey,
    other: generateKeyPairSync("ed25519").publicKey.export({ format: "der", type: "spki" }).subarray(-32).toString("base64"),
    body: EVENT,
    send: (body, atMs) => {
      const seconds = String(Math.floor(atMs / 1000));
      const signature = sign(null, Buffer.from(`${seconds}|${body}`), pair.privateKey).toString("base64");
      return { headers: { "Telnyx-Signature-Ed25519": signature, "Telnyx-Timestamp": seconds }, body };
    },
    needs: ["telnyx-signature-ed25519", "telnyx-timestamp"],
    toleranceSeconds: 300,
  },
  {
    scheme: "hubspot",
    secret: "b5a1d6a8-3c52-4a9b-9e64-0f7d6c1e2f3a",
    other: "0e1d2c3b-4a59-4867-9c6d-7b8a9f0e1d2c",
    body: '[{"eventId":1,"subscriptionType":"contact.creation","objectId":123}]',
    send: (body, atMs, secret) => ({
      headers: { "X-HubSpot-Signature-v3": mac(secret, `POST${RECEIVER_URL}${body}${atMs}`), "X-HubSpot-Request-Timestamp": String(atMs) },
      body,
    }),
    needs: ["x-hubspot-signature-v3", "x-hubspot-request-timestamp"],
    toleranceSeconds: 300,
  },
  {
    scheme: "zendesk",
    secret: "HRkRd4BeOAoUkfZr-mhauJT64rvBASlJRoIyPsd3zeA=",
    other: "dGhpc19zZWNyZXRfaXNfZm9yX3Rlc3Rpbmdfb25seQ==",
    body: EVENT,
    send: (body, atMs, secret) => {
      const at = iso(atMs).replace(".000Z", "Z");
      return { headers: { "X-Zendesk-Webhook-Signature": mac(secret, `${at}${body}`), "X-Zendesk-Webhook-Signature-Timestamp": at }, body };
    },
    needs: ["x-zendesk-webhook-signature", "x-zendesk-webhook-signature-timestamp"],
    toleranceSeconds: 300,
  },
  {
    scheme: "box",
    secret: "Fd28OJrZ8oNxkgmS7TbjXNgrG8vQ4tWz",
    other: "KWkROAOiof4zhYUHbAmiVn63cMjB7pLe",
    body: EVENT,
    send: (body, atMs, secret) => {
      const at = iso(atMs - 7 * 3_600_000).replace(".000Z", "-07:00");
      return { headers: { "Box-Signature-Primary": mac(secret, `${body}${at}`), "Box-Delivery-Timestamp": at, "Box-Signature-Version": "1" }, body };
    },
    needs: ["box-signature-primary", "box-delivery-timestamp"],
    toleranceSeconds: 600,
  },
  {
    scheme: "twitch",
    secret: "a-secret-of-the-subscription-1x",
    other: "another-secret-of-a-subscription",
    body: EVENT,
    send: (body, atMs, secret) => {
      const at = iso(atMs).replace(".000Z", ".000634234Z");
      const id = "befa7b53-d79d-478f-86b9-120f112b044e";
      return {
        headers: {
          "Twitch-Eventsub-Message-Id": id,
          "Twitch-Eventsub-Message-Timestamp": at,
          "Twitch-Eventsub-Message-Signature": `sha256=${mac(secret, `${id}${at}${body}`, "hex")}`,
        },
        body,
      };
    },
    needs: ["twitch-eventsub-message-id", "twitch-eventsub-message-timestamp", "twitch-eventsub-message-signature"],
    toleranceSeconds: 600,
  },
];

function verify(sender: Pick<Sender, "scheme" | "secret">, sent: Sent, change: CallChange = {}) {
  const { stored } = readPastedSecret({ scheme: sender.scheme }, sender.secret);
  const verifier = bindScheme({ scheme: sender.scheme })?.prepare(stored);
  if (verifier === undefined) throw new Error(`no scheme ${sender.scheme}`);
  return verifier.verify(makeCall({ ...sent, ...change }));
}

describe.each(SENDERS.map((sender) => [sender.scheme, sender] as const))("%s", (_name, sender) => {
  const { body, secret, toleranceSeconds } = sender;
  const sent = sender.send(body, NOW_MS, secret);
  const ms = toleranceSeconds * 1000;

  test("verifies a request that is signed as the sender's documentation says", () => {
    expect(outcome(verify(sender, sent))).toBe("verified");
  });
  test("refuses a changed byte, another secret, and a request without one of its headers", () => {
    expect(outcome(verify(sender, { ...sent, body: body.replace("1", "2") }))).toBe("bad_signature");
    expect(outcome(verify({ ...sender, secret: sender.other }, sent))).toBe("bad_signature");
    for (const name of sender.needs) {
      const headers = Object.fromEntries(Object.entries(sent.headers).filter(([one]) => one.toLowerCase() !== name));
      expect(verify(sender, { ...sent, headers })).toMatchObject({ verified: false, code: "bad_signature", cause: expect.stringContaining(name) });
    }
  });
  test("accepts a request at both ends of its time window, and none outside", () => {
    for (const [offMs, expected] of [
      [-ms, "verified"],
      [ms, "verified"],
      [-ms - 1000, "bad_signature"],
      [ms + 1000, "bad_signature"],
    ] as const)
      expect(outcome(verify(sender, sender.send(body, NOW_MS + offMs, secret)))).toBe(expected);
    expect(verify(sender, sent)).toMatchObject({ expiresAtMs: expect.any(Number) });
  });
  test("never accepts a repeated or malformed signature or timestamp", () => {
    for (const name of sender.needs) {
      const value = Object.entries(sent.headers).find(([one]) => one.toLowerCase() === name)?.[1] ?? "";
      for (const bad of [`${value}, ${value}`, "", "%00", `${value.slice(1)}`, "0", "-1", "1e9"])
        expect(outcome(verify(sender, { ...sent, headers: { ...sent.headers, [name]: bad } }))).toBe("bad_signature");
    }
  });
  test("signs the event itself, and verifies what relay send signs", () => {
    const scheme = bindScheme({ scheme: sender.scheme });
    expect(scheme?.signsEvent()).toBe(true);
    const key = sender.scheme === "telnyx" ? (pair.privateKey.export({ format: "pem", type: "pkcs8" }) as string) : secret;
    const draft = scheme?.sign(key, { body: bytes(body), contentType: "application/json", receiverUrl: RECEIVER_URL, nowMs: NOW_MS });
    expect(outcome(verify(sender, { headers: draft?.headers ?? {}, body }))).toBe("verified");
  });
  test("has no fields", () => {
    expect(bindScheme({ scheme: sender.scheme })?.check()).toEqual([]);
  });
});

describe("examples of the senders' own documentation", () => {
  const boxBody =
    '{"type":"webhook_event","webhook":{"id":"1234567890"},"trigger":"FILE.UPLOADED","source":{"id":"1234567890","type":"file","name":"Test.txt"}}';
  const boxHeaders = {
    "box-delivery-timestamp": "2020-01-01T00:00:00-07:00",
    "box-signature-primary": "6TfeAW3A1PASkgboxxA5yqHNKOwFyMWuEXny/FPD5hI=",
    "box-signature-secondary": "v+1CD1Jdo3muIcbpv5lxxgPglOqMfsNHPV899xWYydo=",
  };
  const boxCall = makeCall({ headers: boxHeaders, body: boxBody, nowMs: Date.UTC(2020, 0, 1, 7, 5) });
  test.each([["SamplePrimaryKey"], ["SampleSecondaryKey"]])("box: %s verifies, in either header", (key) => {
    expect(bindScheme({ scheme: "box" })?.prepare(key).verify(boxCall)).toMatchObject({ verified: true });
  });
  test("hubspot decodes the characters of its table in the URL, and no others", () => {
    const receiverUrl = "https://relay.example.test/a%3Ab%2Fc%40d%20e%26/hooks/app/crm";
    const signed = "https://relay.example.test/a:b/c@d%20e%26/hooks/app/crm";
    const secret = SENDERS[1]?.secret ?? "";
    const headers = { "x-hubspot-signature-v3": mac(secret, `POST${signed}[]${NOW_MS}`), "x-hubspot-request-timestamp": String(NOW_MS) };
    const verifier = bindScheme({ scheme: "hubspot" })?.prepare(secret);
    expect(verifier?.verify(makeCall({ headers, body: "[]", receiverUrl }))).toMatchObject({ verified: true });
    expect(verifier?.verify(makeCall({ headers, body: "[]", receiverUrl, search: "?a=1" }))).toMatchObject({ verified: false });
  });
  test("hubspot: seconds are not read as milliseconds, so that digits never move between body and timestamp", () => {
    const secret = SENDERS[1]?.secret ?? "";
    const at = String(NOW_MS / 1000);
    const headers = { "x-hubspot-signature-v3": mac(secret, `POST${RECEIVER_URL}[]${at}`), "x-hubspot-request-timestamp": at };
    expect(
      bindScheme({ scheme: "hubspot" })
        ?.prepare(secret)
        .verify(makeCall({ headers, body: "[]" })),
    ).toMatchObject({ verified: false });
  });
  test("twitch: the message id is the event's id", () => {
    const twitch = SENDERS[4] as Sender;
    expect(verify(twitch, twitch.send(EVENT, NOW_MS, twitch.secret))).toMatchObject({ senderEventId: "befa7b53-d79d-478f-86b9-120f112b044e" });
  });
  test.each([
    ["2026-01-15 12:00:00Z"],
    ["2026-01-15T12:00:00"],
    ["2026-13-15T12:00:00Z"],
    ["2026-01-15T12:00Z"],
    ["x2026-01-15T12:00:00Z"],
    ["2026-01-15T12:00:00+24:00"],
    [String(NOW_MS)],
  ])("an ISO timestamp is never %s", (at) => {
    const { secret } = SENDERS[2] as Sender;
    const headers = { "x-zendesk-webhook-signature": mac(secret, `${at}{}`), "x-zendesk-webhook-signature-timestamp": at };
    expect(verify(SENDERS[2] as Sender, { headers, body: "{}" })).toMatchObject({ verified: false, cause: expect.stringContaining("ISO 8601") });
  });
});

const ITEM = {
  additionalData: { shopperEmail: "ada@example.com" } as Record<string, unknown>,
  amount: { value: 1130, currency: "EUR" },
  pspReference: "7914073381342284",
  originalReference: "",
  eventCode: "AUTHORISATION",
  merchantAccountCode: "TestMerchant",
  merchantReference: "TestPayment-1407325143704",
  success: "true",
};
type Item = typeof ITEM;

/** Signs Adyen's values as its page lists them, independently of the code under test. */
function adyenBody(change: Partial<Item> = {}, key = HEX_KEY, after: Partial<Item> = {}): string {
  const item = { ...ITEM, ...change };
  const { pspReference, originalReference, merchantAccountCode, merchantReference, amount, eventCode, success } = item;
  const text = [pspReference, originalReference, merchantAccountCode, merchantReference, amount.value, amount.currency, eventCode, success].join(":");
  const additionalData = { ...item.additionalData, hmacSignature: mac(Buffer.from(key, "hex"), text) };
  return JSON.stringify({ live: "false", notificationItems: [{ NotificationRequestItem: { ...item, additionalData, ...after } }] });
}

describe("adyen", () => {
  const adyen = { scheme: "adyen", secret: HEX_KEY };
  const call = (body: string) => verify(adyen, { headers: {}, body });

  test("verifies the item of a standard webhook, with the key in either case", () => {
    expect(outcome(call(adyenBody()))).toBe("verified");
    expect(outcome(verify({ ...adyen, secret: HEX_KEY.toLowerCase() }, { headers: {}, body: adyenBody() }))).toBe("verified");
  });
  test("verifies the example of Adyen's documentation and libraries", () => {
    const text = "7914073381342284::TestMerchant:TestPayment-1407325143704:1130:EUR:AUTHORISATION:true";
    expect(mac(Buffer.from(HEX_KEY, "hex"), text)).toBe("coqCmt/IZ4E3CzPvMY8zTjQVL5hYJUiBRg8UU+iCWo0=");
    expect(outcome(call(adyenBody({}, HEX_KEY)))).toBe("verified");
  });
  const changed: [string, Partial<Item>][] = [
    ["pspReference", { pspReference: "7914073381342285" }],
    ["originalReference", { originalReference: "1" }],
    ["merchantAccountCode", { merchantAccountCode: "Other" }],
    ["merchantReference", { merchantReference: "Other" }],
    ["amount.value", { amount: { value: 1131, currency: "EUR" } }],
    ["amount.currency", { amount: { value: 1130, currency: "USD" } }],
    ["eventCode", { eventCode: "REFUND" }],
    ["success", { success: "false" }],
  ];
  test.each(changed)("signs %s", (_name, after) => {
    expect(outcome(call(adyenBody({}, HEX_KEY, after)))).toBe("bad_signature");
  });
  test("identifies a notification by signed values: reference, code and success", () => {
    expect(call(adyenBody())).toMatchObject({ senderEventId: "7914073381342284:AUTHORISATION:true", onceText: null, expiresAtMs: null });
    expect(call(adyenBody({ additionalData: { other: 1 } }))).toMatchObject({ senderEventId: "7914073381342284:AUTHORISATION:true" });
  });
  test("refuses another key, no signature, no item, two items and no JSON", () => {
    expect(outcome(call(adyenBody({}, HEX_KEY.replace("4", "5"))))).toBe("bad_signature");
    expect(call(adyenBody({}, HEX_KEY, { additionalData: {} }))).toMatchObject({ cause: expect.stringContaining("hmacSignature") });
    const { notificationItems } = JSON.parse(adyenBody());
    for (const items of [[], [...notificationItems, ...notificationItems], {}, [null], [{}], [{ NotificationRequestItem: [] }]])
      expect(outcome(call(JSON.stringify({ notificationItems: items })))).toBe("bad_signature");
    expect(outcome(call("{"))).toBe("invalid_json");
    expect(outcome(call("[]"))).toBe("bad_signature");
  });
  test("refuses a colon in any value except the merchant's reference, so that one text never stands for other values", () => {
    expect(outcome(call(adyenBody({ merchantReference: "a:b:c" })))).toBe("verified");
    const moved = adyenBody({ merchantAccountCode: "TestMerchant", merchantReference: "x:1:EUR" });
    const item = JSON.parse(moved).notificationItems[0].NotificationRequestItem;
    const body = JSON.stringify({
      notificationItems: [{ NotificationRequestItem: { ...item, merchantAccountCode: "TestMerchant:x", merchantReference: "1:EUR" } }],
    });
    expect(call(body)).toMatchObject({ verified: false, cause: expect.stringContaining("colon") });
  });
  test.each([[{ pspReference: "" }], [{ eventCode: "" }], [{ amount: { value: [1], currency: "EUR" } as never }], [{ success: {} as never }]])(
    "refuses an item without what happened to which payment: %j",
    (change) => {
      expect(outcome(call(adyenBody(change)))).toBe("bad_signature");
    },
  );
  test("signs an item without an original reference with an empty value", () => {
    const { originalReference: _, ...rest } = JSON.parse(adyenBody()).notificationItems[0].NotificationRequestItem;
    expect(outcome(call(JSON.stringify({ notificationItems: [{ NotificationRequestItem: rest }] })))).toBe("verified");
  });
  test("verifies what relay send signs, whatever the item lacks", () => {
    for (const body of ["{}", adyenBody(), '{"notificationItems":[{"NotificationRequestItem":{"merchantReference":"a"}}]}']) {
      const draft = bindScheme({ scheme: "adyen" })?.sign(HEX_KEY, {
        body: bytes(body),
        contentType: "application/json",
        receiverUrl: "",
        nowMs: NOW_MS,
      });
      expect(outcome(verify(adyen, { headers: {}, body: Buffer.from(draft?.body ?? "").toString() }))).toBe("verified");
    }
    expect(() =>
      bindScheme({ scheme: "adyen" })?.sign(HEX_KEY, { body: bytes('{"notificationItems":[1,2]}'), contentType: "", receiverUrl: "", nowMs: 0 }),
    ).toThrow("Adyen");
  });
});

describe("the cause of a refusal names what must change", () => {
  const RECIPE = { scheme: "signature", header: "x-signature", signedPayload: "{body}" };
  const find = async (
    verifyAs: VerifyFields,
    sent: Sent,
    secret: string,
    { called = null, ...change }: CallChange & { called?: string | null } = {},
  ) => {
    const text = readPastedSecret(verifyAs.scheme === "signature" && secret === telnyxKey ? { scheme: "telnyx" } : verifyAs, secret).stored;
    const call = makeCall({ ...sent, ...change });
    const secrets = [{ text, isPublicKey: secret === telnyxKey, label: called }];
    return await diagnoseSignature({ verify: verifyAs, received: call, headers: Object.entries(sent.headers), secrets }, async () => undefined);
  };
  test.each(SENDERS.map((sender) => [sender.scheme, sender] as const))(
    "%s: its clock, another secret, its scheme, or a rewritten body",
    async (scheme, sender) => {
      const { body, secret, send, toleranceSeconds } = sender;
      const at = NOW_MS - (toleranceSeconds + 100) * 1000;
      expect(await find({ scheme }, send(body, at, secret), secret)).toMatchObject({ changes: [], secondsOld: toleranceSeconds + 100 });
      expect(await find({ scheme }, send(body, NOW_MS, secret), secret, { called: "the secret before the current one" })).toMatchObject({
        changes: ["the secret before the current one"],
      });
      const anew = JSON.stringify(JSON.parse(body), null, 1);
      expect(await find({ scheme }, send(body, NOW_MS, secret), secret, { body: anew })).toMatchObject({
        changes: ["the body as JSON without white space"],
      });
      if (scheme !== "telnyx") expect(await find(RECIPE, send(body, NOW_MS, secret), secret)).toMatchObject({ changes: [`scheme \`${scheme}\``] });
      expect(await find({ scheme }, { ...send(body, NOW_MS, secret), body: "{}" }, secret)).toMatchObject({ changes: null, hasProof: true });
      const [proof = ""] = sender.needs;
      const { [Object.keys(send(body, NOW_MS, secret).headers).find((name) => name.toLowerCase() === proof) ?? ""]: _, ...headers } = send(
        body,
        NOW_MS,
        secret,
      ).headers;
      expect(await find({ scheme }, { headers, body }, secret)).toMatchObject({ changes: null, lacksHeader: true });
    },
  );
  test("hubspot: the URL that was called", async () => {
    const { secret, body } = SENDERS[1] as Sender;
    const signature = mac(secret, `POST${RECEIVER_URL.replace("https", "http")}${body}${NOW_MS}`);
    const headers = { "x-hubspot-signature-v3": signature, "x-hubspot-request-timestamp": String(NOW_MS) };
    expect(await find({ scheme: "hubspot" }, { headers, body }, secret)).toMatchObject({
      changes: ["the receiver URL with http instead of https"],
    });
  });
  test("adyen: the previous key, and the key's text instead of its bytes", async () => {
    const called = "the secret before the current one";
    expect(await find({ scheme: "adyen" }, { headers: {}, body: adyenBody() }, HEX_KEY, { called })).toMatchObject({ changes: [called] });
    const text = Buffer.from(HEX_KEY.toLowerCase()).toString("hex");
    expect(await find({ scheme: "adyen" }, { headers: {}, body: adyenBody({}, text) }, HEX_KEY)).toMatchObject({
      changes: ["the secret used directly, without decoding it"],
    });
    expect(await find({ scheme: "adyen" }, { headers: {}, body: adyenBody({}, "ab".repeat(20)) }, HEX_KEY)).toMatchObject({
      changes: null,
      hasProof: true,
    });
  });
});

describe("a pasted secret", () => {
  const codeOf = (scheme: string, value: string): string => {
    try {
      return readPastedSecret({ scheme }, value).kind;
    } catch (error) {
      return (error as Error).message;
    }
  };
  test("for telnyx is the account's public key, and nothing else", () => {
    expect(codeOf("telnyx", telnyxKey)).toBe("public_key");
    expect(codeOf("telnyx", "a-secret-of-the-account-1234567")).toContain("key");
  });
  test("for adyen is hex, and is stored in one form", () => {
    expect(codeOf("adyen", "not-hex-but-long-enough-12345")).toContain("hex");
    expect(readPastedSecret({ scheme: "adyen" }, HEX_KEY).stored).toBe(HEX_KEY.toLowerCase());
  });
  test.each([["hubspot"], ["zendesk"], ["box"], ["twitch"], ["adyen"]])("for %s is not a key of a pair", (scheme) => {
    expect(codeOf(scheme, pair.publicKey.export({ format: "pem", type: "spki" }) as string)).toContain("is a key, which this scheme cannot use");
  });
});
