/** Interruptions of the runner: a crash, a stop, a store that cannot be written, and a changed clock. No event is lost or runs twice. */
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { toIso } from "../../src/base/clock.ts";
import { DAY_MS, DEFAULT_LIMITS } from "../../src/base/limit.ts";
import { Runner } from "../../src/engine/runner/runner.ts";
import { markTextLeft } from "../../src/platform/mail/email.ts";
import type { MailOutcome, OutgoingMail } from "../../src/platform/mail/mailer.ts";
import { alertsOf, CALL, GRANT, putEvents, sendEvent, showEvent, until, WRITE } from "../kit/event-flow.ts";
import { seqOf } from "../kit/event-sql.ts";
import { BROKEN, FakeCaller, OK } from "../kit/fake-caller.ts";
import { makeOrders, receiverDefinition, saveRelay } from "../kit/relay-definition.ts";
import { type RunningService, startRunningService } from "../kit/running-service.ts";
import { holdAll } from "../kit/sole-holder.ts";

const MINUTE = 60_000;
const PERSON_MAP = { event_id: "id", person_email: "email" };
const MAIL = { type: "email_person", subject: "Hello", text: "Thank you." };

let running: RunningService;
let caller: FakeCaller;
let mails: OutgoingMail[];
let mailOutcome: () => Promise<MailOutcome>;
/** The mailer gets as far as the mail's text if this is true. */
let textLeaves: boolean;

beforeEach(async () => {
  caller = new FakeCaller();
  mails = [];
  mailOutcome = async () => ({ kind: "sent" });
  textLeaves = true;
  const mailer = {
    async send(mail: OutgoingMail) {
      const { store } = running.service;
      if (textLeaves) await store.write("app", (tx) => markTextLeft(tx, mail.emailId, running.clock.now()));
      mails.push(mail);
      return await mailOutcome();
    },
  };
  running = await startRunningService({ ports: { caller, mailer } });
  await makeOrders(running);
  await running.service.store.write("app", (tx) =>
    tx.run("INSERT INTO sender_domain (environment_id, domain, verification_token, verified_at) SELECT id, 'shop.example', 't', 1 FROM environment"),
  );
});

afterEach(() => running[Symbol.asyncDispose]());

const countRecords = async () => (await running.rows("SELECT id FROM record")).length;

/** Stops the service while a call or a mail is unanswered. After the stop times out, it starts again on the same data. */
async function cutOff(): Promise<void> {
  let isStopped = false;
  const restarted = running.restart(() => {
    isStopped = true;
  });
  // The clock does not move during the start, because a slow machine would make retries due.
  while (!isStopped) await running.clock.advance(1_000);
  await restarted;
}

describe("an attempt that a crash interrupts", () => {
  test("counts, and the event runs again from its first action, which skips completed actions and sends call_url again", async () => {
    await saveRelay(running, receiverDefinition({ actions: [WRITE, CALL] }));
    caller.reply = () => "hang";
    const event = await sendEvent(running, "a");
    await until("the call is out", () => caller.hanging() === 1);
    caller.reply = () => OK;
    await cutOff();
    await running.drain();
    const view = await showEvent(running, event);
    expect(view).toMatchObject({ state: "done", attempts: 2, reason: null });
    expect(view.runs.map((run) => [run.attempt, run.outcome])).toEqual([
      [1, "interrupted"],
      [2, "ok"],
    ]);
    expect(view.runs.map((run) => run.results.map(({ type, outcome }) => `${type} ${outcome}`))).toEqual([
      ["write_record done"],
      ["write_record skipped", "call_url done"],
    ]);
    expect(view.runs[0]?.finishedAt).not.toBeNull();
    expect(await countRecords()).toBe(1);
    expect(caller.ids).toEqual([event, event]);
    expect(running.logged.join("\n")).toContain("rescued events of an earlier process");
  });

  test("writes its audit row with what it did before the interruption", async () => {
    await saveRelay(running, receiverDefinition({ actions: [GRANT, CALL], map: PERSON_MAP }));
    caller.reply = () => "hang";
    const event = await sendEvent(running, "a", { email: "ada@example.com" });
    await until("the call is out", () => caller.hanging() === 1);
    caller.reply = () => OK;
    await cutOff();
    await running.drain();
    const rows = await running.rows<{ before: string; after: string }>("SELECT before, after FROM audit WHERE event_id = ?1 ORDER BY seq", event);
    expect(rows).toHaveLength(2);
    expect(JSON.parse(rows[0]?.before ?? "")).toEqual([{ balance: 0 }]);
    expect(JSON.parse(rows[0]?.after ?? "")).toMatchObject([{ outcome: "done", after: { balance: 5 } }]);
  });

  test("as the seventh makes the event dead with reason interrupted and the alert", async () => {
    await saveRelay(running, receiverDefinition({ actions: [CALL] }));
    const event = await sendEvent(running, "a");
    await running.drain();
    await running.service.store.write("app", (tx) => tx.run("UPDATE event SET state = 'running', attempts = 7, runs = 7, finished_at = NULL"));
    await running.restart();
    await running.drain();
    const view = await showEvent(running, event);
    expect(view).toMatchObject({ state: "dead", reason: "interrupted", attempts: 7, nextAttemptAt: null });
    expect(view.finishedAt).not.toBeNull();
    expect(view.runs.at(-1)).toMatchObject({ attempt: 7, outcome: "interrupted" });
    expect(await alertsOf(running)).toMatchObject([{ code: "relay_failed", target: "relay:orders" }]);
    expect(caller.requests).toHaveLength(1);
  });

  test("as the sixth makes the event run once more, at once", async () => {
    await saveRelay(running, receiverDefinition({ actions: [CALL] }));
    const event = await sendEvent(running, "a");
    await running.drain();
    await running.service.store.write("app", (tx) => tx.run("UPDATE event SET state = 'running', attempts = 6, runs = 6, finished_at = NULL"));
    await running.restart();
    await running.drain();
    expect(await showEvent(running, event)).toMatchObject({ state: "done", attempts: 7 });
  });

  test("in a crash loop kills no event: the first interruption runs again at once, and later ones wait as failed attempts do", async () => {
    await saveRelay(running, receiverDefinition({ actions: [CALL] }));
    caller.reply = () => "hang";
    const events = await putEvents(running, ["a", "b", "c"]);
    await until("the calls are out", () => caller.hanging() === 3);
    await cutOff();
    await until("the calls are out again", () => caller.requests.length === 6);
    for (let crash = 2; crash <= 7; crash++) await cutOff();
    const shown = await Promise.all(events.map((id) => showEvent(running, id)));
    expect(shown).toMatchObject(Array(3).fill({ state: "queued", attempts: 2, reason: "interrupted", waits: { for: "retry" } }));
    expect(caller.requests).toHaveLength(6);
    const [second] = shown[0]?.runs.slice(-1) ?? [];
    expect(Date.parse(shown[0]?.nextAttemptAt ?? "")).toBe(Date.parse(second?.finishedAt ?? "") + 5 * MINUTE);
    caller.reply = () => OK;
    await running.clock.advance(5 * MINUTE);
    await running.drain();
    expect(await Promise.all(events.map((id) => showEvent(running, id)))).toMatchObject(Array(3).fill({ state: "done", attempts: 3 }));
    expect(await alertsOf(running)).toEqual([]);
  });

  test("after a replay starts a new count of interruptions, and runs again at once", async () => {
    await saveRelay(running, receiverDefinition({ actions: [CALL] }));
    caller.reply = () => "hang";
    const event = await sendEvent(running, "a");
    await until("the call is out", () => caller.hanging() === 1);
    caller.reply = () => OK;
    await cutOff();
    await running.drain();
    expect(await showEvent(running, event)).toMatchObject({ state: "done", attempts: 2 });
    caller.reply = () => "hang";
    await running.api("POST", `/events/${event}/replay`);
    // The interrupted call has no response either, so only the requests count.
    await until("the call of the replay is out", () => caller.requests.length === 3);
    caller.reply = () => OK;
    await cutOff();
    await running.drain();
    expect(await showEvent(running, event)).toMatchObject({ state: "done", attempts: 2 });
  });

  test("as the seventh has an alert that can be switched off", async () => {
    await running.api("PUT", "/settings", { version: 1, alerts: { relay_failed: false } });
    await saveRelay(running, receiverDefinition({ actions: [CALL] }));
    await sendEvent(running, "a");
    await running.drain();
    await running.service.store.write("app", (tx) => tx.run("UPDATE event SET state = 'running', attempts = 7, runs = 7"));
    await running.restart();
    expect(await alertsOf(running)).toEqual([]);
  });

  test("sends a mail that had not begun to leave in the next attempt, once", async () => {
    await saveRelay(running, receiverDefinition({ actions: [MAIL], map: PERSON_MAP }));
    textLeaves = false;
    mailOutcome = () => new Promise(() => undefined);
    const event = await sendEvent(running, "a", { email: "ada@example.com" });
    await until("the mail waits", () => mails.length === 1);
    textLeaves = true;
    mailOutcome = async () => ({ kind: "sent" });
    await cutOff();
    await running.drain();
    expect(await showEvent(running, event)).toMatchObject({ state: "done", attempts: 2 });
    expect(mails).toHaveLength(2);
    expect(await running.rows("SELECT id, state FROM email")).toEqual([{ id: mails[1]?.emailId, state: "sent" }]);
    expect(await alertsOf(running)).toEqual([]);
  });

  test("counts a mail that may have left as sent, and alerts owners about it", async () => {
    await saveRelay(running, receiverDefinition({ actions: [MAIL], map: PERSON_MAP }));
    mailOutcome = () => new Promise(() => undefined);
    const event = await sendEvent(running, "a", { email: "ada@example.com" });
    await until("the mail is out", () => mails.length === 1);
    mailOutcome = async () => ({ kind: "sent" });
    await cutOff();
    await running.drain();
    expect(await showEvent(running, event)).toMatchObject({ state: "done", attempts: 2 });
    expect(mails).toHaveLength(1);
    expect(await running.rows("SELECT state FROM email")).toEqual([{ state: "unknown" }]);
    expect(await alertsOf(running)).toMatchObject([{ code: "mail_unknown", message: expect.stringContaining(mails[0]?.emailId ?? "?") }]);
  });

  test("does not delay a waiting retry, which runs at its exact time", async () => {
    await saveRelay(running, receiverDefinition({ actions: [CALL] }));
    caller.reply = () => BROKEN;
    const event = await sendEvent(running, "a");
    await running.drain();
    caller.reply = () => OK;
    const due = running.clock.now() + MINUTE;
    await running.restart();
    await running.clock.advance(due - 1 - running.clock.now());
    expect(caller.requests).toHaveLength(1);
    await running.clock.advance(1);
    await running.drain();
    expect(await showEvent(running, event)).toMatchObject({ state: "done", attempts: 2 });
  });
});

describe("a graceful stop", () => {
  test("waits for calls in progress, and stores their results", async () => {
    await saveRelay(running, receiverDefinition({ actions: [CALL] }));
    caller.reply = () => "hang";
    const events = await putEvents(
      running,
      Array.from({ length: 10 }, (_, n) => `e${n}`),
    );
    await until("eight calls are out", () => caller.hanging() === 8);
    const stopping = running.restart();
    await new Promise<void>((resolve) => setImmediate(resolve));
    caller.reply = () => OK;
    caller.letGo();
    await stopping;
    await running.drain();
    const views = await Promise.all(events.map((id) => showEvent(running, id)));
    expect(views.map((view) => [view.state, view.attempts])).toEqual(Array(10).fill(["done", 1]));
    expect(caller.requests).toHaveLength(10);
  });

  test("sends nothing after the send in progress, which would outlast the stop, and the next start does it", async () => {
    await saveRelay(running, receiverDefinition({ actions: [MAIL, CALL], map: PERSON_MAP }));
    const out = Promise.withResolvers<MailOutcome>();
    mailOutcome = () => out.promise;
    caller.reply = () => "hang";
    const event = await sendEvent(running, "a", { email: "ada@example.com" });
    await until("the mail is out", () => mails.length === 1);
    const stopping = running.restart();
    await new Promise<void>((resolve) => setImmediate(resolve));
    out.resolve({ kind: "sent" });
    await stopping;
    expect(mails).toHaveLength(1);
    await until("the call is out", () => caller.hanging() === 1);
    expect(caller.requests).toHaveLength(1);
    caller.reply = () => OK;
    caller.letGo();
    await running.drain();
    const view = await showEvent(running, event);
    expect(view).toMatchObject({ state: "done", attempts: 2 });
    expect(view.runs.map((run) => run.outcome)).toEqual(["interrupted", "ok"]);
    expect([mails.length, caller.requests.length]).toEqual([1, 1]);
  });

  test("takes no new event", async () => {
    await saveRelay(running, receiverDefinition({ actions: [CALL] }));
    await running.service.runner.stop();
    await putEvents(running, ["a"]);
    await running.clock.advance(60_000);
    expect(caller.requests).toEqual([]);
    expect(running.service.runner.alive).toBe(false);
  });
});

describe("a store that cannot be written", () => {
  test("during a run counts the attempt as interrupted, and the event runs again once the store recovers", async () => {
    await saveRelay(running, receiverDefinition({ actions: [WRITE, CALL] }));
    caller.reply = () => "hang";
    const event = await sendEvent(running, "a");
    await until("the call is out", () => caller.hanging() === 1);
    caller.reply = () => OK;
    await running.direct.whileUnwritable(async () => {
      caller.letGo();
      await until("the runner noticed", () => !running.service.runner.alive);
      await running.clock.advance(20_000);
      expect(caller.requests).toHaveLength(1);
      expect(await showEvent(running, event)).toMatchObject({ state: "running", attempts: 1 });
    });
    await running.clock.advance(5_000);
    await running.drain();
    expect(running.service.runner.alive).toBe(true);
    const view = await showEvent(running, event);
    expect(view).toMatchObject({ state: "done", attempts: 2 });
    expect(view.runs.map((run) => run.outcome)).toEqual(["interrupted", "ok"]);
    expect(caller.ids).toEqual([event, event]);
    expect(await countRecords()).toBe(1);
  });

  test("during the seventh attempt makes the event dead with reason interrupted and the alert", async () => {
    await saveRelay(running, receiverDefinition({ actions: [CALL] }));
    caller.reply = () => BROKEN;
    const event = await sendEvent(running, "a");
    await running.drain();
    await running.service.store.write("app", (tx) => tx.run("UPDATE event SET attempts = 6, runs = 6"));
    caller.reply = () => "hang";
    await running.clock.advance(MINUTE);
    await until("the call is out", () => caller.hanging() === 1);
    await running.direct.whileUnwritable(async () => {
      caller.letGo();
      await until("the runner noticed", () => !running.service.runner.alive);
    });
    await running.clock.advance(5_000);
    await running.drain();
    expect(await showEvent(running, event)).toMatchObject({
      state: "dead",
      reason: "interrupted",
      attempts: 7,
    });
    expect(await alertsOf(running)).toHaveLength(1);
    expect(caller.requests).toHaveLength(2);
  });

  test("while a mail is being sent does not send it a second time", async () => {
    await saveRelay(running, receiverDefinition({ actions: [MAIL], map: PERSON_MAP }));
    let letGo = (_outcome: MailOutcome): void => undefined;
    mailOutcome = () =>
      new Promise((resolve) => {
        letGo = resolve;
      });
    const event = await sendEvent(running, "a", { email: "ada@example.com" });
    await until("the mail is out", () => mails.length === 1);
    await running.direct.whileUnwritable(async () => {
      letGo({ kind: "sent" });
      await until("the runner noticed", () => !running.service.runner.alive);
    });
    await running.clock.advance(5_000);
    await running.drain();
    expect(await showEvent(running, event)).toMatchObject({ state: "done", attempts: 2 });
    expect(mails).toHaveLength(1);
  });

  test("when a batch is taken stores none of it, and all of it runs later, once", async () => {
    await saveRelay(running, receiverDefinition({}));
    await running.api("POST", "/relays/orders/pause");
    await putEvents(running, ["a", "b", "c"]);
    // The runner that they woke has looked, and found the relay paused.
    await running.drain();
    await running.service.store.write("app", (tx) => tx.run("UPDATE relay SET state = 'active'"));
    await running.direct.whileUnwritable(async () => {
      running.service.refresh();
      await until("the runner noticed", () => !running.service.runner.alive);
      expect(await countRecords()).toBe(0);
    });
    await running.clock.advance(5_000);
    await running.drain();
    expect(await countRecords()).toBe(3);
  });
});

describe("relays that cannot be read", () => {
  test("make the runner report it, become not ready, and run the waiting events later", async () => {
    const relays = running.service.relays;
    await saveRelay(running, receiverDefinition({}));
    const current = relays.current.bind(relays);
    let readable = false;
    const runner = new Runner({
      leases: holdAll(running.service.store),
      clock: running.clock,
      relays: Object.create(relays, {
        current: { value: () => (readable ? current() : Promise.reject(new Error("a fault"))) },
        cached: { get: () => relays.cached },
      }) as typeof relays,
      ports: { caller, mailer: { send: async () => ({ kind: "sent" }) as const } },
      log: running.service.log,
      concurrency: 32,
      limits: DEFAULT_LIMITS,
      printRun: () => undefined,
      notifier: { notifyRun: () => undefined },
      watchers: [],
    });
    await running.service.runner.stop();
    const [event] = await putEvents(running, ["a"]);
    await runner.start();
    await until("it is not ready", () => !runner.alive);
    expect(running.logged.join("\n")).toContain("a fault");
    readable = true;
    await running.clock.advance(5_000);
    await running.drain();
    expect(await showEvent(running, event as string)).toMatchObject({ state: "done", attempts: 1 });
    expect(runner.alive).toBe(true);
    await runner.stop();
  });
});

describe("an event with an error outside every action", () => {
  const breakRow = (column: string, id: string) =>
    running.service.store.write("app", (tx) => tx.run(`UPDATE event SET ${column} = '{broken' WHERE seq = ?1`, seqOf(id)));

  for (const [road, column, action] of [
    ["database", "payload", WRITE],
    ["sending", "payload", CALL],
    ["database", "warnings", WRITE],
    ["sending", "warnings", CALL],
  ] as const) {
    test(`in its ${column} does not stop later events on the ${road} path, and is dead after seven attempts`, async () => {
      await saveRelay(running, receiverDefinition({ actions: [action] }));
      await running.api("POST", "/relays/orders/pause");
      const events = await putEvents(running, ["a", "b", "c"]);
      await breakRow(column, events[1] as string);
      await running.api("POST", "/relays/orders/resume");
      await running.drain();
      const states = await running.rows<{ state: string; reason: string | null }>("SELECT state, reason FROM event ORDER BY seq");
      expect(states).toEqual([
        { state: "done", reason: null },
        { state: "queued", reason: "internal" },
        { state: "done", reason: null },
      ]);
      for (let attempt = 2; attempt <= 7; attempt++) {
        running.clock.jump(DAY_MS);
        await running.clock.advance(5_000);
        await running.drain();
      }
      const [broken] = await running.rows<{ state: string; attempts: number; runs: number }>(
        "SELECT state, attempts, runs FROM event WHERE seq = ?1",
        seqOf(events[1] as string),
      );
      expect(broken).toEqual({ state: "dead", attempts: 7, runs: 7 });
      expect(await alertsOf(running)).toHaveLength(1);
    });
  }
});

describe("the wall clock jumps", () => {
  const rows: [string, number][] = [
    ["a day forward", DAY_MS],
    ["a day back", -DAY_MS],
    ["ten minutes back", -10 * MINUTE],
    ["across the turn of a year and back", 360 * DAY_MS],
  ];
  for (const [what, ms] of rows) {
    test(`${what}: no retry is lost and none runs twice`, async () => {
      await saveRelay(running, receiverDefinition({ actions: [CALL] }));
      caller.reply = () => BROKEN;
      const events = await Promise.all(["a", "b", "c"].map((id) => sendEvent(running, id)));
      await running.drain();
      running.clock.jump(ms);
      for (let seconds = 0; seconds < 65; seconds += 5) await running.clock.advance(5_000);
      await running.drain();
      const views = await Promise.all(events.map((id) => showEvent(running, id)));
      expect(views.map((view) => [view.state, view.attempts])).toEqual(Array(3).fill(["queued", 2]));
      caller.reply = () => OK;
      running.clock.jump(-ms);
      for (let seconds = 0; seconds < 310; seconds += 5) await running.clock.advance(5_000);
      await running.drain();
      const after = await Promise.all(events.map((id) => showEvent(running, id)));
      expect(after.map((view) => [view.state, view.attempts])).toEqual(Array(3).fill(["done", 3]));
      expect(caller.requests).toHaveLength(9);
    });
  }

  test("back while more retries wait than one transaction reads: each is moved forward, becomes due and runs once", async () => {
    const count = 1_203;
    await saveRelay(running, receiverDefinition({}));
    await running.api("POST", "/relays/orders/pause");
    await putEvents(
      running,
      Array.from({ length: count }, (_, number) => `e${number}`),
    );
    // Many retries are due at one moment, and some at others.
    await running.service.store.write("app", (tx) =>
      tx.run("UPDATE event SET attempts = 1, runs = 1, next_attempt_at = ?1 + (seq % 3) * 1000", running.clock.now() + MINUTE),
    );
    await running.api("POST", "/relays/orders/resume");
    running.clock.jump(-DAY_MS);
    await running.clock.advance(5_000);
    const late = () => running.rows("SELECT seq FROM event WHERE next_attempt_at > ?1 LIMIT 1", running.clock.now() + MINUTE);
    // On a busy machine an earlier look may still run, and set its timer after this clock has advanced.
    await until("each is brought forward", async () => {
      await running.clock.advance(1_000);
      return (await late()).length === 0;
    });
    await running.clock.advance(70_000);
    await running.drain();
    expect(await running.rows("SELECT state, count(*) AS count FROM event GROUP BY state")).toEqual([{ state: "done", count }]);
    expect(await countRecords()).toBe(count);
  });

  test("back while the service is off: a retry waits at most its own delay from the start", async () => {
    await saveRelay(running, receiverDefinition({ actions: [CALL] }));
    caller.reply = () => BROKEN;
    const event = await sendEvent(running, "a");
    await running.drain();
    running.clock.jump(-DAY_MS);
    await running.restart();
    await running.drain();
    const view = await showEvent(running, event);
    expect(view.nextAttemptAt).toBe(toIso(running.clock.now() + MINUTE));
  });
});
