/** Tests the overview. Each problem is one item with its cause and remedy, resolved problems disappear, and the hours count the events by state. */
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { raiseAlert } from "../../src/platform/audit/alert.ts";
import { clearProblem, raiseProblem } from "../../src/platform/audit/problem.ts";
import { findSender } from "../../src/rules/senders/registry.ts";
import { startDefinition } from "../../src/rules/senders/sender-start.ts";
import { ON_POSTGRES } from "../kit/chosen-store.ts";
import { CALL, editRelay, putEvents, sendEvent, WRITE } from "../kit/event-flow.ts";
import { BROKEN, FakeCaller, OK } from "../kit/fake-caller.ts";
import { makeOrders, receiverDefinition, saveRelay, signedCall } from "../kit/relay-definition.ts";
import { type RunningService, startRunningService } from "../kit/running-service.ts";

const HOUR = 3_600_000;
const NOWHERE = { ...WRITE, collection: "nowhere" };
const MAP = { event_id: "id" };

let running: RunningService;
let caller: FakeCaller;
beforeEach(async () => {
  caller = new FakeCaller();
  running = await startRunningService({ ports: { caller }, environments: ["development", "production"] });
  await makeOrders(running);
});
afterEach(() => running[Symbol.asyncDispose]());

type Named = "development" | "production";
const overview = async (environment: Named = "development") => {
  const { status, body } = await running.api("GET", "/overview", undefined, environment);
  if (status !== 200) throw new Error(JSON.stringify(body));
  return body;
};
const define = (actions: readonly { type: string }[], name = "orders") => receiverDefinition({ name, actions, map: MAP });

async function die(count: number): Promise<void> {
  await saveRelay(running, define([NOWHERE]));
  await putEvents(
    running,
    Array.from({ length: count }, (_, at) => `dead-${at}`),
  );
  await running.drain();
}

/** Creates an event whose last attempt fails like the first. */
async function giveUp(): Promise<void> {
  caller.reply = () => BROKEN;
  await putEvents(running, ["a"]);
  await running.drain();
  await running.service.store.write("app", (tx) => tx.run("UPDATE event SET attempts = 6"));
  await running.clock.advance(2 * 60_000);
  await running.drain();
  await running.clock.advance(1_000);
}

/** Raises the alert of the relay `orders` again every two hours, while its events keep dying. */
async function tellHourly(times: number): Promise<void> {
  const key = { environmentId: await environmentId(), code: "relay_failed", target: "relay:orders", message: "An event is dead." } as const;
  for (let time = 1; time <= times; time++) {
    const nowMs = running.clock.now() + time * 2 * HOUR;
    await running.service.store.write("app", (tx) => raiseAlert(tx, { ...key, nowMs }));
  }
  await running.clock.advance(1_000);
}

async function environmentId(name: Named = "development"): Promise<number> {
  return (await running.rows<{ id: number }>("SELECT id FROM environment WHERE name = ?1", name))[0]?.id ?? 0;
}

const REFUSING = { code: "relay_refusing", target: "relay:orders", message: "orders refuses every call." } as const;

interface Row {
  name: string;
  stage(): Promise<unknown>;
  environment?: Named;
  needs: object[];
}

const ROWS: readonly Row[] = [
  { name: "nothing", stage: async () => undefined, needs: [] },
  {
    name: "an event dead by a missing collection",
    stage: () => die(3),
    needs: [
      {
        code: "relay_failed",
        target: "relay:orders",
        relay: "orders",
        message: expect.stringMatching(/^3 events are dead since \d{4}-.*: `collection` names nowhere/),
        alert: expect.stringMatching(/^alt_/),
        dead: {
          events: 3,
          more: false,
          firstDeadAt: expect.any(String),
          newestDeadAt: expect.any(String),
          newestEvent: expect.stringMatching(/^evt_/),
          failure: { type: "write_record", code: "collection_missing", message: expect.stringContaining("nowhere") },
          cause: { stands: "yes", message: "There is still no collection nowhere.", since: null, missing: { kind: "collection", name: "nowhere" } },
        },
      },
    ],
  },
  {
    name: "an event dead by a collection that now exists",
    async stage() {
      await die(1);
      await running.clock.advance(HOUR);
      await running.api("POST", "/collections", { name: "nowhere", kind: "shared", fields: { order: { type: "text" } } });
    },
    needs: [
      {
        code: "relay_failed",
        dead: { cause: { stands: "no", message: expect.stringMatching(/^The collection is there since .*: replaying will probably work\.$/) } },
      },
    ],
  },
  {
    name: "an event dead by a product that now exists",
    async stage() {
      const product = { type: "fulfil_product", product: "course", ref: "{{mapped.event_id}}" };
      const map = { event_id: "id", person_email: "email" };
      await saveRelay(running, receiverDefinition({ map, actions: [product] }));
      await sendEvent(running, "a", { email: "carol@example.com" });
      await running.drain();
      expect((await overview()).needs).toMatchObject([{ dead: { cause: { stands: "yes", missing: { kind: "product", name: "course" } } } }]);
      await running.api("PUT", "/products/course", { soldThrough: { kind: "relay", relay: "orders" } });
    },
    needs: [{ dead: { cause: { stands: "no", message: "The product is there now: replaying will probably work.", missing: null } } }],
  },
  {
    name: "a dead event whose relay has finished others since",
    async stage() {
      await die(2);
      await running.clock.advance(HOUR);
      await editRelay(running, define([WRITE]));
      await putEvents(running, ["a", "b", "c"]);
      await running.drain();
    },
    needs: [
      {
        code: "relay_failed",
        todo: expect.stringMatching(/^Replay the events/),
        dead: {
          events: 2,
          cause: { stands: "no", message: expect.stringMatching(/^Since .* its last 3 runs were done: replaying will probably work\.$/) },
        },
      },
    ],
  },
  {
    name: "a dead event whose relay changed since and ran nothing",
    async stage() {
      await saveRelay(running, define([CALL]));
      await giveUp();
      await running.drain();
      await editRelay(running, define([{ ...CALL, url: "https://example.com/other" } as never]));
    },
    needs: [
      { code: "relay_failed", dead: { failure: { type: "call_url" }, cause: { stands: "unknown", message: expect.stringContaining("changed at") } } },
    ],
  },
  {
    name: "a dead event whose URL works again",
    async stage() {
      await saveRelay(running, define([CALL]));
      await giveUp();
      caller.reply = () => OK;
      await putEvents(running, ["b"]);
      await running.drain();
    },
    needs: [{ code: "relay_failed", dead: { events: 1, cause: { stands: "no", message: expect.stringContaining("the URL answers 200") } } }],
  },
  {
    name: "dead events of a deleted relay",
    async stage() {
      await die(1);
      await running.api("DELETE", "/relays/orders");
    },
    needs: [{ code: "relay_failed", relay: "orders", dead: { cause: { stands: "yes", message: expect.stringContaining("is deleted") } } }],
  },
  {
    name: "dead events marked as resolved",
    async stage() {
      await die(2);
      const { items } = (await running.api("GET", "/alerts")).body;
      await running.clock.advance(1_000);
      for (const { id } of items) await running.api("POST", `/alerts/${id}/resolve`, {});
    },
    needs: [],
  },
  {
    name: "dead events with repeated alerts, after the newest alert is marked as resolved",
    async stage() {
      await die(2);
      await tellHourly(3);
      const { items } = (await running.api("GET", "/alerts?open=true")).body;
      await running.api("POST", `/alerts/${items[0].id}/resolve`, {});
    },
    needs: [],
  },
  {
    name: "a problem and its alert, as one item",
    async stage() {
      const key = { environmentId: await environmentId(), ...REFUSING, nowMs: running.clock.now() };
      await running.service.store.write("app", async (tx) => {
        await raiseProblem(tx, key);
        await raiseAlert(tx, key);
      });
    },
    needs: [
      {
        code: "relay_refusing",
        relay: "orders",
        message: REFUSING.message,
        todo: expect.stringContaining("set-secret"),
        alert: expect.stringMatching(/^alt_/),
        dead: null,
      },
    ],
  },
  {
    name: "a relay that rejects every request, since the first rejection and not as silent too",
    async stage() {
      await saveRelay(running, define([WRITE]));
      await sendEvent(running, "verified");
      await running.clock.advance(1_000);
      for (let call = 0; call < 5; call++) {
        await running.hook("orders", signedCall({ id: "x" }, "another secret that is not the relay's"));
        await running.clock.advance(5 * 60_000);
      }
      const key = { environmentId: await environmentId(), target: "relay:orders", nowMs: running.clock.now() };
      await running.service.store.write("app", (tx) => raiseProblem(tx, { ...key, code: "relay_silent", message: "It is silent." }));
    },
    needs: [{ code: "relay_refusing", since: "2026-01-15T12:00:01.000Z" }],
  },
  {
    name: "a relay that never verified a request, since the first rejection",
    async stage() {
      await saveRelay(running, define([WRITE]));
      await running.hook("orders", signedCall({ id: "x" }, "another secret that is not the relay's"));
      await running.clock.advance(2_000);
    },
    needs: [{ code: "never_verified", since: "2026-01-15T12:00:00.000Z" }],
  },
  {
    name: "a relay whose sender's secret is not stored, once",
    async stage() {
      const sender = findSender("stripe");
      if (sender === null) throw new Error("There is no sender stripe.");
      const saved = await running.api("POST", "/relays", { definition: startDefinition(sender, "orders") });
      expect(saved).toMatchObject({ status: 201, body: { relay: { secret: { kind: "none" } } } });
      expect(saved.body).not.toHaveProperty("receiverSecret");
      await running.hook("orders", signedCall({ id: "x" }, "another secret that is not the relay's"));
      await running.clock.advance(2_000);
    },
    needs: [{ code: "secret_missing", message: expect.stringContaining("Find it at Stripe: ") }],
  },
  {
    name: "a silent relay, since its last event",
    async stage() {
      await saveRelay(running, define([WRITE]));
      await sendEvent(running, "a");
      await running.clock.advance(8 * 60_000);
      const key = { environmentId: await environmentId(), target: "relay:orders", nowMs: running.clock.now() };
      await running.service.store.write("app", (tx) => raiseProblem(tx, { ...key, code: "relay_silent", message: "It is silent." }));
    },
    needs: [{ code: "relay_silent", since: "2026-01-15T12:00:00.000Z" }],
  },
  {
    name: "a resolved problem, as no item",
    async stage() {
      const key = { environmentId: await environmentId(), ...REFUSING, nowMs: running.clock.now() };
      await running.service.store.write("app", async (tx) => {
        await raiseProblem(tx, key);
        await raiseAlert(tx, key);
        await clearProblem(tx, key);
        await raiseAlert(tx, { ...key, code: "relay_recovered", endOf: "relay_refusing", message: "It is over." });
      });
    },
    needs: [],
  },
  {
    name: "an alert without a problem",
    async stage() {
      const alert = { environmentId: await environmentId(), code: "mail_unknown", target: "relay:orders", message: "A mail may have left." } as const;
      await running.service.store.write("app", (tx) => raiseAlert(tx, { ...alert, nowMs: running.clock.now() }));
    },
    needs: [{ code: "mail_unknown", message: "A mail may have left.", alert: expect.stringMatching(/^alt_/) }],
  },
  {
    name: "mail without a sender domain, with one dead and one waiting event",
    async stage() {
      const map = { event_id: "id", person_email: "email" };
      await saveRelay(running, receiverDefinition({ map, actions: [{ type: "email_person", subject: "Hi", text: "Hello" }] }));
      await sendEvent(running, "a", { email: "carol@example.com" });
      await running.drain();
      await running.service.store.write("app", (tx) => tx.run("UPDATE event SET attempts = 6"));
      await running.clock.advance(2 * 60_000);
      await running.drain();
      await sendEvent(running, "b", { email: "carol@example.com" });
      await running.drain();
      const { items } = (await running.api("GET", "/alerts")).body;
      expect(items.map(({ code }: { code: string }) => code)).toContain("sender_domain_required");
    },
    needs: [{ code: "relay_failed", dead: { events: 1, failure: { code: "sender_domain_required" }, cause: { stands: "yes" } } }],
  },
  {
    name: "failed attempts with a retry, with the newest and its failure",
    async stage() {
      caller.reply = () => BROKEN;
      await saveRelay(running, define([CALL]));
      await putEvents(running, ["a", "b"]);
      await running.drain();
      const key = { environmentId: await environmentId(), code: "relay_failing", target: "relay:orders", message: "Every event fails." } as const;
      await running.service.store.write("app", (tx) => raiseProblem(tx, { ...key, nowMs: running.clock.now() }));
    },
    needs: [{ code: "relay_failing", newest: { event: expect.stringMatching(/^evt_/), reason: "http_error" } }],
  },
  {
    name: "a hold",
    async stage() {
      const { version } = (await running.api("GET", "/settings")).body.settings;
      await running.api("PUT", "/settings", { version, held: true });
    },
    needs: [{ code: "environment_held", target: "environment", todo: expect.stringContaining("held off") }],
  },
  {
    name: ON_POSTGRES ? "no backup, where PostgreSQL's own tools make them" : "production on a server without a backup",
    environment: "production",
    async stage() {
      const definition = define([CALL]);
      expect((await running.api("POST", "/relays", { definition, secret: "Qk7bXFQsq4OKAPhAIVqsHMpkNhzCwRnS" }, "production")).status).toBe(201);
    },
    needs: ON_POSTGRES ? [] : [{ code: "backup_missing", target: "server", todo: expect.stringContaining("relay backup") }],
  },
];

describe("a problem that needs attention is one item with its cause and remedy", () => {
  test.each(ROWS.map((row) => [row.name, row] as const))("%s", async (_, { stage, environment, needs }) => {
    await stage();
    expect((await overview(environment)).needs).toMatchObject(needs);
  });
});

test("hours and figures count events by state, and relays are sorted by severity", async () => {
  await saveRelay(running, define([WRITE], "fine"));
  await putEvents(running, ["a", "b", "c"], { relay: "fine" });
  await die(2);
  await running.clock.leap(2 * HOUR);
  caller.reply = () => BROKEN;
  await saveRelay(running, define([CALL], "called"));
  await putEvents(running, ["w"], { relay: "called" });
  await running.drain();
  const { hours, last24h, relays, relayCount, refused } = await overview();
  expect(hours).toHaveLength(24);
  expect(hours.at(-3)).toMatchObject({ done: 3, dead: 2, waiting: 0, failed: 0 });
  expect(hours.at(-1)).toMatchObject({ done: 0, dead: 0, waiting: 1, failed: 0 });
  expect(last24h).toEqual({ done: 3, waiting: 1, failed: 0, dead: 2 });
  expect(relayCount).toBe(3);
  expect(relays.map(({ name }: { name: string }) => name)).toEqual(["orders", "called", "fine"]);
  const health = expect.objectContaining({ state: "failing", word: "Failing · 100 % dead", code: "relay_failed" });
  expect(relays[0]).toEqual({
    name: "orders",
    state: "active",
    needs: ["relay_failed"],
    health,
    last24h: { done: 0, waiting: 0, failed: 0, dead: 2 },
  });
  expect(relays[2].last24h).toEqual({ done: 3, waiting: 0, failed: 0, dead: 0 });
  expect(refused).toEqual({ calls: 0, relays: [] });
  await running.clock.leap(30 * HOUR, HOUR);
  expect((await overview()).last24h).toEqual({ done: 0, waiting: 0, failed: 0, dead: expect.any(Number) });
});

test("one dead event is listed below a relay whose every event fails", async () => {
  await die(1);
  caller.reply = () => BROKEN;
  await saveRelay(running, define([CALL], "checkout"));
  await putEvents(running, ["w", "x", "y"], { relay: "checkout" });
  await running.drain();
  const key = { environmentId: await environmentId(), target: "relay:checkout", nowMs: running.clock.now() };
  await running.service.store.write("app", (tx) => raiseProblem(tx, { ...key, code: "relay_failing", message: "Every event fails." }));
  const { needs } = await overview();
  expect(needs.map(({ relay }: { relay: string }) => relay)).toEqual(["checkout", "orders"]);
});

test("a setup step for the secret stays open until the secret that the sender creates is stored", async () => {
  const sender = findSender("stripe");
  if (sender === null) throw new Error("There is no sender stripe.");
  const definition = { ...startDefinition(sender), actions: [WRITE] };
  expect((await running.api("POST", "/relays", { definition })).status).toBe(201);
  expect((await overview()).start).toEqual({ relay: "stripe", secret: false, called: false, key: true });
  await running.api("PUT", "/relays/stripe/secret", { value: "whsec_aB3dEfGh1jKlMn0pQrStUvWx" });
  expect((await overview()).start).toEqual({ relay: "stripe", secret: true, called: false, key: true });
});

test("before the first event, it lists finished and open setup steps", async () => {
  expect((await overview()).start).toEqual({ relay: null, secret: false, called: false, key: true });
  await saveRelay(running, define([WRITE]));
  expect((await overview()).start).toEqual({ relay: "orders", secret: true, called: false, key: true });
  await running.hook("orders", signedCall({ id: "x" }, "another secret that is not the relay's"));
  const seen = await overview();
  expect(seen.start).toEqual({ relay: "orders", secret: true, called: true, key: true });
  expect(seen.refused).toMatchObject({ calls: 1, relays: [{ relay: "orders", calls: 1 }] });
  await sendEvent(running, "first");
  expect((await overview()).start).toBeNull();
});

test("lists the next ticks, soonest first", async () => {
  const every = (name: string, schedule: object) => ({ name, trigger: { kind: "schedule", ...schedule }, actions: [CALL] });
  expect((await running.api("POST", "/relays", { definition: every("daily", { every: "1d" }) })).status).toBe(201);
  const { ticks } = await overview();
  expect(ticks).toEqual([{ relay: "daily", at: expect.stringMatching(/T00:00:00/) }]);
});

test("reports the median and 95th percentile of called URLs since a time", async () => {
  caller.reply = () => OK;
  await saveRelay(running, define([CALL]));
  const times = async (query = "") => (await running.api("GET", `/url-times${query}`)).body.urls;
  expect(await times()).toEqual({ calls: 0, p50Ms: null, p95Ms: null, slowest: null });
  await putEvents(
    running,
    Array.from({ length: 40 }, (_, at) => `called-${at}`),
  );
  await running.drain();
  const runs = await running.rows<{ seq: number; results: string }>("SELECT event_seq AS seq, results FROM run ORDER BY event_seq");
  expect(runs).toHaveLength(40);
  await running.service.store.write("app", async (tx) => {
    for (const [at, { seq, results }] of runs.entries()) {
      const [first, ...rest] = JSON.parse(results);
      const took = JSON.stringify([{ ...first, tookMs: (at + 1) * 10 }, ...rest]);
      await tx.run("UPDATE run SET results = ?1 WHERE event_seq = ?2", took, seq);
    }
  });
  expect(await times()).toEqual({ calls: 40, p50Ms: 200, p95Ms: 380, slowest: "orders" });
  await running.clock.leap(HOUR);
  expect(await times(`?since=${new Date(running.clock.now()).toISOString()}`)).toMatchObject({ calls: 0, p95Ms: null });
  expect((await running.api("GET", "/url-times", undefined, "production")).body.urls.calls).toBe(0);
});

test("a paused relay shows the pause next to its problem", async () => {
  const health = async () => (await running.api("GET", "/relays/orders")).body.health;
  await die(2);
  expect(await health()).toMatchObject({ state: "failing", word: "Failing · 100 % dead" });
  await running.api("POST", "/relays/orders/pause", {});
  const message = expect.stringMatching(/^The relay is paused: .*2 events are dead since/);
  expect(await health()).toMatchObject({ state: "failing", word: "Failing · 100 % dead, paused", code: "relay_failed", message });
});

test("an alert that repeats for days hides no other item and counts once", async () => {
  const key = { environmentId: await environmentId(), code: "invite_capped", target: "relay:orders", nowMs: running.clock.now() } as const;
  await running.service.store.write("app", (tx) => raiseAlert(tx, { ...key, message: "No further invitation today." }));
  await die(1);
  await tellHourly(120);
  const { needs, more } = await overview();
  expect(needs).toMatchObject([{ code: "relay_failed", alert: expect.stringMatching(/^alt_/) }, { code: "invite_capped" }]);
  expect(more).toBe(false);
});

test("estimates large counts of older hours, and counts dead events exactly", async () => {
  await saveRelay(running, define([WRITE]));
  await sendEvent(running, "first");
  await running.drain();
  const nowMs = running.clock.now();
  const day = async (hoursAgo: number, count: number): Promise<void> => {
    await running.service.store.write("app", (tx) =>
      tx.run(`INSERT INTO event (seq, environment_id, name_key, relay_key, "trigger", state, attempts, runs, payload, created_at)
        WITH RECURSIVE number (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM number WHERE n < ${count})
        SELECT (SELECT max(seq) FROM event) + n, environment_id, name_key, relay_key, "trigger", CASE WHEN n % 5000 = 0 THEN 'dead' ELSE 'done' END, 1, 1, '{}', ${nowMs - hoursAgo * HOUR}
        FROM number, (SELECT * FROM event LIMIT 1) AS one`),
    );
  };
  await running.service.store.write("app", (tx) => tx.run("UPDATE event SET created_at = ?1", nowMs - 4 * HOUR));
  await day(3, 50_000);
  await day(1, 120_000);
  const { approximate, hours, last24h, relays } = await overview();
  expect(approximate).toBe(true);
  const [exact, about] = [hours.at(-2), hours.at(-4)];
  expect(exact).toMatchObject({ done: 119_976, dead: 24 });
  expect(about.dead).toBe(10);
  expect(Math.abs(about.done - 49_990)).toBeLessThan(2_500);
  expect(last24h.dead).toBe(34);
  expect(relays[0].last24h.done).toBe(last24h.done);
});
