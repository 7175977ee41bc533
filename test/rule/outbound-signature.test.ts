import { describe, expect, test } from "bun:test";
import { join } from "node:path";
import { makeSignatureHeaders, readStandardKey, signNotice } from "../../src/platform/outbound/notice-signature.ts";

const golden = join(import.meta.dir, "../golden");
const secret = "rss_test_only_9f2c4e6a8b0d1f3e5c7a";

describe("the outbound signature", () => {
  test("of the golden notice equals the golden signature, which another tool made", async () => {
    const body = await Bun.file(join(golden, "outbound-notice.json")).text();
    const signature = await Bun.file(join(golden, "outbound-notice.signature.txt")).text();
    expect(signNotice(secret, body, 1_767_603_600_000)).toBe(signature.trim());
  });

  const rows: [rule: string, other: string][] = [
    ["rounds the time down to whole seconds", signNotice(secret, "{}", 1_767_603_600_999)],
    ["is the same for the same secret, body and second", signNotice(secret, "{}", 1_767_603_600_000)],
  ];
  test.each(rows)("%s", (_rule, other) => {
    expect(other).toBe(signNotice(secret, "{}", 1_767_603_600_001));
  });

  const changed: [rule: string, other: string][] = [
    ["the body", signNotice(secret, "{ }", 1_767_603_600_000)],
    ["the second", signNotice(secret, "{}", 1_767_603_601_000)],
    ["the secret", signNotice(`${secret}x`, "{}", 1_767_603_600_000)],
    ["the secret's prefix", signNotice(secret.replace("rss_", ""), "{}", 1_767_603_600_000)],
  ];
  test.each(changed)("changes with %s", (_rule, other) => {
    const digest = (text: string) => text.split("v1=")[1];
    expect(digest(other)).toMatch(/^[0-9a-f]{64}$/);
    expect(digest(other)).not.toBe(digest(signNotice(secret, "{}", 1_767_603_600_000)));
  });
});

describe("the Standard Webhooks headers", () => {
  const id = "msg_p5jXN8AQM9LWM0D4loKWxJek";
  const signingSecret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

  test("equal the example of the Standard Webhooks specification", () => {
    const headers = makeSignatureHeaders({ body: '{"test": 2432232314}', signingSecret, webhookId: id }, 1_614_265_330_000);
    expect(headers).toEqual({
      "X-Service-Signature": signNotice(signingSecret, '{"test": 2432232314}', 1_614_265_330_000),
      "webhook-id": id,
      "webhook-timestamp": "1614265330",
      "webhook-signature": "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
    });
  });

  const secrets: [rule: string, secret: string, key: string | null][] = [
    ["is the base64 after whsec_", "whsec_AAEC/w==", "000102ff"],
    ["is not of a secret without whsec_", "AAEC/w==", null],
    ["is not of another prefix", "sgn_AAEC/w==", null],
    ["is not empty", "whsec_", null],
    ["is not base64 without padding", "whsec_AAEC/w", null],
    ["is not base64 for URLs", "whsec_AAEC_w==", null],
    ["is not base64 with other characters", "whsec_AAEC /w==", null],
  ];
  test.each(secrets)("the key %s", (_rule, secret, key) => {
    expect(readStandardKey(secret)?.toString("hex") ?? null).toBe(key);
  });
});
