/** Tests immediate retries of one event or all of a relay: each runs once and counts as an attempt, and errors. */
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { retryRelayNow } from "../../src/engine/event/retry-now.ts";
import { runCommand } from "../kit/cli-io.ts";
import { CALL, GRANT, putEvents, sendEvent, showEvent, until, WRITE } from "../kit/event-flow.ts";
import { BROKEN, FakeCaller, OK } from "../kit/fake-caller.ts";
import { makeOrders, receiverDefinition, saveRelay } from "../kit/relay-definition.ts";
import { type RunningService, startRunningService } from "../kit/running-service.ts";

let running: RunningService;
let caller: FakeCaller;

beforeEach(async () => {
  caller = new FakeCaller(BROKEN);
  running = await startRunningService({ ports: { caller }, environments: ["development", "production"] });
  await makeOrders(running);
  await saveRelay(running, receiverDefinition({ actions: [CALL] }));
});

afterEach(() => running[Symbol.asyncDispose]());

const retry = (id: string, environment: "development" | "production" = "development") => running.api("POST", `/events/${id}/retry`, {}, environment);
const retryAll = (name = "orders") => running.api("POST", `/relays/${name}/retry`, {});
const waiting = async (name = "orders") => (await running.api("GET", `/relays/${name}/retry`)).body.retries;

/** Sends events that fail once and wait, in order of arrival. */
async function fail(...ids: string[]): Promise<string[]> {
  const events: string[] = [];
  for (const id of ids) events.push(await sendEvent(running, id));
  await running.drain();
  for (const event of events) expect(await showEvent(running, event)).toMatchObject({ state: "queued", attempts: 1 });
  return events;
}

async function hold(held: boolean): Promise<void> {
  const { version } = (await running.api("GET", "/settings")).body.settings;
  expect((await running.api("PUT", "/settings", { version, held })).status).toBe(200);
}

describe("one event", () => {
  test("runs at once as its second attempt, and is audited", async () => {
    const [event = ""] = await fail("a");
    const { nextAttemptAt } = await showEvent(running, event);
    caller.reply = () => OK;
    const answer = await retry(event);
    expect([answer.status, answer.body.event.nextAttemptAt]).toEqual([202, null]);
    await running.drain();
    expect(await showEvent(running, event)).toMatchObject({ state: "done", attempts: 2, replays: 0 });
    expect(caller.ids).toEqual([event, event]);
    const rows = await running.rows<{ target: string; before: string; after: string }>(
      "SELECT target, before, after FROM audit WHERE action = 'event.tried_now'",
    );
    expect(rows.map(({ target, before, after }) => [target, JSON.parse(before), JSON.parse(after)])).toEqual([
      [`event:${event}`, { nextAttemptAt }, { nextAttemptAt: null }],
    ]);
  });

  test("has seven attempts in total, and is dead after immediate retries used them", async () => {
    const [event = ""] = await fail("a");
    for (let attempt = 2; attempt <= 7; attempt++) {
      expect((await retry(event)).status).toBe(202);
      await running.drain();
    }
    expect(await showEvent(running, event)).toMatchObject({ state: "dead", attempts: 7 });
    expect(caller.ids).toHaveLength(7);
  });

  test("runs once for two concurrent retries", async () => {
    const [event = ""] = await fail("a");
    caller.reply = () => "hang";
    const answers = await Promise.all([retry(event), retry(event)]);
    expect(answers.map(({ status }) => status).sort()).toEqual([202, 409]);
    await until("its call is out", () => caller.hanging() === 1);
    caller.letGo();
    await running.drain();
    expect(await showEvent(running, event)).toMatchObject({ state: "done", attempts: 2 });
    expect(caller.ids).toHaveLength(2);
  });

  test("runs once if its scheduled retry begins at the same time", async () => {
    const [event = ""] = await fail("a");
    caller.reply = () => "hang";
    const [, answer] = await Promise.all([running.clock.advance(61_000), retry(event)]);
    expect([202, 409]).toContain(answer.status);
    await until("its call is out", () => caller.hanging() === 1);
    expect(await retry(event)).toMatchObject({ status: 409, body: { code: "not_waiting", message: expect.stringContaining("is running now") } });
    caller.letGo();
    await running.drain();
    expect(await showEvent(running, event)).toMatchObject({ state: "done", attempts: 2 });
    expect(caller.ids).toHaveLength(2);
  });

  const refusals: [what: string, change: (event: string) => Promise<unknown>, code: string, words: string][] = [
    [
      "it is done",
      async (event) => {
        caller.reply = () => OK;
        await retry(event);
        await running.drain();
      },
      "not_waiting",
      "replay it instead",
    ],
    ["its relay is paused", () => running.api("POST", "/relays/orders/pause", {}), "not_waiting", "relay relays resume orders"],
    ["its environment is on hold", () => hold(true), "not_waiting", "relay settings set held off"],
    [
      "it is due and waits in its relay's queue",
      async (event) => {
        await running.service.runner.stop();
        expect((await retry(event)).status).toBe(202);
      },
      "not_waiting",
      "it is due now",
    ],
    [
      "its payload was deleted, as after an erasure",
      async () => {
        await running.service.store.write("app", (tx) => tx.run("UPDATE event SET payload = ?1", '{"expunged":"person_erased"}'));
      },
      "payload_expunged",
      "do its work by hand",
    ],
  ];
  test.each(refusals)("is rejected if %s", async (_what, change, code, words) => {
    const [event = ""] = await fail("a");
    await change(event);
    const before = await showEvent(running, event);
    expect(await retry(event)).toMatchObject({ status: 409, body: { code, message: expect.stringContaining(words) } });
    expect(await showEvent(running, event)).toEqual(before);
  });

  test("of an erased person ends failed without a call, before the sweep", async () => {
    const map = { event_id: "id", person_email: "email" };
    await saveRelay(running, receiverDefinition({ name: "people", map, actions: [GRANT, CALL] }));
    const event = await sendEvent(running, "a", { email: "ada@example.com" }, "people");
    await running.drain();
    const { state, person } = await showEvent(running, event);
    expect(state).toBe("queued");
    expect((await running.api("DELETE", `/persons/${person?.id}`)).status).toBe(204);
    expect((await retry(event)).status).toBe(202);
    await running.drain();
    expect(await showEvent(running, event)).toMatchObject({ state: "failed", reason: "person_erased" });
    expect(caller.ids).toHaveLength(1);
  });

  test("of another environment or with an unknown id is not found", async () => {
    const [event = ""] = await fail("a");
    expect(await retry(event, "production")).toMatchObject({ status: 404, body: { code: "not_found" } });
    expect(await retry("evt_none")).toMatchObject({ status: 404, body: { code: "not_found" } });
  });
});

describe("all events of a relay", () => {
  test("are counted, and each is retried once, without other relays' events", async () => {
    await saveRelay(running, receiverDefinition({ name: "others", actions: [CALL] }));
    const ids = Array.from({ length: 5 }, (_, at) => `e${at}`);
    const events = await fail(...ids);
    const other = await sendEvent(running, "other", {}, "others");
    await running.drain();
    expect(await waiting()).toMatchObject({ waiting: 5, nextAt: (await showEvent(running, events[0] ?? "")).nextAttemptAt });
    const answer = await retryAll();
    expect([answer.status, answer.body]).toEqual([202, { tried: 5, stopped: null }]);
    await running.drain();
    for (const event of events) expect(await showEvent(running, event)).toMatchObject({ state: "queued", attempts: 2 });
    expect(await showEvent(running, other)).toMatchObject({ state: "queued", attempts: 1 });
    expect(await waiting("others")).toMatchObject({ waiting: 1 });
  });

  test("are found although more queued events precede them than one step reads", async () => {
    await saveRelay(running, receiverDefinition({ name: "others", actions: [WRITE] }));
    const [first = ""] = await fail("a");
    await running.api("POST", "/relays/others/pause", {});
    await putEvents(
      running,
      Array.from({ length: 310 }, (_, at) => `o${at}`),
      { relay: "others" },
    );
    const last = await sendEvent(running, "z");
    await running.drain();
    caller.reply = () => OK;
    expect((await retryAll()).body).toEqual({ tried: 2, stopped: null });
    await running.drain();
    for (const event of [first, last]) expect(await showEvent(running, event)).toMatchObject({ state: "done", attempts: 2 });
  });

  test("are retried until a pause between two steps, with the count and the reason", async () => {
    await saveRelay(running, receiverDefinition({ name: "others", actions: [WRITE] }));
    await fail("a");
    await running.api("POST", "/relays/others/pause", {});
    await putEvents(
      running,
      Array.from({ length: 310 }, (_, at) => `o${at}`),
      { relay: "others" },
    );
    const last = await sendEvent(running, "z");
    await running.drain();
    const { store } = running.service;
    const [row] = await running.rows<{ id: number }>("SELECT environment_id AS id FROM relay WHERE name = 'orders'");
    let steps = 0;
    const write: typeof store.write = async (origin, work) => {
      const done = await store.write(origin, work);
      steps += 1;
      if (steps === 1) await running.api("POST", "/relays/orders/pause", {});
      return done;
    };
    const between: typeof store = Object.assign(Object.create(store), { read: store.read.bind(store), write });
    const asked = { environmentId: row?.id ?? 0, name: "orders", actor: "owner:test", nowMs: running.clock.now() };
    expect(await retryRelayNow(between, asked)).toEqual({ tried: 1, stopped: expect.stringContaining("is paused") });
    expect(await showEvent(running, last)).toMatchObject({ state: "queued", attempts: 1, nextAttemptAt: expect.any(String) });
  });

  test("can be none without an error, but a paused, held or unknown relay is an error", async () => {
    expect((await retryAll()).body).toEqual({ tried: 0, stopped: null });
    await fail("a");
    await running.api("POST", "/relays/orders/pause", {});
    expect(await retryAll()).toMatchObject({ status: 409, body: { code: "not_waiting" } });
    await running.api("POST", "/relays/orders/resume", {});
    await hold(true);
    expect(await retryAll()).toMatchObject({ status: 409, body: { code: "not_waiting" } });
    expect(await retryAll("nobody")).toMatchObject({ status: 404, body: { code: "not_found" } });
    expect((await running.api("GET", "/relays/nobody/retry")).status).toBe(404);
  });
});

test("the commands retry one event and all of a relay, and print the result", async () => {
  const [event = "", other = ""] = await fail("a", "b");
  const run = (...line: string[]) =>
    runCommand([...line, "--data-dir", running.dataDir], { cwd: running.dataDir, env: running.commandEnv, clock: running.clock });
  caller.reply = () => OK;
  expect(await run("events", "retry", event)).toMatchObject({ code: 0, told: `${event} runs now. See relay events show ${event}` });
  expect(await run("relays", "retry", "orders")).toMatchObject({ code: 0, told: "1 event of orders runs now. See relay events list --relay orders" });
  expect(await run("relays", "retry", "orders")).toMatchObject({ code: 0, told: "No event of orders waits for a retry." });
  expect(await run("events", "retry", other)).toMatchObject({ code: 1 });
});
