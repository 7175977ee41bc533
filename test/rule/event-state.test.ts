/** The specification's "States and transitions" for events: each row of its table, and the additions in decisions.md. */
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { toIso } from "../../src/base/clock.ts";
import { DEFAULT_LIMITS } from "../../src/base/limit.ts";
import { alertsOf, CALL, editRelay, GRANT, replay, sendEvent, showEvent, until, WRITE } from "../kit/event-flow.ts";
import { BROKEN, FakeCaller, OK } from "../kit/fake-caller.ts";
import { HOOK_SECRET, makeOrders, receiverDefinition, saveRelay } from "../kit/relay-definition.ts";
import { type RunningService, startRunningService } from "../kit/running-service.ts";
import { START_MS } from "../kit/virtual-clock.ts";

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const PERSON_MAP = { event_id: "id", person_email: "email" };
const SCHEDULE = { name: "orders", trigger: { kind: "schedule", every: "1w" }, actions: [CALL] };

let running: RunningService;
let caller: FakeCaller;

beforeEach(async () => {
  caller = new FakeCaller();
  running = await startRunningService({ ports: { caller } });
  await makeOrders(running);
});

afterEach(() => running[Symbol.asyncDispose]());

async function sendAndDrain(id: string, more: object = {}): Promise<string> {
  const event = await sendEvent(running, id, more);
  await running.drain();
  return event;
}

/** Moves the clock as for a machine that slept, with one poll at the end. */
async function pass(ms: number): Promise<void> {
  running.clock.jump(ms);
  await running.clock.advance(5_000);
  await running.drain();
}

/** Skips most of a long wait: the machine is off, and starts again a minute before the retry is due. */
async function sleepMost(ms: number): Promise<void> {
  if (ms <= 5 * MINUTE) return;
  running.clock.jump(ms - MINUTE);
  await running.restart();
}

describe("queued and running", () => {
  test("a trigger stores the event row as queued, and nothing runs before it exists", async () => {
    await saveRelay(running, receiverDefinition({}));
    await running.api("POST", "/relays/orders/pause");
    const event = await sendEvent(running, "a");
    expect(await showEvent(running, event)).toMatchObject({ state: "queued", attempts: 0, runs: [] });
  });

  test("the runner starts the event: it is running, and the attempt counts from here", async () => {
    caller.reply = () => "hang";
    await saveRelay(running, receiverDefinition({ actions: [CALL] }));
    const event = await sendEvent(running, "a");
    await until("the call is out", () => caller.hanging() === 1);
    expect(await showEvent(running, event)).toMatchObject({
      state: "running",
      attempts: 1,
      finishedAt: null,
    });
    caller.letGo();
    await running.drain();
    expect(await showEvent(running, event)).toMatchObject({ state: "done", attempts: 1 });
  });

  test("the event is done when all actions succeed, with one run and its results", async () => {
    await saveRelay(running, receiverDefinition({ actions: [WRITE, CALL] }));
    const view = await showEvent(running, await sendAndDrain("a"));
    expect(view).toMatchObject({ state: "done", reason: null, nextAttemptAt: null, attempts: 1 });
    expect(view.finishedAt).toBe(toIso(START_MS));
    expect(view.runs.map((run) => [run.attempt, run.outcome])).toEqual([[1, "ok"]]);
    expect(view.runs[0]?.results).toMatchObject([
      { type: "write_record", outcome: "done", before: null, after: { collection: "orders" } },
      { type: "call_url", outcome: "done", answer: { status: 200, body: "fine" } },
    ]);
    expect(await alertsOf(running)).toEqual([]);
  });
});

/** Leaves out relay_failing, which streak.test.ts checks. */
async function deadAlerts() {
  return (await alertsOf(running)).filter(({ code }) => code !== "relay_failing");
}

describe("an action fails and attempts remain", () => {
  const DELAYS: [string, number][] = [
    ["1 min", MINUTE],
    ["5 min", 5 * MINUTE],
    ["30 min", 30 * MINUTE],
    ["2 h", 2 * HOUR],
    ["8 h", 8 * HOUR],
    ["16 h", 16 * HOUR],
  ];

  for (const road of ["sending", "database"] as const) {
    test(`the ${road} path retries after exactly 1 min, 5 min, 30 min, 2 h, 8 h and 16 h, and then the event is dead with an alert`, async () => {
      caller.reply = () => BROKEN;
      if (road === "database") await running.api("PUT", "/products/lamp", {});
      const failing = road === "sending" ? CALL : { type: "refund_product", product: "lamp" };
      const map = road === "sending" ? { event_id: "id" } : PERSON_MAP;
      await saveRelay(running, receiverDefinition({ actions: [failing], map }));
      const event = await sendAndDrain("a", { email: "ada@example.com" });
      const code = road === "sending" ? "http_error" : "purchase_missing";
      for (const [index, [, delay]] of DELAYS.entries()) {
        const due = running.clock.now() + delay;
        expect(await showEvent(running, event)).toMatchObject({
          state: "queued",
          reason: code,
          attempts: index + 1,
          nextAttemptAt: toIso(due),
          finishedAt: null,
        });
        expect(await deadAlerts()).toEqual([]);
        await sleepMost(delay);
        await running.clock.advance(due - 1 - running.clock.now());
        await running.drain();
        expect((await showEvent(running, event)).attempts).toBe(index + 1);
        await running.clock.advance(1);
        await running.drain();
        expect((await showEvent(running, event)).attempts).toBe(index + 2);
      }
      const view = await showEvent(running, event);
      expect(view).toMatchObject({ state: "dead", reason: code, attempts: 7, nextAttemptAt: null });
      expect(view.runs.map((run) => run.outcome)).toEqual(Array(7).fill("failed"));
      expect(view.runs.map((run) => Date.parse(run.startedAt) - START_MS)).toEqual([0, 1, 6, 36, 156, 636, 1_596].map((minutes) => minutes * MINUTE));
      const alerts = await deadAlerts();
      expect(alerts).toMatchObject([{ code: "relay_failed", target: "relay:orders", count: 1 }]);
      expect(alerts[0]?.message).toContain(code);
      await pass(48 * HOUR);
      expect((await showEvent(running, event)).runs).toHaveLength(7);
    });
  }

  test("the first failure stops the actions, and the retry skips completed actions but sends call_url again", async () => {
    const other = { type: "call_url", url: "https://example.com/second" };
    caller.reply = (url) => (url === other.url ? BROKEN : OK);
    await saveRelay(running, receiverDefinition({ actions: [WRITE, CALL, other, WRITE] }));
    const event = await sendAndDrain("a");
    caller.reply = () => OK;
    await running.clock.advance(MINUTE);
    await running.drain();
    const view = await showEvent(running, event);
    expect(view.runs.map((run) => run.results.map(({ type, outcome }) => `${type} ${outcome}`))).toEqual([
      ["write_record done", "call_url done", "call_url failed"],
      ["write_record skipped", "call_url done", "call_url done", "write_record done"],
    ]);
    expect(view.runs[1]?.results[0].after).toEqual(view.runs[0]?.results[0].after);
    expect(await running.rows("SELECT id FROM record")).toHaveLength(2);
    expect(caller.ids).toEqual([event, event, event, event]);
    expect(caller.requests[3]?.body).toContain('"outcome":"skipped"');
  });

  test("a success on a later attempt makes the event done and clears its reason", async () => {
    caller.reply = () => BROKEN;
    await saveRelay(running, receiverDefinition({ actions: [CALL] }));
    const event = await sendAndDrain("a");
    caller.reply = () => OK;
    await running.clock.advance(MINUTE);
    await running.drain();
    expect(await showEvent(running, event)).toMatchObject({ state: "done", reason: null, attempts: 2 });
  });

  test("an unexpected exception in a port counts as a failed attempt, and the seventh is the last", async () => {
    caller.reply = () => "throw";
    await saveRelay(running, receiverDefinition({ actions: [WRITE, CALL] }));
    const event = await sendAndDrain("a");
    const first = await showEvent(running, event);
    expect(first).toMatchObject({ state: "queued", reason: "internal", attempts: 1 });
    expect(first.runs[0]?.results).toMatchObject([
      { type: "write_record", outcome: "done" },
      { type: "call_url", outcome: "failed", code: "internal" },
    ]);
    for (const [, delay] of DELAYS) await pass(delay);
    expect(await showEvent(running, event)).toMatchObject({ state: "dead", attempts: 7 });
    expect(caller.requests).toHaveLength(7);
  });
});

describe("a failure in the definition makes the event dead on the first attempt, with the alert", () => {
  const PERSON = { email: "ada@example.com" };
  const rows: [string, { actions: object[]; more?: object; given?: () => Promise<unknown> }][] = [
    [
      "person_suspended",
      {
        actions: [GRANT],
        given: async () => {
          const { person } = (await running.api("POST", "/persons", PERSON)).body;
          await running.api("PATCH", `/persons/${person.id}`, { status: "suspended" });
        },
      },
    ],
    ["collection_missing", { actions: [{ ...WRITE, collection: "nowhere" }] }],
    ["entitlement_unknown", { actions: [{ type: "grant_access", entitlement: "access:nowhere" }] }],
    ["product_unknown", { actions: [{ type: "fulfil_product", product: "nothing" }] }],
    ["plan_unknown", { actions: [{ type: "grant_plan", plan: "nothing" }] }],
    [
      "product_not_sold_here",
      {
        actions: [{ type: "fulfil_product", product: "book" }],
        given: () => running.api("PUT", "/products/book", { title: "A book" }),
      },
    ],
    [
      "plan_not_sold_here",
      {
        actions: [{ type: "grant_plan", plan: "pro" }],
        given: () => running.api("PUT", "/plans/pro", { title: "Pro", default: true }),
      },
    ],
    ["ref_unresolved", { actions: [{ ...GRANT, ref: "{{mapped.event_type}}" }] }],
    [
      "ref_used",
      {
        actions: [{ type: "refund_product", product: "book", ref: "taken" }],
        given: async () => {
          await running.api("PUT", "/products/book", { title: "A book" });
          const { person } = (await running.api("POST", "/persons", { email: "eve@example.com" })).body;
          await running.api("POST", "/receipts", { ref: "taken", person: person.id, product: "book" });
        },
      },
    ],
    ...(["https_only", "ip_literal", "own_host"] as const).map((code): (typeof rows)[number] => [
      code,
      {
        actions: [CALL],
        given: async () => {
          caller.reply = () => ({ kind: "refused", code, message: `${code} it is.`, final: true });
        },
      },
    ]),
    ["data_invalid", { actions: [{ ...WRITE, data: { order: "{{mapped.event_id}}", unheard: "x" } }] }],
  ];
  for (const [code, { actions, given }] of rows) {
    test(code, async () => {
      await given?.();
      await saveRelay(running, receiverDefinition({ actions: [...actions, CALL] as never, map: PERSON_MAP }));
      const view = await showEvent(running, await sendAndDrain("a", PERSON));
      expect(view).toMatchObject({ state: "dead", reason: code, attempts: 1, nextAttemptAt: null });
      expect(view.runs[0]?.results).toHaveLength(1);
      expect(view.runs[0]?.results[0]?.docs).toBe(`https://relay.example.test/docs/errors/${code}`);
      const alerts = await alertsOf(running);
      expect(alerts).toMatchObject([{ code: "relay_failed", target: "relay:orders", count: 1 }]);
      expect(caller.requests).toHaveLength(actions[0] === CALL ? 1 : 0);
    });
  }

  test("makes the event dead on a later attempt too, if it occurs only then", async () => {
    caller.reply = () => BROKEN;
    await saveRelay(running, receiverDefinition({ actions: [CALL, { ...WRITE, collection: "later" }] }));
    const event = await sendAndDrain("a");
    caller.reply = () => OK;
    await running.clock.advance(MINUTE);
    await running.drain();
    expect(await showEvent(running, event)).toMatchObject({
      state: "dead",
      reason: "collection_missing",
      attempts: 2,
    });
  });
});

describe("alert relay_failed", () => {
  const dead = () => receiverDefinition({ actions: [{ ...WRITE, collection: "nowhere" }] });

  test("is on by default, and can be switched off on the Alerts page", async () => {
    await saveRelay(running, dead());
    await sendAndDrain("a");
    expect(await alertsOf(running)).toHaveLength(1);
    const { settings } = (await running.api("GET", "/settings")).body;
    const off = { version: settings.version, alerts: { relay_failed: false } };
    expect((await running.api("PUT", "/settings", off)).status).toBe(200);
    await pass(2 * HOUR);
    expect(await showEvent(running, await sendAndDrain("b"))).toMatchObject({ state: "dead" });
    expect(await alertsOf(running)).toMatchObject([{ count: 1 }]);
    const on = { version: settings.version + 1, alerts: { relay_failed: true } };
    await running.api("PUT", "/settings", on);
    await sendAndDrain("c");
    expect(await alertsOf(running)).toHaveLength(2);
  });

  test("counts a burst of dead events of one relay in one alert", async () => {
    await saveRelay(running, dead());
    for (const id of ["a", "b", "c"]) await sendEvent(running, id);
    await running.drain();
    expect(await alertsOf(running)).toMatchObject([{ count: 3 }]);
  });
});

describe("failed: the event ended without running any action, with no retry and no alert", () => {
  async function expectFailed(event: string, reason: string): Promise<void> {
    const view = await showEvent(running, event);
    expect(view).toMatchObject({ state: "failed", reason, nextAttemptAt: null });
    expect(await alertsOf(running)).toEqual([]);
    const runs = view.runs.length;
    await pass(48 * HOUR);
    expect((await showEvent(running, event)).runs).toHaveLength(runs);
    expect(await running.rows("SELECT id FROM record")).toEqual([]);
  }

  for (const key of ["person_email", "person_id", "person_token"]) {
    test(`person_not_found for ${key} names the key that was used, never its value`, async () => {
      const map = { event_id: "id", [key]: "who" };
      await saveRelay(running, receiverDefinition({ actions: [WRITE, CALL], map }));
      const event = await sendAndDrain("a", { who: "nobody-secret-value" });
      const view = await showEvent(running, event);
      expect(view.runs.at(-1)?.results).toMatchObject([{ outcome: "failed", code: "person_not_found" }]);
      const told = JSON.stringify([view.runs, view.reason, running.lines, running.logged]);
      expect(told).toContain(key);
      expect(told).not.toContain("nobody-secret-value");
      expect(caller.requests).toEqual([]);
      await expectFailed(event, "person_not_found");
    });
  }

  test("relay_deleted: the relay was deleted while the event waited", async () => {
    await saveRelay(running, receiverDefinition({}));
    await running.api("POST", "/relays/orders/pause");
    const event = await sendEvent(running, "a");
    await running.api("DELETE", "/relays/orders");
    await running.drain();
    await until("it ended", async () => (await showEvent(running, event)).state === "failed");
    await expectFailed(event, "relay_deleted");
    expect(running.lines).toEqual(["RELAY · orders · receiver · 0 actions · failed"]);
  });

  test("relay_deleted: the relay was deleted while a retry waited, and the report of the earlier attempt stays", async () => {
    caller.reply = () => BROKEN;
    const actions = [{ ...CALL }];
    await saveRelay(running, receiverDefinition({ actions, map: PERSON_MAP }));
    const event = await sendAndDrain("a", { email: "ada@example.com" });
    await running.api("DELETE", "/relays/orders");
    await running.clock.advance(MINUTE);
    await running.drain();
    const view = await showEvent(running, event);
    expect(view).toMatchObject({ attempts: 2, person: { email: "ada@example.com" } });
    expect(view.runs.map((run) => [run.outcome, run.results.length])).toEqual([
      ["failed", 1],
      ["failed", 0],
    ]);
    await expectFailed(event, "relay_deleted");
  });

  test("trigger_changed: the relay changed its trigger kind while the event waited", async () => {
    await saveRelay(running, receiverDefinition({}));
    await running.api("POST", "/relays/orders/pause");
    const event = await sendEvent(running, "a");
    await running.service.store.write("app", (tx) => tx.run("UPDATE relay SET definition = ?1, state = 'active'", JSON.stringify(SCHEDULE)));
    running.service.refresh();
    await running.drain();
    await expectFailed(event, "trigger_changed");
  });

  test("unsigned_event: the relay's actions changed without the opt-in before the run, and a replay returns 409", async () => {
    const verify = { scheme: "shared_token" };
    const map = { event_id: "id", person_id: "who" };
    const { person } = (await running.api("POST", "/persons", { email: "ada@example.com" })).body;
    await saveRelay(running, receiverDefinition({ verify, actions: [CALL], map }));
    await running.api("POST", "/relays/orders/pause");
    const { body } = await running.hook("orders", {
      headers: { "content-type": "application/json", "x-webhook-token": HOOK_SECRET },
      body: `{"id":"a","who":"${person.id}"}`,
    });
    await running.service.store.write("app", (tx) =>
      tx.run("UPDATE relay SET definition = ?1, state = 'active'", JSON.stringify(receiverDefinition({ actions: [GRANT], map }))),
    );
    running.service.refresh();
    await running.drain();
    await expectFailed(body.eventId, "unsigned_event");
    expect((await replay(running, body.eventId)).body.code).toBe("unsigned_event");
    expect(await running.rows("SELECT seq FROM credit")).toEqual([]);
  });
});

describe("the definition and the person of an attempt", () => {
  test("use the definition at the attempt's start, not a copy from the event's arrival", async () => {
    caller.reply = () => BROKEN;
    await saveRelay(running, receiverDefinition({ actions: [CALL] }));
    const event = await sendAndDrain("a");
    await editRelay(running, receiverDefinition({ actions: [WRITE] }));
    await running.clock.advance(MINUTE);
    await running.drain();
    const view = await showEvent(running, event);
    expect(view.state).toBe("done");
    expect(view.runs[1]?.results).toMatchObject([{ type: "write_record", outcome: "done" }]);
  });

  test("use the person at the attempt's start, not at receipt", async () => {
    await saveRelay(running, receiverDefinition({ actions: [WRITE], map: { event_id: "id", person_token: "token" } }));
    await running.api("POST", "/relays/orders/pause");
    const event = await sendEvent(running, "a", { token: "store-account-1" });
    const { person } = (await running.api("POST", "/persons", { email: "ada@example.com" })).body;
    await running.api("PUT", `/persons/${person.id}/tokens/store-account-1`, {});
    await running.api("POST", "/relays/orders/resume");
    await running.drain();
    expect(await showEvent(running, event)).toMatchObject({ state: "done", person: { id: person.id } });
  });

  test("over the daily cap of invited people, an event waits for its retry like any failure", async () => {
    const config = { limits: { ...DEFAULT_LIMITS, invitesPerDay: 1 } };
    await using capped = await startRunningService({ config });
    await makeOrders(capped);
    await saveRelay(capped, receiverDefinition({ map: PERSON_MAP }));
    await sendEvent(capped, "a", { email: "ada@example.com" });
    await capped.drain();
    const event = await sendEvent(capped, "b", { email: "bob@example.com" });
    await capped.drain();
    expect(await showEvent(capped, event)).toMatchObject({ state: "queued", reason: "invite_capped" });
  });
});
