/** Tests the explanation of a definition that is not saved: it takes the secrets and the source of a save, and changes nothing. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { createHmac } from "node:crypto";
import { HOOK_SECRET, makeOrders, receiverDefinition, saveRelay, signedCall, writeOrder } from "../kit/relay-definition.ts";
import { type RunningService, startRunningService } from "../kit/running-service.ts";
import { START_MS } from "../kit/virtual-clock.ts";
import { readWholeDatabase } from "../kit/whole-database.ts";

const OTHER_SECRET = "Yh3cWq0pZsT7nLxKd5vRb8mGjE2aFuNi";
const EVENT = { id: "ord_1", type: "paid", amount: "4200", email: "ada@example.com" };
const CALL = { type: "call_url", url: "https://example.test/notice" };
const hmac = (more: object = {}) => ({ scheme: "signature", header: "x-signature", signedPayload: "{body}", encoding: "hex", ...more });
const record = (order: string) => ({ ...writeOrder, data: { order } });
/** A draft of a new relay, named so that no test meets another one's. */
const draft = (change: Parameters<typeof receiverDefinition>[0] = {}) => receiverDefinition({ name: "draft", ...change });
const signed = (secret: string) => {
  const { headers, body } = signedCall(EVENT, secret);
  return { headers, body };
};
const follower = (receiver: string) => draft({ verify: { scheme: "receiver", receiver } });

let running: RunningService;
let called = 0;

beforeAll(async () => {
  const caller = {
    call: async () => {
      called += 1;
      return { kind: "answered", ok: true, status: 200, body: "" };
    },
    warmUp: async () => undefined,
    close: () => undefined,
  };
  running = await startRunningService({ environments: ["development", "production"], ports: { caller: caller as never } });
  await makeOrders(running);
  await saveRelay(running, receiverDefinition({ name: "orders" }));
  await saveRelay(running, receiverDefinition({ name: "paused" }), OTHER_SECRET);
  const tail = receiverDefinition({ name: "tail", verify: { scheme: "receiver", receiver: "paused" } });
  expect((await running.api("POST", "/relays", { definition: tail })).status).toBe(201);
  const keyed = receiverDefinition({ name: "keyed", verify: hmac({ algorithm: "ed25519" }) });
  expect((await running.api("POST", "/relays", { definition: keyed })).status).toBe(201);
  await running.api("POST", "/relays/paused/pause");
  await running.hook("orders", signedCall({ id: "seen", type: "paid", amount: "1" }));
  await running.drain();
  // A key's first use is stored in the background, before this write.
  expect((await running.api("PUT", "/access/members", { title: "Members" }, "production")).status).toBeLessThan(300);
});

afterAll(async () => {
  await running[Symbol.asyncDispose]();
});

type Place = "development" | "production";

async function explain(definition: unknown, asked: object = {}, place: Place = "development") {
  const before = await readWholeDatabase(running);
  const { status, body } = await running.api("POST", "/relays/explain", { definition, ...asked }, place);
  expect(await readWholeDatabase(running)).toBe(before);
  expect(called).toBe(0);
  return { status, body };
}

const SIGNS_URL = hmac({ signatureKey: "v1", separator: ",", timestampKey: "t", signedPayload: "{timestamp}.{url}.{body}" });
/** A request that arrived at another URL an hour before the test begins. */
const EARLIER = makeEarlier();
function makeEarlier() {
  const [url, atMs, body] = ["https://relay.example.test/hooks/other", START_MS - 3_600_000, JSON.stringify(EVENT)];
  const seconds = atMs / 1_000;
  const digest = createHmac("sha256", OTHER_SECRET).update(`${seconds}.${url}.${body}`).digest("hex");
  return { body, headers: { "x-signature": `t=${seconds},v1=${digest}` }, url, receivedAt: new Date(atMs).toISOString() };
}

interface Row {
  rule: string;
  definition: unknown;
  asked?: object;
  place?: Place;
  would: string;
  /** Steps with their outcome, or their beginning. */
  steps: string[];
  says?: RegExp;
}

const EXAMPLE = /signed here as the sender would with an example secret, because the relay has no secret yet\./;
const UNCHECKED = /^The signature was not checked, because the relay has no secret yet: give the sender's secret or public key to check it\.$/m;

const ROWS: Row[] = [
  {
    rule: "a new relay's body is signed with an example secret, and every step is shown",
    definition: draft(),
    asked: { body: JSON.stringify(EVENT) },
    would: "run",
    steps: ["parts ok", "signed_text ok", "signature ok", "map ok", "event_id ok", "person ok", "action ok"],
    says: EXAMPLE,
  },
  {
    rule: "a body of a known sender that makes its secret itself is signed with an example secret",
    definition: draft({
      verify: hmac({ header: "stripe-signature", signatureKey: "v1", separator: ",", timestampKey: "t", signedPayload: "{timestamp}.{body}" }),
    }),
    asked: { body: JSON.stringify(EVENT) },
    would: "run",
    steps: ["signature ok", "action ok"],
    says: EXAMPLE,
  },
  { rule: "a draft without input gets an example", definition: draft(), would: "run", steps: ["map ok", "action ok"], says: EXAMPLE },
  {
    rule: "given headers cannot be checked without a secret, and the later steps are still reached",
    definition: draft({ when: { event_type: "paid" } }),
    asked: signed(OTHER_SECRET),
    would: "run",
    steps: ["parts ok", "signed_text ok", "signature unknown", "map ok", "when ok", "event_id ok", "person ok", "action ok"],
    says: UNCHECKED,
  },
  {
    rule: "given headers verify with a given secret",
    definition: draft(),
    asked: { ...signed(OTHER_SECRET), secret: OTHER_SECRET },
    would: "run",
    steps: ["signature ok", "action ok"],
    says: /^It verifies\.$/m,
  },
  {
    rule: "a request that arrived earlier at another URL is checked with its time and its URL",
    definition: draft({ verify: SIGNS_URL }),
    asked: { ...EARLIER, secret: OTHER_SECRET },
    would: "run",
    steps: ["signature ok", "action ok"],
    says: /^It verifies\.$/m,
  },
  {
    rule: "the same request is too old for now",
    definition: draft({ verify: SIGNS_URL }),
    asked: { ...EARLIER, receivedAt: undefined, secret: OTHER_SECRET },
    would: "refuse",
    steps: ["signature stops"],
  },
  {
    rule: "given headers of another secret are refused, with the later steps not reached",
    definition: draft(),
    asked: { ...signed("Zz9yXw8vUt7sRq6pOn5mLk4jIh3gFe2d"), secret: OTHER_SECRET },
    would: "refuse",
    steps: ["signature stops", "map ok (not reached)", "action ok (not reached)"],
    says: /^The request is rejected with bad_signature: /m,
  },
  {
    rule: "the draft of a saved relay verifies with the secret that a save keeps",
    definition: receiverDefinition({ actions: [record("changed")] }),
    asked: signed(HOOK_SECRET),
    would: "run",
    steps: ["signature ok", "action ok"],
    says: /^It verifies\.$/m,
  },
  {
    rule: "the draft of a saved relay is signed with the secret that a save keeps",
    definition: receiverDefinition({ actions: [record("changed")] }),
    asked: { body: JSON.stringify(EVENT) },
    would: "run",
    steps: ["signature ok", "action ok"],
    says: /signed here as the sender would with the relay's own secret\./,
  },
  {
    rule: "the draft of a saved relay with a scheme that its secret does not fit lacks a secret",
    definition: receiverDefinition({ verify: { scheme: "hooks" } }),
    asked: { body: JSON.stringify(EVENT) },
    would: "run",
    steps: ["signature ok"],
    says: EXAMPLE,
  },
  {
    rule: "the draft of a saved relay finds the duplicates of the relay",
    definition: receiverDefinition({}),
    asked: { body: '{"id":"seen"}' },
    would: "duplicate",
    steps: ["event_id stops", "action ok (not reached)"],
  },
  {
    rule: "the draft of a paused relay waits as its events do",
    definition: receiverDefinition({ name: "paused" }),
    asked: { body: "{}" },
    would: "wait",
    steps: ["waiting stops", "action ok (not reached)"],
  },
  {
    rule: "a public key is needed to check its signatures, and only the sender can sign",
    definition: draft({ verify: hmac({ algorithm: "ed25519" }) }),
    asked: { body: JSON.stringify(EVENT) },
    would: "run",
    steps: ["signature unknown", "map ok", "action ok"],
    says: /^Nothing can be signed here: /m,
  },
  {
    rule: "given headers cannot be checked without a public key",
    definition: draft({ verify: hmac({ algorithm: "ed25519" }) }),
    asked: signed(OTHER_SECRET),
    would: "run",
    steps: ["signature unknown", "map ok", "action ok"],
    says: UNCHECKED,
  },
  {
    rule: "a processor's request cannot be checked without the environment's processor secret",
    definition: draft({ verify: { scheme: "processor" } }),
    asked: { body: JSON.stringify(EVENT), headers: { "processor-signature": "t=1,v1=00" } },
    would: "run",
    steps: ["signature unknown", "map ok", "action ok"],
    says: /because the environment has no processor secret yet: set it with relay settings set processorSecret\.$/m,
  },
  {
    rule: "a follower's request cannot be checked while its source has no secret",
    definition: follower("keyed"),
    asked: signed(OTHER_SECRET),
    would: "run",
    steps: ["signature unknown", "map ok", "action ok"],
    says: /because keyed, which verifies the requests, has no secret yet: paste it with relay relays set-secret keyed\.$/m,
  },
  {
    rule: "a follower verifies with the secret of its source",
    definition: follower("orders"),
    asked: signed(HOOK_SECRET),
    would: "run",
    steps: ["signature ok", "map ok", "action ok"],
    says: /^It verifies\.$/m,
  },
  {
    rule: "a follower is signed with the secret of its source",
    definition: follower("orders"),
    asked: { body: JSON.stringify(EVENT) },
    would: "run",
    steps: ["signature ok", "action ok"],
    says: /signed here as the sender would with the relay's own secret\./,
  },
  {
    rule: "when that does not match ends the explanation as it would end the request",
    definition: draft({ when: { event_type: "refunded" } }),
    asked: { body: JSON.stringify(EVENT) },
    would: "ignore",
    steps: ["when stops", "action ok (not reached)"],
  },
  {
    rule: "a schedule gets a tick",
    definition: { name: "draft", trigger: { kind: "schedule", every: "1w", on: "monday", at: "09:00" }, actions: [record("{{tick.periodStart}}")] },
    would: "run",
    steps: ["person ok", "action ok"],
  },
  {
    rule: "a record change gets an example record",
    definition: {
      name: "draft",
      trigger: { kind: "data_change", collection: "orders", on: ["updated"], where: { order: "o1" } },
      actions: [{ ...CALL }],
    },
    would: "run",
    steps: ["where ok", "person ok", "action ok"],
  },
  {
    rule: "a record change that does not match where is ignored",
    definition: { name: "draft", trigger: { kind: "data_change", collection: "orders", on: ["created"], where: { order: "o1" } }, actions: [CALL] },
    asked: { record: { order: "o2" } },
    would: "ignore",
    steps: ["where stops", "action ok (not reached)"],
  },
  {
    rule: "a new relay with a call_url has what a call needs",
    definition: draft({ actions: [writeOrder, CALL] }),
    asked: { body: JSON.stringify(EVENT) },
    would: "run",
    steps: ["action ok"],
    says: /^call_url would be done: Would be sent: this test sent nothing\.$/m,
  },
  {
    rule: "production explains a draft without an approval",
    definition: draft({ actions: [CALL] }),
    asked: { body: JSON.stringify(EVENT) },
    place: "production",
    would: "run",
    steps: ["signature ok", "action ok"],
    says: EXAMPLE,
  },
];

test.each(ROWS.map((row): [string, Row] => [row.rule, row]))("%s", async (_rule, { definition, asked, place, would, steps, says }) => {
  const { status, body } = await explain(definition, asked, place);
  if (status !== 200) throw new Error(JSON.stringify(body));
  const { explanation } = body;
  const told: string[] = explanation.steps.map(
    ({ step, outcome, reached }: { step: string; outcome: string; reached: boolean }) => `${step} ${outcome}${reached ? "" : " (not reached)"}`,
  );
  expect({ would: explanation.would, steps: told.filter((one) => steps.includes(one)) }).toMatchObject({
    would,
    steps: expect.arrayContaining(steps),
  });
  const words = explanation.steps.map(({ message }: { message: string }) => message).join("\n");
  if (says !== undefined) expect(words).toMatch(says);
  for (const secret of [HOOK_SECRET, OTHER_SECRET]) expect(JSON.stringify(body)).not.toContain(secret);
});

const REFUSED: { rule: string; definition: unknown; asked?: object; answer: object }[] = [
  {
    rule: "an invalid definition is refused with each problem",
    definition: { ...draft(), name: "D", actions: [] },
    answer: { status: 400, body: { code: "invalid_definition", problems: [{ field: "name" }, { field: "actions" }] } },
  },
  { rule: "no definition is refused", definition: undefined, answer: { status: 400, body: { problems: [{ field: "definition" }] } } },
  { rule: "a follower of a missing relay is refused", definition: follower("nowhere"), answer: { status: 400, body: { code: "relay_missing" } } },
  {
    rule: "a followed relay that becomes a schedule is refused",
    definition: { name: "paused", trigger: { kind: "schedule", every: "1d" }, actions: [record("x")] },
    answer: { status: 409, body: { code: "receiver_followed", followers: ["tail"] } },
  },
  {
    rule: "a new relay that follows itself is refused",
    definition: follower("draft"),
    answer: { status: 400, body: { code: "relay_missing", message: expect.stringContaining("draft cannot follow itself") } },
  },
  {
    rule: "a receiver that becomes its own follower is refused",
    definition: receiverDefinition({ verify: { scheme: "receiver", receiver: "orders" } }),
    answer: { status: 400, body: { code: "relay_missing", message: expect.stringContaining("orders cannot follow itself") } },
  },
  {
    rule: "a secret that does not fit is refused without its value",
    definition: draft(),
    asked: { secret: "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa" },
    answer: { status: 400, body: { code: "invalid_input" } },
  },
  {
    rule: "a secret of a relay that takes none is refused",
    definition: follower("orders"),
    asked: { secret: OTHER_SECRET },
    answer: { status: 400, body: { code: "invalid_input", message: expect.stringContaining("takes no secret") } },
  },
  { rule: "an unknown event is refused", definition: draft(), asked: { event: "evt_none" }, answer: { status: 404, body: { code: "not_found" } } },
  {
    rule: "a time that is none is refused",
    definition: draft(),
    asked: { ...EARLIER, receivedAt: "yesterday" },
    answer: { status: 400, body: { code: "invalid_input", message: expect.stringContaining("receivedAt is not valid") } },
  },
  { rule: "an unknown field is refused", definition: draft(), asked: { bdy: "" }, answer: { status: 400, body: { code: "invalid_input" } } },
];

test.each(REFUSED.map((row): [string, (typeof REFUSED)[number]] => [row.rule, row]))("%s", async (_rule, { definition, asked, answer }) => {
  const got = await explain(definition, asked);
  expect(got).toMatchObject(answer);
  for (const secret of [OTHER_SECRET, "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"]) expect(JSON.stringify(got.body)).not.toContain(secret);
});

test("a stored event of the relay is explained by the draft, which is how a fix is tried", async () => {
  const { body } = await running.api("GET", "/events?relay=orders");
  const [{ id }] = body.items;
  const got = await explain(receiverDefinition({ actions: [writeOrder, CALL] }), { event: id });
  const actions = got.body.explanation.steps.filter(({ step }: { step: string }) => step === "action");
  expect(actions.map(({ detail }: { detail: { result: { outcome: string } } }) => detail.result.outcome)).toEqual(["skipped", "done"]);
});

test("no explanation shows a signature that the stored secret made of a text that the caller chose", async () => {
  const verify = { scheme: "signature", signatureField: "proof.signature", tokenField: "proof.token", signedPayload: "{token}", encoding: "hex" };
  const forged = createHmac("sha256", HOOK_SECRET).update("forged").digest("hex");
  const definition = receiverDefinition({
    verify,
    map: { event_id: "proof.token", order: "proof.signature" },
    actions: [record("{{mapped.order}}"), CALL],
  });
  const { status, body } = await explain(definition, { body: JSON.stringify({ proof: { token: "forged" } }) });
  const { explanation } = body;
  expect({ status, would: explanation.would }).toEqual({ status: 200, would: "run" });
  const [map, event] = ["map", "event_id"].map((name) => explanation.steps.find(({ step }: { step: string }) => step === name));
  expect(JSON.stringify(body)).not.toContain(forged);
  expect(map.detail).toMatchObject([{ value: "forged" }, { value: expect.stringMatching(/^[0-9a-f]{64}$/) }]);
  expect(event.detail).toEqual({ eventId: "forged" });
});

test("no explanation left a line in the log or a run", () => {
  const text = running.logged.join("\n");
  for (const secret of [HOOK_SECRET, OTHER_SECRET]) expect(text).not.toContain(secret);
  expect(running.lines.filter((line) => line.includes("draft"))).toEqual([]);
});
