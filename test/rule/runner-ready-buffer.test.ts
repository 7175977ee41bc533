/** The receiver hands events to the runner without a second read. Events from the buffer equal those that the store would return. */
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import fc from "fast-check";
import type { BufferedEvent } from "../../src/engine/event/event.ts";
import { ReadyBuffer } from "../../src/engine/runner/ready-buffer.ts";
import { editRelay, GRANT, putEvents, runNothingInline, sendEvent, showEvent, WRITE } from "../kit/event-flow.ts";
import { makeOrders, receiverDefinition, saveRelay } from "../kit/relay-definition.ts";
import { type RunningService, startRunningService } from "../kit/running-service.ts";

describe("the buffer of a relay", () => {
  const stored = (seq: number, chars = 10) =>
    ({ relayId: "r", event: { seq, payload: "x".repeat(chars) }, payload: null }) as unknown as BufferedEvent;
  const complete = (buffer: ReadyBuffer, through = 0) =>
    buffer.confirm("r", through, { isComplete: true, invalidations: buffer.peek("r", 1).invalidations });
  const seqs = (buffer: ReadyBuffer) => buffer.peek("r", 9_999).events?.map(({ event }) => event.seq) ?? null;

  test("holds a limited number and size of events, and is then incomplete", () => {
    for (const [count, chars] of [
      [1_024, 10],
      [64, 65_536],
    ] as const) {
      const buffer = new ReadyBuffer();
      complete(buffer);
      for (let seq = 1; seq <= count; seq++) buffer.add(stored(seq, chars));
      expect(seqs(buffer)).toHaveLength(count);
      buffer.add(stored(count + 1, chars));
      expect([seqs(buffer), buffer.mayHaveDue("r")]).toEqual([null, true]);
      complete(buffer, count + 1);
      buffer.add(stored(count + 2, chars));
      expect(seqs(buffer)).toEqual([count + 2]);
    }
  });

  test("drops events that a poll of the store found and ran before it heard of their commit", () => {
    const buffer = new ReadyBuffer();
    complete(buffer, 5);
    for (const seq of [4, 5, 6]) buffer.add(stored(seq));
    expect(seqs(buffer)).toEqual([6]);
  });

  test("is invalid after a foreign commit, once for each relay, whichever version other transactions have", () => {
    const buffer = new ReadyBuffer();
    const isComplete = (relayId: string, version: number) => {
      buffer.invalidateAfterForeignCommit(version, [relayId]);
      const { events, invalidations } = buffer.peek(relayId, 1);
      buffer.confirm(relayId, 0, { isComplete: true, invalidations });
      return events !== null;
    };
    // Transactions of two environments take turns, and the second one sees each foreign commit later.
    const turns = [
      ["one", 1],
      ["two", 1],
      ["one", 1],
      ["two", 1],
      ["one", 2],
      ["two", 1],
      ["one", 2],
      ["two", 2],
      ["two", 2],
    ] as const;
    const seen = turns.map(([relayId, version]) => isComplete(relayId, version));
    expect(seen).toEqual([false, false, true, true, false, true, true, false, true]);
  });

  test("keeps which relays of each batch had no time, while batches of two environments take turns", () => {
    const buffer = new ReadyBuffer();
    buffer.recordStarved(["a", "b"], ["b"]);
    buffer.recordStarved(["c", "d"], ["c"]);
    expect([...buffer.starved]).toEqual(["b", "c"]);
    buffer.recordStarved(["a", "b"], ["a"]);
    expect([...buffer.starved]).toEqual(["c", "a"]);
  });

  test("returns all due events or none, in any order of commits, batches and losses", () => {
    const step = fc.oneof(
      fc.record({ do: fc.constantFrom("arrive", "foreign", "lose"), count: fc.integer({ min: 1, max: 4 }) }),
      // A batch whose group stored events before and after it, and whose buffer may be invalid now.
      fc.record({
        do: fc.constant("batch"),
        share: fc.integer({ min: 1, max: 4 }),
        cut: fc.boolean(),
        before: fc.nat(2),
        behind: fc.nat(2),
        lost: fc.boolean(),
      }),
    );
    fc.assert(
      fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
        const buffer = new ReadyBuffer();
        let next = 1;
        let due: number[] = [];
        const ran: number[] = [];
        const store = (count: number) => Array.from({ length: count }, () => next++);
        const commit = (stored_: number[]) => {
          for (const seq of stored_) buffer.add(stored(seq));
        };
        for (const one of steps) {
          if ("count" in one) {
            if (one.do === "lose") buffer.invalidate("r");
            else {
              const made = store(one.count);
              due.push(...made);
              if (one.do === "arrive") commit(made);
              else buffer.invalidate("r");
            }
            continue;
          }
          const before = store(one.before);
          due.push(...before);
          const { events, invalidations } = buffer.peek("r", one.share);
          const taken = events?.map(({ event }) => event.seq) ?? due.slice(0, one.share);
          // The buffer returns what was due before this group, the oldest first.
          if (events !== null) expect(taken).toEqual(due.filter((seq) => !before.includes(seq)).slice(0, one.share));
          const run = one.cut ? taken.slice(0, 1) : taken;
          ran.push(...run);
          due = due.filter((seq) => !run.includes(seq));
          const behind = store(one.behind);
          due.push(...behind);
          // These steps follow the commit, in the order of the group's writes. Another process's change is announced first.
          if (one.lost) buffer.invalidate("r");
          commit(before);
          const isComplete = events !== null || (run.length === taken.length && taken.length < one.share);
          buffer.confirm("r", run.at(-1) ?? 0, { isComplete, invalidations });
          commit(behind);
          if (!buffer.mayHaveDue("r")) expect(due).toEqual([]);
        }
        expect(ran).toEqual(ran.toSorted((a, b) => a - b));
      }),
    );
  });
});

describe("an event that changed between its commit and its run", () => {
  let running: RunningService;
  beforeEach(async () => {
    running = await startRunningService();
    runNothingInline(running);
    await makeOrders(running);
  });
  afterEach(() => running[Symbol.asyncDispose]());

  const orders = async () =>
    (await running.rows<{ order: string }>(`SELECT json_extract(data, '$.order') AS "order" FROM record ORDER BY seq`)).map((row) => row.order);

  /** Runs another write between the next event's commit and its run. */
  function between(sql: string): void {
    const { runner, store } = running.service;
    const enqueue = runner.enqueue.bind(runner);
    runner.enqueue = (arrived) => {
      runner.enqueue = enqueue;
      const { seq, environmentId } = arrived.event;
      void store.write("erasure", (tx) => tx.run(sql, { seq }), environmentId);
      enqueue(arrived);
    };
  }

  /** Makes the relay's buffer complete, so that the next event is taken from it. */
  async function settle(): Promise<void> {
    await saveRelay(running, receiverDefinition({ actions: [WRITE], map: { event_id: "id", person_email: "email" } }));
    for (const id of ["a", "b"]) {
      await sendEvent(running, id, { email: "ada@example.com" });
      await running.drain();
    }
  }

  const changes: [what: string, sql: string, then: { state: string; reason?: string }, orders: string[]][] = [
    ["rewritten", `UPDATE event SET payload = replace(payload, '"c"', '"C"') WHERE seq = $seq`, { state: "done" }, ["a", "b", "C", "d"]],
    [
      "without its person",
      `UPDATE event SET payload = '{"expunged":"person_erased"}' WHERE seq = $seq`,
      { state: "failed", reason: "person_erased" },
      ["a", "b", "d"],
    ],
    [
      "ended",
      "UPDATE event SET state = 'failed', reason = 'payload_expunged' WHERE seq = $seq",
      { state: "failed", reason: "payload_expunged" },
      ["a", "b", "d"],
    ],
    [
      "already run by another process",
      "UPDATE event SET state = 'done', runs = 1, attempts = 1 WHERE seq = $seq",
      { state: "done" },
      ["a", "b", "d"],
    ],
  ];
  test.each(changes)("(%s) is read again and runs in its current state, or not at all", async (_what, sql, then, written) => {
    await settle();
    between(sql);
    const event = await sendEvent(running, "c", { email: "ada@example.com" });
    await sendEvent(running, "d", { email: "ada@example.com" });
    await running.drain();
    expect(await showEvent(running, event)).toMatchObject(then);
    expect(await orders()).toEqual(written);
    expect(running.logged.filter((line) => line.includes("a batch broke"))).toHaveLength(1);
    expect(running.logged.filter((line) => line.includes("event broke its run"))).toEqual([]);
  });

  test("of an edited relay runs by the new map and actions", async () => {
    await settle();
    const { runner } = running.service;
    const enqueue = runner.enqueue.bind(runner);
    const kept: BufferedEvent[] = [];
    runner.enqueue = (arrived) => kept.push(arrived);
    const event = await sendEvent(running, "c", { email: "ada@example.com", other: "bob@example.com" });
    await editRelay(running, receiverDefinition({ actions: [WRITE, GRANT], map: { event_id: "id", person_email: "other" } }));
    for (const one of kept) enqueue(one);
    await running.drain();
    expect(await showEvent(running, event)).toMatchObject({ state: "done", person: { email: "bob@example.com" } });
    expect(await running.rows("SELECT amount FROM credit")).toEqual([{ amount: 5 }]);
  });

  test("that was deleted runs nothing, and later events run", async () => {
    await settle();
    const { runner, store } = running.service;
    const enqueue = runner.enqueue.bind(runner);
    const kept: BufferedEvent[] = [];
    runner.enqueue = (arrived) => kept.push(arrived);
    for (const id of ["c", "d"]) await sendEvent(running, id, { email: "ada@example.com" });
    await store.write("erasure", (tx) => tx.run("DELETE FROM event WHERE seq = $seq", { seq: kept[0]?.event.seq ?? 0 }));
    for (const one of kept) enqueue(one);
    await running.drain();
    expect(await orders()).toEqual(["a", "b", "d"]);
  });

  test("stored through another endpoint between handed-over ones runs in arrival order", async () => {
    await settle();
    const sent: string[] = [];
    for (let round = 0; round < 30; round++) {
      const ids = [`r${round}-0`, `r${round}-1`];
      if (round % 3 === 0) await putEvents(running, ids, { email: "ada@example.com" });
      else await Promise.all(ids.map((id) => sendEvent(running, id, { email: "ada@example.com" })));
      sent.push(...ids);
    }
    await running.drain();
    const stored = await running.rows<{ id: string }>("SELECT json_extract(payload, '$.mapped.event_id') AS id FROM event ORDER BY seq");
    expect(await orders()).toEqual(stored.map(({ id }) => id));
    expect(stored).toHaveLength(sent.length + 2);
  });
});
