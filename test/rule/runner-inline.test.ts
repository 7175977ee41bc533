/** An event runs inside the transaction that stores it, if no earlier event of its relay waits and no relay changed. */
import { afterEach, beforeEach, expect, test } from "bun:test";
import type { EventDraft } from "../../src/engine/event/insert.ts";
import type { Topic, Writer } from "../../src/store/port.ts";
import { ON_POSTGRES, testOfFile } from "../kit/chosen-store.ts";
import { CALL, replay, sendEvent, showEvent, WRITE } from "../kit/event-flow.ts";
import { FakeCaller } from "../kit/fake-caller.ts";
import { makeOrders, receiverDefinition, saveRelay } from "../kit/relay-definition.ts";
import { type RunningService, startRunningService } from "../kit/running-service.ts";

const WRITE_SEEN = { type: "write_record", collection: "seen", data: { order: "{{record.data.order}}" } };

let running: RunningService;
let handed: string[];

beforeEach(async () => {
  running = await startRunningService({ ports: { caller: new FakeCaller() } });
  await makeOrders(running);
  await saveRelay(running, receiverDefinition({ actions: [WRITE] }));
  await sendEvent(running, "first");
  await running.drain();
  handed = [];
  const { runner } = running.service;
  const enqueue = runner.enqueue.bind(runner);
  runner.enqueue = (arrived) => {
    handed.push(JSON.parse(arrived.event.payload).event.id);
    enqueue(arrived);
  };
});
afterEach(() => running[Symbol.asyncDispose]());

const orders = async () =>
  (await running.rows<{ order: string }>(`SELECT json_extract(data, '$.order') AS "order" FROM record ORDER BY seq`)).map((row) => row.order);
const write = (origin: "app" | "relay", work: (tx: Writer) => Promise<unknown>) => running.service.store.write(origin, work);
const relayId = async () => (await running.rows<{ id: string }>("SELECT id FROM relay WHERE name = 'orders'"))[0]?.id ?? "";
const count = async (table: string) => (await running.rows<{ count: number }>(`SELECT count(*) AS count FROM ${table}`))[0]?.count;

test("it is done when its request is answered, with its run and one audit row, and without the runner", async () => {
  const event = await sendEvent(running, "second");
  expect(await showEvent(running, event)).toMatchObject({ state: "done", runs: [{ attempt: 1, outcome: "ok" }] });
  expect([await orders(), handed]).toEqual([["first", "second"], []]);
  expect([await count("run"), await count("audit WHERE action = 'run'")]).toEqual([2, 2]);
  expect(
    await running.rows("SELECT state, attempts, runs, started_at IS NOT NULL AS began, finished_at IS NOT NULL AS ended FROM event WHERE seq = 2"),
  ).toEqual([{ state: "done", attempts: 1, runs: 1, began: 1, ended: 1 }]);
});

test("a repeat of it runs nothing, in the same transaction or later", async () => {
  const answers = await Promise.all(["twice", "twice"].map((id) => sendEvent(running, id)));
  await sendEvent(running, "twice");
  await running.drain();
  expect([new Set(answers).size, await orders()]).toEqual([1, ["first", "twice"]]);
});

test("a failed action leaves the event waiting for its retry with the attempt counted, and later events run", async () => {
  await write("app", (tx) => tx.run("UPDATE collection SET fields = replace(fields, 'text', 'number') WHERE name = 'orders'"));
  const broken = await sendEvent(running, "no number");
  expect(await showEvent(running, broken)).toMatchObject({ runs: [{ attempt: 1, outcome: "failed" }] });
  await write("app", (tx) => tx.run("UPDATE collection SET fields = replace(fields, 'number', 'text') WHERE name = 'orders'"));
  await sendEvent(running, "behind");
  expect([await orders(), handed]).toEqual([["first", "behind"], []]);
  await replay(running, broken);
  await running.drain();
  expect(await orders()).toEqual(["first", "behind", "no number"]);
});

/** Runs the next event's transaction as if earlier writes had touched this. Null means that its writes may be rolled back separately. */
function within(touched: readonly [topic: Topic, id?: string] | null): void {
  const { runner } = running.service;
  const startInline = runner.startInline.bind(runner);
  runner.startInline = (tx, events) => {
    runner.startInline = startInline;
    const isIt = (topic: Topic, id?: string) => topic === touched?.[0] && (id === undefined || id === touched[1]);
    const whole = tx.shared === null || touched === null ? null : { ...tx.shared, hasChanged: isIt };
    const get = (target: Writer, name: keyof Writer) => {
      const value = name === "shared" ? whole : target[name];
      return typeof value === "function" ? value.bind(target) : value;
    };
    return startInline(new Proxy(tx, { get } as ProxyHandler<Writer>), events);
  };
}

type Obstacle = [what: string, make: () => Promise<void>];
const WROTE_BESIDE: Obstacle = ["another process wrote something", () => running.direct.run("UPDATE relay SET updated_at = updated_at + 1")];
const OBSTACLES: readonly Obstacle[] = [
  ["an earlier write of the transaction changed a relay", async () => within(["relay"])],
  ["an earlier write of the transaction changed an environment", async () => within(["environment"])],
  ["an earlier write of the transaction made an event of its relay due", async () => within(["event", await relayId()])],
  ["its transaction runs again with a savepoint for each write", async () => within(null)],
  // On PostgreSQL others write all the time, and the store itself reports the state (test/flow/node.test.ts).
  ...(ON_POSTGRES ? [] : [WROTE_BESIDE]),
];

test.each(OBSTACLES)("it is handed to the runner and runs after its transaction if %s", async (_what, make) => {
  await make();
  const event = await sendEvent(running, "second");
  await sendEvent(running, "third");
  await running.drain();
  expect(handed[0]).toBe("second");
  expect(await showEvent(running, event)).toMatchObject({ state: "done", runs: [{ attempt: 1 }] });
  expect(await orders()).toEqual(["first", "second", "third"]);
  handed.length = 0;
  await sendEvent(running, "fourth");
  expect([await orders(), handed]).toEqual([["first", "second", "third", "fourth"], []]);
});

test("it waits while its relay is paused, and afterwards all events run in order", async () => {
  await running.api("POST", "/relays/orders/pause");
  for (const id of ["a", "b"]) await sendEvent(running, id);
  expect(await orders()).toEqual(["first"]);
  await Promise.all([running.api("POST", "/relays/orders/resume"), sendEvent(running, "c")]);
  await sendEvent(running, "d");
  await running.drain();
  expect(await orders()).toEqual(["first", "a", "b", "c", "d"]);
});

test("it does not overtake an event that was stored while its relay was paused and never handed over", async () => {
  const { runner } = running.service;
  const startInline = runner.startInline.bind(runner);
  let beforeOthers = 0;
  runner.startInline = (tx, events) => {
    if (events.length > 1) {
      beforeOthers += 1;
      delete (events[0] as EventDraft).dispatch;
    }
    return startInline(tx, events);
  };
  await Promise.all(Array.from({ length: 24 }, (_, at) => sendEvent(running, `at once ${at}`)));
  await running.drain();
  expect(beforeOthers).toBeGreaterThan(0);
  const arrived = await running.rows<{ payload: string }>("SELECT payload FROM event ORDER BY seq");
  expect(await orders()).toEqual(arrived.map(({ payload }) => JSON.parse(payload).event.id));
});

if (ON_POSTGRES)
  test("it does not run by a version of its relay that another node replaced without this node knowing", async () => {
    await running.direct.run("UPDATE relay SET version = version + 1");
    await sendEvent(running, "second");
    expect([await orders(), handed]).toEqual([["first"], ["second"]]);
    running.service.refresh();
    await running.drain();
    expect(await orders()).toEqual(["first", "second"]);
  });

testOfFile("a server that lost the lease stores it and runs nothing", async () => {
  await running.direct.run("UPDATE runner_lease SET epoch = epoch + 1, holder = 'another'");
  const event = await sendEvent(running, "second");
  expect(await showEvent(running, event)).toMatchObject({ state: "queued", runs: [] });
  expect(await orders()).toEqual(["first"]);
});

test("its writes fire no relay that watches, and writes of the API next to it do", async () => {
  const trigger = { kind: "data_change", collection: "orders", on: ["created"] };
  await running.api("POST", "/collections", { name: "seen", kind: "shared", fields: { order: { type: "text" } } });
  const watching = await running.api("POST", "/relays", { definition: { name: "watching", trigger, actions: [WRITE_SEEN] } });
  expect(watching.status).toBe(201);
  const written = running.api("POST", "/collections/orders/records", { data: { order: "by the app" } });
  await Promise.all([written, ...["b", "c"].map((id) => sendEvent(running, id))]);
  await sendEvent(running, "d");
  await running.drain();
  const seen = await running.rows(`SELECT json_extract(data, '$.order') AS "order" FROM record WHERE collection = 'seen'`);
  expect(seen).toEqual([{ order: "by the app" }]);
});

test("a relay that sends claims it in a separate transaction", async () => {
  await saveRelay(running, receiverDefinition({ name: "calling", actions: [WRITE, CALL] }));
  for (const id of ["x", "y"]) await sendEvent(running, id, {}, "calling");
  await running.drain();
  expect(handed).toEqual(["x", "y"]);
});
