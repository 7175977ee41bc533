/**
 * The database refuses a row at the end of one event of a batch, at any place and for any table. The other events end once, this one is retried, and
 * nothing is granted twice.
 */
import { afterEach, beforeEach, expect, test } from "bun:test";
import { type BufferedEvent, eventIdOf } from "../../src/engine/event/event.ts";
import { GRANT, putEvents, runNothingInline, sendEvent, WRITE } from "../kit/event-flow.ts";
import { refuseRows, takeRowsAgain } from "../kit/refused-row.ts";
import { makeOrders, receiverDefinition, saveRelay } from "../kit/relay-definition.ts";
import { type RunningService, startRunningService } from "../kit/running-service.ts";

const EMAIL = "ada@example.com";
const IDS = ["c", "d", "e", "f", "g", "h"];
let running: RunningService;

beforeEach(async () => {
  running = await startRunningService();
  await makeOrders(running);
  const definition = receiverDefinition({ actions: [GRANT, WRITE], map: { event_id: "id", person_email: "email" } });
  await saveRelay(running, definition);
  for (const id of ["a", "b"]) {
    await sendEvent(running, id, { email: EMAIL });
    await running.drain();
  }
});
afterEach(() => running[Symbol.asyncDispose]());

/**
 * Brings the events. With `itself`, each runs in the transaction that stores it. Otherwise all are waiting and due at the end, and the runner takes
 * them in one batch from memory or from the store.
 */
async function arrive(from: "itself" | "memory" | "store", refuse: () => Promise<void>): Promise<void> {
  if (from === "itself") {
    await refuse();
    for (const id of IDS) await sendEvent(running, id, { email: EMAIL });
    return;
  }
  if (from === "store") {
    // The refusal begins after the events are stored and before a batch takes them.
    await Promise.all([putEvents(running, IDS, { email: EMAIL }), refuse()]);
    return;
  }
  runNothingInline(running);
  const { runner } = running.service;
  const enqueue = runner.enqueue.bind(runner);
  const kept: BufferedEvent[] = [];
  runner.enqueue = (arrived) => kept.push(arrived);
  for (const id of IDS) await sendEvent(running, id, { email: EMAIL });
  runner.enqueue = enqueue;
  await refuse();
  for (const one of kept) enqueue(one);
}

const REFUSALS: readonly [row: string, trigger: (at: number) => readonly [on: string, when: string]][] = [
  ["the run's row", (at) => ["BEFORE INSERT ON run", `NEW.event_seq = ${at} AND NEW.outcome = 'ok'`]],
  ["the event's row", (at) => ["BEFORE UPDATE ON event", `NEW.seq = ${at} AND NEW.state = 'done'`]],
  [
    "the audit's row",
    (at) => {
      const id = eventIdOf({ seq: at, createdAt: running.clock.now(), formerId: null });
      return ["BEFORE INSERT ON audit", `NEW.event_id = '${id}' AND NEW.after LIKE '%"done"%'`];
    },
  ],
  ["a record", (at) => ["BEFORE INSERT ON record", `json_extract(NEW.data, '$.order') = '${IDS[at - 3]}'`]],
];

test.each(
  REFUSALS.flatMap(([row, trigger]) =>
    (["itself", "memory", "store"] as const).flatMap((from) =>
      // An event that runs in the transaction that stores it has no row yet whose update could be refused.
      (from !== "itself" ? [0, 2, 5] : row === "the event's row" ? [] : [2]).map((place) => [row, from, place, trigger] as const),
    ),
  ),
)("%s is refused for one of the events from %s, at place %d: it is retried, and the others end once", async (_row, from, place, trigger) => {
  const seq = place + 3;
  await arrive(from, () => refuseRows(running.service.store, ...trigger(seq)));
  await running.drain();
  const states = () => running.rows<{ state: string; runs: number }>("SELECT state, runs FROM event WHERE seq > 2 ORDER BY seq");
  expect(await states()).toEqual(IDS.map((_, at) => ({ state: at === place ? "queued" : "done", runs: 1 })));
  await takeRowsAgain(running.service.store);
  await running.clock.leap(15 * 60_000);
  await running.clock.advance(5_000);
  await running.drain();
  expect(await states()).toEqual(IDS.map((_, at) => ({ state: "done", runs: at === place ? 2 : 1 })));
  const count = async (sql: string) => (await running.rows<{ count: number }>(`SELECT count(*) AS count FROM ${sql}`))[0]?.count;
  expect(await count("credit")).toBe(8);
  expect(await count("(SELECT DISTINCT json_extract(data, '$.order') FROM record)")).toBe(8);
  expect(await count("record")).toBe(8);
  expect(await count("run")).toBe(9);
  expect(await count("audit WHERE action = 'run'")).toBe(9);
});
