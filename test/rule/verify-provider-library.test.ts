/** The senders' own libraries agree with the recipes. They accept our signatures, and the recipes accept theirs. */
import { describe, expect, test } from "bun:test";
import { sign as signGithub, verify as verifyGithub } from "@octokit/webhooks-methods";
import "@shopify/shopify-api/adapters/web-api";
import { ApiVersion, shopifyApi } from "@shopify/shopify-api";
import { verifySlackRequest } from "@slack/bolt";
import { Webhook } from "standardwebhooks";
import Stripe from "stripe";
import { hooks } from "../../src/rules/verify/hooks.ts";
import { processor } from "../../src/rules/verify/processor.ts";
import { signature } from "../../src/rules/verify/signature.ts";
import { bytes, deliver, EVENT, FORM_TYPE, JSON_TYPE, makeCall, outcome, RECEIVER_URL, recipe, SECRET, signEvent } from "../kit/sender-call.ts";

/** The libraries read the machine's clock, so these tests use the current time. */
const nowMs = Date.now();
const draft = { body: bytes(EVENT), contentType: JSON_TYPE, receiverUrl: RECEIVER_URL, nowMs };

describe("stripe", () => {
  const stripe = new Stripe("sk_test_none");
  const fields = recipe({
    header: "Stripe-Signature",
    signatureKey: "v1",
    timestampKey: "t",
    signedPayload: "{timestamp}.{body}",
  });

  test("accepts what the recipe and the scheme processor sign", async () => {
    const byRecipe = signature.sign(fields, SECRET, draft).headers["Stripe-Signature"] ?? "";
    const byScheme = processor.sign({ scheme: "processor" }, SECRET, draft).headers["processor-signature"] ?? "";
    for (const header of [byRecipe, byScheme]) {
      expect(await stripe.webhooks.constructEventAsync(EVENT, header, SECRET)).toMatchObject({ id: "evt_1" });
    }
  });

  test("signs what the recipe and the scheme processor accept", async () => {
    const header = await stripe.webhooks.generateTestHeaderStringAsync({ payload: EVENT, secret: SECRET });
    const call = makeCall({ headers: { "stripe-signature": header }, nowMs });
    expect(outcome(signature.prepare(fields, SECRET).verify(call))).toBe("verified");
    expect(outcome(processor.prepare({ scheme: "processor" }, SECRET).verify(call))).toBe("verified");
  });
});

describe("standardwebhooks", () => {
  const secret = `whsec_${SECRET}`;
  const library = new Webhook(secret);

  test("accepts what the scheme hooks signs", () => {
    const { headers } = hooks.sign({ scheme: "hooks" }, secret, draft);
    const renamed = Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.replace("hooks-", "webhook-"), value]));
    expect(library.verify(EVENT, renamed)).toMatchObject({ id: "evt_1" });
  });

  test("signs what the scheme hooks accepts", () => {
    const headers = {
      "webhook-id": "msg_1",
      "webhook-timestamp": String(Math.floor(nowMs / 1000)),
      "webhook-signature": library.sign("msg_1", new Date(nowMs), EVENT),
    };
    expect(outcome(hooks.prepare({ scheme: "hooks" }, secret).verify(makeCall({ headers, nowMs })))).toBe("verified");
  });
});

describe("@octokit/webhooks-methods", () => {
  const fields = recipe({ header: "X-Hub-Signature-256", signatureKey: "sha256", signedPayload: "{body}" });

  test("accepts what the recipe signs", async () => {
    const header = signEvent(fields, SECRET).headers["X-Hub-Signature-256"] ?? "";
    expect(await verifyGithub(SECRET, EVENT, header)).toBe(true);
  });

  test("signs what the recipe accepts", async () => {
    const headers = { "x-hub-signature-256": await signGithub(SECRET, EVENT) };
    expect(outcome(signature.prepare(fields, SECRET).verify(makeCall({ headers })))).toBe("verified");
  });
});

describe("@slack/bolt", () => {
  const fields = recipe({
    header: "X-Slack-Signature",
    signatureKey: "v0",
    timestampHeader: "X-Slack-Request-Timestamp",
    signedPayload: "v0:{timestamp}:{body}",
  });

  test("accepts what the recipe signs, and the recipe accepts it too", () => {
    const body = "command=%2Fbuy&text=a+b";
    const sent = signature.sign(fields, SECRET, { ...draft, body: bytes(body), contentType: FORM_TYPE });
    const headers = {
      "x-slack-signature": sent.headers["X-Slack-Signature"] ?? "",
      "x-slack-request-timestamp": Number(sent.headers["X-Slack-Request-Timestamp"]),
    };
    verifySlackRequest({ signingSecret: SECRET, body, headers });
    expect(() => verifySlackRequest({ signingSecret: SECRET, body: `${body}!`, headers })).toThrow();
    expect(outcome(signature.prepare(fields, SECRET).verify(deliver(sent, { nowMs })))).toBe("verified");
  });
});

describe("@shopify/shopify-api", () => {
  const fields = recipe({ header: "X-Shopify-Hmac-Sha256", signedPayload: "{body}", encoding: "base64" });
  const shopify = shopifyApi({
    apiKey: "none",
    apiSecretKey: SECRET,
    hostName: "relay.example.test",
    apiVersion: ApiVersion.October25,
    isEmbeddedApp: false,
    logger: { log: () => {} },
  });

  test("accepts what the recipe signs, and no changed request", async () => {
    const headers = {
      ...signEvent(fields, SECRET).headers,
      "X-Shopify-Topic": "orders/paid",
      "X-Shopify-Shop-Domain": "example.myshopify.com",
      "X-Shopify-API-Version": "2025-10",
      "X-Shopify-Webhook-Id": "1",
    };
    const validate = (rawBody: string) =>
      shopify.webhooks.validate({
        rawBody,
        rawRequest: new Request(RECEIVER_URL, { method: "POST", headers, body: rawBody }),
      });
    expect((await validate(EVENT)).valid).toBe(true);
    expect((await validate(`${EVENT} `)).valid).toBe(false);
  });
});
