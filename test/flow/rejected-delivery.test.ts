/** Tests the ledger of rejected requests: what it counts, when Home names it, what closes it, and its bounds. */
import { afterEach, beforeEach, expect, test } from "bun:test";
import { tmpdir } from "node:os";
import { DAY_MS, DEFAULT_LIMITS, MINUTE_MS } from "../../src/base/limit.ts";
import { Health } from "../../src/engine/health/health.ts";
import { RETENTION } from "../../src/engine/maintenance/retention.ts";
import { MAX_REJECTED_IDS, RejectionLedger, writeRejections } from "../../src/engine/receiver/rejected-delivery.ts";
import { findSender } from "../../src/rules/senders/registry.ts";
import { runCommand } from "../kit/cli-io.ts";
import { HOOK_SECRET, makeOrders, receiverDefinition, saveRelay, signedCall } from "../kit/relay-definition.ts";
import { type RunningService, startRunningService } from "../kit/running-service.ts";

const ROTATED = "Zz9bXFQsq4OKAPhAIVqsHMpkNhzCwRnS";

let running: RunningService;

beforeEach(async () => {
  running = await startRunningService();
  await makeOrders(running);
  await saveRelay(running, receiverDefinition({ when: { event_type: "paid" } }));
  await running.hook("orders", signedCall({ id: "before", type: "paid" }));
});

afterEach(async () => {
  await running[Symbol.asyncDispose]();
});

const paid = (id: string): { id: string; type: string } => ({ id, type: "paid" });

/** Sends requests with the sender's new secret, which the relay does not hold, twelve minutes apart. */
async function rejectMany(count: number): Promise<void> {
  for (let nth = 1; nth <= count; nth++) {
    await running.clock.advance(12 * MINUTE_MS);
    expect((await running.hook("orders", signedCall(paid(`evt_${nth}`), ROTATED))).status).toBe(401);
  }
}

async function fixSecret(): Promise<void> {
  await running.clock.advance(MINUTE_MS);
  const { status } = await running.api("PUT", "/relays/orders/secret", { value: ROTATED });
  expect(status).toBe(200);
}

async function arrive(id: string): Promise<void> {
  await running.hook("orders", signedCall(paid(id), ROTATED));
  await running.clock.advance(3_000);
}

// biome-ignore lint/suspicious/noExplicitAny: tests read answers by their fields
async function itemOnHome(): Promise<any> {
  const { needs } = (await running.api("GET", "/overview")).body;
  return needs.find(({ code }: { code: string }) => code === "requests_rejected") ?? null;
}

// biome-ignore lint/suspicious/noExplicitAny: tests read answers by their fields
async function readRejected(): Promise<any> {
  return (await running.api("GET", "/relays/orders/rejected")).body.rejected;
}

async function importMissed(ids: readonly string[]): Promise<void> {
  const url = `${running.service.url}/api/apps/app_test/development/relays/orders/import-missed`;
  const headers = { authorization: `Bearer ${running.keys.development}` };
  const body = ids.map((id) => JSON.stringify(paid(id))).join("\n");
  expect((await fetch(url, { method: "POST", headers, body })).status).toBe(200);
  await running.clock.advance(3_000);
}

test("the item counts what arrived after the secret was fixed, and goes when the rest is imported", async () => {
  await rejectMany(16);
  expect(await itemOnHome()).toBeNull();
  await fixSecret();
  await arrive("another");
  const item = await itemOnHome();
  expect(item).toMatchObject({ target: "relay:orders", relay: "orders", since: "2026-01-15T12:12:00.000Z" });
  expect(item.message).toBe(
    "orders rejected 16 requests from 2026-01-15T12:12:00.000Z to 2026-01-15T15:12:00.000Z. 0 of 16 events have arrived since then.",
  );
  for (const id of ["evt_1", "evt_2", "evt_3"]) await arrive(id);
  expect((await itemOnHome()).message).toEndWith("3 of 16 events have arrived since then.");
  const rejected = await readRejected();
  expect(rejected).toMatchObject({ requests: 16, arrived: 3, missing: 13, withoutId: 0, sender: null, repeatsUntil: null });
  expect(rejected.items.map(({ eventId }: { eventId: string }) => eventId)).toEqual(Array.from({ length: 16 }, (_, nth) => `evt_${nth + 1}`));
  await importMissed(Array.from({ length: 13 }, (_, nth) => `evt_${nth + 4}`));
  expect(await itemOnHome()).toBeNull();
  expect(await readRejected()).toMatchObject({ requests: 0, message: "No rejected request of orders is missing." });
});

test("a repeat counts once, a request that when ignores is not counted, and one without an id only by its number", async () => {
  await rejectMany(6);
  await running.hook("orders", signedCall(paid("evt_1"), ROTATED));
  await running.hook("orders", signedCall({ id: "evt_other", type: "created" }, ROTATED));
  await running.hook("orders", signedCall("{not json", ROTATED));
  await running.hook("orders", signedCall({ type: "paid" }, ROTATED));
  await running.hook("orders", signedCall(paid("ann@example.com"), ROTATED));
  await fixSecret();
  await arrive("another");
  expect(await readRejected()).toMatchObject({ requests: 9, arrived: 0, missing: 6, withoutId: 3 });
  expect((await itemOnHome()).message).toEndWith(
    "0 of 6 events have arrived since then. Relay could not read the event id of 3 requests: compare with the list at the sender.",
  );
});

test("a person closes the item, with an audit row", async () => {
  await rejectMany(5);
  await running.hook("orders", signedCall({ type: "paid" }, ROTATED));
  await fixSecret();
  await arrive("another");
  await running.clock.advance(3_000);
  const closed = await running.api("POST", "/relays/orders/rejected/close");
  expect([closed.status, closed.body]).toEqual([200, { requests: 6, arrived: 0, missing: 5, withoutId: 1 }]);
  expect(await itemOnHome()).toBeNull();
  const audit = await running.api("GET", "/audit?action=relay.rejections_closed");
  expect(audit.body.items).toMatchObject([{ target: "relay:orders", before: { requests: 6, missing: 5 } }]);
  expect((await running.api("POST", "/relays/orders/rejected/close")).body).toMatchObject({ requests: 0 });
});

test("the sender's retry of a rejected request marks its event as arrived, with the event", async () => {
  await rejectMany(5);
  await running.hook("orders", signedCall(paid("evt_2"), ROTATED));
  await fixSecret();
  expect((await readRejected()).items[1]).toMatchObject({ eventId: "evt_2", eventType: "paid", arrivedAt: null, event: null });
  await arrive("evt_2");
  const { items } = (await running.api("GET", "/events?relay=orders")).body;
  const [first, second] = (await readRejected()).items;
  expect(first).toMatchObject({ eventId: "evt_1", arrivedAt: null, event: null });
  expect(second).toMatchObject({ eventId: "evt_2", firstAt: "2026-01-15T12:24:00.000Z", lastAt: "2026-01-15T13:00:00.000Z", event: items[0].id });
  expect(second.arrivedAt).toStartWith("2026-01-15T13:01:0");
});

test("problems and the relay's page name the figures, until nothing is missing", async () => {
  await rejectMany(5);
  await fixSecret();
  await arrive("evt_1");
  await itemOnHome();
  const message = "orders rejected 5 requests from 2026-01-15T12:12:00.000Z to 2026-01-15T13:00:00.000Z. 1 of 5 events has arrived since then.";
  const problems = async () => (await running.api("GET", "/problems")).body.items;
  expect(await problems()).toMatchObject([{ code: "requests_rejected", target: "relay:orders", message }]);
  const { relay } = (await running.api("GET", "/relays/orders")).body;
  expect(relay.problems).toMatchObject([{ code: "requests_rejected", message }]);
  await importMissed(["evt_2", "evt_3", "evt_4", "evt_5"]);
  await itemOnHome();
  expect(await problems()).toEqual([]);
});

test("an ongoing outage counts its requests and events in the one item of the secret", async () => {
  await rejectMany(6);
  await running.hook("orders", signedCall(paid("evt_1"), ROTATED));
  await running.clock.advance(3_000);
  const { needs } = (await running.api("GET", "/overview")).body;
  expect(needs).toMatchObject([{ code: "relay_refusing", target: "relay:orders" }]);
  expect(needs[0].message).toEndWith(
    " So far 7 requests were rejected since 2026-01-15T12:12:00.000Z, the last at 2026-01-15T13:12:00.000Z. They name 6 different events.",
  );
  expect(await readRejected()).toMatchObject({
    ongoing: true,
    requests: 6,
    message: "So far orders rejected 6 requests from 2026-01-15T12:12:00.000Z to 2026-01-15T13:12:00.000Z. 0 of 6 events have arrived since then.",
  });
});

test("a relay that never verified a request counts its requests and events in its item", async () => {
  await saveRelay(running, receiverDefinition({ name: "fresh" }));
  for (const id of ["evt_1", "evt_2", "evt_1"]) {
    await running.clock.advance(MINUTE_MS);
    expect((await running.hook("fresh", signedCall(paid(id), ROTATED))).status).toBe(401);
  }
  await running.clock.advance(3_000);
  const { needs } = (await running.api("GET", "/overview")).body;
  expect(needs).toMatchObject([{ code: "never_verified", target: "relay:fresh" }]);
  expect(needs[0].message).toEndWith(
    " So far 3 requests were rejected since 2026-01-15T12:01:00.000Z, the last at 2026-01-15T12:03:00.000Z. They name 2 different events.",
  );
});

test("a new outage joins the missing events of the last one in its item", async () => {
  await rejectMany(5);
  await fixSecret();
  await arrive("another");
  expect(await itemOnHome()).not.toBeNull();
  for (let nth = 1; nth <= 5; nth++) {
    await running.clock.advance(12 * MINUTE_MS);
    await running.hook("orders", signedCall(paid(`later_${nth}`), HOOK_SECRET));
  }
  await running.clock.advance(3_000);
  const { needs } = (await running.api("GET", "/overview")).body;
  expect(needs.map(({ code }: { code: string }) => code)).toEqual(["relay_refusing"]);
});

test("the list says until when a known sender repeats its requests", async () => {
  await rejectMany(5);
  await fixSecret();
  await arrive("evt_1");
  const { verify, map, when } = findSender("stripe") ?? {};
  const definition = JSON.stringify(receiverDefinition({ verify: verify as never, map: map as never, when: when as never }));
  await running.service.store.write("app", (tx) => tx.run("UPDATE relay SET definition = ?1", definition));
  expect(await readRejected()).toMatchObject({ sender: "Stripe", repeatsUntil: "2026-01-18T13:00:00.000Z" });
  expect((await readRejected()).message).toContain(" Stripe sends them again until 2026-01-18T13:00:00.000Z. 1 of 5 events has");
});

test("the command lists the missing events with their types, and closes no list of an ongoing outage", async () => {
  const env = { RELAY_URL: running.service.url, RELAY_KEY: running.keys.development };
  const run = (...more: string[]) => runCommand(["relays", "rejected", "orders", ...more], { cwd: tmpdir(), env });
  await rejectMany(5);
  await running.clock.advance(3_000);
  const ongoing = await run();
  expect([ongoing.code, ongoing.said]).toEqual([3, expect.stringContaining("\n  2026-01-15T12:12:00.000Z  evt_1  paid\n")]);
  expect(ongoing.said).not.toContain("--close");
  const refused = await run("--close", "--yes");
  expect([refused.code, refused.told]).toEqual([1, expect.stringContaining("The relay orders still rejects its requests")]);
  await fixSecret();
  await arrive("evt_1");
  const settled = await run();
  expect([settled.code, settled.said]).toEqual([3, expect.stringContaining("relay relays rejected orders --close")]);
  expect(settled.said).not.toContain("evt_1 ");
  expect((await run("--close", "--yes")).code).toBe(0);
  expect((await run()).code).toBe(0);
});

test("some stray requests before a good one are no item", async () => {
  await running.clock.advance(MINUTE_MS);
  await running.hook("orders", signedCall(paid("forged_1"), ROTATED));
  await running.hook("orders", signedCall(paid("forged_2"), ROTATED));
  await running.clock.advance(20 * MINUTE_MS);
  await running.hook("orders", signedCall(paid("good"), HOOK_SECRET));
  await running.clock.advance(3_000);
  expect(await itemOnHome()).toBeNull();
  expect(await running.rows("SELECT * FROM rejected_delivery")).toEqual([]);
});

test("the streak of rejected requests is stored before their rows, and its end deletes the rows of stray ones", async () => {
  const { store, log, relays } = running.service;
  const stored = async () => {
    const [relay] = await running.rows<{ count: number }>("SELECT refused_count AS count FROM relay");
    return [relay?.count, (await running.rows("SELECT event_id FROM rejected_delivery")).length];
  };
  await running.clock.advance(3_000);
  await running.hook("orders", signedCall(paid("forged_1"), ROTATED));
  await running.hook("orders", signedCall(paid("forged_2"), ROTATED));
  await readRejected();
  expect(await stored()).toEqual([2, 2]);

  // The server was killed, and the process after it is killed right after it stored the verified request.
  const health = new Health({ store, log, clock: running.clock, limits: DEFAULT_LIMITS });
  await health.start(() => false);
  const [relay] = (await relays.current()).relays;
  if (relay === undefined) throw new Error("The relay is not there.");
  health.recordVerified(relay, running.clock.now());
  await health.flush();
  expect(await stored()).toEqual([0, 0]);
});

test("a flood of ids is stored up to the bound, and the rest is counted", async () => {
  const { store } = running.service;
  const [relay] = await running.rows<{ id: string }>("SELECT id FROM relay");
  if (relay === undefined) throw new Error("The relay is not there.");
  const ledger = new RejectionLedger();
  for (let round = 0; round < 3; round++) {
    for (let nth = 0; nth < 2_000; nth++) ledger.record(relay, `forged_${round}_${nth}`, running.clock.now());
    await store.write("app", (tx) => writeRejections(tx, ledger.take()));
  }
  ledger.record(relay, "x".repeat(300), running.clock.now());
  ledger.record(relay, "with a \0 in it", running.clock.now());
  ledger.record({ id: "rel_deleted" }, "evt_1", running.clock.now());
  await store.write("app", (tx) => writeRejections(tx, ledger.take()));
  const count = "SELECT count(*) AS ids, sum(count) AS requests FROM rejected_delivery";
  expect(await running.rows(count)).toEqual([{ ids: MAX_REJECTED_IDS + 1, requests: 6_002 }]);
});

test("rows are deleted with the relay, and after 30 days", async () => {
  await rejectMany(5);
  await running.clock.advance(3_000);
  expect(await running.rows("SELECT event_id FROM rejected_delivery")).toHaveLength(5);
  const later = running.clock.now() + 31 * DAY_MS;
  const job = RETENTION["rejected deliveries"];
  await running.service.store.write("app", async (tx) => await job?.(tx, 0, later, null as never));
  expect(await running.rows("SELECT event_id FROM rejected_delivery")).toEqual([]);
  await running.hook("orders", signedCall(paid("late"), ROTATED));
  await running.clock.advance(3_000);
  expect(await running.rows("SELECT event_id FROM rejected_delivery")).toHaveLength(1);
  expect((await running.api("DELETE", "/relays/orders")).status).toBe(204);
  expect(await running.rows("SELECT event_id FROM rejected_delivery")).toEqual([]);
});

test("a write that failed puts its requests back, without those that turned out to be stray", () => {
  const ledger = new RejectionLedger();
  ledger.record({ id: "rel_1" }, "evt_outage", 1_000);
  ledger.record({ id: "rel_1" }, "evt_stray", 5_000);
  const taken = ledger.take();
  ledger.forget({ id: "rel_1" }, 5_000, 6_000);
  ledger.restore(taken);
  expect([...(ledger.take().get("rel_1")?.ids.keys() ?? [])]).toEqual(["evt_outage"]);
});
