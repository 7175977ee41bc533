/**
 * Tests senders with their own scheme in the running service. A request is stored once, or rejected with a true cause. The old secret verifies during
 * an overlap.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { createHmac, generateKeyPairSync, sign } from "node:crypto";
import { receiverDefinition } from "../kit/relay-definition.ts";
import { APP, type RunningService, startRunningService } from "../kit/running-service.ts";

const mac = (key: string | Buffer, text: string) => createHmac("sha256", key).update(text).digest("base64");
const JSON_TYPE = { "content-type": "application/json" };
const writes = { type: "write_record", collection: "orders", data: { id: "{{mapped.event_id}}" } };
const old = generateKeyPairSync("ed25519");
const young = generateKeyPairSync("ed25519");
const keyOf = ({ publicKey }: typeof old) => publicKey.export({ format: "der", type: "spki" }).subarray(-32).toString("base64");
const ITEM = "notificationItems.0.NotificationRequestItem";

let running: RunningService;
const now = () => running.clock.now();

interface Row {
  scheme: string;
  map: Record<string, string>;
  /** Holds the old and the new secret as the owner pastes them. */
  secrets: [before: string, after: string];
  make(id: string, which: 0 | 1): { headers: Record<string, string>; body: string };
}

const HUBSPOT = ["b5a1d6a8-3c52-4a9b-9e64-0f7d6c1e2f3a", "0e1d2c3b-4a59-4867-9c6d-7b8a9f0e1d2c"] as const;
const ADYEN = [
  "44782def547aaa06c910c43932b1eb0c71fc68d9d0c057550c48ec2acf6ba056",
  "0c71fc68d9d0c057550c48ec2acf6ba05644782def547aaa06c910c43932b1eb",
] as const;
const ROWS: Row[] = [
  {
    scheme: "telnyx",
    map: { event_id: "data.id" },
    secrets: [keyOf(old), keyOf(young)],
    make(id, which) {
      const body = JSON.stringify({ data: { id, event_type: "message.received" } });
      const seconds = String(Math.floor(now() / 1000));
      const signature = sign(null, Buffer.from(`${seconds}|${body}`), (which === 0 ? old : young).privateKey).toString("base64");
      return { headers: { ...JSON_TYPE, "telnyx-timestamp": seconds, "telnyx-signature-ed25519": signature }, body };
    },
  },
  {
    scheme: "hubspot",
    map: { event_id: "0.eventId" },
    secrets: [...HUBSPOT],
    make(id, which) {
      const body = JSON.stringify([{ eventId: id, subscriptionType: "contact.creation" }]);
      const at = String(now());
      const url = `https://relay.example.test/hooks/${APP}/hubspot`;
      return {
        headers: { ...JSON_TYPE, "x-hubspot-request-timestamp": at, "x-hubspot-signature-v3": mac(HUBSPOT[which], `POST${url}${body}${at}`) },
        body,
      };
    },
  },
  {
    scheme: "adyen",
    map: { reason: `${ITEM}.reason` },
    secrets: [...ADYEN],
    make(id, which) {
      const item = {
        pspReference: id,
        merchantAccountCode: "M",
        merchantReference: "order-1",
        amount: { value: 100, currency: "EUR" },
        eventCode: "AUTHORISATION",
        success: "true",
      };
      const hmacSignature = mac(Buffer.from(ADYEN[which], "hex"), `${id}::M:order-1:100:EUR:AUTHORISATION:true`);
      const body = JSON.stringify({
        live: "false",
        notificationItems: [{ NotificationRequestItem: { ...item, reason: "033899", additionalData: { hmacSignature } } }],
      });
      return { headers: JSON_TYPE, body };
    },
  },
];

beforeAll(async () => {
  running = await startRunningService();
  for (const { scheme, map, secrets } of ROWS) {
    const definition = receiverDefinition({ name: scheme, verify: { scheme }, map, actions: [writes] });
    const saved = await running.api("POST", "/relays", { definition, secret: secrets[0] });
    if (saved.status !== 201) throw new Error(JSON.stringify(saved.body));
  }
});
afterAll(() => running[Symbol.asyncDispose]());

describe.each(ROWS.map((row) => [row.scheme, row] as const))("%s", (scheme, { make, secrets }) => {
  test("stores a request once, and rejects a changed one with its cause", async () => {
    const sent = make("evt-one", 0);
    const first = await running.hook(scheme, sent);
    expect(first.body).toMatchObject({ received: true, eventId: expect.stringMatching(/^evt_/) });
    expect((await running.hook(scheme, sent)).body).toEqual({ received: true, duplicate: true, eventId: first.body.eventId });
    expect((await running.hook(scheme, { ...sent, body: sent.body.replace("evt-one", "evt-two") })).status).toBe(401);
    const [refused] = (await running.api("GET", `/calls?relay=${scheme}&outcome=refused`)).body.items;
    expect(refused.cause).toContain("the signature does not match");
  });
  test("accepts the old secret only during the overlap", async () => {
    await running.api("PUT", `/relays/${scheme}/secret`, { value: secrets[1], overlapSeconds: 3_600 });
    expect((await running.hook(scheme, make("evt-three", 0))).status).toBe(200);
    expect((await running.hook(scheme, make("evt-four", 1))).status).toBe(200);
    await running.clock.advance(3_601_000);
    expect((await running.hook(scheme, make("evt-five", 0))).status).toBe(401);
    expect((await running.hook(scheme, make("evt-six", 1))).status).toBe(200);
  });
});

test("adyen: a captured request with changes in its unsigned fields creates no second event", async () => {
  const sent = ROWS[2]?.make("evt-seven", 1) ?? { headers: {}, body: "" };
  const first = await running.hook("adyen", sent);
  const changed = await running.hook("adyen", { ...sent, body: sent.body.replace("033899", "999999") });
  expect(changed.body).toEqual({ received: true, duplicate: true, eventId: first.body.eventId });
  const [duplicate] = (await running.api("GET", "/calls?relay=adyen&outcome=duplicate")).body.items;
  expect(duplicate.cause).toContain("what their sender signs is the same in both");
});
