/**
 * The order of events. Events of one relay start in arrival order, and relays never wait for each other. Pauses, holds and external changes apply
 * too.
 */
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { systemClock } from "../../src/base/clock.ts";
import { LEASE_MS } from "../../src/store/lease/node-lease.ts";
import { ON_POSTGRES } from "../kit/chosen-store.ts";
import { CALL, editRelay, putEvents, sendEvent, showEvent, until, WRITE } from "../kit/event-flow.ts";
import { NEXT_SEQ } from "../kit/event-sql.ts";
import { FakeCaller, OK } from "../kit/fake-caller.ts";
import { makeOrders, receiverDefinition, saveRelay } from "../kit/relay-definition.ts";
import { type RunningService, startRunningService } from "../kit/running-service.ts";
import { settle } from "../kit/virtual-clock.ts";

let running: RunningService;
let caller: FakeCaller;

beforeEach(async () => {
  caller = new FakeCaller();
  running = await startRunningService({ ports: { caller } });
  await makeOrders(running);
});

afterEach(() => running[Symbol.asyncDispose]());

const urlOf = (name: string) => `https://example.com/${name}`;
const calling = (name: string) => receiverDefinition({ name, actions: [{ type: "call_url", url: urlOf(name) }] });
const numbers = (count: number, prefix = "e") => Array.from({ length: count }, (_, n) => `${prefix}${n}`);

/** Lists the orders written so far, oldest first. */
async function written(): Promise<string[]> {
  const rows = await running.rows<{ order: string }>(`SELECT json_extract(data, '$.order') AS "order" FROM record ORDER BY seq`);
  return rows.map((row) => row.order);
}

describe("order", () => {
  test("events of one relay start in arrival order on the database path", async () => {
    await saveRelay(running, receiverDefinition({}));
    const ids = numbers(100);
    await putEvents(running, ids);
    await running.drain();
    expect(await written()).toEqual(ids);
  });

  test("a relay with hundreds of waiting events and one with a broken event delay no other relay's first event beyond two batches", async () => {
    for (const name of ["greedy", "broken", "modest"]) await saveRelay(running, receiverDefinition({ name }));
    await running.service.store.write("app", (tx) => tx.run("UPDATE relay SET state = 'paused'"));
    running.service.refresh();
    await putEvents(running, numbers(500, "g"), { relay: "greedy" });
    await putEvents(running, ["bad", "behind"], { relay: "broken" });
    await putEvents(running, ["first"], { relay: "modest" });
    await running.service.store.write("app", (tx) => tx.run(`UPDATE event SET payload = '{broken' WHERE payload LIKE '%"bad"%'`));
    await running.service.store.write("app", (tx) => tx.run("UPDATE relay SET state = 'active'"));
    running.service.refresh();
    await running.drain();
    const orders = await written();
    expect(orders).toHaveLength(502);
    expect(orders.indexOf("first")).toBeLessThan(128);
    expect(orders.indexOf("behind")).toBeLessThan(128);
    expect(orders.filter((order) => order.startsWith("g"))).toEqual(numbers(500, "g"));
    const ended = await running.rows("SELECT state, reason FROM event WHERE payload = '{broken'");
    expect(ended).toEqual([{ state: "queued", reason: "internal" }]);
  });

  test("waiting events of several relays run in one batch in the order of arrival", async () => {
    for (const name of ["one", "other"]) await saveRelay(running, receiverDefinition({ name }));
    await running.service.store.write("app", (tx) => tx.run("UPDATE relay SET state = 'paused'"));
    running.service.refresh();
    for (const id of numbers(12)) await putEvents(running, [id], { relay: Number(id.slice(1)) % 3 === 0 ? "other" : "one" });
    await running.service.store.write("app", (tx) => tx.run("UPDATE relay SET state = 'active'"));
    running.service.refresh();
    await running.drain();
    expect(await written()).toEqual(numbers(12));
  });

  // With other writers, new requests are stored, read and written again. Small shares would never finish.
  if (ON_POSTGRES)
    test("with other writers, a batch runs all waiting events within its time, in order and equally many of each relay at a time", async () => {
      for (const name of ["many", "few"]) await saveRelay(running, receiverDefinition({ name }));
      await running.service.store.write("app", (tx) => tx.run("UPDATE relay SET state = 'paused'"));
      running.service.refresh();
      await putEvents(running, numbers(250, "m"), { relay: "many" });
      await putEvents(running, numbers(40, "f"), { relay: "few" });
      await running.service.store.write("app", (tx) => tx.run("UPDATE relay SET state = 'active'"));
      running.service.refresh();
      await running.drain();
      const orders = await written();
      expect(orders.filter((order) => order.startsWith("m"))).toEqual(numbers(250, "m"));
      expect(orders.filter((order) => order.startsWith("f"))).toEqual(numbers(40, "f"));
      expect(orders.slice(0, 128).filter((order) => order.startsWith("f"))).toEqual(numbers(40, "f"));
      expect(await running.rows("SELECT count(DISTINCT CAST(xmin AS text)) AS transactions FROM run")).toEqual([{ transactions: 1 }]);
    });

  if (ON_POSTGRES)
    test("events that arrived while this node believed its lease had expired run once it recovers, without another poll", async () => {
      await saveRelay(running, receiverDefinition({}));
      const { monotonicMs } = systemClock;
      // Advances the clock as if the lease's renewal had waited behind a long batch.
      systemClock.monotonicMs = () => monotonicMs() + LEASE_MS;
      try {
        await putEvents(running, numbers(5));
        await settle();
        expect(await written()).toEqual([]);
        await running.service.store.write("app", async (tx) => tx.notify("lease"));
        await running.drain();
      } finally {
        systemClock.monotonicMs = monotonicMs;
      }
      expect(await written()).toEqual(numbers(5));
    });

  test("events of one relay start in arrival order if another process stored the older one", async () => {
    await saveRelay(running, receiverDefinition({}));
    // Events after the first are handed over in memory.
    for (const id of ["a", "b"]) {
      await sendEvent(running, id);
      await running.drain();
    }
    await running.direct.run(
      `INSERT INTO event (seq, environment_id, relay_key, name_key, trigger, state, payload, created_at)
       SELECT seq + 1, environment_id, relay_key, name_key, trigger, 'queued', replace(payload, '"b"', '"other"'), created_at
       FROM event ORDER BY seq DESC LIMIT 1`,
    );
    for (const id of ["c", "d"]) await sendEvent(running, id);
    await running.drain();
    expect(await written()).toEqual(["a", "b", "other", "c", "d"]);
  });

  test("events of one relay start in arrival order on the sending path", async () => {
    await saveRelay(running, receiverDefinition({ actions: [CALL] }));
    const events = await putEvents(running, numbers(100));
    await running.drain();
    expect(caller.ids).toEqual(events);
  });

  test("at most 8 events of one relay run at once, and the next starts when one ends", async () => {
    caller.reply = () => "hang";
    await saveRelay(running, receiverDefinition({ actions: [CALL] }));
    const events = await putEvents(running, numbers(20));
    await until("eight calls are out", () => caller.hanging() === 8);
    await running.clock.advance(10_000);
    expect(caller.hanging()).toBe(8);
    expect(caller.ids).toEqual(events.slice(0, 8));
    caller.letGo(1);
    await until("a ninth call is out", () => caller.requests.length === 9);
    expect(caller.ids[8]).toBe(events[8] as string);
    caller.reply = () => OK;
    caller.letGo();
    await running.drain();
    expect(caller.requests).toHaveLength(20);
  });

  test("at most 32 events run at once in total, however many relays are ready", async () => {
    caller.reply = () => "hang";
    const names = numbers(6, "relay-");
    for (const name of names) await saveRelay(running, calling(name));
    for (const name of names) await putEvents(running, numbers(12), { relay: name });
    await running.clock.advance(5_000);
    await until("32 calls are out", () => caller.hanging() >= 32);
    await running.clock.advance(10_000);
    expect(caller.hanging()).toBe(32);
    expect(running.service.runner.runningCount).toBe(32);
    const [row] = await running.rows<{ count: number }>("SELECT count(*) AS count FROM event WHERE state = 'running'");
    expect(row?.count).toBe(32);
    caller.reply = () => OK;
    caller.letGo();
    await running.drain();
    expect(caller.requests).toHaveLength(72);
  });

  test("RELAY_CONCURRENCY limits the total", async () => {
    const narrow = new FakeCaller("hang");
    await using few = await startRunningService({
      config: { concurrency: 3 },
      ports: { caller: narrow },
    });
    for (const name of ["one", "two"]) {
      await saveRelay(few, calling(name));
      await putEvents(few, numbers(5), { relay: name });
    }
    await few.clock.advance(10_000);
    expect(narrow.hanging()).toBe(3);
    narrow.reply = () => OK;
    narrow.letGo();
    await few.drain();
    expect(narrow.requests).toHaveLength(10);
  });

  test("a restart with many waiting events starts at most 32 at once", async () => {
    const names = numbers(10, "relay-");
    for (const name of names) await saveRelay(running, calling(name));
    await running.service.store.write("app", (tx) => tx.run("UPDATE relay SET state = 'paused'"));
    running.service.refresh();
    for (const name of names) await putEvents(running, numbers(10), { relay: name });
    await running.service.store.write("app", (tx) => tx.run("UPDATE relay SET state = 'active'"));
    caller.reply = () => "hang";
    running.service.refresh();
    await until("32 calls are out", () => caller.hanging() >= 32);
    await running.clock.advance(10_000);
    expect(caller.hanging()).toBe(32);
    caller.reply = () => OK;
    caller.letGo();
    await running.drain();
  });

  test("relays whose targets hang never take another relay's first place, however many events they have", async () => {
    caller.reply = (url) => (url === urlOf("modest") ? OK : "hang");
    const greedy = numbers(4, "greedy-");
    for (const name of [...greedy, "modest"]) await saveRelay(running, calling(name));
    for (const name of greedy) await putEvents(running, numbers(50), { relay: name });
    await until("every place but one is taken", () => caller.hanging() === 31);
    await putEvents(running, ["one", "two"], { relay: "modest" });
    await until("the modest relay has called", () => caller.requests.length === 33);
    expect(caller.hanging()).toBe(31);
    caller.reply = () => OK;
    caller.letGo();
    await running.drain();
  });

  test("a relay with 8 hanging calls does not slow another that calls", async () => {
    caller.reply = (url) => (url === urlOf("slow") ? "hang" : OK);
    await saveRelay(running, calling("slow"));
    await saveRelay(running, calling("quick"));
    await putEvents(running, numbers(50), { relay: "slow" });
    await until("eight calls hang", () => caller.hanging() === 8);
    const events = await putEvents(running, numbers(40), { relay: "quick" });
    await until("the other relay is through", () => caller.requests.length === 48);
    expect(caller.ids.slice(8)).toEqual(events);
    caller.reply = () => OK;
    caller.letGo();
    await running.drain();
  });

  test("hanging calls that take every place do not block relays that only touch the database", async () => {
    caller.reply = () => "hang";
    const names = numbers(4, "slow-");
    for (const name of names) await saveRelay(running, calling(name));
    await saveRelay(running, receiverDefinition({}));
    for (const name of names) await putEvents(running, numbers(8), { relay: name });
    await until("every place is taken", () => caller.hanging() === 32);
    const event = await sendEvent(running, "a");
    await until("it is done", async () => (await showEvent(running, event)).state === "done");
    caller.letGo();
    await running.drain();
  });

  test("an event that waits for its retry does not delay later ones", async () => {
    await saveRelay(running, receiverDefinition({ actions: [CALL] }));
    caller.reply = () => ({ kind: "unreachable", code: "timeout", message: "no answer" });
    await sendEvent(running, "a");
    await running.drain();
    caller.reply = () => OK;
    const later = await sendEvent(running, "b");
    await running.drain();
    expect(await showEvent(running, later)).toMatchObject({ state: "done" });
  });
});

describe("pause, resume and hold", () => {
  test("a paused receiver still receives and records, and its events run in arrival order when it resumes", async () => {
    await saveRelay(running, receiverDefinition({}));
    await sendEvent(running, "before");
    await running.drain();
    await running.api("POST", "/relays/orders/pause");
    const ids = numbers(10);
    for (const id of ids) await sendEvent(running, id);
    await running.clock.advance(60_000);
    expect(await written()).toEqual(["before"]);
    await running.api("POST", "/relays/orders/resume");
    await running.drain();
    expect(await written()).toEqual(["before", ...ids]);
  });

  test("a retry that falls due during a pause waits for the resume, and keeps its place before later arrivals", async () => {
    await saveRelay(running, receiverDefinition({ actions: [CALL] }));
    caller.reply = () => ({ kind: "unreachable", code: "timeout", message: "no answer" });
    const first = await sendEvent(running, "first");
    await running.drain();
    caller.reply = () => OK;
    await running.api("POST", "/relays/orders/pause");
    await running.clock.advance(10 * 60_000);
    const second = await sendEvent(running, "second");
    expect(await showEvent(running, first)).toMatchObject({ state: "queued", attempts: 1 });
    await running.api("POST", "/relays/orders/resume");
    await running.drain();
    expect(caller.ids).toEqual([first, first, second]);
  });

  test("an event that runs when the relay is paused ends its attempt", async () => {
    caller.reply = () => "hang";
    await saveRelay(running, receiverDefinition({ actions: [CALL, WRITE] }));
    const event = await sendEvent(running, "a");
    await until("the call is out", () => caller.hanging() === 1);
    await running.api("POST", "/relays/orders/pause");
    caller.letGo();
    await until("it is done", async () => (await showEvent(running, event)).state === "done");
    expect(await written()).toEqual(["a"]);
  });

  test("an environment on hold answers 200 and queues events, and runs them in order when it is released", async () => {
    const relays = ["second", "first", "third"];
    for (const name of relays) await saveRelay(running, receiverDefinition({ name }));
    const hold = async (held: boolean) => {
      const { settings } = (await running.api("GET", "/settings")).body;
      const answer = await running.api("PUT", "/settings", { version: settings.version, held });
      expect(answer.status).toBe(200);
    };
    await hold(true);
    // One relay's event may affect another's, such as a payment and its cancellation.
    const ids = numbers(12);
    for (const [at, id] of ids.entries()) await sendEvent(running, id, {}, relays[(at * 7 + (at >> 1)) % 3]);
    await running.clock.advance(60_000);
    expect(await written()).toEqual([]);
    await hold(false);
    await running.drain();
    expect(await written()).toEqual(ids);
  });

  test("a pause and a hold outlive a restart", async () => {
    await saveRelay(running, receiverDefinition({}));
    await running.api("POST", "/relays/orders/pause");
    await sendEvent(running, "a");
    await running.restart();
    await running.clock.advance(60_000);
    expect(await written()).toEqual([]);
    await running.api("POST", "/relays/orders/resume");
    await running.drain();
    expect(await written()).toEqual(["a"]);
  });
});

describe("a definition change applies within 5 seconds", () => {
  test("at once if it came through the API", async () => {
    await saveRelay(running, receiverDefinition({}));
    await editRelay(running, receiverDefinition({ actions: [{ ...WRITE, data: { order: "changed" } }] }));
    await sendEvent(running, "a");
    await running.drain();
    expect(await written()).toEqual(["changed"]);
  });

  const INSERT_EVENT = `INSERT INTO event (seq, environment_id, relay_key, name_key, trigger, state, payload, created_at)
    SELECT ${NEXT_SEQ}, environment_id, key, name_key, 'receiver', 'queued', '{"event":{"id":"foreign"},"mapped":{"event_id":"foreign"}}', 0
    FROM relay JOIN relay_key ON relay_id = relay.id`;

  test("if another process wrote the definition", async () => {
    await saveRelay(running, receiverDefinition({}));
    await running.clock.advance(1_000);
    const changed = receiverDefinition({ actions: [{ ...WRITE, data: { order: "changed" } }] });
    await running.direct.run("UPDATE relay SET definition = ?1", JSON.stringify(changed));
    await running.clock.advance(5_000);
    await sendEvent(running, "a");
    await running.drain();
    expect(await written()).toEqual(["changed"]);
  });

  test("if another process paused and resumed the relay", async () => {
    await saveRelay(running, receiverDefinition({}));
    await running.clock.advance(1_000);
    await running.direct.run("UPDATE relay SET state = 'paused'");
    await running.clock.advance(5_000);
    await sendEvent(running, "a");
    await running.clock.advance(10_000);
    expect(await written()).toEqual([]);
    await running.direct.run("UPDATE relay SET state = 'active'");
    await running.clock.advance(5_000);
    await running.drain();
    expect(await written()).toEqual(["a"]);
  });

  test("if another process held and released the environment", async () => {
    await saveRelay(running, receiverDefinition({}));
    await running.clock.advance(1_000);
    await running.direct.run("UPDATE environment SET held_at = 1");
    await running.clock.advance(5_000);
    await sendEvent(running, "a");
    await running.clock.advance(10_000);
    expect(await written()).toEqual([]);
    await running.direct.run("UPDATE environment SET held_at = NULL");
    await running.clock.advance(5_000);
    await running.drain();
    expect(await written()).toEqual(["a"]);
  });

  test("an event that another process stored or replayed runs within 5 seconds", async () => {
    await saveRelay(running, receiverDefinition({}));
    await running.clock.advance(1_000);
    await running.direct.run(INSERT_EVENT);
    await running.clock.advance(5_000);
    await running.drain();
    expect(await written()).toEqual(["foreign"]);
  });

  test("an event of a relay newer than the snapshot is never taken for one of a deleted relay", async () => {
    await saveRelay(running, receiverDefinition({}));
    await running.clock.advance(1_000);
    // The relay has another id before the running service reads it again.
    await running.direct.run("UPDATE relay SET id = 'rly_young', secret = NULL, secret_kind = 'none'");
    await running.direct.run("INSERT INTO relay_key (relay_id, name_key) SELECT 'rly_young', name_key FROM relay_key");
    await running.direct.run(INSERT_EVENT);
    running.service.runner.wake("rly_young");
    await running.drain();
    expect(await written()).toEqual(["foreign"]);
    const [event] = await running.rows<{ state: string }>("SELECT state FROM event");
    expect(event?.state).toBe("done");
  });
});

describe("many events", () => {
  test("a burst of 2,000 events drains, each once", async () => {
    await saveRelay(running, receiverDefinition({}));
    await saveRelay(running, calling("caller"));
    const [writing, sending] = [numbers(1_000), numbers(1_000)];
    await putEvents(running, writing);
    await putEvents(running, sending, { relay: "caller" });
    await running.drain();
    expect(await written()).toEqual(writing);
    expect(new Set(caller.ids).size).toBe(1_000);
    // A place becomes free a moment after its event's end is committed.
    await until("every place is free", () => running.service.runner.runningCount === 0);
  });

  test("memory stays flat while events come and go", async () => {
    await saveRelay(running, receiverDefinition({}));
    await saveRelay(running, calling("caller"));
    const round = async (prefix: string) => {
      await putEvents(running, numbers(500, prefix));
      await putEvents(running, numbers(100, prefix), { relay: "caller" });
      await running.drain();
      caller.requests.length = 0;
      running.lines.length = 0;
      Bun.gc(true);
      return process.memoryUsage().heapUsed;
    };
    for (const prefix of ["a", "b", "c"]) await round(prefix);
    const before = await round("d");
    for (const prefix of ["e", "f", "g", "h"]) await round(prefix);
    const grown = (await round("i")) - before;
    expect(grown).toBeLessThan(4 * 1024 * 1024);
  });
});
