/** Retention of recent requests and of rotated secrets. */
import { expect, test } from "bun:test";
import { DAY_MS } from "../../src/base/limit.ts";
import { PassedTally } from "../../src/engine/event/passed-count.ts";
import { RejectedTally } from "../../src/engine/event/rejected-count.ts";
import { type RecentRequest, writeRecentRequests } from "../../src/engine/receiver/request.ts";
import { writeUnknownRequests } from "../../src/engine/receiver/unknown-request.ts";
import { openMaintainedStore } from "../kit/maintained-store.ts";

test("a recent request is stored for 30 days, and the ring continues after that", async () => {
  await using cared = await openMaintainedStore();
  const call = (at: number): RecentRequest & { fold: null } => ({
    environmentId: cared.environmentId,
    relayName: "shop",
    firstAt: at,
    at,
    outcome: "refused",
    code: "bad_signature",
    cause: "header x-signature is missing",
    source: "203.0.113.7",
    eventId: null,
    count: 1,
    followers: null,
    fold: null,
  });
  const nowMs = cared.clock.now();
  await cared.store.write("app", (tx) => writeRecentRequests(tx, cared.environmentId, [call(nowMs - 31 * DAY_MS), call(nowMs - 29 * DAY_MS)]));
  await cared.round();
  await cared.store.write("app", (tx) => writeRecentRequests(tx, cared.environmentId, [call(nowMs)]));
  expect(await cared.store.read((tx) => tx.all("SELECT seq FROM recent_request ORDER BY seq"))).toEqual([{ seq: 2 }, { seq: 3 }]);
});

test("rejected requests are counted by the minute for four days, and by the hour for 30 days", async () => {
  await using cared = await openMaintainedStore();
  const nowMs = cared.clock.now();
  const tally = new RejectedTally();
  for (const days of [1, 3, 5, 29, 31]) tally.add(cared.environmentId, "shop", nowMs - days * DAY_MS, days);
  await cared.store.write("app", (tx) => tally.write(tx));
  await cared.round();
  const rows = await cared.store.read((tx) =>
    tx.all("SELECT every_ms, relay_name, sum(count) AS count FROM rejected_count GROUP BY every_ms, relay_name ORDER BY every_ms, relay_name"),
  );
  expect(rows).toEqual([
    { every_ms: 60_000, relay_name: "", count: 4 },
    { every_ms: 60_000, relay_name: "shop", count: 4 },
    { every_ms: 3_600_000, relay_name: "", count: 38 },
    { every_ms: 3_600_000, relay_name: "shop", count: 38 },
  ]);
});

test("requests that another relay took are counted for two days", async () => {
  await using cared = await openMaintainedStore();
  const nowMs = cared.clock.now();
  const tally = new PassedTally();
  const relay = { environmentId: cared.environmentId, name: "shop" };
  for (const days of [1, 3, 3]) tally.add(relay, "ignored", nowMs - days * DAY_MS);
  await cared.store.write("app", (tx) => tally.write(tx));
  await cared.round();
  expect(await cared.store.read((tx) => tx.all("SELECT count FROM passed_count"))).toEqual([{ count: 1 }]);
});

test("an unknown receiver name is stored for 30 days after its last request", async () => {
  await using cared = await openMaintainedStore();
  const nowMs = cared.clock.now();
  const call = (name: string, at: number) => ({ environmentId: cared.environmentId, name, at, source: "203.0.113.7", nearest: null, count: 1 });
  await cared.store.write("app", (tx) => writeUnknownRequests(tx, [call("old", nowMs - 31 * DAY_MS), call("new", nowMs - 29 * DAY_MS)]));
  await cared.round();
  expect(await cared.store.read((tx) => tx.all("SELECT name FROM unknown_request"))).toEqual([{ name: "new" }]);
});

test("a secret whose overlap has ended is deleted", async () => {
  await using cared = await openMaintainedStore();
  await cared.addRelay("ended", "active");
  await cared.addRelay("running", "active");
  const until = { ended: cared.clock.now(), running: cared.clock.now() + DAY_MS };
  for (const [name, untilMs] of Object.entries(until)) {
    const sql = "UPDATE relay SET previous_secret = x'01', previous_secret_until = ?2 WHERE name = ?1";
    await cared.store.write("app", (tx) => tx.run(sql, name, untilMs));
  }
  await cared.round();
  expect(await cared.store.read((tx) => tx.all("SELECT name FROM relay WHERE previous_secret IS NOT NULL"))).toEqual([{ name: "running" }]);
});
