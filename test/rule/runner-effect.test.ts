/** Each action of an event takes effect once. Retries and replays recognize completed actions, through edits of the definition and in any order. */
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import fc from "fast-check";
import { roundsOf } from "../kit/chosen-store.ts";
import { editRelay, GRANT, putEvents, replay, sendEvent, showEvent, until } from "../kit/event-flow.ts";
import { EVENT_ID } from "../kit/event-sql.ts";
import { BROKEN, FakeCaller, OK, type Reply } from "../kit/fake-caller.ts";
import { type ActionLike, makeOrders, receiverDefinition, saveRelay } from "../kit/relay-definition.ts";
import { type RunningService, startRunningService } from "../kit/running-service.ts";

const CALL = { type: "call_url", url: "https://example.com/notice" };
const PERSON_MAP = { event_id: "id", person_email: "email" };
const EMAIL = "ada@example.com";

/** Writes the event's id and a mark, which says which action wrote the record. */
const mark = (amount: string, collection = "orders"): ActionLike => ({
  type: "write_record",
  collection,
  data: { order: "{{mapped.event_id}}", amount },
});

let running: RunningService;
let caller: FakeCaller;

async function start(): Promise<void> {
  caller = new FakeCaller();
  running = await startRunningService({ ports: { caller } });
  await makeOrders(running);
  const fields = { order: { type: "text" }, amount: { type: "text" } };
  await running.api("POST", "/collections", { name: "others", kind: "shared", fields });
}

beforeEach(start);
afterEach(() => running[Symbol.asyncDispose]());

const define = (...actions: ActionLike[]) => receiverDefinition({ actions, map: PERSON_MAP });

async function sendAndDrain(id: string): Promise<string> {
  const event = await sendEvent(running, id, { email: EMAIL });
  await running.drain();
  return event;
}

async function replayAndDrain(event: string): Promise<string[]> {
  expect((await replay(running, event)).status).toBe(202);
  await running.drain();
  const { runs } = await showEvent(running, event);
  return runs.at(-1)?.results.map(({ type, outcome }) => `${type} ${outcome}`) ?? [];
}

async function marks(collection = "orders"): Promise<string[]> {
  const { items } = (await running.api("GET", `/collections/${collection}/records?limit=200`)).body;
  return items.map((item: { data: { amount: string } }) => item.data.amount).sort();
}

describe("an action is identified by its content, not by its place", () => {
  test("an action inserted before a completed one runs, and the completed one is skipped", async () => {
    await saveRelay(running, define(mark("first")));
    const event = await sendAndDrain("a");
    await editRelay(running, define(mark("other", "others"), GRANT, mark("first")));
    expect(await replayAndDrain(event)).toEqual(["write_record done", "grant_credits done", "write_record skipped"]);
    expect([await marks(), await marks("others")]).toEqual([["first"], ["other"]]);
  });

  test("a second equal action that was added runs, and the first is skipped", async () => {
    await saveRelay(running, define(mark("first")));
    const event = await sendAndDrain("a");
    await editRelay(running, define(mark("first"), mark("second")));
    expect(await replayAndDrain(event)).toEqual(["write_record skipped", "write_record done"]);
    expect(await marks()).toEqual(["first", "second"]);
  });

  test("actions that change places are each recognized", async () => {
    await saveRelay(running, define(mark("first"), GRANT, mark("other", "others")));
    const event = await sendAndDrain("a");
    await editRelay(running, define(mark("other", "others"), mark("first"), GRANT));
    expect(await replayAndDrain(event)).toEqual(["write_record skipped", "write_record skipped", "grant_credits skipped"]);
    expect([await marks(), await marks("others")]).toEqual([["first"], ["other"]]);
  });

  test("another event of the same relay runs its own actions", async () => {
    await saveRelay(running, define(mark("x"), GRANT));
    await sendAndDrain("a");
    await sendAndDrain("b");
    expect(await marks()).toEqual(["x", "x"]);
    expect(await running.rows("SELECT sum(amount) AS sum FROM credit")).toEqual([{ sum: 10 }]);
  });
});

describe("an action that throws", () => {
  test("rolls back only itself: earlier actions stay, and later ones do not run", async () => {
    await saveRelay(running, define(mark("before"), GRANT, mark("behind", "others")));
    // The ledger refuses every line after it was written, as an internal error would.
    await running.direct.breakWrites("INSERT", "credit", "a fault");
    const event = await sendAndDrain("a");
    const view = await showEvent(running, event);
    expect(view).toMatchObject({ state: "queued", reason: "internal", attempts: 1 });
    expect(view.runs[0]?.results.map(({ type, outcome }) => `${type} ${outcome}`)).toEqual(["write_record done", "grant_credits failed"]);
    expect(JSON.stringify(view)).not.toContain("a fault");
    expect(running.logged.join("\n")).toContain("a fault");
    expect([await marks(), await marks("others")]).toEqual([["before"], []]);
    expect(await running.rows("SELECT seq FROM credit")).toEqual([]);
    await running.direct.fix("credit");
    await running.clock.advance(60_000);
    await running.drain();
    expect(await showEvent(running, event)).toMatchObject({ state: "done", attempts: 2 });
    expect([await marks(), await marks("others")]).toEqual([["before"], ["behind"]]);
    expect(await running.rows("SELECT amount FROM credit")).toEqual([{ amount: 5 }]);
  });

  test("in finding the person rolls back only that, and is retried", async () => {
    await saveRelay(running, define(mark("x")));
    await running.direct.breakWrites("INSERT", "person", "a fault");
    const event = await sendAndDrain("a");
    expect(await showEvent(running, event)).toMatchObject({ state: "queued", reason: "internal" });
    expect(await running.rows("SELECT id FROM person")).toEqual([]);
    await running.direct.fix("person");
    await running.clock.advance(60_000);
    await running.drain();
    expect(await showEvent(running, event)).toMatchObject({ state: "done" });
  });
});

type Step =
  | { do: "send" | "burst" | "pause" | "resume" | "restart" | "crash" | "toggle" | "edit"; with: number }
  | { do: "replay" | "wait" | "jump"; with: number };

/** Each definition has one write to orders and one grant_credits, among other actions. */
const DEFINITIONS = [
  define(mark("x"), GRANT),
  define(GRANT, CALL, mark("x")),
  define(mark("x"), CALL, GRANT),
  define(mark("y", "others"), GRANT, mark("x"), CALL),
  define(CALL, CALL, mark("x"), GRANT),
];

const WAITS = [1_000, 60_000, 300_000, 1_800_000];

test("an action that another runner completed is refused by its key, rolled back, and found by the next attempt", async () => {
  await saveRelay(running, define(mark("once"), GRANT));
  const event = await sendAndDrain("a");
  // The state that a runner sees if it read the event before the other runner took it.
  await running.service.store.write("app", (tx) => tx.run("UPDATE event SET state = 'queued', attempts = 0, runs = 0, next_attempt_at = NULL"));
  running.service.refresh();
  await running.drain();
  expect(await marks()).toEqual(["once"]);
  expect(await running.rows("SELECT sum(amount) AS given FROM credit")).toEqual([{ given: 5 }]);
  await running.clock.advance(60_000);
  await running.drain();
  const { state, runs } = await showEvent(running, event);
  expect([state, ...(runs.at(-1)?.results.map(({ outcome }) => outcome) ?? [])]).toEqual(["done", "skipped", "skipped"]);
  expect(await marks()).toEqual(["once"]);
});

test("any order of events, retries, replays, pauses, edits, restarts and clock jumps leaves each effect once for each event", async () => {
  const step = fc.record({
    do: fc.constantFrom<Step["do"]>(
      "send",
      "send",
      "burst",
      "replay",
      "replay",
      "wait",
      "wait",
      "edit",
      "toggle",
      "pause",
      "resume",
      "restart",
      "crash",
      "jump",
    ),
    with: fc.nat(1_000),
  });
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 4, maxLength: 25 }), async (steps) => {
      await running[Symbol.asyncDispose]();
      await start();
      await saveRelay(running, DEFINITIONS[2] as Record<string, unknown>);
      await follow(steps as Step[]);
      await expectOnce();
    }),
    { numRuns: roundsOf(25), endOnFailure: false },
  );
});

async function follow(steps: readonly Step[]): Promise<void> {
  const events: string[] = [];
  let broken = false;
  for (const [index, { do: what, with: number }] of steps.entries()) {
    switch (what) {
      case "send":
        events.push(await sendEvent(running, `s${index}`, { email: EMAIL }));
        break;
      case "burst": {
        const ids = Array.from({ length: 1 + (number % 12) }, (_, n) => `b${index}-${n}`);
        events.push(...(await putEvents(running, ids, { email: EMAIL })));
        break;
      }
      case "replay": {
        const event = events[number % Math.max(1, events.length)];
        if (event !== undefined) expect([202, 409]).toContain((await replay(running, event)).status);
        break;
      }
      case "wait":
        running.clock.jump((WAITS[number % WAITS.length] as number) - 1_000);
        await running.clock.advance(6_000);
        break;
      case "edit":
        await editRelay(running, DEFINITIONS[number % DEFINITIONS.length] as Record<string, unknown>);
        break;
      case "toggle":
        broken = !broken;
        caller.reply = () => (broken ? BROKEN : OK);
        break;
      case "pause":
      case "resume":
        expect((await running.api("POST", `/relays/orders/${what}`)).status).toBe(200);
        break;
      case "restart":
        await running.restart();
        break;
      case "crash":
        await crash(broken ? BROKEN : OK);
        break;
      case "jump":
        running.clock.jump(number % 2 === 0 ? 86_400_000 : -86_400_000);
        break;
    }
  }
  caller.reply = () => OK;
  await editRelay(running, DEFINITIONS[number(steps) % DEFINITIONS.length] as Record<string, unknown>);
  await running.api("POST", "/relays/orders/resume");
  for (let round = 0; round < 9; round++) {
    running.clock.jump(86_400_000);
    await running.clock.advance(6_000);
    await running.drain();
  }
  // Replays every event that ran out of attempts once more.
  const dead = await running.rows<{ id: string }>(`SELECT ${EVENT_ID} AS id FROM event WHERE state <> 'done'`);
  for (const { id } of dead) expect((await replay(running, id)).status).toBe(202);
  await running.drain();
}

const number = (steps: readonly Step[]): number => steps.reduce((sum, one) => sum + one.with, 0);

/** Stops during the calls in progress, and starts again on the data that is left. */
async function crash(reply: Reply): Promise<void> {
  caller.reply = () => "hang";
  await running.clock.advance(1_000);
  caller.reply = () => reply;
  let over = false;
  const restarted = running.restart().finally(() => {
    over = true;
  });
  while (!over) await running.clock.advance(1_000);
  await restarted;
}

async function expectOnce(): Promise<void> {
  const [events] = await running.rows<{ count: number }>("SELECT count(*) AS count FROM event");
  expect(await running.rows<{ state: string }>("SELECT DISTINCT state FROM event WHERE state <> 'done'")).toEqual([]);
  const written = await running.rows<{ order: string }>(
    `SELECT json_extract(data, '$.order') AS "order" FROM record WHERE json_extract(data, '$.amount') = 'x'`,
  );
  expect(written).toHaveLength(events?.count ?? -1);
  expect(new Set(written.map((row) => row.order)).size).toBe(written.length);
  const credited = await running.rows<{ event: string }>("SELECT event_id AS event FROM credit");
  expect(credited).toHaveLength(events?.count ?? -1);
  expect(new Set(credited.map((row) => row.event)).size).toBe(credited.length);
  const others = await running.rows<{ count: number }>(
    `SELECT count(*) AS count FROM record WHERE json_extract(data, '$.amount') = 'y' GROUP BY json_extract(data, '$.order')`,
  );
  expect(others.every((row) => row.count === 1)).toBe(true);
  await until("nothing runs", () => running.service.runner.runningCount === 0);
}
