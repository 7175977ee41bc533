/** Tests the dry run of a relay over the API: each step is explained, and the database does not change. */
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { createHmac } from "node:crypto";
import { HOOK_SECRET, makeOrders, receiverDefinition, saveRelay, signedCall, writeOrder } from "../kit/relay-definition.ts";
import { type RunningService, startRunningService } from "../kit/running-service.ts";
import { readWholeDatabase } from "../kit/whole-database.ts";

const PERSON_MAP = { event_id: "id", event_type: "type", amount: "amount", person_email: "email" };
const GRANT = { type: "grant_access", entitlement: "access:members", reason: "Order {{mapped.event_id}}" };
const MAIL = { type: "email_person", subject: "Thanks {{person.email}}", text: "Order {{mapped.event_id}}" };
const CALL = { type: "call_url", url: "https://example.test/notice" };
const EVENT = { id: "ord_1", type: "paid", amount: 4200, email: "ada@example.com" };

interface Step {
  step: string;
  outcome: string;
  reached: boolean;
  message: string;
  // biome-ignore lint/suspicious/noExplicitAny: a detail has a shape of its step
  detail: any;
}

let running: RunningService;
let called: number;

beforeEach(async () => {
  called = 0;
  running = await startRunningService({
    environments: ["development", "production"],
    ports: {
      caller: {
        call: async () => {
          called += 1;
          return { kind: "answered", ok: true, status: 200, body: "" };
        },
        warmUp: async () => undefined,
        close: async () => undefined,
      } as never,
    },
  });
  await makeOrders(running);
  expect((await running.api("PUT", "/access/members", { title: "Members" })).status).toBeLessThan(300);
});

afterEach(async () => {
  await running[Symbol.asyncDispose]();
});

async function explain(name: string, asked: object = {}) {
  const before = await readWholeDatabase(running);
  const { status, body } = await running.api("POST", `/relays/${name}/explain`, asked);
  expect(await readWholeDatabase(running)).toBe(before);
  expect(called).toBe(0);
  if (status !== 200) throw new Error(JSON.stringify(body));
  const { steps, ...explanation } = body.explanation as { steps: Step[]; would: string; message: string; from: string; warnings: string[] };
  const told = steps.map(({ step, outcome, reached }) => `${step} ${outcome}${reached ? "" : " (not reached)"}`);
  const step = (wanted: string, at = 0): Step => steps.filter((one) => one.step === wanted)[at] as Step;
  return { ...explanation, told, step, text: JSON.stringify(body) };
}

async function saveBare(definition: object): Promise<void> {
  expect((await running.api("POST", "/relays", { definition })).status).toBe(201);
}

describe("a receiver's request", () => {
  test("given only by its body is signed like the sender's, and every step is shown", async () => {
    await saveRelay(running, receiverDefinition({ map: PERSON_MAP, when: { event_type: "paid" }, actions: [writeOrder, GRANT, CALL] }));
    const got = await explain("orders", { body: JSON.stringify(EVENT) });
    expect(got).toMatchObject({ from: "body", would: "run", message: "Every action would be done.", warnings: [] });
    expect(got.told).toEqual([
      "parts ok",
      "signed_text ok",
      "signature ok",
      "map ok",
      "when ok",
      "event_id ok",
      "person ok",
      "action ok",
      "action ok",
      "action ok",
    ]);
    expect(got.step("parts").detail).toEqual([{ part: "signature", header: "x-signature", form: "hex, 32 bytes" }]);
    expect(got.step("signed_text").detail).toMatchObject({ signedPayload: "{body}", text: JSON.stringify(EVENT), cut: false });
    expect(got.step("map").detail).toContainEqual({ name: "amount", path: "amount", found: true, value: 4200 });
    expect(got.step("person")).toMatchObject({
      message: "The person does not exist yet and would be made, as invited.",
      detail: { email: "ada@example.com" },
    });
    expect(got.step("action", 0).detail).toMatchObject({ rendered: { data: { order: "ord_1", amount: "4200" } }, result: { outcome: "done" } });
    expect(got.step("action", 1).detail).toMatchObject({ rendered: { reason: "Order ord_1" } });
    expect(got.step("action", 2).detail.sends).toMatchObject({
      url: CALL.url,
      notice: { trigger: "receiver", person: { email: "ada@example.com" } },
    });
    expect(got.text).not.toContain(HOOK_SECRET);
    expect(got.text).not.toContain(createHmac("sha256", HOOK_SECRET).update(JSON.stringify(EVENT)).digest("hex"));
  });

  const rows: [string, Parameters<typeof receiverDefinition>[0], object, string, RegExp, string][] = [
    [
      "headers that do not verify name the difference, and later steps are marked as not reached",
      {},
      { body: "{}", headers: { "X-Signature": createHmac("sha256", HOOK_SECRET).update("{}").digest("base64") } },
      "refuse",
      /^The request is rejected with bad_signature: .*it verifies with encoding `base64`\.$/,
      "signature stops",
    ],
    [
      "when that does not match",
      { when: { event_type: "paid" } },
      { body: '{"id":"a","type":"open"}' },
      "ignore",
      /^The request is ignored: when\.event_type must be "paid" and the request has "open"\.$/,
      "when stops",
    ],
    [
      "no person found",
      { map: { event_id: "id", person_id: "who" }, actions: [GRANT] },
      { body: '{"id":"a","who":"per_none"}' },
      "fail",
      /^person_id resolved to no person, so no action ran\.$/,
      "person stops",
    ],
    [
      "a missing collection",
      { actions: [{ type: "write_record", collection: "nowhere", data: {} }, writeOrder] },
      { body: '{"id":"a"}' },
      "fail",
      /^write_record would fail with collection_missing: /,
      "action stops",
    ],
    [
      "no sender domain",
      { map: PERSON_MAP, actions: [MAIL] },
      { body: JSON.stringify(EVENT) },
      "fail",
      /^email_person would fail with s(ends_off|ender_domain_required): /,
      "action stops",
    ],
  ];
  test.each(rows)("%s", async (_words, definition, asked, would, message, told) => {
    await saveRelay(running, receiverDefinition(definition));
    const got = await explain("orders", asked);
    expect(got.would).toBe(would);
    expect(got.message).toMatch(message);
    expect(got.told).toContain(told);
  });

  test("with an invalid HTTP header or a record instead of a body is rejected", async () => {
    await saveRelay(running, receiverDefinition({ map: PERSON_MAP }));
    for (const asked of [
      { body: "{}", headers: { "x-sig\nnature": "a" } },
      { body: "{}", contentType: "text/plain\r\nx: y" },
    ]) {
      const { status, body } = await running.api("POST", "/relays/orders/explain", asked);
      expect(status).toBe(400);
      expect(body).toMatchObject({ code: "invalid_input", message: expect.stringMatching(/no header of HTTP can have/) });
    }
    expect((await explain("orders", { record: {} })).from).toBe("sample");
  });

  test("a URL that outbound rules forbid fails in the explanation and in the run", async () => {
    const local = { ...CALL, url: "http://localhost:3000/notice" };
    await saveRelay(running, receiverDefinition({ map: PERSON_MAP, actions: [local, CALL] }));
    const got = await explain("orders", { body: JSON.stringify(EVENT) });
    expect(got).toMatchObject({ would: "fail", message: expect.stringContaining("call_url would fail with https_only") });
    expect(got.step("action", 1)).toMatchObject({ outcome: "unknown", message: "call_url would not be come to." });
  });

  test("a path that resolves to nothing is reported in the map step and as the run's warning", async () => {
    await saveRelay(running, receiverDefinition({}));
    const got = await explain("orders", { body: '{"id":"a"}' });
    expect(got.step("map").message).toBe("These names of map name nothing: event_type (type), amount (amount).");
    expect(got.warnings).toEqual([expect.stringMatching(/^\{\{mapped\.amount\}\} resolves to nothing in this event and was left empty/)]);
  });

  test("explains a duplicate, a paused relay, an example, and a stored event", async () => {
    await saveRelay(running, receiverDefinition({}));
    const { eventId } = (await running.hook("orders", signedCall({ id: "a", amount: 1 }))).body;
    await running.drain();
    const again = await explain("orders", { body: '{"id":"a"}' });
    expect(again).toMatchObject({ would: "duplicate", message: `It is a duplicate of ${eventId}, told by event_id: nothing would run.` });
    const stored = await explain("orders", { event: eventId });
    expect(stored).toMatchObject({ from: "event", would: "run" });
    expect(stored.step("action").detail.result).toMatchObject({ outcome: "skipped" });
    expect(await explain("orders")).toMatchObject({ from: "sample", would: "run" });
    await running.api("POST", "/relays/orders/pause");
    expect(await explain("orders")).toMatchObject({ would: "wait" });
  });
});

test("reads a stored form like the run does: a field with a literal dotted name wins", async () => {
  const map = { event_id: "id", amount: "order.amount" };
  await saveRelay(running, receiverDefinition({ map, when: { amount: "4200" } }));
  const { headers, body } = signedCall("id=f1&order.amount=4200");
  const form = { ...headers, "content-type": "application/x-www-form-urlencoded" };
  const { eventId } = (await running.hook("orders", { headers: form, body })).body;
  await running.drain();
  const stored = await explain("orders", { event: eventId });
  expect([stored.step("map").message, stored.step("when").message]).toEqual(["Every path of map found a value.", "when matches."]);
});

describe("a used one-time signature is reported for", () => {
  const verify = (signedPayload: string, more: object = {}) => ({
    scheme: "signature",
    header: "x-signature",
    signedPayload,
    encoding: "hex",
    ...more,
  });
  const sign = (text: string, body: string) => ({
    body,
    headers: {
      "content-type": "application/x-www-form-urlencoded",
      "x-signature": createHmac("sha256", HOOK_SECRET).update(text).digest("hex"),
    },
  });
  const calls = [
    ["the same request with {params}", verify("{params}"), sign("idp1", "id=p1"), sign("idp1", "id=p1")],
    ["the same request with {token}", verify("{token}", { tokenField: "token" }), sign("t1", "id=p1&token=t1"), sign("t1", "id=p1&token=t1")],
    ["another body with {token}", verify("{token}", { tokenField: "token" }), sign("t1", "id=p1&token=t1"), sign("t1", "id=p2&token=t1")],
  ] as const;

  test.each(calls)("%s", async (_rule, verify, first, second) => {
    await saveRelay(running, receiverDefinition({ verify, map: { event_id: "id" } }));
    const given = { body: second.body, contentType: second.headers["content-type"], headers: second.headers };
    expect(await explain("orders", given)).toMatchObject({ would: "run" });
    const { eventId } = (await running.hook("orders", first)).body;
    await running.drain();
    const told = await explain("orders", given);
    const answer = await running.hook("orders", second);
    if (first.body === second.body) {
      expect(answer.body).toEqual({ received: true, duplicate: true, eventId });
      expect(told).toMatchObject({ would: "duplicate" });
      expect(told.step("signature", 1).detail).toEqual({ first: eventId });
    } else {
      expect([answer.status, answer.body.code]).toEqual([401, "bad_signature"]);
      expect(told).toMatchObject({ would: "refuse", message: expect.stringContaining(answer.body.message) });
    }
  });
});

describe("a trigger without a request", () => {
  test("a tick", async () => {
    const definition = {
      name: "daily",
      trigger: { kind: "schedule", every: "1d" },
      actions: [{ ...writeOrder, data: { order: "{{tick.periodStart}}" } }],
    };
    await saveBare(definition);
    const got = await explain("daily");
    expect(got).toMatchObject({ would: "run", from: "sample" });
    expect(got.step("action").detail.rendered.data).toEqual({ order: "2026-01-15T12:00:00.000Z" });
  });

  test("a record change whose condition no record can match is rejected for that reason, not for a missing field", async () => {
    await running.api("POST", "/collections", { name: "plain", kind: "shared", fields: { state: { type: "text" } } });
    const trigger = { kind: "data_change", collection: "plain", on: ["created"], where: { stat: "paid" } };
    await running.api("POST", "/relays", { definition: { name: "never", trigger, actions: [CALL] } });
    for (const road of ["explain", "test-event"]) {
      const { status, body } = await running.api("POST", `/relays/never/${road}`, {});
      expect([road, status, body.code]).toEqual([road, 400, "invalid_input"]);
      expect(body.message).toContain("no record of plain can match the trigger's where: correct where");
    }
    const given = await running.api("POST", "/relays/never/explain", { record: { stat: "paid" } });
    expect([given.status, given.body.code]).toEqual([400, "data_invalid"]);
  });

  test("a record, generated or given, and one that the condition excludes", async () => {
    await running.api("POST", "/collections", {
      name: "notes",
      kind: "shared",
      fields: { state: { type: "text", required: true }, n: { type: "number" } },
    });
    const trigger = { kind: "data_change", collection: "notes", on: ["created"], where: { state: "paid" } };
    await saveBare({ name: "noted", trigger, actions: [{ ...writeOrder, data: { order: "{{record.data.state}}" } }] });
    expect((await explain("noted")).step("action").detail.rendered.data).toEqual({ order: "paid" });
    expect(await explain("noted", { record: { state: "open" } })).toMatchObject({
      would: "ignore",
      message: "The record does not match where, so no event is made.",
    });
    expect(await explain("noted", { change: "deleted" })).toMatchObject({ would: "ignore" });
    const broken = await running.api("POST", "/relays/noted/explain", { record: { n: "x" } });
    expect(broken).toMatchObject({ status: 400, body: { code: "data_invalid" } });
  });
});

test("an unknown relay or event and an invalid body are rejected without a change", async () => {
  await saveRelay(running, receiverDefinition({}));
  const before = await readWholeDatabase(running);
  expect((await running.api("POST", "/relays/none/explain", {})).status).toBe(404);
  expect((await running.api("POST", "/relays/orders/explain", { event: "evt_none" })).status).toBe(404);
  expect((await running.api("POST", "/relays/orders/explain", { body: "{broken" })).status).toBe(400);
  expect((await running.api("POST", "/relays/orders/explain", { bdy: "" })).status).toBe(400);
  expect(await readWholeDatabase(running)).toBe(before);
});
