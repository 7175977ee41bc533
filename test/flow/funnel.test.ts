/** Tests the funnel of a relay: each stop is counted in its step with its cause and its list, and the relay's health agrees. */
import { afterEach, beforeEach, expect, test } from "bun:test";
import { COMMAND_PLACES, runAt } from "../kit/cli-place.ts";
import { CALL, GRANT, putEvents, sendEvent, WRITE } from "../kit/event-flow.ts";
import { BROKEN, FakeCaller } from "../kit/fake-caller.ts";
import { makeOrders, receiverDefinition, saveRelay, signedCall } from "../kit/relay-definition.ts";
import { type RunningService, startRunningService } from "../kit/running-service.ts";

const HOUR = 3_600_000;
const PERSON = { event_id: "id", event_type: "type", person_email: "email" };
const ADA = { email: "ada@example.com" };
const NOWHERE = { ...WRITE, collection: "nowhere" };

let running: RunningService;
let caller: FakeCaller;
beforeEach(async () => {
  caller = new FakeCaller();
  running = await startRunningService({ ports: { caller } });
  await makeOrders(running);
});
afterEach(() => running[Symbol.asyncDispose]());

const funnel = async () => {
  const { status, body } = await running.api("GET", "/relays/orders/funnel");
  if (status !== 200) throw new Error(JSON.stringify(body));
  return body.funnel;
};
const health = async () => (await running.api("GET", "/relays/orders")).body.health;
const save = (change: Parameters<typeof receiverDefinition>[0]) => saveRelay(running, receiverDefinition({ map: PERSON, ...change }));
const refuse = () => running.hook("orders", { headers: { "content-type": "application/json", "x-signature": "00" }, body: "{}" });

interface Row {
  name: string;
  stage(): Promise<unknown>;
  /** Maps `step` or `step index` to the counts of arrived, passed and waiting. */
  boxes: Record<string, [came: number, passed: number, waits: number]>;
  /** Holds the expected fields of the only step that stops. */
  stops?: object;
  done: number;
  message: string | RegExp;
  health: object;
}

const ROWS: readonly Row[] = [
  {
    name: "no requests",
    stage: () => save({ actions: [GRANT] }),
    boxes: { calls: [0, 0, 0], verified: [0, 0, 0], when: [0, 0, 0], dedupe: [0, 0, 0], person: [0, 0, 0], "action 0": [0, 0, 0] },
    done: 0,
    message: /^No request arrived/,
    health: { state: "new", word: "No requests yet", todo: null, code: null },
  },
  {
    name: "every event is done",
    async stage() {
      await save({ actions: [WRITE, GRANT] });
      await sendEvent(running, "a", ADA);
      await sendEvent(running, "b", ADA);
    },
    boxes: { calls: [2, 2, 0], dedupe: [2, 2, 0], person: [2, 2, 0], "action 0": [2, 2, 0], "action 1": [2, 2, 0] },
    done: 2,
    message: "2 requests arrived in the last 24 hours. All were done.",
    health: { state: "ok", word: "OK", todo: null },
  },
  {
    name: "a wrong signature",
    async stage() {
      await save({ actions: [GRANT] });
      await sendEvent(running, "a", ADA);
      await refuse();
      await refuse();
    },
    boxes: { calls: [3, 3, 0], verified: [3, 1, 0], when: [1, 1, 0], person: [1, 1, 0], "action 0": [1, 1, 0] },
    stops: { code: "bad_signature", count: 2, message: expect.any(String), see: { room: "calls", query: { relay: "orders", outcome: "refused" } } },
    done: 1,
    message: /^3 requests arrived in the last 24 hours\. 1 event done\. Most of what stopped, 2, stopped at “Verified” with bad_signature: /,
    health: { state: "ok" },
  },
  {
    name: "when ignores",
    async stage() {
      await save({ actions: [GRANT], when: { event_type: "order.refunded" } });
      await running.hook("orders", signedCall({ id: "a", type: "order.paid", ...ADA }));
    },
    boxes: { calls: [1, 1, 0], verified: [1, 1, 0], when: [1, 0, 0], dedupe: [0, 0, 0], person: [0, 0, 0] },
    stops: {
      code: "when",
      count: 1,
      message: expect.stringContaining("when.event_type must be"),
      see: { room: "calls", query: { relay: "orders", outcome: "ignored" } },
    },
    done: 0,
    message: /stopped at “Matches when” with when: when\.event_type must be/,
    health: { state: "new", word: "No events yet" },
  },
  {
    name: "a duplicate",
    async stage() {
      await save({ actions: [GRANT] });
      await sendEvent(running, "a", ADA);
      await running.hook("orders", signedCall({ id: "a", type: "order.paid", amount: 4200, ...ADA }));
    },
    boxes: { calls: [2, 2, 0], when: [2, 2, 0], dedupe: [2, 1, 0], person: [1, 1, 0], "action 0": [1, 1, 0] },
    stops: { code: "duplicate", count: 1, message: expect.any(String), see: { room: "calls", query: { relay: "orders", outcome: "duplicate" } } },
    done: 1,
    message: /“Not a duplicate” with duplicate/,
    health: { state: "ok" },
  },
  {
    name: "no person is found",
    async stage() {
      await save({ actions: [GRANT], map: { event_id: "id", person_id: "who" } });
      await sendEvent(running, "a", { who: "per_nobody" });
    },
    boxes: { dedupe: [1, 1, 0], person: [1, 0, 0], "action 0": [0, 0, 0] },
    stops: {
      code: "person_not_found",
      count: 1,
      message: expect.any(String),
      see: { room: "events", query: { relay: "orders", state: "failed", since: expect.any(String), reason: "person_not_found" } },
    },
    done: 0,
    message: /“Person found” with person_not_found/,
    health: { state: "ok" },
  },
  {
    name: "the second action is dead",
    async stage() {
      await save({ actions: [GRANT, NOWHERE] });
      await sendEvent(running, "a", ADA);
      await sendEvent(running, "b", ADA);
    },
    boxes: { person: [2, 2, 0], "action 0": [2, 2, 0], "action 1": [2, 0, 0] },
    stops: {
      code: "collection_missing",
      count: 2,
      message: expect.stringContaining("nowhere"),
      see: { room: "events", query: { relay: "orders", state: "dead", since: expect.any(String), reason: "collection_missing" } },
    },
    done: 0,
    message: /“Write a record: nowhere” with collection_missing/,
    health: { state: "failing", word: "Failing · 100 % dead", code: "relay_failed", todo: expect.any(String), since: expect.any(String) },
  },
  {
    name: "a retry waits at its action",
    async stage() {
      caller.reply = () => BROKEN;
      await save({ actions: [WRITE, CALL], map: { event_id: "id" } });
      await sendEvent(running, "a");
    },
    boxes: { person: [1, 1, 0], "action 0": [1, 1, 0], "action 1": [1, 0, 1] },
    done: 0,
    message: "1 request arrived in the last 24 hours. 0 events done, 1 waiting.",
    health: { state: "ok" },
  },
  {
    name: "a pause holds new events",
    async stage() {
      await save({ actions: [GRANT] });
      await running.api("POST", "/relays/orders/pause", {});
      await sendEvent(running, "a", ADA);
    },
    boxes: { dedupe: [1, 1, 0], person: [1, 0, 1], "action 0": [0, 0, 0] },
    done: 0,
    message: "1 request arrived in the last 24 hours. 0 events done, 1 waiting.",
    health: { state: "paused", word: "Paused", todo: "Resume it with relay relays resume orders." },
  },
  {
    name: "events older than a day do not count",
    async stage() {
      await save({ actions: [GRANT] });
      await sendEvent(running, "a", ADA);
      await refuse();
      await running.drain();
      await running.clock.leap(25 * HOUR);
    },
    boxes: { calls: [0, 0, 0], person: [0, 0, 0] },
    done: 0,
    message: /^No request arrived/,
    health: { state: "ok", message: expect.stringMatching(/No event arrived in the last 24 hours\. The last one arrived at/) },
  },
];

for (const row of ROWS) {
  test(row.name, async () => {
    await row.stage();
    await running.drain();
    const { boxes, done, message, callsSince, approximate } = await funnel();
    const said = Object.fromEntries(
      boxes.map((box: { step: string; action: number | null; came: number; passed: number; waits: number }) => [
        box.action === null ? box.step : `${box.step} ${box.action}`,
        [box.came, box.passed, box.waits],
      ]),
    );
    expect(said).toMatchObject(row.boxes);
    expect(boxes.flatMap(({ stops }: { stops: object[] }) => stops)).toEqual(row.stops === undefined ? [] : [row.stops]);
    expect({ done, callsSince, approximate }).toEqual({ done: row.done, callsSince: null, approximate: false });
    if (typeof row.message === "string") expect(message).toBe(row.message);
    else expect(message).toMatch(row.message);
    expect(await health()).toMatchObject(row.health);
    const [listed] = (await running.api("GET", "/relays")).body.items;
    expect(listed.health.word).toBe((await health()).word);
  });
}

test("an event that waits for a retry reports the most frequent cause and its list", async () => {
  caller.reply = () => BROKEN;
  await save({ actions: [WRITE, CALL], map: { event_id: "id" } });
  for (const id of ["a", "b", "c"]) await sendEvent(running, id);
  await running.drain();
  const { boxes } = await funnel();
  expect(boxes.map(({ waits, waitsFor }: { waits: number; waitsFor: object | null }) => [waits, waitsFor]).slice(-3)).toEqual([
    [0, null],
    [0, null],
    [
      3,
      {
        code: expect.stringMatching(/^[a-z_]+$/),
        count: 3,
        message: expect.stringContaining("500"),
        see: { room: "events", query: { relay: "orders", state: "queued", since: expect.any(String), reason: "http_error" } },
      },
    ],
  ]);
  const { code, message } = boxes.at(-1).waitsFor;
  for (const place of COMMAND_PLACES) {
    const { said } = await runAt(place, running, ["relays", "funnel", "orders"]);
    expect(said).toContain(
      `Call a URL: https://example.com/notice, 3 waiting\n          - 3 wait after ${code}: ${message} (relay events list --relay orders --state queued --reason ${code})`,
    );
  }
});

test("a truncated request log reports its start, and a truncated count of stops is marked as approximate", async () => {
  await save({ actions: [NOWHERE], map: { event_id: "id" } });
  await putEvents(
    running,
    Array.from({ length: 150 }, (_, at) => `e${at}`),
  );
  await running.drain();
  const [{ id } = { id: 0 }] = await running.rows<{ id: number }>("SELECT id FROM environment WHERE name = 'development'");
  const nowMs = running.clock.now();
  await running.service.store.write("app", (tx) =>
    tx.run(
      `INSERT INTO recent_request (environment_id, slot, seq, at, relay_name, outcome, code, cause, source, count, first_at)
       WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1000)
       SELECT ?1, i - 1, i, ?2 - 1000 + i, 'orders', 'refused', 'bad_signature', 'it differs', '10.0.0.1', 2, ?2 FROM n`,
      id,
      nowMs,
    ),
  );
  const { boxes, approximate, callsSince } = await funnel();
  expect(callsSince).toBe(new Date(nowMs - 999).toISOString());
  expect(approximate).toBe(true);
  expect(boxes[1]).toMatchObject({ step: "verified", came: 2150, passed: 150 });
  expect(boxes.at(-1).stops).toMatchObject([{ code: "collection_missing", count: 150 }]);
});

test("a paused schedule reports the pause instead of a missing tick", async () => {
  const definition = { name: "orders", trigger: { kind: "schedule", every: "1h" }, actions: [{ ...WRITE, data: { order: "tick" } }] };
  expect((await running.api("POST", "/relays", { definition })).status).toBe(201);
  expect((await running.api("POST", "/relays/orders/pause")).status).toBe(200);
  await running.clock.leap(2 * HOUR);
  await running.drain();
  expect((await funnel()).message).toMatch(
    /^No tick was recorded since the relay was created at \S+: the relay is paused, and its ticks are not recorded until it is resumed\.$/,
  );
  expect((await running.api("POST", "/relays/orders/resume")).status).toBe(200);
  expect((await funnel()).message).toMatch(/^No tick was recorded since .*: none was due outside of a pause or a hold\.$/);
});

const NOTHING_YET: readonly [name: string, definition: object, nothing: string, isNew: string, isOlder: string][] = [
  [
    "a receiver",
    receiverDefinition({ map: PERSON, actions: [GRANT] }),
    "No request arrived ",
    ". Register its receiver URL at the sender. See ",
    ". Ask the sender to which URL it sends. See ",
  ],
  [
    "a record change",
    { name: "orders", trigger: { kind: "data_change", collection: "orders", on: ["created"] }, actions: [CALL] },
    "No change that the relay watches for came ",
    ". What your app",
    ". What your app",
  ],
];

for (const [name, definition, nothing, isNew, isOlder] of NOTHING_YET)
  test(`${name} without an occurrence names its creation for a day, and then the last 24 hours`, async () => {
    expect((await running.api("POST", "/relays", { definition })).status).toBe(201);
    const { createdAt } = (await running.api("GET", "/relays/orders")).body.relay;
    expect((await funnel()).message).toStartWith(`${nothing}since the relay was created at ${createdAt}${isNew}`);
    running.clock.jump(25 * HOUR);
    expect((await funnel()).message).toStartWith(`${nothing}in the last 24 hours${isOlder}`);
  });

test("a schedule's funnel begins with its ticks", async () => {
  const definition = { name: "orders", trigger: { kind: "schedule", every: "1h" }, actions: [{ ...WRITE, data: { order: "tick" } }] };
  expect((await running.api("POST", "/relays", { definition })).status).toBe(201);
  expect((await health()).word).toBe("No ticks yet");
  await running.clock.leap(HOUR);
  await running.clock.advance(60_000);
  await running.drain();
  const { boxes } = await funnel();
  expect(boxes.map(({ title, came }: { title: string; came: number }) => `${title} ${came}`)).toEqual([
    "Ticks 1",
    "Started 1",
    "Write a record: orders 1",
  ]);
});

test("an unknown relay is rejected", async () => {
  expect((await running.api("GET", "/relays/none/funnel")).status).toBe(404);
});
