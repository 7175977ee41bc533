/** One event of a batch whose end the database refuses, wherever it stands and whichever row is refused: its neighbours end once, it is tried again, nothing is granted twice. */
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

/** They run in the transaction that brings them; or they wait when this ends, all due, and the runner takes them in one batch, from memory or from the store. */
async function arrive(from: "itself" | "memory" | "store", refuse: () => Promise<void>): Promise<void> {
  if (from === "itself") {
    await refuse();
    for (const id of IDS) await sendEvent(running, id, { email: EMAIL });
    return;
  }
  if (from === "store") {
    // Behind the events, and before the batch that takes them.
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
      // One that runs as it is stored has no row yet that could refuse.
      (from !== "itself" ? [0, 2, 5] : row === "the event's row" ? [] : [2]).map((place) => [row, from, place, trigger] as const),
    ),
  ),
)("%s refused, events from %s, the broken one at place %d", async (_row, from, place, trigger) => {
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
