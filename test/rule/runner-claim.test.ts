/**
 * A relay that sends takes its events and begins their attempts in one transaction. An error affects only its own event, a rollback leaves no
 * half-taken event, and nothing is sent before the commit.
 */
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import type { Clock } from "../../src/base/clock.ts";
import { DEFAULT_LIMITS } from "../../src/base/limit.ts";
import { Runner } from "../../src/engine/runner/runner.ts";
import { markTextLeft } from "../../src/platform/mail/email.ts";
import type { OutgoingMail } from "../../src/platform/mail/mailer.ts";
import { type Store, StoreUnavailable, type Writer } from "../../src/store/port.ts";
import { alertsOf, CALL, putEvents, sendEvent, showEvent, until, WRITE } from "../kit/event-flow.ts";
import { seqOf } from "../kit/event-sql.ts";
import { FakeCaller, OK } from "../kit/fake-caller.ts";
import { makeOrders, receiverDefinition, saveRelay } from "../kit/relay-definition.ts";
import { type RunningService, startRunningService } from "../kit/running-service.ts";
import { holdAll } from "../kit/sole-holder.ts";

const PERSON_MAP = { event_id: "id", person_email: "email" };
const MAIL = { type: "email_person", subject: "Hello", text: "Thank you." };

let running: RunningService;
let caller: FakeCaller;
let mails: OutgoingMail[];
let lines: string[];
let other: Runner | null;
/** Ends when `running` has its service again. The runner of a restarted service can send before that. */
let restarted: Promise<unknown> = Promise.resolve();
const mailer = {
  async send(mail: OutgoingMail) {
    await restarted;
    await running.service.store.write("app", (tx) => markTextLeft(tx, mail.emailId, running.clock.now()));
    mails.push(mail);
    return { kind: "sent" } as const;
  },
};

beforeEach(async () => {
  caller = new FakeCaller();
  mails = [];
  lines = [];
  other = null;
  running = await startRunningService({ ports: { caller, mailer } });
  await makeOrders(running);
  await running.service.store.write("app", (tx) =>
    tx.run("INSERT INTO sender_domain (environment_id, domain, verification_token, verified_at) SELECT id, 'shop.example', 't', 1 FROM environment"),
  );
});

afterEach(async () => {
  caller.letGo();
  await other?.stop();
  await running[Symbol.asyncDispose]();
});

const numbers = (count: number) => Array.from({ length: count }, (_, n) => `e${n}`);
const countOf = async (table: string) => (await running.rows<{ count: number }>(`SELECT count(*) AS count FROM ${table}`))[0]?.count;
const statesOf = () =>
  running.rows<{ state: string; attempts: number; runs: number; reason: string | null }>(
    "SELECT state, attempts, runs, reason FROM event ORDER BY seq",
  );
const queued = { state: "queued", attempts: 0, runs: 0, reason: null };
const done = { state: "done", attempts: 1, runs: 1, reason: null };

/** Wraps an object and replaces the given members. Private fields stay with the original. */
function override<Target extends object>(target: Target, own: Partial<Target>): Target {
  return new Proxy(target, {
    get(of, name) {
      const given = Reflect.get(own, name) ?? Reflect.get(of, name);
      return typeof given === "function" ? given.bind(of) : given;
    },
  });
}

interface Seams {
  /** Runs in the transaction, before its commit. */
  beforeCommit?: () => void;
  /** Runs once the commit is durable, before the runner learns of it. */
  afterCommit?: () => Promise<unknown> | unknown;
  /** Runs before each statement. */
  statement?: (sql: string, values: unknown) => void;
  clock?: Clock;
}

/** Replaces the service's runner by one whose transactions the test observes. It looks for events when it is woken. */
async function runWith({ beforeCommit, afterCommit, statement, clock = running.clock }: Seams): Promise<Runner> {
  await running.service.runner.stop();
  const { store, relays, log } = running.service;
  // The runner's first look at the store is not observed.
  let watching = false;
  const write: Store["write"] = async (origin, work) => {
    const result = await store.write(origin, async (tx) => {
      const seen: Writer = override(tx, {
        run(sql, ...values) {
          statement?.(sql, values);
          return tx.run(sql, ...values);
        },
      });
      const kept = await work(statement === undefined ? tx : seen);
      if (watching) beforeCommit?.();
      return kept;
    });
    if (watching) await afterCommit?.();
    return result;
  };
  other = new Runner({
    leases: holdAll(override(store, { write })),
    clock,
    relays,
    ports: { caller, mailer },
    log,
    concurrency: 32,
    limits: DEFAULT_LIMITS,
    printRun: (line) => lines.push(line),
    notifier: { notifyRun: () => undefined },
    watchers: [],
  });
  await other.start();
  watching = true;
  return other;
}

describe("an error in a first step", () => {
  const FAULTS: readonly [where: string, make: (seq: number) => Promise<unknown>][] = [
    [
      "before its first action, because a row cannot be read",
      (seq) => running.service.store.write("app", (tx) => tx.run("UPDATE event SET payload = '{broken' WHERE seq = ?1", seq)),
    ],
    [
      "after its first action, when its progress is stored",
      (seq) => running.direct.breakWrites("INSERT", "run", "a fault", `NEW.finished_at IS NULL AND NEW.event_seq = ${seq}`),
    ],
  ];
  for (const [where, makeFault] of FAULTS) {
    test(`${where}: fails only its event and stores none of it, and the other events are called once`, async () => {
      await saveRelay(running, receiverDefinition({ actions: [WRITE, CALL] }));
      const runner = await runWith({});
      const events = await putEvents(running, numbers(4));
      const [broken] = await running.rows<{ seq: number }>("SELECT seq FROM event WHERE seq = ?1", seqOf(events[1] as string));
      await makeFault(broken?.seq ?? 0);
      runner.wake();
      await running.drain();
      expect(await statesOf()).toEqual([done, { ...queued, attempts: 1, runs: 1, reason: "internal" }, done, done]);
      expect(caller.ids.sort()).toEqual(events.filter((id) => id !== events[1]).sort());
      expect(await countOf("record")).toBe(3);
      expect(await running.rows("SELECT results FROM run WHERE event_seq = ?1", broken?.seq ?? 0)).toEqual([
        { results: expect.stringContaining('"type":"event","outcome":"failed","code":"internal"') },
      ]);
      expect(running.logged.filter((line) => line.includes("event broke its run"))).toHaveLength(1);
      expect(lines.filter((line) => line.endsWith("failed"))).toHaveLength(1);
      await until("every place is free", () => runner.runningCount === 0);
    });
  }

  test("of the store itself rolls back all events, and only its own event is interrupted and dead after seven attempts", async () => {
    await saveRelay(running, receiverDefinition({ actions: [WRITE, CALL] }));
    let poisoned = -1;
    const runner = await runWith({
      statement(sql, values) {
        const [named] = values as [{ eventSeq?: number }?];
        if (sql.startsWith("INSERT INTO effect") && named?.eventSeq === poisoned) throw new StoreUnavailable("A page cannot be read.");
      },
    });
    const events = await putEvents(running, numbers(4));
    const [one] = await running.rows<{ seq: number }>("SELECT seq FROM event WHERE seq = ?1", seqOf(events[1] as string));
    poisoned = one?.seq ?? -1;
    runner.wake();
    await until("the claim was undone", () => running.logged.join("\n").includes("A page cannot be read."));
    expect(await statesOf()).toEqual(Array(4).fill(queued));
    expect(caller.requests).toEqual([]);
    for (let look = 0; look < 30; look++) await running.clock.advance(5_000);
    await running.drain();
    expect(await statesOf()).toEqual([done, { ...queued, attempts: 2, runs: 2, reason: "interrupted" }, done, done]);
    for (let attempt = 3; attempt <= 7; attempt++) {
      await running.service.store.write("app", (tx) =>
        tx.run("UPDATE event SET next_attempt_at = ?1 WHERE state = 'queued' AND next_attempt_at IS NOT NULL", running.clock.now()),
      );
      for (let look = 0; look < 6; look++) await running.clock.advance(5_000);
    }
    await running.drain();
    expect(await statesOf()).toEqual([done, { state: "dead", attempts: 7, runs: 7, reason: "interrupted" }, done, done]);
    expect(caller.ids.sort()).toEqual(events.filter((id) => id !== events[1]).sort());
    expect(await countOf("record")).toBe(3);
    expect(await alertsOf(running)).toHaveLength(1);
  });
});

describe("a claim that is rolled back", () => {
  test("by a full disk leaves no half-taken event and no counted attempt, and each event runs once when there is space", async () => {
    const write = { ...WRITE, data: { order: "{{mapped.event_id}}", amount: "x".repeat(4_000) } };
    await saveRelay(running, receiverDefinition({ actions: [...Array(5).fill(write), CALL] }));
    const runner = await runWith({});
    await putEvents(running, numbers(8));
    const { freeSpace } = await running.direct.fillDisk(running.service.store, { table: "record", rows: 20 });
    runner.wake();
    await until("the runner noticed", () => /SQLITE_FULL|\(53100\)/.test(running.logged.join("\n")));
    expect(await statesOf()).toEqual(Array(8).fill(queued));
    expect([await countOf("run"), await countOf("record"), await countOf("effect"), runner.runningCount]).toEqual([0, 0, 0, 0]);
    expect([caller.requests, lines]).toEqual([[], []]);
    await freeSpace();
    await running.clock.advance(5_000);
    await running.drain();
    expect(await statesOf()).toEqual(Array(8).fill(done));
    expect([await countOf("record"), caller.requests.length, lines.length]).toEqual([40, 8, 8]);
  });

  test("after all its first steps sent nothing and left no intent, and the next claim does it all, once", async () => {
    await saveRelay(running, receiverDefinition({ actions: [WRITE, MAIL, CALL], map: PERSON_MAP }));
    let full = true;
    const runner = await runWith({
      beforeCommit() {
        if (full) throw new StoreUnavailable("The disk is full.");
      },
    });
    await putEvents(running, numbers(3), { email: "ada@example.com" });
    runner.wake();
    await until("the runner noticed", () => running.logged.join("\n").includes("The disk is full."));
    expect(await statesOf()).toEqual(Array(3).fill(queued));
    for (const table of ["run", "record", "effect", "email", "person"]) expect([table, await countOf(table)]).toEqual([table, 0]);
    expect([mails, caller.requests]).toEqual([[], []]);
    full = false;
    await running.clock.advance(5_000);
    await running.drain();
    expect(await statesOf()).toEqual(Array(3).fill(done));
    expect([await countOf("record"), mails.length, caller.requests.length]).toEqual([3, 3, 3]);
  });

  test("by another write of its group is repeated, and each event is taken and sent once", async () => {
    await saveRelay(running, receiverDefinition({ actions: [WRITE, CALL] }));
    const runner = await runWith({});
    await putEvents(running, numbers(8));
    runner.wake();
    for (let turn = 0; turn < 10; turn++) {
      const fault = running.service.store.write("app", () => Promise.reject(new Error("a neighbour's fault")));
      await expect(fault).rejects.toThrow("a neighbour's fault");
    }
    await running.drain();
    expect(await statesOf()).toEqual(Array(8).fill(done));
    expect([await countOf("record"), await countOf("effect"), caller.requests.length]).toEqual([8, 8, 8]);
  });
});

describe("between the claim's commit and the send", () => {
  for (const [what, action, sent] of [
    ["a call", CALL, () => caller.requests.length],
    ["a mail", MAIL, () => mails.length],
  ] as const) {
    test(`the process dies: ${what} has not left, the attempt counts as interrupted, and the next one sends it, once`, async () => {
      await saveRelay(running, receiverDefinition({ actions: [WRITE, action], map: PERSON_MAP }));
      const runner = await runWith({ afterCommit: () => void runner.stop() });
      const [event] = await putEvents(running, ["a"], { email: "ada@example.com" });
      runner.wake();
      await until("it is taken", async () => (await statesOf())[0]?.state === "running");
      await runner.stop();
      expect(sent()).toBe(0);
      // Everything from the first step is stored, because the intent is recorded before the send.
      const [run] = await running.rows<{ results: string; finished_at: number | null }>("SELECT results, finished_at FROM run");
      expect([JSON.parse(run?.results ?? "null"), run?.finished_at]).toMatchObject([[{ type: "write_record", outcome: "done" }], null]);
      expect(await countOf("record")).toBe(1);
      restarted = running.restart();
      await restarted;
      await running.drain();
      const view = await showEvent(running, event as string);
      expect(view).toMatchObject({ state: "done", attempts: 2 });
      expect(view.runs.map((one) => one.outcome)).toEqual(["interrupted", "ok"]);
      expect([sent(), await countOf("record")]).toEqual([1, 1]);
      expect(await alertsOf(running)).toEqual([]);
    });
  }

  test("nothing is sent before the commit", async () => {
    await saveRelay(running, receiverDefinition({ actions: [CALL] }));
    const outside: number[] = [];
    const runner = await runWith({ beforeCommit: () => outside.push(caller.requests.length) });
    await putEvents(running, ["a"]);
    runner.wake();
    await running.drain();
    // The commits of the claim and of the end.
    expect(outside).toEqual([0, 1]);
    expect(caller.requests).toHaveLength(1);
  });

  test("the relay is paused: taken events end their attempt, and others wait until it resumes", async () => {
    await saveRelay(running, receiverDefinition({ actions: [WRITE, CALL] }));
    let claims = 0;
    const runner = await runWith({
      async afterCommit() {
        if (claims++ === 0) expect((await running.api("POST", "/relays/orders/pause")).status).toBe(200);
      },
    });
    const events = await putEvents(running, numbers(10));
    runner.wake();
    await until("the taken ones are done", async () => (await statesOf()).filter(({ state }) => state === "done").length === 8);
    await running.clock.advance(60_000);
    expect(await statesOf()).toEqual([...Array(8).fill(done), queued, queued]);
    await running.api("POST", "/relays/orders/resume");
    runner.wake();
    await running.drain();
    expect(await statesOf()).toEqual(Array(10).fill(done));
    expect([caller.ids, await countOf("record")]).toEqual([events, 10]);
  });
});

describe("several free places", () => {
  test("are filled in one transaction, each event with its first step, in arrival order", async () => {
    await saveRelay(running, receiverDefinition({ actions: [WRITE, CALL] }));
    caller.reply = () => "hang";
    const commits: (number | undefined)[] = [];
    const runner = await runWith({
      async afterCommit() {
        commits.push(await countOf("event WHERE state = 'running'"), await countOf("run"), await countOf("record"));
      },
    });
    const events = await putEvents(running, numbers(10));
    runner.wake();
    await until("eight calls are out", () => caller.hanging() === 8);
    expect(commits).toEqual([8, 8, 8]);
    expect(caller.ids).toEqual(events.slice(0, 8));
    caller.reply = () => OK;
    caller.letGo();
    await running.drain();
    expect(caller.ids).toEqual(events);
    expect(await statesOf()).toEqual(Array(10).fill(done));
  });

  test("are free again, with a line for each, if the first step was the last", async () => {
    await saveRelay(running, receiverDefinition({ actions: [CALL], map: { event_id: "id", person_id: "person" } }));
    await running.api("POST", "/relays/orders/pause");
    for (const id of numbers(20)) await sendEvent(running, id, { person: "per_nobody" });
    const runner = await runWith({});
    await running.api("POST", "/relays/orders/resume");
    runner.wake();
    await running.drain();
    expect(await statesOf()).toEqual(Array(20).fill({ state: "failed", attempts: 1, runs: 1, reason: "person_not_found" }));
    await until("every place is free", () => runner.runningCount === 0);
    expect([lines.length, caller.requests.length, await countOf("run")]).toEqual([20, 0, 20]);
  });

  test("are filled within the time limit of a transaction, and the next one takes the rest in arrival order", async () => {
    await saveRelay(running, receiverDefinition({ actions: [CALL] }));
    let nowMs = 0;
    const taken: (number | undefined)[] = [];
    // Each read of this clock costs five milliseconds.
    const clock = override<Clock>(running.clock, {
      monotonicMs() {
        nowMs += 5;
        return nowMs;
      },
    });
    caller.reply = () => "hang";
    const runner = await runWith({
      clock,
      async afterCommit() {
        taken.push(await countOf("event WHERE state = 'running'"));
      },
    });
    const events = await putEvents(running, numbers(7));
    runner.wake();
    await until("seven calls are out", () => caller.hanging() === 7);
    expect(taken).toEqual([2, 4, 6, 7]);
    expect(caller.ids).toEqual(events);
    caller.reply = () => OK;
    caller.letGo();
    await running.drain();
    expect(await statesOf()).toEqual(Array(7).fill(done));
  });
});
