/** Tests manual test events over the API: their target, that they verify and run like real ones, their mark, and their errors. */
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { generateKeyPairSync } from "node:crypto";
import { type ApiServer, startApi } from "../kit/api-server.ts";

const NOTE = { type: "write_record", collection: "notes", data: { text: "{{mapped.text}}" } };
const MAIL = { type: "email_person", subject: "x", text: "y" };
const SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

let api: ApiServer;
beforeEach(async () => {
  api = await startApi();
});
afterEach(() => api[Symbol.asyncDispose]());

const make = async (E: string, trigger: object, { actions = [NOTE], secret }: { actions?: object[]; secret?: string } = {}) => {
  const body = { definition: { name: "orders", trigger, actions }, ...(secret === undefined ? {} : { secret }) };
  const made = await api.call(`${E}/relays`, { method: "POST", session: true, body });
  expect([made.status, made.json.message]).toEqual([201, undefined]);
};
const receiver = (verify: object, more: object = {}) => ({ kind: "receiver", verify, map: { event_id: "id", text: "text" }, ...more });
const send = (body: object = {}, E = api.E) => api.call(`${E}/relays/orders/test-event`, { method: "POST", session: true, body });
const rows = () =>
  api.store.read((tx) => tx.all<{ cameBy: string; unsigned: number; payload: string }>("SELECT source AS cameBy, unsigned, payload FROM event"));

const PARAMS = { scheme: "signature", header: "x-signature", signedPayload: "{url}{params}" };
const TOKEN = { scheme: "signature", signatureField: "sign", tokenField: "token", timestampField: "at", signedPayload: "{timestamp}{token}" };
const SENDERS: [sender: string, verify: object, unsigned: number][] = [
  ["hooks", { scheme: "hooks" }, 0],
  ["a recipe that signs the body", { scheme: "signature", header: "x-signature", signedPayload: "{body}" }, 0],
  ["a recipe that signs a form and the URL", PARAMS, 0],
  ["a token recipe", TOKEN, 1],
  ["a shared token", { scheme: "shared_token" }, 1],
];
for (const [sender, verify, unsigned] of SENDERS)
  test(`${sender}: an example is created, signed, verified and stored, marked as a test`, async () => {
    await make(api.E, receiver(verify), { secret: SECRET });
    const sent = await send();
    expect([sent.status, sent.json.outcome]).toEqual([200, "new"]);
    expect((await rows()).map((row) => [row.cameBy, row.unsigned])).toEqual([["test", unsigned]]);
    const { json } = await api.call(`${api.E}/events/${sent.json.eventId}`, { session: true });
    expect(json.event.cameBy).toBe("test");
  });

const BODY = { scheme: "signature", header: "x-signature", signedPayload: "{body}", encoding: "hex" };
const GITHUB = { ...BODY, header: "X-Hub-Signature-256", signatureKey: "sha256" };
const ADYEN = "notificationItems.0.NotificationRequestItem";
const WITHOUT_ID: [sender: string, trigger: object, secret?: string][] = [
  ["an unknown sender", receiver(BODY, { map: { text: "text" } })],
  ["a sender of lists", receiver(BODY, { map: { text: "0.text" } })],
  ["a sender of forms", receiver({ ...BODY, signedPayload: "{url}{params}" }, { map: { text: "text" } })],
  ["GitHub", receiver(GITHUB, { map: { event_type: "action", text: "repository.full_name" } })],
  [
    "Adyen",
    receiver({ scheme: "adyen" }, { map: { text: `${ADYEN}.eventCode`, payment: `${ADYEN}.pspReference` } }),
    "4b1f9c02d7e85a6330c9f1a4e2b7d86059ac13ef7d204b86c5e9317fa0628bd4",
  ],
];
for (const [sender, trigger, secret = SECRET] of WITHOUT_ID)
  test(`${sender} has no event id: each example is a new event`, async () => {
    await make(api.E, trigger, { secret });
    expect([(await send()).json.outcome, (await send()).json.outcome]).toEqual(["new", "new"]);
  });

test("a custom body works, a repeat is a duplicate, and a body that when ignores is not stored", async () => {
  await make(api.E, receiver({ scheme: "hooks" }, { map: { event_id: "id", event_type: "type" }, when: { event_type: "paid" } }), { secret: SECRET });
  const body = '{"id":"evt_1","type":"paid"}';
  const first = await send({ body });
  expect(first.json.outcome).toBe("new");
  expect((await send({ body })).json).toMatchObject({ outcome: "known", eventId: first.json.eventId });
  expect((await send({ body: '{"id":"evt_2","type":"made"}' })).json).toMatchObject({ outcome: "ignored", eventId: null });
  expect((await rows()).length).toBe(1);
});

test("a schedule gets one tick without a period", async () => {
  await make(api.E, { kind: "schedule", every: "1d" });
  expect((await send()).json.outcome).toBe("new");
  const [row] = await rows();
  expect([row?.cameBy, JSON.parse(row?.payload ?? "").tick.test]).toEqual(["test", true]);
});

test("does not affect the sender's health, and is audited", async () => {
  await make(api.E, receiver({ scheme: "hooks" }), { secret: SECRET });
  const { json } = await send();
  const [relay] = await api.store.read((tx) => tx.all<{ acceptedAt: number | null }>("SELECT accepted_at AS acceptedAt FROM relay"));
  expect(relay?.acceptedAt).toBe(null);
  const audit = await api.call(`${api.E}/audit?action=event.test_sent`, { session: true });
  expect(audit.json.items.map(({ target, after }: Record<string, unknown>) => [target, after])).toEqual([
    ["relay:orders", { eventId: json.eventId }],
  ]);
});

for (const [change, count] of [
  ["created", 1],
  ["updated", 1],
  ["deleted", 0],
] as const)
  test(`a relay that watches records gets one that is ${change}, audited`, async () => {
    const notes = { name: "notes", kind: "shared", fields: { text: { type: "text" } } };
    await api.call(`${api.E}/collections`, { method: "POST", session: true, body: notes });
    await make(api.E, { kind: "data_change", collection: "notes", on: [change] });
    const sent = await send();
    expect([sent.status, sent.json.outcome, sent.json.eventId]).toEqual([200, "new", null]);
    expect(sent.json.recordId).toMatch(/^rec_/);
    // The relay may already have written its own record.
    expect(await api.store.read((tx) => tx.all("SELECT id FROM record WHERE id = ?1", sent.json.recordId))).toHaveLength(count);
    const audit = await api.call(`${api.E}/audit?action=event.test_sent`, { session: true });
    expect(audit.json.items[0].after).toEqual({ recordId: sent.json.recordId });
  });

describe("a test event is rejected", () => {
  test("in production for a record change", async () => {
    const live = "/api/apps/shop/production";
    await make(live, { kind: "data_change", collection: "notes", on: ["created"] });
    expect((await send({}, live)).json.code).toBe("forbidden");
    expect(await api.store.read((tx) => tx.all("SELECT id FROM record"))).toEqual([]);
  });

  test("in production for a receiver and a schedule", async () => {
    const live = "/api/apps/shop/production";
    await make(live, receiver({ scheme: "hooks" }), { secret: SECRET });
    const refused = await send({}, live);
    expect([refused.status, refused.json.code]).toEqual([403, "forbidden"]);
    expect(await rows()).toEqual([]);
  });

  test("if only the sender's private key signs", async () => {
    const key = generateKeyPairSync("ed25519").publicKey.export({ format: "pem", type: "spki" }) as string;
    await make(api.E, receiver({ scheme: "signature", algorithm: "ed25519", header: "x-s", signedPayload: "{body}" }), { secret: key });
    const refused = await send();
    expect([refused.status, refused.json.code, refused.json.message]).toEqual([
      400,
      "invalid_input",
      expect.stringContaining("only the sender can sign"),
    ]);
  });

  test("without a processor secret, for a record change, for invalid JSON, and for an unknown relay", async () => {
    await make(api.E, receiver({ scheme: "processor" }), { actions: [NOTE, MAIL] });
    expect((await send()).json.code).toBe("invalid_input");
    expect((await api.call(`${api.E}/relays/nobody/test-event`, { method: "POST", session: true, body: {} })).status).toBe(404);
    await api.call(`${api.E}/relays/orders`, { method: "DELETE", session: true });
    await make(api.E, { kind: "data_change", collection: "notes", on: ["created"] });
    expect((await send({ record: ["no object"] })).json.message).toContain("record must be a JSON object");
    await api.call(`${api.E}/relays/orders`, { method: "DELETE", session: true });
    await make(api.E, receiver({ scheme: "hooks" }), { secret: SECRET });
    expect((await send({ body: "{no json" })).status).toBe(400);
    expect(await rows()).toEqual([]);
  });
});
